"""Passes that simplify: what each does, and that none changes a bit of any result."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.ir.graph import Graph, Node
from rlx_swift.ir.rewrite import Copy, inlined
from rlx_swift.passes.algebraic import algebraic
from rlx_swift.passes.cse import cse
from rlx_swift.passes.dce import dce
from rlx_swift.passes.decompose import decompose
from rlx_swift.passes.fold import fold
from rlx_swift.passes.simplify import simplify
from rlx_swift.testing import strategies

PASSES = [dce, cse, fold, algebraic, simplify]
SPECIAL = np.float32([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e-40])


def built(function, *shapes, dtype=rlx.f32) -> Graph:
    g = Graph("built")
    y = function(*[g.input(f"x{i}", shape, dtype) for i, shape in enumerate(shapes)])
    g.set_outputs({"y": y})
    return g


def names(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


def same_bits(before: Graph, after: Graph, feeds) -> None:
    after.verify()
    assert (list(after.inputs), list(after.params)) == (list(before.inputs), list(before.params))
    expected = rlx.evaluate(before, feeds)
    for name, value in rlx.evaluate(after, feeds).items():
        assert (value.shape, value.dtype) == (expected[name].shape, expected[name].dtype)
        plain = np.isnan(value) & np.isnan(expected[name]) if value.dtype.kind == "f" else np.zeros(value.shape, bool)
        np.testing.assert_array_equal(value[~plain], expected[name][~plain])
        if value.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(value[~plain]), np.signbit(expected[name][~plain]))


@pytest.mark.parametrize("run", PASSES, ids=lambda run: run.__name__)
@given(data=st.data())
def test_random_graphs_keep_every_bit(run, data):
    graph = data.draw(strategies.graphs())
    after = run(graph)
    same_bits(graph, after, data.draw(strategies.feeds(graph)))
    assert len(after.live_nodes()) <= len(graph.nodes)


@pytest.mark.parametrize("run", PASSES, ids=lambda run: run.__name__)
@given(data=st.data())
def test_gradient_graphs_keep_every_bit(run, data):
    graph = rlx.vjp(data.draw(strategies.graphs(max_nodes=4, differentiable=True)), ["x0", "p0"])
    same_bits(graph, run(graph), data.draw(strategies.feeds(graph)))


def frozen(graph: Graph, values) -> Graph:
    """The graph with constants in place of the leaves that have a value."""
    new = Graph(graph.name)
    leaves = {
        name: new.constant(values[name], t.dtype) if name in values else new.input(name, t.shape, t.dtype)
        for name, t in graph.leaves().items()
    }
    new.set_outputs(inlined(graph, new, leaves))
    return new


@given(data=st.data())
def test_what_depends_on_constants_alone_is_gone(data):
    graph = data.draw(strategies.graphs())
    feeds = data.draw(strategies.feeds(graph))
    names_of_constants = data.draw(st.sets(st.sampled_from(sorted(feeds)), min_size=1))
    constant = frozen(graph, {name: feeds[name] for name in names_of_constants})
    rest = {name: value for name, value in feeds.items() if name not in names_of_constants}
    for run in (fold, simplify):
        after = run(constant)
        same_bits(constant, after, rest)
        for node in after.live_nodes():
            assert not node.inputs or any(isinstance(x.producer, Node) or x.name in rest for x in node.inputs)


DISGUISES = [
    lambda x: x * 1.0, lambda x: 1.0 * x, lambda x: x / 1.0, lambda x: x - 0.0, lambda x: ops.neg(-x), ops.identity,
    lambda x: ops.pow(x, 1.0), lambda x: ops.flip(ops.flip(x)) if x.ndim else x,
    lambda x: ops.transpose(ops.transpose(x)),
]


@given(data=st.data())
def test_a_disguised_graph_comes_back(data):
    graph = data.draw(strategies.graphs())

    def disguise(node, operands):
        if not operands:
            return None
        results = operands[0].graph.apply(node.op, operands, node.attrs)
        return [data.draw(st.sampled_from(DISGUISES))(t) if t.dtype is rlx.f32 else t for t in results]

    disguised = Copy(graph, disguise).graph
    after = simplify(disguised)
    same_bits(disguised, after, data.draw(strategies.feeds(graph)))
    assert len(after.nodes) <= len(simplify(graph).nodes)


# Each pass


def test_dead_nodes_go_and_leaves_stay():
    g = Graph()
    x, _ = g.input("x", (2,)), g.input("unused", (3,))
    ops.log(x) + np.ones(2, np.float32)
    g.set_outputs({"y": ops.exp(x)})
    after = dce(g)
    assert names(after) == ["exp"] and list(after.inputs) == ["x", "unused"] and not after.constants


def test_equal_nodes_become_one():
    after = cse(built(lambda x: ops.exp(x) * ops.exp(x) + ops.sum(x, 0) + ops.sum(x, 0, keepdims=True), (3,)))
    assert names(after).count("exp") == 1 and names(after).count("sum") == 2


def test_what_only_looks_equal_stays_apart():
    g = built(lambda x: ops.clip(x, 0.0) / ops.clip(x, -0.0), (8,))
    assert names(cse(g)).count("clip") == 2
    same_bits(g, cse(g), {"x0": SPECIAL})


def test_ops_of_one_name_but_two_functions_stay_apart():
    def scaled(factor):
        made = rlx.custom_vjp(lambda x: x * factor)
        made.defvjp(lambda g, out, x: (g,))
        return made

    g = built(lambda x: scaled(2.0)(x) + scaled(3.0)(x), (2,))
    assert len(names(cse(g))) == 3
    same_bits(g, cse(g), {"x0": [1.0, -2.0]})


@pytest.mark.parametrize("run", PASSES, ids=lambda run: run.__name__)
def test_what_spells_a_composite_stays(run):
    def function(x):
        c = x.graph.constant(np.float32([1, 2, 3]))
        return ops.gelu(x * 1.0) + ops.gelu(x) + ops.layer_norm(x, ops.exp(c))

    g = decompose(built(function, (3,)))
    spelt = [(n.scope, n.op.name) for n in g.nodes if n.scope]
    assert spelt and [(n.scope, n.op.name) for n in run(g).nodes if n.scope] == spelt


def test_regions_that_are_computed_again_stay_apart():
    g = rlx.grad(built(lambda x: ops.sum(ops.square(rlx.remat(lambda x: ops.tanh(ops.exp(x)))(x))), (3,)), "x0")
    assert names(cse(g)).count("exp") == names(g).count("exp") == 2


def test_constants_are_computed_beforehand():
    def function(x):
        c = x.graph.constant(np.float32([1, 2, 3]))
        return x * ops.exp(c) + ops.sum(c)

    after = fold(built(function, (3,)))
    assert names(after) == ["mul", "add"]
    same_bits(built(function, (3,)), after, {"x0": [1.0, 2, 3]})


def test_folding_rounds_as_each_op_would():
    def function(x):
        return x + ops.sqrt(ops.square(x.graph.constant(np.float16(3.3)))) / 3.0

    g = built(function, (2,), dtype=rlx.f16)
    same_bits(g, fold(g), {"x0": np.float16([0.1, 2])})


def test_large_tables_are_not_stored():
    g = built(lambda x: x + ops.broadcast_to(x.graph.constant(np.ones(3, np.float32)) * 2.0, (4000, 3)), (4000, 3))
    assert names(fold(g)) == ["broadcast_to", "add"]


GONE = [
    lambda x: x * 1.0, lambda x: 1.0 * x, lambda x: x / 1.0, lambda x: x - 0.0, lambda x: ops.pow(x, 1.0),
    lambda x: ops.neg(-x), lambda x: ops.flip(ops.flip(x, 0), 0), ops.identity, lambda x: x * np.ones(8, np.float32),
    lambda x: ops.reshape(ops.reshape(x, (2, 4)), (8,)), lambda x: ops.squeeze(ops.expand_dims(x, 0), 0),
    lambda x: ops.transpose(ops.transpose(ops.reshape(x, (2, 4)))).reshape(8),
]


@pytest.mark.parametrize("function", GONE)
def test_identities_go(function):
    g = built(function, (8,))
    after = simplify(g)
    assert names(after) == []
    same_bits(g, after, {"x0": SPECIAL})


KEPT = [
    lambda x: x + 0.0, lambda x: x * 0.0, lambda x: x - x, lambda x: x / x, lambda x: 0.0 - x, lambda x: x - (-0.0),
    lambda x: x - np.float32([0.0, -0.0] * 4), lambda x: x * np.float32([1.0] * 7 + [2.0]),
    lambda x: ops.pow(x, 0.0), lambda x: 1.0 / x, lambda x: x * -1.0, lambda x: ops.maximum(x, x),
    lambda x: ops.sqrt(ops.square(x)), lambda x: ops.cast(ops.cast(x, rlx.f16), rlx.f32), lambda x: ops.flip(x, 0),
    lambda x: ops.cast(ops.cast(x, rlx.i32), rlx.f32),
]


@pytest.mark.parametrize("function", KEPT)
def test_what_would_change_a_bit_stays(function):
    g = built(function, (8,))
    after = simplify(g)
    assert names(after) == names(g)
    same_bits(g, after, {"x0": SPECIAL})


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda x, y: x - (-y), ["add"]), (lambda x, y: x + (-y), ["sub"]), (lambda x, y: -x + y, ["sub"]),
        (lambda x, y: ops.transpose(ops.transpose(x, (1, 2, 0)), (0, 2, 1)) + 1.0, ["transpose", "add"]),
        (lambda x, y: ops.reshape(ops.squeeze(ops.reshape(x, (1, 8, 3)), 0), (2, 12)) + 1.0, ["reshape", "add"]),
    ],
)
def test_identities_that_leave_something(function, wanted):
    g = built(function, (2, 4, 3), (2, 4, 3))
    after = simplify(g)
    assert names(after) == wanted
    rng = np.random.default_rng(0)
    same_bits(g, after, {f"x{i}": rng.choice(SPECIAL, (2, 4, 3)) for i in range(2)})


def test_a_cast_up_and_back_goes_for_halves():
    g = built(lambda x: ops.cast(ops.cast(x, rlx.f32), rlx.f16), (8,), dtype=rlx.f16)
    assert names(dce(algebraic(g))) == []
    same_bits(g, algebraic(g), {"x0": SPECIAL.astype(np.float16)})


def test_noise_is_not_shared():
    g = Graph()
    x = g.input("x", (3,))
    g.set_outputs({"y": ops.dropout(x) + ops.dropout(x)})
    assert names(simplify(g)).count("dropout") == 2


def test_a_deep_network_takes_time_in_proportion():
    def deep(layers):
        x = g = Graph()
        x = g.input("x", (4,))
        for _ in range(layers):
            x = ops.tanh(x * 1.0) + ops.exp(2.0 * g.constant(1.0))
        g.set_outputs(x)
        return g

    assert len(simplify(deep(400)).nodes) == 800
