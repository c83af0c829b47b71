"""Computing again in the backward pass: the same gradients, less memory, and labels that survive rewriting."""

from __future__ import annotations

import time

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.errors import GraphError
from rlx_swift.ir.graph import Graph
from rlx_swift.ir.rewrite import Copy
from rlx_swift.passes.decompose import decompose
from rlx_swift.testing import assert_close

LAYERS, ROWS, WIDTH = 6, 64, 32


def network(remat: bool) -> rlx.Graph:
    g = rlx.Graph()
    x = g.input("x", (ROWS, WIDTH))

    def block(x, up, down):
        return x + ops.tanh(ops.gelu(ops.layer_norm(x) @ up) @ down)

    run = rlx.remat(block) if remat else block
    for i in range(LAYERS):
        x = run(x, g.param(f"up{i}", (WIDTH, 4 * WIDTH)), g.param(f"down{i}", (4 * WIDTH, WIDTH)))
    g.set_outputs({"loss": ops.mean(ops.square(x))})
    return g


def feeds() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {n: 0.3 * rng.standard_normal(t.shape) for n, t in network(False).leaves().items()}


def test_gradients_are_the_same():
    kept, again = (rlx.grad_with_loss(network(remat)) for remat in (False, True))
    expected = rlx.evaluate(kept, {**feeds(), "d_output": 1.0})
    for name, value in rlx.evaluate(again, {**feeds(), "d_output": 1.0}).items():
        assert_close(value, expected[name])  # the same ops on the same values: equal bits


def test_derivatives_of_second_order_and_forward_mode():
    rlx.check_grads(network(True), feeds(), ["up0", "down5"], order=2, rtol=1e-4)
    slopes = [rlx.evaluate(rlx.jvp(network(r), "x"), {**feeds(), "d_x": np.ones((ROWS, WIDTH))}) for r in (False, True)]
    assert_close(slopes[1]["jvp_loss"], slopes[0]["jvp_loss"])


def peak(graph: Graph) -> int:
    """The most elements that are alive at once, in the graph's order, besides leaves and results."""
    nodes = graph.live_nodes()
    results = {id(t) for t in graph.outputs.values()}
    last = {id(x): i for i, node in enumerate(nodes) for x in node.inputs}
    sizes: dict[int, int] = {}
    most = 0
    for i, node in enumerate(nodes):
        sizes.update((id(t), t.size) for t in node.outputs if id(t) not in results)
        most = max(most, sum(sizes.values()))
        for x in node.inputs:
            if last[id(x)] == i:
                sizes.pop(id(x), None)
    return most


FORMS = [lambda g: g, rlx.simplify, decompose, lambda g: Copy(g).graph, lambda g: Graph.from_json(g.to_json())]


@pytest.mark.parametrize("form", FORMS)
def test_less_is_alive_at_once(form):
    kept, again = (peak(form(rlx.grad(network(remat)))) for remat in (False, True))
    assert again < 0.6 * kept


@pytest.mark.native
def test_the_cpu_device_needs_less_memory():
    def arena(graph: Graph) -> int:
        compiled = rlx.Session(device="cpu").compile(graph)
        for name in graph.params:
            compiled.set_param(name, feeds()[name])
        compiled.run({"x": feeds()["x"], "d_output": 1.0})
        return compiled.statistics["arena_bytes"]

    for form in (lambda g: g, rlx.simplify):
        kept, again = (arena(form(rlx.grad(network(remat)))) for remat in (False, True))
        assert again < 0.7 * kept


def test_each_call_is_a_region_of_its_own_and_inner_ones_too():
    g = rlx.Graph()
    inner = rlx.remat(ops.exp)
    outer = rlx.remat(lambda x: inner(x) * 2.0)
    g.set_outputs({"y": outer(outer(g.input("x", ()))) + 1.0})
    assert [node.region for node in g.nodes] == ["remat#1", "remat#0", "remat#3", "remat#2", ""]
    rlx.check_grads(g, {"x": 0.1}, "x")


def test_labels_of_a_copy_are_not_given_out_again():
    new = Copy(network(True)).graph
    taken = {node.region for node in new.nodes}
    rlx.remat(ops.exp)(new.inputs["x"])
    assert len(taken - {""}) == LAYERS and new.nodes[-1].region not in taken


def test_each_node_is_looked_at_once_for_labels():
    """Thousands of blocks: looking at all nodes for each label would take a minute."""
    g = rlx.Graph()
    block, x = rlx.remat(ops.tanh), g.input("x", ())
    start = time.process_time()
    for _ in range(8000):
        x = block(x)
    g.set_outputs({"loss": x})
    rlx.grad(g, ["x"])
    assert time.process_time() - start < 10


def test_labels_are_printed_and_kept():
    g = network(True)
    assert "# remat#0" in str(g)
    for other in (Copy(g).graph, Graph.from_json(g.to_json())):
        assert [n.region for n in other.nodes] == [n.region for n in g.nodes]
    assert {n.region for n in decompose(g).nodes} == {n.region for n in g.nodes}


def test_a_function_keeps_its_name_and_needs_a_tensor():
    assert rlx.remat(ops.exp).__name__ == "exp"
    with pytest.raises(GraphError, match="remat"):
        rlx.remat(ops.exp)(1.0)


def test_an_error_inside_leaves_the_graph_usable():
    g = rlx.Graph()
    x = g.input("x", (2,))
    with pytest.raises(ZeroDivisionError):
        rlx.remat(lambda x: x / (1 // 0))(x)
    assert ops.exp(x).producer.region == ""
