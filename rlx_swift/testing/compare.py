"""Comparing arrays: one table of tolerances, one comparison that no NaN slips through; knows no device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..dtypes import DType, bool_, f16, f32, i32
from ..errors import RlxError
from ..ir.op import OpKind


class ArrayMismatch(RlxError, AssertionError):
    """Two arrays that should agree do not."""


@dataclass(frozen=True)
class Tolerance:
    """|actual - expected| <= atol + rtol |expected|."""

    rtol: float
    atol: float


EXACT = Tolerance(0.0, 0.0)

# How far two ways of computing one op may differ. Sums in another order are what REDUCTION and COMPUTE allow for.
_TABLE: dict[tuple[OpKind, DType], Tolerance] = {
    (OpKind.DATA_MOVEMENT, f32): EXACT,
    (OpKind.DATA_MOVEMENT, f16): EXACT,
    (OpKind.ELEMENTWISE, f32): Tolerance(4e-6, 1e-6),
    (OpKind.ELEMENTWISE, f16): Tolerance(2e-3, 1e-3),
    (OpKind.REDUCTION, f32): Tolerance(2e-5, 2e-6),
    (OpKind.REDUCTION, f16): Tolerance(4e-3, 2e-3),
    (OpKind.COMPUTE, f32): Tolerance(2e-5, 1e-5),
    (OpKind.COMPUTE, f16): Tolerance(4e-3, 4e-3),
}


def tolerance(kind: OpKind, dtype: DType) -> Tolerance:
    """What two implementations of an op of that kind may differ by; integers and bools not at all."""
    return EXACT if dtype in (i32, bool_) else _TABLE.get((kind, dtype), _TABLE[OpKind.REDUCTION, dtype])


def assert_close(
    actual: np.ndarray, expected: np.ndarray, within: Tolerance = EXACT, what: str = "array", *,
    allow_nonfinite: bool = False,
) -> None:
    """Raises ArrayMismatch unless shapes and dtypes are equal and all elements agree.

    Elements that are not finite are refused on either side, unless `allow_nonfinite`: then each must have the
    same NaN or infinity across from it.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
        types = [f"{a.dtype}{list(a.shape)}" for a in (expected, actual)]
        raise ArrayMismatch(what, f"expected {types[0]}, got {types[1]}")
    if actual.dtype.kind != "f":
        _require(actual == expected, actual, expected, what)
        return
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(e)
    if not allow_nonfinite:
        _require(finite, actual, expected, f"{what} (not finite)")
    same = (a == e) | (np.isnan(a) & np.isnan(e))
    with np.errstate(invalid="ignore"):
        near = np.abs(a - e) <= within.atol + within.rtol * np.abs(e)
    _require(np.where(finite, near, same), actual, expected, what)


def _require(holds: np.ndarray, actual: np.ndarray, expected: np.ndarray, what: str) -> None:
    if not np.all(holds):
        wrong = np.argwhere(~np.asarray(holds))
        at = tuple(int(i) for i in wrong[0])
        raise ArrayMismatch(
            what, f"{len(wrong)} of {holds.size} elements differ, first at {list(at)}: "
            f"expected {_shown(expected[at])}, got {_shown(actual[at])}",
        )


def _shown(value: np.generic) -> str:
    return f"{value:.9g}" if isinstance(value, np.floating) else str(value)
