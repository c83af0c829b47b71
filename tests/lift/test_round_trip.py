"""Every program that our own lowering writes, read back: a graph with equal values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import rlx_swift as rlx
from rlx_swift.ir.graph import Graph
from rlx_swift.ir.op import OpKind
from rlx_swift.lift import Lifting
from rlx_swift.lower.mil import Lowered, boundary_type, lower
from rlx_swift.lower.package import opened, to_bytes
from rlx_swift.testing import assert_close, sample, strategies, tolerance
from tests.contracts.cases import every_case


def lifted(lowered: Lowered) -> Graph:
    graph = Lifting(opened(to_bytes(lowered.model))).graph()
    graph.verify()
    return graph


def boundary(value: np.ndarray, type: rlx.ir.types.TensorType) -> np.ndarray:
    """A value as it enters or leaves a program."""
    inside = boundary_type(type)
    return np.asarray(value).astype(inside.dtype.numpy).reshape(inside.shape)


def assert_comes_back(graph: Graph, feeds: Mapping[str, np.ndarray]) -> None:
    """What the lowered graph means when it is read back is what the graph means."""
    expected = rlx.evaluate(graph, feeds)
    lowered = lower(graph, portable=False)
    entering = {
        feature: boundary(feeds[name], graph.leaf(name).type)
        for table in (lowered.inputs, lowered.params, lowered.buffers) for name, feature in table.items()
    }
    results = rlx.evaluate(lifted(lowered), entering)
    for name, tensor in graph.outputs.items():
        allowed = tolerance(OpKind.COMPUTE, tensor.dtype)
        value = boundary(expected[name], tensor.type)
        assert_close(results[lowered.outputs[name]], value, allowed, name, allow_nonfinite=True)


@every_case
def test_every_op(op, case):
    drawn = sample(op, case)
    assert_comes_back(drawn.graph, drawn.feeds)


@given(st.data())
def test_graphs_of_several_ops(data):
    graph = data.draw(strategies.graphs())
    assert_comes_back(graph, data.draw(strategies.feeds(graph)))


@given(st.data())
def test_gradients_of_graphs(data):
    graph = data.draw(strategies.graphs(max_nodes=4, differentiable=True))
    feeds = data.draw(strategies.feeds(graph))
    graph.set_outputs({"loss": sum(rlx.ops.sum(t) for t in graph.outputs.values() if t.dtype.is_float)})
    assert_comes_back(rlx.grad_with_loss(graph, ["x0", "p0"]), {**feeds, "d_output": np.float32(1)})


def test_weights_keep_their_names_and_values():
    graph = Graph()
    x, rng = graph.input("x", (2, 4)), np.random.default_rng(0)
    hidden = rlx.ops.tanh(x @ graph.param("l0.w", (4, 8)) + graph.param("l0.b", (8,))) - graph.buffer("mean", (8,))
    graph.set_outputs({"y": hidden @ graph.param("head", (8, 3)) * graph.param("scale", ())})
    leaves = {**graph.params, **graph.buffers}
    values = {name: rng.normal(size=t.shape).astype(np.float32) for name, t in leaves.items()}
    back = lifted(lower(graph, baked=values))
    assert (set(back.params), set(back.buffers)) == (set(graph.params), set(graph.buffers))
    for name, leaf in {**back.params, **back.buffers}.items():
        assert np.array_equal(leaf.producer.value, values[name])
