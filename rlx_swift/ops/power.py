"""x to the power of y, with derivatives that are finite where the function is."""

from __future__ import annotations

import numpy as np

from ..ir.graph import Leaf, LeafKind
from ..ir.op import Domain
from ..ir.tensor import Tensor
from ._build import TensorLike, apply, as_tensors, public, require_float
from ._families import binary
from .compare import equal, greater_equal
from .elementwise import log, square
from .select import full_like, where


@public
def pow(x: TensorLike, y: TensorLike) -> Tensor:
    """x to the power of y; NaN for x < 0 unless y is an integer.

    At x = 0 the derivatives are 0, 1, 0 for y = 0, 1, 2, and 0 with respect to y >= 0. With respect to y at
    x < 0 there is none: it is NaN, unless y is a number, which has no gradient.
    """
    base, exponent = as_tensors("pow", x, y)
    return square(base) if _scalar(exponent) == 2 else apply(POW, base, exponent)


def _scalar(x: Tensor) -> float | None:
    """The value of a constant scalar, None for anything else."""
    leaf = x.producer
    if isinstance(leaf, Leaf) and leaf.kind is LeafKind.CONSTANT and leaf.value.ndim == 0:
        return float(leaf.value)
    return None


def _partials(x: Tensor, y: Tensor, out: Tensor) -> tuple[Tensor, Tensor | None]:
    exponent = _scalar(y)
    if exponent is not None:
        return _slope_of_constant_power(x, exponent), None
    flat = equal(y, 0.0)
    dx = where(flat, 0.0, y * pow(x, where(flat, 1.0, y) - 1.0))
    safe = where(equal(x, 0.0), where(greater_equal(y, 0.0), 1.0, x), x)
    return dx, out * log(safe)


def _slope_of_constant_power(x: Tensor, exponent: float) -> Tensor:
    if exponent == 0:
        return full_like(x, 0.0)
    if exponent == 1:
        return full_like(x, 1.0)
    return exponent * (x if exponent == 2 else pow(x, exponent - 1))


POW = binary(
    "pow", "x to the power of y", np.power, _partials, domains=(Domain(0.3, 2.0), Domain(-2.0, 3.0)),
    require=require_float,
)
