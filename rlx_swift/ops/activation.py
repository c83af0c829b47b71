"""Elementwise activation functions, in forms that do not overflow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import ConfigError, ShapeError
from ..ir.op import Attrs, Decompose, Domain, Mil, NoAttrs
from ..ir.tensor import Tensor
from ._build import TensorLike, apply, as_tensors, public, require_numbers
from ._families import fixed, unary, unary_with
from .arithmetic import add, maximum, minimum, mul
from .compare import greater, greater_equal, less, less_equal
from .elementwise import abs, exp, log1p, neg, square
from .logical import logical_and
from .select import cast, full_like, in_f32, where
from .shape import reshape
from .trigonometry import tanh

_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
_FLAT = 20.0
_KINK = Domain(kinks=(0.0,))


def _where_one(condition: Tensor, x: Tensor) -> Tensor:
    """1 where the condition holds, else 0, in x's dtype."""
    return cast(condition, x.dtype)


# Sigmoid and its kin


def _sigmoid(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))  # never overflows
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype)


@public
def sigmoid(x: TensorLike) -> Tensor:
    """1 / (1 + e^-x)."""
    return apply(SIGMOID, x)


SIGMOID = unary("sigmoid", "1 / (1 + e^-x)", _sigmoid, lambda x, out: out * (1.0 - out))


def _silu_slope(x: Tensor, out: Tensor) -> Tensor:
    s = sigmoid(x)
    return s + out * (1.0 - s)


@public
def silu(x: TensorLike) -> Tensor:
    """x * sigmoid(x)."""
    return apply(SILU, x)


SILU = unary("silu", "x * sigmoid(x)", lambda x: x * _sigmoid(x), _silu_slope)


@public
def softplus(x: TensorLike) -> Tensor:
    """log(1 + e^x)."""
    return apply(SOFTPLUS, x)


@in_f32
def _softplus_lower(ins: tuple[Tensor, ...], attrs: NoAttrs) -> Tensor:
    # MIL's own softplus gives 0 above 10.4 on the Neural Engine.
    (x,) = ins
    return add(maximum(x, 0.0), log1p(exp(neg(abs(x)))))


SOFTPLUS = unary(
    "softplus", "log(1 + e^x)", lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    lambda x, out: sigmoid(x), lower=Decompose(_softplus_lower),
)


@public
def softsign(x: TensorLike) -> Tensor:
    """x / (1 + |x|)."""
    return apply(SOFTSIGN, x)


SOFTSIGN = unary("softsign", "x / (1 + |x|)", lambda x: x / (1 + np.abs(x)), lambda x, out: 1.0 / square(1.0 + abs(x)))


# Gelu


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
    lower=Mil("gelu", ("x",), fixed(mode="EXACT")),
)
GELU_TANH = unary(
    "gelu_tanh", "gelu by its tanh approximation",
    lambda x: 0.5 * x * (1 + np.tanh(_SQRT_2_OVER_PI * (x + 0.044715 * x**3))).astype(x.dtype),
    _gelu_tanh_slope, lower=Mil("gelu", ("x",), fixed(mode="TANH_APPROXIMATION")),
)


# Rectifiers


@dataclass(frozen=True)
class SlopeAttrs(Attrs):
    """`alpha`: the slope, or the height, left of 0."""

    alpha: float


@public
def relu(x: TensorLike) -> Tensor:
    """max(x, 0); its derivative at 0 is 0."""
    return apply(RELU, x)


RELU = unary(
    "relu", "max(x, 0)", lambda x: np.maximum(x, 0), lambda x, out: _where_one(greater(x, 0.0), x), domain=_KINK
)


@public
def relu6(x: TensorLike) -> Tensor:
    """min(max(x, 0), 6); its derivative at 0 and at 6 is 0."""
    return apply(RELU6, x)


RELU6 = unary(
    "relu6", "x cut to 0 ... 6", lambda x: np.minimum(np.maximum(x, 0), 6), lambda x, out: _inside(x, 0.0, 6.0),
    domain=Domain(-2.0, 8.0, kinks=(0.0, 6.0)),
)


def _inside(x: Tensor, low: float, high: float) -> Tensor:
    return _where_one(logical_and(greater(x, low), less(x, high)), x)


@public
def leaky_relu(x: TensorLike, negative_slope: float = 0.01) -> Tensor:
    """x where it is above 0, else negative_slope * x; its derivative at 0 is negative_slope."""
    return apply(LEAKY_RELU, x, attrs=SlopeAttrs(_number("leaky_relu negative_slope", negative_slope)))


def _number(subject: str, value: float) -> float:
    if isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value):
        return float(value)
    raise ConfigError(subject, f"expected a finite number, got {value!r}")


LEAKY_RELU = unary_with(
    "leaky_relu", "x, or alpha x below 0", lambda x, a: np.where(x > 0, x, x * x.dtype.type(a.alpha)),
    lambda x, out, a: where(greater(x, 0.0), 1.0, full_like(x, a.alpha)), (SlopeAttrs(0.01), SlopeAttrs(0.5)),
    domain=_KINK, lower=Mil("leaky_relu", ("x",), lambda a, ins, outs: {"alpha": a.alpha}),
)


