"""Graphs as updatable NeuralNetwork models, where Core ML's own training can take them; knows no device or session.

`network_of` reads a graph back from its loss, and what stands in the way is a `Reason`. `encode` writes the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..dtypes import f32, i32
from ..ir.graph import Graph, LeafKind, Node, is_noise
from ..ir.graph import Leaf as GraphLeaf
from ..ir.tensor import Tensor
from ..ir.types import Shape
from .names import feature_name

ACTIVATIONS = ("relu", "tanh", "sigmoid")


class Reason(Exception):
    """Why a graph has no updatable model: the op, loss or param that stands in the way."""


@dataclass(frozen=True)
class Layer:
    """One layer, in the order of the network.

    Attributes:
        kind: "dense", "conv", "max_pool", "average_pool", "flatten", "softmax" or an activation.
        weight, bias: the params' names, for layers that have some.
        transposed: whether a dense weight is [in, out], as graphs mostly have it, and not [out, in].
        attrs: the attributes of the graph's op.
        shape: that of the weight as the model has it.
    """

    kind: str
    name: str
    weight: str = ""
    bias: str = ""
    transposed: bool = False
    attrs: Any = None
    shape: Shape = ()
    updatable: bool = False


@dataclass(frozen=True)
class Network:
    """Attributes:
    input, target: the graph's inputs, and the names of the model's features for them.
    sample: the shape of one input without the batch; `classes` or `size` is that of the output.
    loss: "cross_entropy" or "mse".
    """

    input: str
    target: str
    sample: Shape
    output: Shape
    loss: str
    layers: tuple[Layer, ...] = field(default_factory=tuple)

    @property
    def input_feature(self) -> str:
        return feature_name(self.input)

    @property
    def target_feature(self) -> str:
        return f"{OUTPUT}_true"


OUTPUT = "prediction"


def network_of(graph: Graph, loss: str, trainable: Iterable[str]) -> Network:
    """The network that a graph's loss is of; raises Reason for a graph that is none."""
    if graph.assigns or graph.buffers:
        raise Reason("it has buffers, which a NeuralNetwork model cannot keep")
    head, tail, target, kind = _loss(graph.outputs[loss])
    walk = _Walk(graph, set(trainable))
    layers = [*walk.back(tail), *(() if kind == "mse" else (Layer("softmax", "softmax"),))]
    source = walk.source
    if source is None or source.name is None:
        raise Reason("its loss does not depend on an input")
    if source.dtype is not f32 or source.ndim not in (2, 4):
        raise Reason(f"its input {source.name!r} is {source.type}; expected f32 of rank 2 or 4")
    if kind == "mse" and _is_linear(layers):
        raise Reason("mean squared error of a linear output, which Core ML does not compile; end with a sigmoid, say")
    missed = walk.trainable - walk.trained
    if missed:
        raise Reason(f"the loss does not reach the trained params {', '.join(sorted(missed))} through dense or conv")
    if not any(layer.updatable for layer in layers):
        raise Reason("no dense or conv layer is trained")
    if len({_rows(source), _rows(head)}) != 1:
        raise Reason("its output has another batch than its input")
    return Network(source.name, target, source.shape[1:], head.shape[1:], kind, tuple(layers))


# Reading the graph


def _loss(loss: Tensor) -> tuple[Tensor, Tensor, str, str]:
    """What the loss is of, where the layers end, the target's name, and the kind of loss."""
    reduced = _node(loss, "mean", "the loss")
    (each,) = reduced.inputs
    if len(_attrs(reduced).axes) != each.ndim:
        raise Reason("its loss is no mean over everything")
    node = _node(each, None, "the loss")
    if node.op.name == "softmax_cross_entropy":
        logits, labels = node.inputs
        if logits.ndim != 2 or _attrs(node).axis != 1:
            raise Reason(f"cross entropy of {logits.type}; expected logits of rank 2 with the classes last")
        return logits, logits, _input(labels, i32, "the labels"), "cross_entropy"
    if node.op.name == "square":
        difference = _node(node.inputs[0], "sub", "the squared error")
        prediction, target = difference.inputs
        if isinstance(prediction.producer, GraphLeaf):
            prediction, target = target, prediction
        if prediction.shape != target.shape:
            raise Reason("its squared error broadcasts the target")
        return prediction, prediction, _input(target, f32, "the target"), "mse"
    raise Reason(f"its loss is a {node.op.name}; expected the mean of softmax_cross_entropy or of squared errors")


def _node(x: Tensor, op: str | None, what: str) -> Node:
    node = x.producer
    if not isinstance(node, Node) or (op is not None and node.op.name != op):
        found = node.op.name if isinstance(node, Node) else "a leaf"
        raise Reason(f"{what} is made by {found}, expected {op or 'an op'}")
    return node


