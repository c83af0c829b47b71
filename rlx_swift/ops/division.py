"""Division that rounds down, and its remainder."""

from __future__ import annotations

import numpy as np

from ..dtypes import i32
from ..ir.op import Domain, NotDifferentiable
from ..ir.tensor import Tensor
from ._build import TensorLike, apply, as_tensors, public, require_float, require_integers, same_dtype
from ._families import binary
from .arithmetic import div, sub
from .compare import equal, less, not_equal
from .elementwise import abs, floor, neg, round, stop_gradient
from .select import cast, in_f32, where

_DIVISOR = Domain(0.5, 3.0)


@public
def floor_div(x: TensorLike, y: TensorLike) -> Tensor:
    """floor(x / y), before x / y is rounded, as `numpy.floor_divide`. For i32 the divisor must not be 0."""
    a, b = as_tensors("floor_div", x, y)
    if a.dtype is i32:
        return apply(FLOOR_DIV, a, b)
    require_float("floor_div", a.type, b.type)
    same_dtype("floor_div", a.type, b.type)
    return _floor_div(a, b)


@in_f32
def _floor_div(x: Tensor, y: Tensor) -> Tensor:
    # x / y itself may round up to the next integer: 1 / 0.1 gives 10, where 0.1 in f32 goes into 1 nine times.
    rest = mod(abs(x), abs(y))
    whole = round(div(sub(abs(x), rest), abs(y)))
    below = sub(neg(whole), cast(not_equal(rest, 0.0), x.dtype))
    exact = where(equal(less(x, 0.0), less(y, 0.0)), whole, below)
    return floor(where(equal(y, 0.0), div(x, y), where(equal(rest, rest), exact, rest)))


FLOOR_DIV = binary(
    "floor_div", "floor(x / y) of i32", np.floor_divide, NotDifferentiable("it is piecewise constant"),
    require=require_integers,
)


@public
def mod(x: TensorLike, y: TensorLike) -> Tensor:
    """The remainder of floor(x / y), with the divisor's sign. For i32 the divisor must not be 0."""
    return apply(MOD, x, y)


MOD = binary(
    "mod", "remainder with the divisor's sign", np.mod,
    lambda x, y, out: (1.0, neg(floor_div(stop_gradient(x), stop_gradient(y)))), domains=(Domain(), _DIVISOR),
)
