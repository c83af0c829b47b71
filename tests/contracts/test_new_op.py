"""An op declared in one place works everywhere: this one is declared here."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.errors import GraphError
from rlx_swift.ir import op as records
from rlx_swift.ir.graph import Graph
from rlx_swift.ir.op import Case, Decompose, NoAttrs, Op, OpKind, registry
from rlx_swift.ops._build import require_float
from rlx_swift.testing import sample, strategies
from tests.contracts import test_op_batches as batches
from tests.contracts import test_op_derivatives as derivatives
from tests.contracts import test_op_meaning as meaning
from tests.contracts import test_op_records as record
from tests.oracles import ORACLES


def of_floats(types, attrs):
    require_float("cube", *types)
    return types


FIELDS = {
    "name": "cube", "summary": "x to the third power", "attrs": NoAttrs, "infer": of_floats,
    "eval": lambda arrays, attrs: arrays[0] ** 3,
    "vjp": lambda g, out, ins, attrs: (g * (3.0 * ops.square(ins[0])),),
    "jvp": lambda ts, out, ins, attrs: ts[0] * (3.0 * ops.square(ins[0])),
    "lower": Decompose(lambda ins, attrs: ins[0] * ops.square(ins[0])),
    "kind": OpKind.ELEMENTWISE, "domain": records.Domain(), "cases": (Case(((2, 3),)), Case(((),))),
}


@pytest.fixture
def cube(monkeypatch):
    monkeypatch.setattr(records, "_REGISTRY", dict(registry()))
    monkeypatch.setitem(ORACLES, "cube", lambda x, attrs: x * x * x)
    return Op(**FIELDS)


LAWS = [
    law for module in (meaning, derivatives, record, batches) for name, law in vars(module).items()
    if name.startswith("test_") and "case" in law.__code__.co_varnames[: law.__code__.co_argcount]
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_every_law_covers_it(cube, law):
    for case in cube.cases:
        if law is not meaning.test_lowering_names_parameters_of_plain_types:  # it is decomposed
            law(cube, case)


def test_it_is_drawn_in_random_graphs(cube):
    from hypothesis import find

    graph = find(strategies.graphs(max_nodes=2), lambda g: any(n.op is cube for n in g.nodes))
    assert Graph.from_json(graph.to_json()).nodes[-1].op


def test_it_works_in_a_training_graph(cube):
    g = rlx.Graph()
    w = g.param("w", (3,))
    g.set_outputs({"loss": ops.sum(g.apply(cube, (w,), NoAttrs())[0])})
    w0 = np.array([1.0, -2.0, 0.5])
    results = rlx.evaluate(rlx.grad_with_loss(g), {"w": w0, "d_output": 1.0}, np.float64)
    assert results["loss"] == (w0**3).sum()
    np.testing.assert_allclose(results["grad_w"], 3 * w0**2)
    second = rlx.evaluate(rlx.hvp(g), {"w": w0, "v_w": np.ones(3)}, np.float64)
    np.testing.assert_allclose(second["hvp_w"], 6 * w0)


def test_a_wrong_rule_is_caught(cube, monkeypatch):
    monkeypatch.setattr(records, "_REGISTRY", {})
    wrong = Op(**{**FIELDS, "vjp": lambda g, out, ins, attrs: (g * (2.0 * ops.square(ins[0])),)})
    s = sample(wrong, wrong.cases[0])
    with pytest.raises(AssertionError, match="central differences"):
        rlx.check_grads(s.graph, s.feeds, s.wrt)


def test_a_wrong_batch_is_caught(cube, monkeypatch):
    monkeypatch.setattr(records, "_REGISTRY", {})
    wrong = Op(**FIELDS, batch=lambda ins, many, attrs, size: ops.square(ins[0]))
    with pytest.raises(AssertionError, match="elements differ"):
        batches.test_a_batch_equals_a_loop(wrong, wrong.cases[0])
    short = Op(**{**FIELDS, "name": "short"}, batch=lambda ins, many, attrs, size: ins[0][0])
    with pytest.raises(rlx.errors.ShapeError, match="batch of 'short'"):
        batches.test_a_batch_equals_a_loop(short, short.cases[0])


@pytest.mark.parametrize("field", list(FIELDS))
def test_leaving_a_field_out_is_an_error(cube, field):
    with pytest.raises(TypeError, match=field):
        Op(**{name: value for name, value in FIELDS.items() if name != field})


@pytest.mark.parametrize(
    ("change", "words"),
    [({}, "twice"), ({"name": "c", "cases": ()}, "case"), ({"name": "d", "attrs": dict}, "Attrs")],
)
def test_a_record_that_makes_no_sense_is_an_error(cube, change, words):
    with pytest.raises(GraphError, match=words):
        Op(**{**FIELDS, **change})


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda g, out, ins, attrs: (), "expected 1 cotangents, got 0"),
        (lambda g, out, ins, attrs: (ops.cast(g, rlx.f16),), "expected a cotangent of f32"),
        (lambda g, out, ins, attrs: (ops.sum(g),), "does not fit"),
        (lambda g, out, ins, attrs: (ops.concat([g, g], 0),), "does not fit"),
    ],
)
def test_a_rule_of_the_wrong_shape_is_named(monkeypatch, rule, words):
    monkeypatch.setattr(records, "_REGISTRY", dict(registry()))
    s = sample(Op(**{**FIELDS, "name": "crooked", "vjp": rule}), FIELDS["cases"][0])
    with pytest.raises((GraphError, rlx.errors.ShapeError), match="crooked.*" + words):
        rlx.vjp(s.graph, s.wrt)