@public
def elu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """x where it is above 0, else alpha (e^x - 1); its derivative at 0 is alpha (Clevert et al. 2015)."""
    return apply(ELU, x, attrs=SlopeAttrs(_number("elu alpha", alpha)))


ELU = unary_with(
    "elu", "x, or alpha (e^x - 1) below 0",
    lambda x, a: np.where(x > 0, x, x.dtype.type(a.alpha) * np.expm1(np.where(x > 0, 0, x))),
    lambda x, out, a: where(greater(x, 0.0), 1.0, a.alpha * exp(minimum(x, 0.0))), (SlopeAttrs(1.0), SlopeAttrs(0.3)),
    domain=_KINK, lower=Mil("elu", ("x",), lambda a, ins, outs: {"alpha": a.alpha}),
)


@public
def prelu(x: TensorLike, slope: TensorLike) -> Tensor:
    """x where it is above 0, else slope * x, with one slope for each channel (axis 1) or one for all."""
    data, weight = as_tensors("prelu", x, slope)
    if weight.ndim == 1 and data.ndim > 1 and weight.shape[0] != 1:
        if weight.shape[0] != data.shape[1]:
            raise ShapeError("prelu slope", f"expected one for each channel of {data.type}, got {weight.type}")
        weight = reshape(weight, (-1,) + (1,) * (data.ndim - 2))
    return where(greater(data, 0.0), data, mul(weight, data))


# Piecewise linear


@public
def hardsigmoid(x: TensorLike) -> Tensor:
    """relu6(x + 3) / 6; its derivative at -3 and 3 is 0."""
    return apply(HARDSIGMOID, x)


HARDSIGMOID = unary(
    "hardsigmoid", "relu6(x + 3) / 6", lambda x: np.minimum(np.maximum(x + 3, 0), 6) / 6,
    lambda x, out: (1 / 6) * _inside(x, -3.0, 3.0), domain=Domain(-5.0, 5.0, kinks=(-3.0, 3.0)),
    lower=Decompose(lambda ins, attrs: relu6(ins[0] + 3.0) / 6.0),
)


@public
def hardswish(x: TensorLike) -> Tensor:
    """x hardsigmoid(x); its derivative at -3 is 0 and at 3 is 1 (Howard et al. 2019, arXiv:1905.02244)."""
    return apply(HARDSWISH, x)


def _hardswish_slope(x: Tensor, out: Tensor) -> Tensor:
    return where(less_equal(x, -3.0), 0.0, where(less(x, 3.0), x / 3.0 + 0.5, 1.0))


HARDSWISH = unary(
    "hardswish", "x hardsigmoid(x)", lambda x: x * (np.minimum(np.maximum(x + 3, 0), 6) / 6), _hardswish_slope,
    domain=Domain(-5.0, 5.0, kinks=(-3.0, 3.0)), lower=Decompose(lambda ins, attrs: ins[0] * hardsigmoid(ins[0])),
)


# clip


@dataclass(frozen=True)
class ClipAttrs(Attrs):
    """`low` <= `high`; either may be infinite."""

    low: float
    high: float


@public
def clip(x: TensorLike, min: float | Tensor | None = None, max: float | Tensor | None = None) -> Tensor:
    """x cut to min ... max; where x equals an end the gradient passes. NaN stays.

    Ends that are tensors broadcast; they are taken by `maximum` and `minimum`, which share ties evenly.
    """
    (tensor,) = as_tensors("clip", x)
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        above = tensor if min is None else maximum(tensor, min)
        return above if max is None else minimum(above, max)
    low, high = _end(tensor, min, -math.inf), _end(tensor, max, math.inf)
    if not low <= high:
        raise ConfigError("clip", f"expected min <= max, got {min!r} and {max!r}")
    return tensor if low == -math.inf and high == math.inf else apply(CLIP, tensor, attrs=ClipAttrs(low, high))


def _end(x: Tensor, value: float | None, missing: float) -> float:
    if value is None:
        return missing
    x.graph.as_tensor(value, x.dtype)  # refuses what does not fit the tensor's dtype
    return float(value)


def _clip_eval(x: np.ndarray, attrs: ClipAttrs) -> np.ndarray:
    if attrs.low > -math.inf:
        x = np.maximum(x, x.dtype.type(attrs.low))
    return np.minimum(x, x.dtype.type(attrs.high)) if attrs.high < math.inf else x


def _clip_slope(x: Tensor, out: Tensor, attrs: ClipAttrs) -> Tensor:
    return _where_one(logical_and(greater_equal(x, attrs.low), less_equal(x, attrs.high)), x)


def _clip_lower(ins: tuple[Tensor, ...], attrs: ClipAttrs) -> Tensor:
    # MIL's clip refuses equal ends and some infinities.
    (x,) = ins
    exact = float if x.dtype.is_float else int
    if attrs.low > -math.inf:
        x = maximum(x, exact(attrs.low))
    return minimum(x, exact(attrs.high)) if attrs.high < math.inf else x


CLIP = unary_with(
    "clip", "x cut to an interval", _clip_eval, _clip_slope,
    (ClipAttrs(-1.0, 1.5), ClipAttrs(-math.inf, 1.0), ClipAttrs(0.0, math.inf)),
    domain=Domain(kinks=(-1.0, 0.0, 1.0, 1.5)), lower=Decompose(_clip_lower), require=require_numbers,
)
