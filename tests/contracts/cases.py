"""Every sample case of every op as parameters of a test."""

from __future__ import annotations

from typing import Any

import pytest

import rlx_swift  # noqa: F401  (fills the registry)
from rlx_swift import dtypes
from rlx_swift.dtypes import f16, f32
from rlx_swift.ir.op import Case, Decompose, Mil, Op, registry
from rlx_swift.ir.types import TensorType
from rlx_swift.testing import Tolerance, sample

WITHIN_F64 = Tolerance(1e-11, 1e-12)


def smooth(op: Op[Any], case: Case) -> bool:
    """Whether derivative rules can be checked on it: it has some, of floats that are not too coarse."""
    results = op.infer(case.types(), case.attrs)
    return (
        callable(op.vjp) and any(t.dtype.is_float for t in results) and f16 not in [t.dtype for t in case.types()]
        and bool(sample(op, case).wrt)
    )


def spoilt(types: tuple[TensorType, ...]) -> list[tuple[TensorType, ...]]:
    """Operand types with one thing changed, or one operand too many or too few."""
    variants = [types[1:], (*types, TensorType((2, 3)))]
    for i, type in enumerate(types):
        changes = [type.with_dtype(d) for d in dtypes.ALL if d is not type.dtype]
        changes += [type.with_shape((*type.shape, 2)), type.with_shape((2, *type.shape))]
        changes += [type.with_shape(type.shape[1:])] if type.rank else []
        for axis in range(type.rank):
            for size in (0, 1, type.shape[axis] + 1):
                changes.append(type.with_shape((*type.shape[:axis], size, *type.shape[axis + 1 :])))
        variants += [(*types[:i], changed, *types[i + 1 :]) for changed in changes]
    return [v for v in variants if v != types]


ALL = [pytest.param(op, case, id=f"{op.name}-{i}") for op in registry().values() for i, case in enumerate(op.cases)]
every_case = pytest.mark.parametrize(("op", "case"), ALL)
every_smooth_case = pytest.mark.parametrize(("op", "case"), [p for p in ALL if smooth(*p.values)])
decomposed_case = pytest.mark.parametrize(("op", "case"), [p for p in ALL if isinstance(p.values[0].lower, Decompose)])
mil_case = pytest.mark.parametrize(("op", "case"), [p for p in ALL if isinstance(p.values[0].lower, Mil)])
single_case = pytest.mark.parametrize(("op", "case"), [p for p in ALL if f32 in [t.dtype for t in p.values[1].types()]])
every_op = pytest.mark.parametrize("op", registry().values(), ids=list(registry()))
