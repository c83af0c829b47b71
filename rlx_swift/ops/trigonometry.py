"""Elementwise trigonometric and hyperbolic functions and their inverses, in radians."""

from __future__ import annotations

import numpy as np

from ..ir.op import Domain
from ..ir.tensor import Tensor
from ._build import TensorLike, apply, public
from ._families import unary
from .elementwise import neg, reciprocal, rsqrt, square

_INSIDE = Domain(-0.8, 0.8)
_BRANCH = Domain(-1.2, 1.2)


@public
def sin(x: TensorLike) -> Tensor:
    """The sine."""
    return apply(SIN, x)


SIN = unary("sin", "sine", np.sin, lambda x, out: cos(x))


@public
def cos(x: TensorLike) -> Tensor:
    """The cosine."""
    return apply(COS, x)


COS = unary("cos", "cosine", np.cos, lambda x, out: neg(sin(x)))


@public
def tan(x: TensorLike) -> Tensor:
    """The tangent."""
    return apply(TAN, x)


TAN = unary("tan", "tangent", np.tan, lambda x, out: 1.0 + square(out), domain=_BRANCH)


@public
def asin(x: TensorLike) -> Tensor:
    """The angle from -pi/2 to pi/2 whose sine is x; NaN outside -1 ... 1."""
    return apply(ASIN, x)


ASIN = unary("asin", "inverse sine", np.arcsin, lambda x, out: rsqrt(1.0 - square(x)), domain=_INSIDE)


@public
def acos(x: TensorLike) -> Tensor:
    """The angle from 0 to pi whose cosine is x; NaN outside -1 ... 1."""
    return apply(ACOS, x)


ACOS = unary("acos", "inverse cosine", np.arccos, lambda x, out: neg(rsqrt(1.0 - square(x))), domain=_INSIDE)


@public
def atan(x: TensorLike) -> Tensor:
    """The angle from -pi/2 to pi/2 whose tangent is x."""
    return apply(ATAN, x)


ATAN = unary("atan", "inverse tangent", np.arctan, lambda x, out: reciprocal(1.0 + square(x)))


@public
def sinh(x: TensorLike) -> Tensor:
    """The hyperbolic sine."""
    return apply(SINH, x)


SINH = unary("sinh", "hyperbolic sine", np.sinh, lambda x, out: cosh(x))


@public
def cosh(x: TensorLike) -> Tensor:
    """The hyperbolic cosine."""
    return apply(COSH, x)


COSH = unary("cosh", "hyperbolic cosine", np.cosh, lambda x, out: sinh(x))


@public
def tanh(x: TensorLike) -> Tensor:
    """The hyperbolic tangent."""
    return apply(TANH, x)


TANH = unary("tanh", "hyperbolic tangent", np.tanh, lambda x, out: 1.0 - square(out))


@public
def atanh(x: TensorLike) -> Tensor:
    """The number whose hyperbolic tangent is x; infinite at -1 and 1, NaN outside."""
    return apply(ATANH, x)


ATANH = unary(
    "atanh", "inverse hyperbolic tangent", np.arctanh, lambda x, out: reciprocal(1.0 - square(x)), domain=_INSIDE
)
