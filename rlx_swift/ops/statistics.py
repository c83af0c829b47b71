"""Variance, standard deviation and norms over axes, with gradients that are zero where the root has none."""

from __future__ import annotations

import math

from ..errors import ConfigError
from ..ir.tensor import Tensor
from ..ir.types import as_axes
from ._build import TensorLike, as_tensors, public, require_float
from .compare import equal
from .elementwise import abs, sqrt, square
from .reduce import Axis, max, mean, sum
from .select import in_f32, where


@public
def var(x: TensorLike, axis: Axis = None, keepdims: bool = False, correction: float = 0.0) -> Tensor:
    """The mean square distance from the mean over the axes, with n - correction in place of the n elements."""
    return _var(_float(x, "var"), axis, keepdims, correction)


@public
def std(x: TensorLike, axis: Axis = None, keepdims: bool = False, correction: float = 0.0) -> Tensor:
    """The root of the variance; where it is 0 its gradient is 0."""
    return _std(_float(x, "std"), axis, keepdims, correction)


@public
def norm(x: TensorLike, ord: float = 2, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The vector norm over the axes (all by default): `ord` 1 sums |x|, 2 is the length, inf is the largest |x|.

    At a zero vector the gradient is 0. Tied largest elements share it evenly.
    """
    if ord not in (1, 2, math.inf):
        raise ConfigError("norm ord", f"expected 1, 2 or inf, got {ord!r}")
    tensor = _float(x, "norm")
    if ord == math.inf:
        return max(abs(tensor), axis, keepdims)
    return _l1(tensor, axis, keepdims) if ord == 1 else _l2(tensor, axis, keepdims)


@in_f32
def _var(x: Tensor, axis: Axis, keepdims: bool, correction: float) -> Tensor:
    count = math.prod([x.shape[i] for i in as_axes(axis, x.ndim, "var")])
    if not correction < count:
        raise ConfigError("var", f"expected more than {correction} elements, got {count} of {x.type}")
    centred = x - mean(x, axis, keepdims=True)
    return sum(square(centred), axis, keepdims) / (count - correction)


@in_f32
def _std(x: Tensor, axis: Axis, keepdims: bool, correction: float) -> Tensor:
    return safe_sqrt(_var(x, axis, keepdims, correction))


@in_f32
def _l1(x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    return sum(abs(x), axis, keepdims)


@in_f32
def _l2(x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    return safe_sqrt(sum(square(x), axis, keepdims))


def safe_sqrt(x: Tensor) -> Tensor:
    """The square root, with a gradient of 0 at 0."""
    zero = equal(x, 0.0)
    return where(zero, 0.0, sqrt(where(zero, 1.0, x)))


def _float(x: TensorLike, subject: str) -> Tensor:
    (tensor,) = as_tensors(subject, x)
    require_float(subject, tensor.type)
    return tensor
