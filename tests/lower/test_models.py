"""Larger graphs, forward and backward, lowered and judged; the same bytes each time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.autodiff.reverse import grad_with_loss
from rlx_swift.ir.graph import Graph
from rlx_swift.lower.mil import lower
from rlx_swift.lower.package import to_bytes
from tests.programs import judged, operations

i32 = rlx.dtypes.i32


def mlp() -> Graph:
    g = Graph("mlp")
    x, labels = g.input("x", (8, 20)), g.input("labels", (8,), i32)
    h = ops.relu(x @ g.param("l0.w", (20, 16)) + g.param("l0.b", (16,)))
    h = ops.tanh(h @ g.param("l1.w", (16, 16)) + g.param("l1.b", (16,)))
    logits = h @ g.param("l2.w", (16, 10)) + g.param("l2.b", (10,))
    g.set_outputs({"loss": ops.softmax_cross_entropy_with_logits(logits, labels).mean(), "logits": logits})
    return g


def convolutions() -> Graph:
    g = Graph("convolutions")
    x, labels = g.input("x", (2, 3, 16, 16)), g.input("labels", (2,), i32)
    h = ops.conv2d(x, g.param("c0.w", (8, 3, 3, 3)), g.param("c0.b", (8,)), strides=2, padding="same")
    h = ops.relu(ops.layer_norm(h, axis=(1, 2, 3)))
    h = ops.max_pool2d(h, 2)
    h = ops.conv2d(h, g.param("c1.w", (8, 4, 3, 3)), padding=1, groups=2)
    h = ops.avg_pool2d(ops.silu(h), 2)
    h = ops.reshape(h, (2, -1)) @ g.param("head", (32, 10))
    g.set_outputs({"loss": ops.softmax_cross_entropy_with_logits(h, labels).mean()})
    return g


def transformer() -> Graph:
    g, (batch, length, width, heads) = Graph("transformer"), (2, 6, 16, 4)
    ids, targets = g.input("ids", (batch, length), i32), g.input("targets", (batch, length), i32)
    table = g.param("wte", (50, width))
    h = ops.gather(table, ids) + g.param("wpe", (length, width))
    mask = g.constant(np.triu(np.full((length, length), -1e9, np.float32), 1))
    for i in range(2):
        n = ops.layer_norm(h, g.param(f"{i}.ln1.g", (width,)), g.param(f"{i}.ln1.b", (width,)))
        projected = [n @ g.param(f"{i}.{name}", (width, width)) for name in "qkv"]
        q, k, v = (ops.transpose(ops.reshape(p, (batch, length, heads, -1)), (0, 2, 1, 3)) for p in projected)
        scores = ops.softmax(ops.matmul(q, k, transpose_y=True) * 0.5 + mask)
        mixed = ops.reshape(ops.transpose(scores @ v, (0, 2, 1, 3)), (batch, length, width))
        h = h + mixed @ g.param(f"{i}.o", (width, width))
        h = h + ops.gelu(ops.layer_norm(h) @ g.param(f"{i}.up", (width, 32))) @ g.param(f"{i}.down", (32, width))
    logits = ops.matmul(h, table, transpose_y=True)
    g.set_outputs({"loss": ops.softmax_cross_entropy_with_logits(logits, targets).mean()})
    return g


def mixed_precision() -> Graph:
    g, half = Graph("mixed"), rlx.dtypes.f16
    x, w = g.input("x", (4, 12)), g.param("w", (12, 12))
    h = ops.gelu(ops.cast(x, half) @ ops.cast(w, half) + g.constant(np.linspace(-1, 1, 12), half))
    h = ops.where(h > 0.0, h, 0.1 * h)
    loss = ops.logsumexp(ops.cast(h, rlx.dtypes.f32), 1).mean()
    g.set_outputs({"loss": loss, "half": ops.max(h, 1), "signs": h > 0.0})
    return g


FORWARD = [mlp, convolutions, transformer, mixed_precision]


@pytest.mark.parametrize("build", FORWARD)
def test_forward_graphs(build: Callable[[], Graph]) -> None:
    g = build()
    lowered = judged(g)
    assert to_bytes(lowered.model) == to_bytes(lower(build()).model)
    assert list(lowered.params) == list(g.params)
    assert lowered.unused == ()


@pytest.mark.parametrize("build", FORWARD)
def test_forward_graphs_with_their_weights(build: Callable[[], Graph]) -> None:
    g = build()
    lowered = judged(g, baked={name: np.full(t.shape, 0.1, np.float32) for name, t in g.params.items()})
    assert list(lowered.inputs) == list(g.inputs)
    assert lowered.params == {}


@pytest.mark.parametrize("build", FORWARD)
def test_gradient_graphs(build: Callable[[], Graph]) -> None:
    g = build()
    g.outputs = {"loss": g.outputs["loss"]}
    lowered = judged(grad_with_loss(g, list(g.params)))
    assert set(lowered.outputs) == {"loss", *(f"grad_{name}" for name in g.params)}
    assert "d_output" in lowered.inputs


@pytest.mark.parametrize("target", ["CoreML8", "CoreML9"])
@pytest.mark.parametrize("build", FORWARD)
def test_later_targets(build: Callable[[], Graph], target: str) -> None:
    judged(build(), target=target)


def test_numbering_does_not_depend_on_other_programs() -> None:
    first = to_bytes(lower(mlp()).model)
    lower(transformer())
    assert to_bytes(lower(mlp()).model) == first


def test_a_long_chain_does_not_exhaust_the_stack() -> None:
    g = Graph()
    x = g.input("x", (4,))
    for _ in range(300):
        x = ops.log_softmax(x)
    for _ in range(1200):
        x = ops.relu(x)
    g.set_outputs({"y": x})
    assert len(operations(lower(g))) == 6 * 300 + 1200
