"""Division that rounds down, and its remainder."""

from __future__ import annotations

import numpy as np

from ..dtypes import i32
from ..ir.op import Domain, NotDifferentiable
from ..ir.tensor import Tensor
from ._build import TensorLike, apply, as_tensors, public, require_integers
from ._families import binary
from .arithmetic import div
from .elementwise import floor, neg, stop_gradient

_DIVISOR = Domain(0.5, 3.0)


@public
def floor_div(x: TensorLike, y: TensorLike) -> Tensor:
    """floor(x / y). For i32 the divisor must not be 0."""
    a, b = as_tensors("floor_div", x, y)
    return apply(FLOOR_DIV, a, b) if a.dtype is i32 else floor(div(a, b))


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
    lambda x, y, out: (1.0, neg(floor(stop_gradient(div(x, y))))), domains=(Domain(), _DIVISOR),
)