def _attrs(node: Node) -> Any:
    """Of the class that the node's op has."""
    return node.attrs


def _input(x: Tensor, dtype: Any, what: str) -> str:
    leaf = x.producer
    if not isinstance(leaf, GraphLeaf) or leaf.kind is not LeafKind.INPUT or x.dtype is not dtype or not leaf.name:
        raise Reason(f"{what} are no input of {dtype}")
    return leaf.name


def _rows(x: Tensor) -> int:
    return x.shape[0] if x.shape else 0


def _is_linear(layers: list[Layer]) -> bool:
    last = next((layer for layer in reversed(layers) if layer.kind != "flatten"), None)
    return last is None or last.kind in ("dense", "conv")


class _Walk:
    """Goes from the last value to the input and gathers the layers."""

    def __init__(self, graph: Graph, trainable: set[str]) -> None:
        self.trainable, self.trained, self.source = trainable, set[str](), None
        self._params = {id(t): name for name, t in graph.params.items()}
        self._used: set[str] = set()
        self._uses: dict[int, int] = {}
        for node in graph.live_nodes():
            for x in node.inputs:
                self._uses[id(x)] = self._uses.get(id(x), 0) + 1

    source: Tensor | None

    def back(self, x: Tensor) -> list[Layer]:
        layers: list[Layer] = []
        while isinstance(x.producer, Node):
            layer, x = self._layer(x.producer)
            layers.append(layer)
        if isinstance(x.producer, GraphLeaf) and x.producer.kind is LeafKind.INPUT and not is_noise(x.name or ""):
            self.source = x
        layers.reverse()
        return layers

    def _layer(self, node: Node) -> tuple[Layer, Tensor]:
        name = node.op.name
        if name in ACTIVATIONS:
            return Layer(name, ""), node.inputs[0]
        if name in ("max_pool", "avg_pool") and len(_attrs(node).kernel) == 2:
            kind = "max_pool" if name == "max_pool" else "average_pool"
            return Layer(kind, "", attrs=node.attrs), node.inputs[0]
        if name == "reshape":
            x, shape = node.inputs[0], node.outputs[0].shape
            if len(shape) != 2 or x.ndim != 4 or shape[0] != x.shape[0]:
                raise Reason(f"a reshape from {x.shape} to {shape}; only flattening after the batch passes gradients")
            return Layer("flatten", ""), x
        if name == "add":
            return self._biased(node)
        if name in ("matmul", "conv"):
            return self._weighted(node, "")
        raise Reason(f"the op {name}, which Core ML cannot train through")

    def _biased(self, node: Node) -> tuple[Layer, Tensor]:
        for x, offset in (node.inputs, node.inputs[::-1]):
            product = x.producer
            if not isinstance(product, Node) or product.op.name not in ("matmul", "conv"):
                continue
            bias = offset
            if product.op.name == "conv" and isinstance(offset.producer, Node) and offset.producer.op.name == "reshape":
                bias = offset.producer.inputs[0]
                if offset.shape != (*bias.shape, 1, 1):
                    break
            if id(bias) in self._params and bias.shape == x.shape[1:2] and self._uses.get(id(x)) == 1:
                return self._weighted(product, self._params[id(bias)])
        raise Reason("an add that is not the bias of a matmul or conv")

    def _weighted(self, node: Node, bias: str) -> tuple[Layer, Tensor]:
        (x, w), attrs = node.inputs, _attrs(node)
        weight = self._params.get(id(w))
        if weight is None:
            raise Reason(f"a {node.op.name} whose second operand is no param")
        if node.op.name == "matmul":
            if x.ndim != 2 or w.ndim != 2 or attrs.transpose_x:
                raise Reason(f"a matmul of {x.type} and {w.type}; expected [batch, in] and a matrix")
            shape = w.shape if attrs.transpose_y else w.shape[::-1]
        elif len(attrs.strides) != 2:
            raise Reason("a conv with other than two spatial axes")
        else:
            shape = w.shape
        names = {weight, bias} - {""}
        for name in sorted(names):
            if name in self._used:
                raise Reason(f"the param {name!r} is used by two layers")
        self._used |= names
        if names & self.trainable not in (set(), names):
            raise Reason(f"of {weight!r} and {bias!r} only one is trained; Core ML trains both or neither")
        self.trained |= names & self.trainable
        return Layer(
            "dense" if node.op.name == "matmul" else "conv", feature_name(weight), weight, bias,
            node.op.name == "matmul" and not attrs.transpose_y, attrs, shape, bool(names & self.trainable),
        ), x


# Values


def weight_for(layer: Layer, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """A layer's weight as the model has it, f32 in C order."""
    weight = np.asarray(values[layer.weight], np.float32)
    return np.ascontiguousarray(weight.T if layer.transposed else weight)
