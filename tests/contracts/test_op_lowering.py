"""What an op's `infer` takes, its lowering takes: in every dtype, judged by our rules and by coremltools."""

from __future__ import annotations

import pytest

import rlx_swift as rlx
from rlx_swift import dtypes
from rlx_swift.errors import RlxError
from rlx_swift.ir.graph import Graph
from rlx_swift.lower.mil import lower
from tests.contracts.cases import every_op

pytest.importorskip("coremltools")


def accepted(op):
    """The op's cases with one dtype changed to another, where the op takes it; one case for each set of dtypes."""
    seen = set()
    for case in op.cases:
        for of in dtypes.ALL:
            for to in dtypes.ALL:
                types = tuple(t.with_dtype(to) if t.dtype is of else t for t in case.types())
                key = tuple(t.dtype for t in types)
                if key in seen:
                    continue
                try:
                    op.result_types(types, case.attrs)
                except RlxError:
                    continue
                seen.add(key)
                yield types, case.attrs


@every_op
def test_every_accepted_dtype_lowers(op):
    for types, attrs in accepted(op):
        graph = Graph(op.name)
        operands = tuple(graph.input(f"x{i}", t.shape, t.dtype) for i, t in enumerate(types))
        results = graph.apply(op, operands, attrs)
        extra = {} if operands else {"other": graph.input("x", (1,)) + 1.0}
        graph.set_outputs({**{f"y{i}": t for i, t in enumerate(results)}, **extra})
        rlx.validate(lower(graph))
