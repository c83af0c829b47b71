"""A graph over a batch equals the graph run for each value: alone, nested, and together with derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlx_swift as rlx
from rlx_swift import nn, ops
from rlx_swift.errors import FeedError, GraphError, NameNotFoundError, ShapeError
from rlx_swift.ir.graph import Graph
from rlx_swift.testing import assert_close, assert_devices_agree, strategies, tolerance
from tests.contracts.cases import WITHIN_F64

F64 = np.float64


def built(function, *shapes, dtype=rlx.f32) -> Graph:
    g = Graph("built")
    g.set_outputs({"y": function(*[g.input(f"x{i}", shape, dtype) for i, shape in enumerate(shapes)])})
    return g


def looped(graph: Graph, names, size: int, feeds, dtype=F64) -> dict[str, np.ndarray]:
    rows = [
        rlx.evaluate(graph, {n: v[i] if n in names else v for n, v in feeds.items()}, dtype) for i in range(size)
    ]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def assert_batched(graph: Graph, names, size: int, feeds) -> Graph:
    """`feeds` has the named inputs with the batch."""
    batched = rlx.vmap(graph, names, size)
    batched.verify()
    expected = looped(graph, names, size, feeds)
    for name, value in rlx.evaluate(batched, feeds, F64).items():
        assert_close(value, expected[name], WITHIN_F64, name)
    return batched


@given(st.data())
def test_random_graphs(data):
    graph = data.draw(strategies.graphs())
    names = data.draw(st.sets(st.sampled_from(sorted(graph.inputs)), min_size=1))
    first, *others = [data.draw(strategies.feeds(graph)) for _ in range(3)]
    feeds = {n: np.stack([v, *[o[n] for o in others]]) if n in names else v for n, v in first.items()}
    batched = rlx.vmap(graph, sorted(names), 3)
    batched.verify()
    expected = looped(graph, names, 3, feeds)
    for name, value in rlx.evaluate(batched, feeds, F64).items():
        assert_close(value, expected[name], WITHIN_F64, name, allow_nonfinite=True)


def test_inputs_and_outputs_gain_an_axis_and_params_do_not():
    g = Graph()
    x, s, w = g.input("x", (3,)), g.input("shared", (2,)), g.param("w", (3, 2))
    g.set_outputs({"y": x @ w + s, "constant": ops.exp(w)})
    batched = rlx.vmap(g, "x", 5)
    assert {n: t.shape for n, t in batched.leaves().items()} == {"x": (5, 3), "shared": (2,), "w": (3, 2)}
    assert {n: t.shape for n, t in batched.outputs.items()} == {"y": (5, 2), "constant": (5, 3, 2)}
    rng = np.random.default_rng(0)
    assert_batched(g, ["x"], 5, {n: rng.standard_normal(t.shape) for n, t in batched.leaves().items()})


def test_nested():
    g = built(lambda x, y: ops.softmax(x[:, None] * y) @ y, (3,), (4,))
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((5, 3)), rng.standard_normal((2, 4))
    outer = rlx.vmap(rlx.vmap(g, "x0", 5), "x1", 2)
    expected = [[rlx.evaluate(g, {"x0": a, "x1": b}, F64)["y"] for a in x] for b in y]
    assert_close(rlx.evaluate(outer, {"x0": x, "x1": y}, F64)["y"], np.array(expected), WITHIN_F64)
    both = rlx.vmap(rlx.vmap(g, ["x0", "x1"], 5), ["x0"], 2)
    x2, y2 = rng.standard_normal((2, 5, 3)), rng.standard_normal((5, 4))
    expected = [[rlx.evaluate(g, {"x0": a, "x1": b}, F64)["y"] for a, b in zip(row, y2, strict=True)] for row in x2]
    assert_close(rlx.evaluate(both, {"x0": x2, "x1": y2}, F64)["y"], np.array(expected), WITHIN_F64)


def test_the_rows_of_a_jacobian():
    g = built(lambda x: ops.tanh(x @ np.arange(12.0, dtype=np.float32).reshape(3, 4) / 12), (3,))
    pulled, pushed = rlx.vmap(rlx.vjp(g, "x0"), "d_y", 4), rlx.vmap(rlx.jvp(g, "x0"), "d_x0", 3)
    x = np.array([0.1, -0.2, 0.3])
    rows = rlx.evaluate(pulled, {"x0": x, "d_y": np.eye(4)}, F64)["grad_x0"]
    columns = rlx.evaluate(pushed, {"x0": x, "d_x0": np.eye(3)}, F64)["jvp_y"]
    assert_close(columns, rows.T, WITHIN_F64)


def test_the_whole_hessian():
    g = built(lambda x: ops.sum(x * x * ops.roll(x, 1, 0)), (3,))
    columns = rlx.vmap(rlx.hvp(g, "x0"), "v_x0", 3)
    a, b, c = x = np.array([1.0, 2.0, 3.0])
    expected = np.array([[2 * c, 2 * b, 2 * a], [2 * b, 2 * a, 2 * c], [2 * a, 2 * c, 2 * b]])
    # f = a a c + b b a + c c b
    assert_close(rlx.evaluate(columns, {"x0": x, "v_x0": np.eye(3)}, F64)["hvp_x0"], expected, WITHIN_F64)


def test_derivatives_of_a_batch():
    g = built(lambda x, w: ops.sum(ops.gelu(x @ w)), (3,), (3, 2))
    batched = rlx.vmap(g, "x0", 4)
    rng = np.random.default_rng(1)
    rlx.check_grads(batched, {"x0": rng.standard_normal((4, 3)), "x1": rng.standard_normal((3, 2))}, ["x0", "x1"])


def convolutional(g: Graph):
    x, labels = g.input("x", (1, 3, 8, 8)), g.input("labels", (1,), rlx.i32)
    h = ops.max_pool2d(ops.relu(nn.Conv(4, 3, padding=1)(x)), 2)
    h = ops.avg_pool2d(ops.gelu(nn.GroupNorm(2)(nn.Conv(6, 3, strides=2, padding=1)(h))), 2)
    return ops.cross_entropy(nn.Dense(5)(ops.reshape(h, (1, -1))), labels), {"labels": 5}


def transformer(g: Graph):
    ids, labels = g.input("ids", (6,), rlx.i32), g.input("labels", (6,), rlx.i32)
    table = nn.Embedding(11, 8)
    x = nn.TransformerBlock(2, 16, causal=True)(ops.expand_dims(table(ids), 0))
    return ops.cross_entropy(table.attend(nn.RMSNorm()(x))[0], labels), {"ids": 11, "labels": 11}


@pytest.fixture(params=[convolutional, transformer])
def network(request):
    g = Graph(request.param.__name__)
    loss, classes = request.param(g)
    g.set_outputs({"loss": loss})
    return rlx.grad_with_loss(g), classes


def network_feeds(batched: Graph, classes) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    feeds = {"d_output": np.float32(1)}
    for name, t in batched.leaves().items():
        if name in classes:
            feeds[name] = rng.integers(0, classes[name], t.shape).astype(np.int32)
        elif name != "d_output":
            feeds[name] = (0.4 * rng.standard_normal(t.shape)).astype(np.float32)
    return feeds


def test_gradients_of_each_example(network):
    graph, classes = network
    names = [name for name in graph.inputs if name != "d_output"]
    batched = rlx.vmap(graph, names, 4)
    assert_batched(graph, names, 4, network_feeds(batched, classes))
    assert len(rlx.vmap(graph, names, 9).nodes) == len(batched.nodes)  # nothing is done one by one


@pytest.mark.native
def test_gradients_of_each_example_on_the_cpu_device(network):
    graph, classes = network
    batched = rlx.vmap(graph, [name for name in graph.inputs if name != "d_output"], 4)
    within = tolerance(rlx.OpKind.COMPUTE, rlx.f32)
    assert_devices_agree(batched, network_feeds(batched, classes), within=within)


def test_each_value_draws_its_own_noise():
    g = built(lambda x: ops.dropout(x, 0.5), (64,))
    y = rlx.evaluate(rlx.vmap(g, "x0", 2), {"x0": np.ones((2, 64))}, seed=3)["y"]
    assert set(np.unique(y)) == {0.0, 2.0} and not np.array_equal(y[0], y[1])


def test_a_function_with_its_own_rule_is_applied_to_each_value():
    halved = rlx.custom_vjp(lambda x: ops.flip(x, 0))
    halved.defvjp(lambda g, out, x: (0.5 * g,))
    g = rlx.vjp(built(lambda x: halved(x * x), (3,)), "x0")
    batched = rlx.vmap(g, ["x0", "d_y"], 2)
    x = np.arange(6.0).reshape(2, 3)
    assert_close(rlx.evaluate(batched, {"x0": x, "d_y": np.ones((2, 3))}, F64)["grad_x0"], x)


def test_regions_and_simplification():
    loss = built(lambda x: ops.sum(rlx.remat(lambda x: ops.exp(ops.tanh(x)) * ops.tanh(x))(x)), (3,))
    g = rlx.grad(loss, "x0")
    batched = rlx.vmap(g, "x0", 2)
    assert {n.region for n in batched.nodes} == {n.region for n in g.nodes}
    feeds = {"x0": np.arange(6.0).reshape(2, 3), "d_output": 1.0}
    expected = looped(g, ["x0"], 2, feeds)
    assert_close(rlx.evaluate(rlx.simplify(batched), feeds, F64)["grad_x0"], expected["grad_x0"], WITHIN_F64)


def test_indices_of_a_batch_are_checked():
    g = Graph()
    ids, table = g.input("ids", (2,), rlx.i32), g.input("table", (5, 3))
    g.set_outputs({"y": ops.gather(table, ids)})
    for names in (["ids"], ["ids", "table"]):
        batched = rlx.vmap(g, names, 2)
        compiled = rlx.Session(device="numpy").compile(batched)
        with pytest.raises(FeedError, match="ids"):
            compiled.run({"ids": [[0, 1], [2, 5]], "table": np.zeros(batched.inputs["table"].shape, np.float32)})


def test_a_named_dimension():
    traced = rlx.trace(lambda x: ops.sum(x, 0), x=rlx.spec(("B", 3)))
    x = np.arange(24.0).reshape(2, 4, 3)
    assert rlx.vmap(traced, "x", 2).bind({"B": 4}).outputs["output_0"].shape == (2, 3)
    assert_close(rlx.evaluate(rlx.vmap(traced, "x", 2).bind({"B": 4}), {"x": x}, F64)["output_0"], x.sum(1))


def test_what_cannot_be():
    g = Graph()
    x, mean = g.input("x", (3,)), g.buffer("mean", (3,))
    g.set_outputs({"y": x * 2.0})
    with pytest.raises(NameNotFoundError, match=r"'z'.*it has x"):
        rlx.vmap(g, "z", 2)
    for size in (0, -1):
        with pytest.raises(ShapeError, match="at least 1"):
            rlx.vmap(g, "x", size)
    g.assign(mean, mean + 1.0)
    assert rlx.vmap(g, "x", 2).assigns["mean"].shape == (3,)
    g.assign(mean, x + mean)
    with pytest.raises(GraphError, match=r"assign to 'mean'.*many"):
        rlx.vmap(g, "x", 2)
