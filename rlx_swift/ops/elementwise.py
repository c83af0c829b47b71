"""Elementwise functions of one tensor."""

from __future__ import annotations

import math

import numpy as np

from ..errors import ConfigError
from ..ir.op import Case, Domain, Mil, NoAttrs, NotDifferentiable, Op, OpKind, Stopped
from ..ir.tensor import Tensor
from ._build import TensorLike, apply, public
from ._families import fixed, unary
from .arithmetic import maximum, minimum, mul
from .compare import greater
from .select import cast

_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
_FLAT = 20.0
_POSITIVE = Domain(0.1, 4.0)
_PIECEWISE_CONSTANT = NotDifferentiable("it is piecewise constant")


def _step(x: Tensor) -> Tensor:
    """1 where x > 0, else 0, in x's dtype."""
    return cast(greater(x, 0.0), x.dtype)


@public
def neg(x: TensorLike) -> Tensor:
    """-x."""
    return apply(NEG, x)


NEG = unary(
    "neg", "-x", np.negative, lambda x, out: -1.0, integers=True,
    mil=Mil("mul", ("x",), lambda attrs, ins, outs: {"y": -1.0 if ins[0].dtype.is_float else -1}),
)


@public
def exp(x: TensorLike) -> Tensor:
    """e to the power of x."""
    return apply(EXP, x)


EXP = unary("exp", "e to the power of x", np.exp, lambda x, out: out)


@public
def log(x: TensorLike) -> Tensor:
    """The natural logarithm; -inf at 0, NaN below."""
    return apply(LOG, x)


LOG = unary(
    "log", "natural logarithm", np.log, lambda x, out: 1.0 / x, domain=_POSITIVE,
    mil=Mil("log", ("x",), fixed(epsilon=0.0)),
)


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
    mil=Mil("rsqrt", ("x",), fixed(epsilon=0.0)),
)


@public
def tanh(x: TensorLike) -> Tensor:
    """The hyperbolic tangent."""
    return apply(TANH, x)


TANH = unary("tanh", "hyperbolic tangent", np.tanh, lambda x, out: 1.0 - square(out))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))  # never overflows
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype)


@public
def sigmoid(x: TensorLike) -> Tensor:
    """1 / (1 + e^-x)."""
    return apply(SIGMOID, x)


SIGMOID = unary("sigmoid", "1 / (1 + e^-x)", _sigmoid, lambda x, out: out * (1.0 - out))


@public
def relu(x: TensorLike) -> Tensor:
    """max(x, 0); its derivative at 0 is 0."""
    return apply(RELU, x)


RELU = unary("relu", "max(x, 0)", lambda x: np.maximum(x, 0), lambda x, out: _step(x), domain=Domain(kinks=(0.0,)))


_vector_erf = np.frompyfunc(math.erf, 1, 1)


def _erf(x: np.ndarray) -> np.ndarray:
    return np.asarray(_vector_erf(x), dtype=np.float64).astype(x.dtype)


@public
def erf(x: TensorLike) -> Tensor:
    """The error function, 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x."""
    return apply(ERF, x)


ERF = unary("erf", "error function", _erf, lambda x, out: exp(neg(square(x))) * (2 / math.sqrt(math.pi)))


@public
def gelu(x: TensorLike, approximate: str = "none") -> Tensor:
    """x times the normal distribution function of x (Hendrycks & Gimpel 2016, arXiv:1606.08415).

    `approximate="tanh"` is the paper's 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); "none" is exact.
    """
    if approximate not in ("none", "tanh"):
        raise ConfigError("gelu approximate", f"expected 'none' or 'tanh', got {approximate!r}")
    return apply(GELU if approximate == "none" else GELU_TANH, x)


def _gelu_slope(x: Tensor, out: Tensor) -> Tensor:
    cdf = 0.5 * (1.0 + erf(x * _SQRT_HALF))
    return cdf + x * (exp(-0.5 * square(x)) * (1 / math.sqrt(2 * math.pi)))


def _gelu_tanh_slope(x: Tensor, out: Tensor) -> Tensor:
    x = minimum(maximum(x, -_FLAT), _FLAT)  # x^3 overflows where the slope is 0 or 1 already
    t = tanh(_SQRT_2_OVER_PI * (x + 0.044715 * (x * square(x))))
    inner = _SQRT_2_OVER_PI * (1.0 + 3 * 0.044715 * square(x))
    return 0.5 * (1.0 + t) + 0.5 * (x * ((1.0 - square(t)) * inner))


GELU = unary(
    "gelu", "x times the normal distribution function of x",
    lambda x: x * 0.5 * (1 + _erf(x * x.dtype.type(_SQRT_HALF))), _gelu_slope,
    mil=Mil("gelu", ("x",), fixed(mode="EXACT")),
)
GELU_TANH = unary(
    "gelu_tanh", "gelu by its tanh approximation",
    lambda x: 0.5 * x * (1 + np.tanh(_SQRT_2_OVER_PI * (x + 0.044715 * x**3))).astype(x.dtype),
    _gelu_tanh_slope, mil=Mil("gelu", ("x",), fixed(mode="TANH_APPROXIMATION")),
)


def _silu_slope(x: Tensor, out: Tensor) -> Tensor:
    s = sigmoid(x)
    return s + out * (1.0 - s)


@public
def silu(x: TensorLike) -> Tensor:
    """x * sigmoid(x)."""
    return apply(SILU, x)


SILU = unary("silu", "x * sigmoid(x)", lambda x: x * _sigmoid(x), _silu_slope)


@public
def abs(x: TensorLike) -> Tensor:
    """The absolute value; its derivative at 0 is 0."""
    return apply(ABS, x)


ABS = unary(
    "abs", "absolute value", np.abs, lambda x, out: sign(stop_gradient(x)), integers=True, domain=Domain(kinks=(0.0,))
)


@public
def sign(x: TensorLike) -> Tensor:
    """-1, 0 or 1."""
    return apply(SIGN, x)


SIGN = unary("sign", "-1, 0 or 1", np.sign, _PIECEWISE_CONSTANT, integers=True)


@public
def square(x: TensorLike) -> Tensor:
    """x * x."""
    return apply(SQUARE, x)


SQUARE = unary("square", "x * x", np.square, lambda x, out: mul(2.0, x), integers=True)


@public
def floor(x: TensorLike) -> Tensor:
    """The largest integer not above x."""
    return apply(FLOOR, x)


FLOOR = unary("floor", "largest integer not above x", np.floor, _PIECEWISE_CONSTANT)


@public
def identity(x: TensorLike) -> Tensor:
    """x under another name."""
    return apply(IDENTITY, x)


IDENTITY = unary("identity", "x under another name", np.copy, lambda x, out: 1.0, integers=True)


@public
def stop_gradient(x: TensorLike) -> Tensor:
    """x, through which no derivative passes."""
    return apply(STOP_GRADIENT, x)


STOP_GRADIENT = Op(
    name="stop_gradient", summary="x, through which no derivative passes", attrs=NoAttrs,
    infer=lambda types, attrs: types, eval=lambda arrays, attrs: arrays[0].copy(),
    vjp=Stopped(), jvp=Stopped(), lower=Mil("identity", ("x",)), kind=OpKind.DATA_MOVEMENT, domain=Domain(),
    cases=(Case(((2, 3),)), Case(((),))),
)
