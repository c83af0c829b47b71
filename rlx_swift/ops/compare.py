"""Elementwise comparisons of numbers, with results of bool; no derivative passes through them."""

from __future__ import annotations

import numpy as np

from ..dtypes import bool_, i32
from ..ir.tensor import Tensor
from ._build import TensorLike, apply, as_tensors, public
from ._families import comparison
from .select import cast


@public
def greater(x: TensorLike, y: TensorLike) -> Tensor:
    """x > y."""
    return apply(GREATER, x, y)


@public
def greater_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """x >= y."""
    return apply(GREATER_EQUAL, x, y)


@public
def less(x: TensorLike, y: TensorLike) -> Tensor:
    """x < y."""
    return apply(LESS, x, y)


@public
def less_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """x <= y."""
    return apply(LESS_EQUAL, x, y)


@public
def equal(x: TensorLike, y: TensorLike) -> Tensor:
    """x == y; NaN equals nothing. Bools compare too."""
    return apply(EQUAL, *_numbers("equal", x, y))


@public
def not_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """x != y; NaN differs from everything. Bools compare too."""
    return apply(NOT_EQUAL, *_numbers("not_equal", x, y))


def _numbers(subject: str, *operands: TensorLike) -> tuple[Tensor, ...]:
    """MIL compares no bools, so they go as i32."""
    tensors = as_tensors(subject, *operands)
    if all(x.dtype is bool_ for x in tensors):
        return tuple(cast(x, i32) for x in tensors)
    return tensors


GREATER = comparison("greater", "x > y", np.greater)
GREATER_EQUAL = comparison("greater_equal", "x >= y", np.greater_equal)
LESS = comparison("less", "x < y", np.less)
LESS_EQUAL = comparison("less_equal", "x <= y", np.less_equal)
EQUAL = comparison("equal", "x == y", np.equal)
NOT_EQUAL = comparison("not_equal", "x != y", np.not_equal)
