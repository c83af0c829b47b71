"""Updatable networks as the bytes of a .mlmodel: Model.proto, NeuralNetwork.proto, Parameters.proto."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .program import FEATURE_DTYPES
from .updatable import OUTPUT, Layer, Network, weight_for
from .wire import integer, message, packed, text

SPECIFICATION = 4  # iOS 13 and macOS 10.15, the first that can be updated
_MOST = (1 << 31) - 1
_ACTIVATIONS = {"relu": 10, "tanh": 30, "sigmoid": 40}


@dataclass(frozen=True)
class Rule:
    """The update's numbers: SGD with `momentum`, or Adam where `betas` is given."""

    lr: float
    batch: int
    epochs: int
    momentum: float = 0.0
    betas: tuple[float, float] | None = None
    eps: float = 1e-8


def encode(network: Network, rule: Rule, values: Mapping[str, np.ndarray]) -> bytes:
    """The model with these weights, which an update starts from."""
    layers = b"".join(message(1, part) for part in _layers(network, values))
    body = layers + message(10, _updates(network, rule))
    return (
        integer(1, SPECIFICATION) + message(2, _description(network)) + integer(10, 1) + message(500, body)
    )


def _description(network: Network) -> bytes:
    source = _feature(network.input_feature, "fp32", network.sample)
    if network.loss == "cross_entropy":
        target = _feature(network.target_feature, "int32", (1,))
    else:
        target = _feature(network.target_feature, "fp64", network.output)
    output = _feature(OUTPUT, "fp32", network.output)
    return message(1, source) + message(10, output) + message(50, source) + message(50, target)


def _feature(name: str, dtype: str, shape: tuple[int, ...]) -> bytes:
    array = message(1, packed(shape)) + integer(2, FEATURE_DTYPES[dtype])
    return text(1, name) + message(3, message(5, array))


# Layers


def _layers(network: Network, values: Mapping[str, np.ndarray]) -> list[bytes]:
    parts = []
    source = network.input_feature
    for index, layer in enumerate(network.layers):
        last = index == len(network.layers) - 1
        target = OUTPUT if last else f"value_{index}"
        flags = integer(10, 1) if layer.updatable else b""
        head = text(1, layer_name(network, index)) + text(2, source) + text(3, target)
        parts.append(head + flags + _parameters(layer, values))
        source = target
    return parts


def layer_name(network: Network, index: int) -> str:
    """What the model calls a layer: its weight's name, or a number for those that have none."""
    return network.layers[index].name or f"layer_{index}"


def _parameters(layer: Layer, values: Mapping[str, np.ndarray]) -> bytes:
    if layer.kind == "dense":
        return message(140, _dense(layer, values))
    if layer.kind == "conv":
        return message(100, _conv(layer, values))
    if layer.kind in ("max_pool", "average_pool"):
        return message(120, _pool(layer))
    if layer.kind == "flatten":
        return message(301, b"")
    if layer.kind == "softmax":
        return message(175, b"")
    return message(130, message(_ACTIVATIONS[layer.kind], b""))


def _dense(layer: Layer, values: Mapping[str, np.ndarray]) -> bytes:
    out, into = layer.shape
    flag = integer(10, 1) if layer.bias else b""
    weights = message(20, _weights(weight_for(layer, values), layer.updatable))
    return integer(1, into) + integer(2, out) + flag + weights + _bias(21, layer, values)


def _conv(layer: Layer, values: Mapping[str, np.ndarray]) -> bytes:
    out, into, rows, columns = layer.shape
    attrs = layer.attrs
    kernel = message(20, packed((rows, columns)))
    sizes = kernel + message(30, packed(attrs.strides)) + message(40, packed(attrs.dilation))
    flag = integer(70, 1) if layer.bias else b""
    return (
        integer(1, out) + integer(2, into) + integer(10, attrs.groups) + sizes + message(50, _padding(attrs.padding))
        + flag + message(90, _weights(weight_for(layer, values), layer.updatable)) + _bias(91, layer, values)
    )


def _pool(layer: Layer) -> bytes:
    attrs = layer.attrs
    windows = message(10, packed(attrs.kernel)) + message(20, packed(attrs.strides))
    excludes = layer.kind == "average_pool" and not attrs.count_padding
    kind = integer(1, int(layer.kind != "max_pool"))
    return kind + windows + message(30, _padding(attrs.padding)) + integer(50, int(excludes))


def _padding(padding: tuple[tuple[int, int], ...]) -> bytes:
    edges = b"".join(message(10, integer(1, before) + integer(2, after)) for before, after in padding)
    return message(1, edges)


def _bias(number: int, layer: Layer, values: Mapping[str, np.ndarray]) -> bytes:
    if not layer.bias:
        return b""
    return message(number, _weights(np.asarray(values[layer.bias], np.float32), layer.updatable))


def _weights(values: np.ndarray, updatable: bool) -> bytes:
    return message(1, values.astype("<f4").tobytes()) + integer(50, int(updatable))


# Updates


def _updates(network: Network, rule: Rule) -> bytes:
    loss = text(1, OUTPUT) + text(2, network.target_feature)
    kind = 10 if network.loss == "cross_entropy" else 11
    layer = text(1, "loss") + message(kind, loss)
    return (
        message(1, layer) + message(2, _optimizer(rule)) + message(3, _whole(rule.epochs)) + message(10, b"")
    )


def _optimizer(rule: Rule) -> bytes:
    batch = message(2, _whole(rule.batch))
    lr = message(1, _real(rule.lr, max(1.0, rule.lr)))
    if rule.betas is None:
        return message(10, lr + batch + message(3, _real(rule.momentum, 1.0)))
    betas = message(3, _real(rule.betas[0], 1.0)) + message(4, _real(rule.betas[1], 1.0))
    return message(11, lr + batch + betas + message(5, _real(rule.eps, 1.0)))


def _real(value: float, most: float) -> bytes:
    return _double(1, value) + message(10, _double(2, most))


def _double(field: int, value: float) -> bytes:
    return bytes((field << 3 | 1,)) + struct.pack("<d", value)


def _whole(value: int) -> bytes:
    return integer(1, value) + message(10, integer(1, 1) + integer(2, _MOST))
