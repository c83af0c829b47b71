"""Decompositions: what is left, what it computes, how it is labelled."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import GraphError
from rlx_swift.ir.graph import Graph
from rlx_swift.ir.op import _REGISTRY, Case, Decompose, Domain, Forward, Mil, NoAttrs, Op, OpKind, registry
from rlx_swift.ir.types import TensorType
from rlx_swift.passes.decompose import decompose
from rlx_swift.testing import sample

COMPOSITES = [op for op in registry().values() if isinstance(op.lower, Decompose)]
CASES = [pytest.param(op, case, id=f"{op.name}-{i}") for op in COMPOSITES for i, case in enumerate(op.cases)]


@pytest.mark.parametrize(("op", "case"), CASES)
def test_the_result_is_what_the_op_computes(op: Op, case: Case) -> None:
    drawn = sample(op, case, seed=7)
    g, feeds = drawn.graph, drawn.feeds
    plain = decompose(g)
    plain.verify()
    assert all(isinstance(node.op.lower, Mil) for node in plain.nodes)
    expected, got = rlx.evaluate(g, feeds), rlx.evaluate(plain, feeds)
    for name, value in expected.items():
        assert got[name].dtype == value.dtype
        assert got[name].shape == value.shape
        assert np.isfinite(got[name]).all()
        tolerance = 4e-3 if value.dtype == np.float16 else 2e-6
        np.testing.assert_allclose(got[name], value, rtol=tolerance, atol=tolerance)


def test_a_graph_without_composites_is_returned_as_it_is() -> None:
    g = rlx.Graph()
    g.set_outputs({"y": g.input("x", (2,)) * 2.0})
    assert decompose(g) is g


def test_leaves_results_and_assigns_keep_their_names_and_the_source_is_unchanged() -> None:
    g = rlx.Graph("g")
    x, w, mean = g.input("x", (2, 3)), g.param("w", (3,), 1.0), g.buffer("mean", (2,), 0.5)
    y = rlx.ops.layer_norm(x * w)
    g.assign(mean, y.mean(1))
    g.set_outputs({"y": y, "x": x})
    before = str(g)
    plain = decompose(g)
    assert str(g) == before
    assert (list(plain.inputs), list(plain.params), list(plain.buffers)) == (["x"], ["w"], ["mean"])
    assert (list(plain.outputs), list(plain.assigns)) == (["y", "x"], ["mean"])
    assert plain.name == "g"
    assert plain.outputs["x"] is plain.inputs["x"]


def scopes(graph: Graph) -> list[str]:
    return list(dict.fromkeys(node.scope for node in graph.nodes))


def test_nodes_carry_the_outermost_composite_and_its_number() -> None:
    g = rlx.Graph()
    x, labels = g.input("x", (4, 3)), g.input("labels", (4,), rlx.dtypes.i32)
    y = rlx.ops.softmax_cross_entropy_with_logits(rlx.ops.layer_norm(x) + 1.0, labels)
    g.set_outputs({"y": y, "z": rlx.ops.layer_norm(x)})
    assert scopes(decompose(g)) == ["layer_norm#0", "", "softmax_cross_entropy#1", "layer_norm#2"]


def test_a_scope_that_a_node_has_already_wins_and_its_number_is_not_used_again() -> None:
    g = rlx.Graph()
    y = rlx.ops.log_softmax(g.input("x", (2, 3)))
    y.producer.scope = "head#4"
    g.set_outputs({"y": y, "z": rlx.ops.log_softmax(y)})
    assert scopes(decompose(g)) == ["head#4", "log_softmax#5"]


@pytest.fixture
def declare():
    """Declares ops for one test."""
    made = []

    def make(name: str, build) -> Op:
        op = Op(
            name=name, summary="", attrs=NoAttrs, infer=lambda types, attrs: types,
            eval=lambda arrays, attrs: arrays[0], vjp=lambda *_: (), jvp=Forward.LINEAR, lower=Decompose(build),
            kind=OpKind.ELEMENTWISE, domain=Domain(), cases=(Case(((2,),)),),
        )
        made.append(name)
        return op

    yield make
    for name in made:
        del _REGISTRY[name]


def test_deep_nests_of_composites_are_followed(declare) -> None:
    ops = {}

    def build(n: int):
        def body(ins, attrs):
            (x,) = ins
            return x * 2.0 if n == 0 else x.graph.apply(ops[n - 1], (x,), attrs)[0] + 1.0

        return body

    for n in range(40):
        ops[n] = declare(f"nest{n}", build(n))
    g = rlx.Graph()
    g.set_outputs({"y": g.apply(ops[39], (g.input("x", (2,)),), NoAttrs())[0]})
    plain = decompose(g)
    assert scopes(plain) == ["nest39#0"]
    np.testing.assert_array_equal(rlx.evaluate(plain, {"x": [1.0, 2.0]})["y"], [41.0, 43.0])


def test_a_decomposition_may_return_an_operand(declare) -> None:
    op = declare("nothing", lambda ins, attrs: ins[0])
    g = rlx.Graph()
    x = g.input("x", (2,))
    g.set_outputs({"y": g.apply(op, g.apply(op, (x,), NoAttrs()), NoAttrs())[0]})
    plain = decompose(g)
    assert plain.nodes == []
    assert plain.outputs["y"] is plain.inputs["x"]


def test_a_decomposition_that_never_ends_is_an_error(declare) -> None:
    op = declare("again", lambda ins, attrs: ins[0].graph.apply(registry()["again"], ins, attrs)[0])
    g = rlx.Graph()
    g.set_outputs({"y": g.apply(op, (g.input("x", (2,)),), NoAttrs())[0]})
    with pytest.raises(GraphError, match=r"again.*never ends"):
        decompose(g)


def test_a_decomposition_of_another_type_is_an_error(declare) -> None:
    op = declare("wrong", lambda ins, attrs: ins[0].sum())
    g = rlx.Graph()
    g.set_outputs({"y": g.apply(op, (g.input("x", (2,)),), NoAttrs())[0]})
    with pytest.raises(GraphError, match=r"wrong: its decomposition gives f32\[\], expected f32\[2\]"):
        decompose(g)


def test_a_composite_without_operands_is_an_error(declare) -> None:
    op = declare("nullary", lambda ins, attrs: ins[0])
    g = rlx.Graph()
    g.set_outputs({"y": g.append(op, (), NoAttrs(), (TensorType((2,)),))[0]})
    with pytest.raises(GraphError, match="nullary"):
        decompose(g)
