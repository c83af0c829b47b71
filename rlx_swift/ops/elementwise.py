"""Elementwise functions of one tensor: exponentials, logarithms, roots, signs and rounding."""

from __future__ import annotations

import math

import numpy as np

from ..ir.op import Batch, Case, Decompose, Domain, Mil, NoAttrs, NotDifferentiable, Op, OpKind, Stopped
from ..ir.tensor import Tensor
from ._build import TensorLike, apply, public, require_numbers
from ._families import fixed, unary
from .arithmetic import add, div, mul, sub
from .compare import equal, greater, less
from .select import in_f32, where

_POSITIVE = Domain(0.1, 4.0)
_STEPS = NotDifferentiable("it is piecewise constant; use stop_gradient for a derivative of zero")
_HALVES = Domain(kinks=(-1.5, -0.5, 0.5, 1.5))


@public
def neg(x: TensorLike) -> Tensor:
    """-x."""
    return apply(NEG, x)


NEG = unary(
    "neg", "-x", np.negative, lambda x, out: -1.0, require=require_numbers,
    lower=Mil("mul", ("x",), lambda attrs, ins, outs: {"y": -1.0 if ins[0].dtype.is_float else -1}),
)


# Exponentials and logarithms


@public
def exp(x: TensorLike) -> Tensor:
    """e to the power of x."""
    return apply(EXP, x)


EXP = unary("exp", "e to the power of x", np.exp, lambda x, out: out)


@public
def exp2(x: TensorLike) -> Tensor:
    """2 to the power of x."""
    return apply(EXP2, x)


EXP2 = unary("exp2", "2 to the power of x", np.exp2, lambda x, out: math.log(2) * out)


@public
def expm1(x: TensorLike) -> Tensor:
    """e^x - 1, exact near 0 too."""
    return apply(EXPM1, x)


@in_f32
def _expm1_lower(ins: tuple[Tensor, ...], attrs: NoAttrs) -> Tensor:
    # e^x - 1 = tanh(x/2) (e^x + 1), in which nothing cancels.
    from .trigonometry import tanh

    (x,) = ins
    return tanh(0.5 * x) * (exp(x) + 1.0)


EXPM1 = unary("expm1", "e^x - 1", np.expm1, lambda x, out: exp(x), lower=Decompose(_expm1_lower))


@public
def log(x: TensorLike) -> Tensor:
    """The natural logarithm; -inf at 0, NaN below."""
    return apply(LOG, x)


LOG = unary(
    "log", "natural logarithm", np.log, lambda x, out: 1.0 / x, domain=_POSITIVE,
    lower=Mil("log", ("x",), fixed(epsilon=0.0)),
)


@public
def log1p(x: TensorLike) -> Tensor:
    """log(1 + x), exact near 0 too."""
    return apply(LOG1P, x)


@in_f32
def _log1p_lower(ins: tuple[Tensor, ...], attrs: NoAttrs) -> Tensor:
    # With u = 1 + x rounded, log(u) x / (u - 1) takes back the rounding (Kahan; Higham 2002, problem 1.5).
    (x,) = ins
    u = 1.0 + x
    step = u - 1.0
    exact = equal(step, 0.0)
    kahan = div(mul(log(u), x), where(exact, 1.0, step))
    return where(exact, x, where(equal(u, x), log(u), kahan))


LOG1P = unary(
    "log1p", "log(1 + x)", np.log1p, lambda x, out: 1.0 / (1.0 + x), domain=Domain(-0.8, 3.0),
    lower=Decompose(_log1p_lower),
)


# Powers and roots


@public
def square(x: TensorLike) -> Tensor:
    """x * x."""
    return apply(SQUARE, x)


SQUARE = unary("square", "x * x", np.square, lambda x, out: mul(2.0, x), require=require_numbers)


@public
def sqrt(x: TensorLike) -> Tensor:
    """The square root; NaN below 0. Its derivative at 0 is inf."""
    return apply(SQRT, x)


SQRT = unary("sqrt", "square root", np.sqrt, lambda x, out: 0.5 / out, domain=_POSITIVE)


@public
def rsqrt(x: TensorLike) -> Tensor:
    """1 / sqrt(x); inf at 0."""
    return apply(RSQRT, x)


RSQRT = unary(
    "rsqrt", "1 / sqrt(x)", lambda x: 1 / np.sqrt(x), lambda x, out: -0.5 * (out / x), domain=_POSITIVE,
    lower=Mil("rsqrt", ("x",), fixed(epsilon=0.0)),
)


@public
def reciprocal(x: TensorLike) -> Tensor:
    """1 / x; infinite at 0."""
    return apply(RECIPROCAL, x)


RECIPROCAL = unary(
    "reciprocal", "1 / x", lambda x: 1 / x, lambda x, out: neg(square(out)), domain=Domain(0.3, 3.0),
    lower=Mil("inverse", ("x",), fixed(epsilon=0.0)),
)


# Signs


@public
def abs(x: TensorLike) -> Tensor:
    """The absolute value; its derivative at 0 is 0."""
    return apply(ABS, x)


ABS = unary(
    "abs", "absolute value", np.abs, lambda x, out: sign(stop_gradient(x)), require=require_numbers,
    domain=Domain(kinks=(0.0,)),
)


@public
def sign(x: TensorLike) -> Tensor:
    """-1, 0 or 1."""
    return apply(SIGN, x)


SIGN = unary("sign", "-1, 0 or 1", np.sign, _STEPS, require=require_numbers)


# Rounding


@public
def floor(x: TensorLike) -> Tensor:
    """The largest integer not above x."""
    return apply(FLOOR, x)


FLOOR = unary("floor", "largest integer not above x", np.floor, _STEPS)


@public
def ceil(x: TensorLike) -> Tensor:
    """The smallest integer not below x."""
    return apply(CEIL, x)


CEIL = unary("ceil", "smallest integer not below x", np.ceil, _STEPS)


@public
def round(x: TensorLike) -> Tensor:
    """The nearest integer, of two the even one."""
    return apply(ROUND, x)


def _round_lower(ins: tuple[Tensor, ...], attrs: NoAttrs) -> Tensor:
    # MIL's own round goes to the even integer on some units only.
    (x,) = ins
    below = floor(x)
    rest = sub(x, below)
    above = add(below, 1.0)
    even = 2.0 * floor(0.5 * above)
    return where(less(rest, 0.5), below, where(greater(rest, 0.5), above, even))


ROUND = unary(
    "round", "nearest integer, of two the even one", np.rint, _STEPS, lower=Decompose(_round_lower), domain=_HALVES
)


# The value itself


@public
def identity(x: TensorLike) -> Tensor:
    """x under another name."""
    return apply(IDENTITY, x)


IDENTITY = unary("identity", "x under another name", np.copy, lambda x, out: 1.0, require=require_numbers)


@public
def stop_gradient(x: TensorLike) -> Tensor:
    """x, through which no derivative passes."""
    return apply(STOP_GRADIENT, x)


STOP_GRADIENT = Op(
    name="stop_gradient", summary="x, through which no derivative passes", attrs=NoAttrs,
    infer=lambda types, attrs: types, eval=lambda arrays, attrs: arrays[0].copy(),
    vjp=Stopped(), jvp=Stopped(), lower=Mil("identity", ("x",)), kind=OpKind.DATA_MOVEMENT, domain=Domain(),
    batch=Batch.ELEMENTWISE,
    cases=(Case(((2, 3),)), Case(((),))),
)
