"""Elementwise arithmetic of two tensors that broadcast."""

from __future__ import annotations

import numpy as np

from ..dtypes import bool_, i32
from ..ir.op import Domain
from ..ir.tensor import Tensor
from ._build import TensorLike, apply, as_tensors, public, require_float
from ._families import binary
from .compare import equal, greater, less
from .select import cast

_DIVISOR = Domain(0.5, 3.0)


@public
def add(x: TensorLike, y: TensorLike) -> Tensor:
    """x + y."""
    return apply(ADD, x, y)


@public
def sub(x: TensorLike, y: TensorLike) -> Tensor:
    """x - y."""
    return apply(SUB, x, y)


@public
def mul(x: TensorLike, y: TensorLike) -> Tensor:
    """x * y."""
    return apply(MUL, x, y)


@public
def div(x: TensorLike, y: TensorLike) -> Tensor:
    """x / y for floats; for i32 use `floor_div`."""
    return apply(DIV, x, y)


@public
def maximum(x: TensorLike, y: TensorLike) -> Tensor:
    """The larger of x and y; equal operands get half the gradient each. NaN wins."""
    return apply(MAXIMUM, x, y)


@public
def minimum(x: TensorLike, y: TensorLike) -> Tensor:
    """The smaller of x and y; equal operands get half the gradient each. NaN wins."""
    return apply(MINIMUM, x, y)


def _share(wins: Tensor, x: Tensor, y: Tensor, out: Tensor) -> Tensor:
    return cast(wins, out.dtype) + 0.5 * cast(equal(x, y), out.dtype)


ADD = binary("add", "x + y", np.add, lambda x, y, out: (1.0, 1.0))
SUB = binary("sub", "x - y", np.subtract, lambda x, y, out: (1.0, -1.0))
MUL = binary("mul", "x * y", np.multiply, lambda x, y, out: (y, x))
DIV = binary(
    "div", "x / y", np.divide, lambda x, y, out: (1.0 / y, -(out / y)), lower="real_div",
    domains=(Domain(), _DIVISOR), require=require_float,
)
MAXIMUM = binary(
    "maximum", "larger of x and y", np.maximum,
    lambda x, y, out: (_share(greater(x, y), x, y, out), _share(less(x, y), x, y, out)),
    domains=(Domain(distinct=True), Domain(distinct=True)),
)
MINIMUM = binary(
    "minimum", "smaller of x and y", np.minimum,
    lambda x, y, out: (_share(less(x, y), x, y, out), _share(greater(x, y), x, y, out)),
    domains=(Domain(distinct=True), Domain(distinct=True)),
)


def as_numbers(x: TensorLike, subject: str) -> Tensor:
    """x, with bools as i32."""
    (tensor,) = as_tensors(subject, x)
    return cast(tensor, i32) if tensor.dtype is bool_ else tensor
