"""Every op of the registry, lowered and judged, with the types that the graph has."""

from __future__ import annotations

import dataclasses

import pytest

import rlx_swift as rlx
from rlx_swift.errors import LoweringError
from rlx_swift.ir.graph import Graph
from rlx_swift.ir.op import Case, Decompose, Mil, Op, registry
from rlx_swift.lower.mil import lower
from rlx_swift.lower.opset import signatures
from rlx_swift.lower.package import to_bytes
from rlx_swift.lower.program import Array
from rlx_swift.passes.decompose import decompose
from tests.programs import judged, operations

CASES = [pytest.param(op, case, id=f"{op.name}-{i}") for op in registry().values() for i, case in enumerate(op.cases)]
SPELLED = {"f32": "fp32", "f16": "fp16", "i32": "int32", "bool": "bool"}


def graph_of(op: Op, case: Case) -> Graph:
    g = Graph(op.name)
    operands = tuple(g.input(f"x{i}", t.shape, t.dtype) for i, t in enumerate(case.types()))
    outs = {f"y{i}": y for i, y in enumerate(g.apply(op, operands, case.attrs))}
    if not operands:
        outs["other"] = g.input("x", (1,)) + 1.0
    g.set_outputs(outs)
    return g


@pytest.mark.parametrize(("op", "case"), CASES)
def test_the_program_is_accepted_and_the_same_each_time(op: Op, case: Case) -> None:
    lowered = judged(graph_of(op, case))
    assert to_bytes(lowered.model) == to_bytes(lower(graph_of(op, case)).model)


@pytest.mark.parametrize(("op", "case"), CASES)
def test_one_node_is_one_operation_of_the_same_types(op: Op, case: Case) -> None:
    g = decompose(graph_of(op, case))
    made = {name: type for each in operations(lower(g)) for name, type in each.outputs}
    types = [Array(SPELLED[t.dtype.name], t.shape) for node in g.live_nodes() for t in node.outputs]
    for type in types:
        assert type in made.values()
    expected = [node.op.lower.op for node in g.live_nodes()]
    boundary = {"cast", "squeeze", "expand_dims", "identity", "const"}
    assert [each.type for each in operations(lower(g)) if each.type in set(expected) - boundary] == [
        name for name in expected if name not in boundary
    ]


def test_composites_are_labelled_by_the_attribute_name() -> None:
    g = rlx.Graph()
    g.set_outputs({"y": rlx.ops.layer_norm(g.input("x", (2, 5))) + 1.0})
    *norm, last = operations(judged(g))
    assert {op.attributes["name"].data for op in norm} == {("layer_norm#0",)}
    assert last.attributes == {}


def with_lowering(op: Op, lower: Mil | Decompose) -> Op:
    """A copy of an op's record that is not declared."""
    copy = object.__new__(Op)
    for field in dataclasses.fields(Op):
        object.__setattr__(copy, field.name, lower if field.name == "lower" else getattr(op, field.name))
    return copy


def applied(op: Op) -> Graph:
    g = rlx.Graph()
    case = op.cases[0]
    operands = tuple(g.input(f"x{i}", t.shape, t.dtype) for i, t in enumerate(case.types()))
    g.set_outputs({"y": g.apply(op, operands, case.attrs)[0]})
    return g


def test_defaults_are_written_where_a_record_leaves_them_out() -> None:
    g = applied(with_lowering(registry()["matmul"], Mil("matmul", ("x", "y"))))
    (product,) = operations(judged(g))
    assert set(product.inputs) == {"x", "y", "transpose_x", "transpose_y"}
    assert product.inputs["transpose_x"][0].data == b"\0"


def test_a_record_that_leaves_out_what_has_no_default_is_an_error() -> None:
    g = applied(with_lowering(registry()["transpose"], Mil("transpose", ("x",))))
    with pytest.raises(LoweringError, match=r"transpose.*perm is missing"):
        lower(g)


def test_a_parameter_that_mil_does_not_have_is_an_error() -> None:
    g = applied(with_lowering(registry()["exp"], Mil("exp", ("x",), lambda attrs, ins, outs: {"base": 2})))
    with pytest.raises(LoweringError, match=r"exp.*no parameter base"):
        lower(g)


def test_an_operation_of_a_later_opset_needs_that_target() -> None:
    record = Mil("scaled_dot_product_attention", ("query", "key", "value"))
    attention = with_lowering(registry()["where"], record)
    g = rlx.Graph()
    q = g.input("q", (2, 3, 4))
    (y,) = g.append(attention, (q, q, q), None, (q.type,))
    g.set_outputs({"y": y})
    with pytest.raises(LoweringError, match=r"CoreML7 has no operation scaled_dot_product_attention; .*CoreML8"):
        lower(g)
    assert judged(g, target="CoreML8").model.specification == 9


def test_the_names_of_all_mil_operations_in_records_exist() -> None:
    for op in registry().values():
        if isinstance(op.lower, Mil):
            assert op.lower.op in signatures(7), op.name
