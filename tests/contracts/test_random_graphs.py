"""Laws that hold for every graph that can be drawn from the registry."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import rlx_swift as rlx
from rlx_swift.ir.graph import Graph
from rlx_swift.ir.rewrite import Copy
from rlx_swift.testing import assert_close, strategies
from tests.contracts.cases import WITHIN_F64

F64 = np.float64


@given(st.data())
def test_the_interpreter_gives_what_the_types_say(data):
    graph = data.draw(strategies.graphs())
    graph.verify()
    results = rlx.evaluate(graph, data.draw(strategies.feeds(graph)))
    for name, tensor in graph.outputs.items():
        assert (results[name].shape, results[name].dtype) == (tensor.shape, tensor.dtype.numpy)


@given(st.data())
def test_json_and_copies_keep_the_graph(data):
    graph = data.draw(strategies.graphs())
    feeds = data.draw(strategies.feeds(graph))
    expected = rlx.evaluate(graph, feeds)
    back = Graph.from_json(graph.to_json())
    assert (back.to_json(), str(back)) == (graph.to_json(), str(graph))
    for other in (back, Copy(graph).graph):
        other.verify()
        for name, value in rlx.evaluate(other, feeds).items():
            assert_close(value, expected[name], allow_nonfinite=True)


@given(st.data())
def test_gradients_agree_with_finite_differences(data):
    graph = data.draw(strategies.graphs(max_nodes=4, differentiable=True))
    rlx.check_grads(graph, data.draw(strategies.feeds(graph)), ["x0", "p0"], order=2, rtol=2e-4, atol=1e-4)


@given(st.data())
def test_jvp_and_vjp_are_transposes(data):
    graph = data.draw(strategies.graphs(differentiable=True))
    feeds = data.draw(strategies.feeds(graph))
    rng = np.random.default_rng(0)
    wrt = ["x0", "p0"]
    forward, reverse = rlx.jvp(graph, wrt), rlx.vjp(graph, wrt)
    forward.verify()
    reverse.verify()
    tangents = {forward.generated[f"d_{n}"]: rng.standard_normal(graph.leaf(n).shape) for n in wrt}
    outputs = [n for n, t in graph.outputs.items() if t.dtype.is_float]
    cotangents = {reverse.generated[f"d_{n}"]: rng.standard_normal(graph.outputs[n].shape) for n in outputs}
    pushed = rlx.evaluate(forward, {**feeds, **tangents}, F64)
    pulled = rlx.evaluate(reverse, {**feeds, **cotangents}, F64)
    left = sum(np.vdot(cotangents[reverse.generated[f"d_{n}"]], pushed[forward.generated[f"jvp_{n}"]]) for n in outputs)
    right = sum(np.vdot(pulled[reverse.generated[f"grad_{n}"]], tangents[forward.generated[f"d_{n}"]]) for n in wrt)
    assert_close(F64(left), F64(right), WITHIN_F64)


@given(st.data())
def test_the_gradient_of_a_sum_is_the_sum_of_gradients(data):
    graph = data.draw(strategies.graphs(differentiable=True))
    feeds = data.draw(strategies.feeds(graph))
    parts = [rlx.ops.sum(t) for t in graph.outputs.values() if t.dtype.is_float]
    grads = []
    for loss in [*parts, sum(parts[1:], parts[0])]:
        graph.set_outputs({"loss": loss})
        derivative = rlx.grad(graph, ["x0", "p0"])
        grads.append(rlx.evaluate(derivative, {**feeds, "d_output": 1.0}, F64))
    for name, value in grads[-1].items():
        assert_close(value, sum(g[name] for g in grads[:-1]), WITHIN_F64)
