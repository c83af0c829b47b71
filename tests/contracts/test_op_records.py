"""What every op of the registry keeps of its record, text and JSON. An op is covered by being declared."""

from __future__ import annotations

import dataclasses

import pytest

import rlx_swift as rlx
from rlx_swift.ir.graph import Graph
from rlx_swift.testing import sample
from tests.contracts.cases import every_case, every_op


@every_case
def test_json_round_trip(op, case):
    s = sample(op, case)
    text = s.graph.to_json()
    back = Graph.from_json(text)
    assert back.nodes[-1].attrs == case.attrs
    assert back.to_json() == text
    assert str(back) == str(s.graph)


@every_case
def test_printing_names_op_and_attributes(op, case):
    line = str(sample(op, case).graph).splitlines()[-1 - len(sample(op, case).results)]
    assert f" = {op.name}(" in line
    for field in dataclasses.fields(case.attrs):
        assert f"{field.name}={getattr(case.attrs, field.name)!r}" in line


@every_op
def test_records_are_complete(op):
    assert op.summary
    assert dataclasses.fields(op.attrs) is not None and op.attrs.__dataclass_params__.frozen
    assert len({case.attrs for case in op.cases}) >= 1  # attributes are hashable


@pytest.mark.parametrize("name", sorted(rlx.ops.__all__))
def test_public_functions_are_documented_and_exported(name):
    function = getattr(rlx.ops, name)
    assert function.__doc__ and function.__doc__.strip()
    assert function.__name__ == name


def test_all_public_functions_are_exported():
    from rlx_swift.ir.tensor import FUNCTIONS

    public = [name for name, function in FUNCTIONS.items() if function.__module__.startswith("rlx_swift.ops.")]
    assert sorted(public) == sorted(rlx.ops.__all__)
