"""Batch normalisation: training statistics, running averages as buffers, and the averages when predicting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import f16, f32
from ..errors import ConfigError, GraphError, ShapeError
from ..ir.op import Attrs, Case, Decompose, Domain, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import Shape, TensorType, as_axis
from ._build import TensorLike, public, require_float
from .arithmetic import add, mul, sub
from .elementwise import rsqrt, square
from .norms import checked_eps
from .reduce import mean, sum
from .select import cast, full_like
from .shape import reshape


@dataclass(frozen=True)
class BatchNormAttrs(Attrs):
    """`axis`: the channels; `momentum`: how much of the batch goes into the averages."""

    axis: int
    eps: float
    momentum: float


@public
def batch_norm(
    x: Tensor, running_mean: Tensor, running_var: Tensor, gamma: TensorLike | None = None,
    beta: TensorLike | None = None, axis: int = 1, eps: float = 1e-5, momentum: float = 0.1,
) -> Tensor:
    """(x - mean) / sqrt(variance + eps) * gamma + beta with the statistics of the batch, for each channel.

    Ioffe & Szegedy 2015, arXiv:1502.03167. `running_mean` and `running_var` are buffers of f32 with one entry
    a channel; a step moves them to (1 - momentum) average + momentum statistic, with the unbiased variance,
    once for each use of them. In the inference form they take the statistics' place. gamma and beta have one entry
    a channel.
    """
    at = as_axis(axis, x.ndim, "batch_norm")
    if not 0 <= momentum <= 1:
        raise ConfigError("batch_norm momentum", f"expected a number from 0 to 1, got {momentum!r}")
    averages = []
    for buffer in (running_mean, running_var):
        if buffer.name is None or x.graph.buffers.get(buffer.name) is not buffer:
            raise GraphError("batch_norm", f"expected running averages that are buffers of the graph, got {buffer!r}")
        averages.append(x.graph.assigns.get(buffer.name, buffer))  # an earlier use has moved it already
    attrs = BatchNormAttrs(at, checked_eps("batch_norm", eps), float(momentum))
    out, next_mean, next_var = x.graph.apply(BATCH_NORM, (x, *averages), attrs)
    x.graph.assign(running_mean, next_mean)
    x.graph.assign(running_var, next_var)
    return _affine(out, gamma, beta, at)


def _affine(x: Tensor, gamma: TensorLike | None, beta: TensorLike | None, axis: int) -> Tensor:
    for value, combine in ((gamma, mul), (beta, add)):
        if value is not None:
            entries = x.graph.as_tensor(value, x.dtype)
            if entries.shape != (x.shape[axis],):
                raise ShapeError("batch_norm", f"expected one entry for each channel of {x.type}, got {entries.type}")
            x = combine(x, _wide(entries, x.ndim, axis))
    return x


def _wide(entries: Tensor, rank: int, axis: int) -> Tensor:
    return reshape(entries, (-1,) + (1,) * (rank - axis - 1))


def _rest(rank: int, axis: int) -> Shape:
    return tuple(i for i in range(rank) if i != axis)


def _count(shape: Shape, axis: int) -> int:
    return math.prod(shape[i] for i in _rest(len(shape), axis))


def _infer(types: tuple[TensorType, ...], attrs: BatchNormAttrs) -> tuple[TensorType, ...]:
    x, average, variance = types
    require_float("batch_norm", x, average, variance)
    if not 0 <= attrs.axis < x.rank or not average.shape == variance.shape == (x.shape[attrs.axis],):
        raise ShapeError("batch_norm", f"expected one average for each channel of {x}, got {average} and {variance}")
    if _count(x.shape, attrs.axis) < 2:
        raise ShapeError("batch_norm", f"expected at least two values a channel, got {x}")
    return x, average, variance


def _eval(arrays: tuple[np.ndarray, ...], attrs: BatchNormAttrs) -> tuple[np.ndarray, ...]:
    x, average, variance = arrays
    axes, count = _rest(x.ndim, attrs.axis), _count(x.shape, attrs.axis)
    centre = x.mean(axes, keepdims=True)
    spread = np.square(x - centre).mean(axes, keepdims=True)
    out = (x - centre) / np.sqrt(spread + x.dtype.type(attrs.eps))
    momentum = average.dtype.type(attrs.momentum)
    unbiased = spread.ravel() * average.dtype.type(count / (count - 1))
    return (
        out, average + momentum * (centre.ravel().astype(average.dtype) - average),
        variance + momentum * (unbiased.astype(average.dtype) - variance),
    )


def _statistics(x: Tensor, attrs: BatchNormAttrs) -> tuple[Tensor, Tensor, Tensor]:
    """x - mean, the mean and the biased variance, in f32 and with the axes kept."""
    wide, axes = cast(x, f32), _rest(x.ndim, attrs.axis)
    centre = mean(wide, axes, keepdims=True)
    centred = sub(wide, centre)
    return centred, centre, mean(square(centred), axes, keepdims=True)


def _moved(average: Tensor, statistic: Tensor, attrs: BatchNormAttrs) -> Tensor:
    before = cast(average, f32)
    after = add(before, attrs.momentum * sub(reshape(statistic, average.shape), before))
    return cast(after, average.dtype)


def _unbias(x: Tensor, attrs: BatchNormAttrs) -> float:
    count = _count(x.shape, attrs.axis)
    return count / (count - 1)


def _lower(ins: tuple[Tensor, ...], attrs: BatchNormAttrs) -> tuple[Tensor, ...]:
    x, average, variance = ins
    centred, centre, spread = _statistics(x, attrs)
    out = cast(centred * rsqrt(spread + attrs.eps), x.dtype)
    return out, _moved(average, centre, attrs), _moved(variance, spread * _unbias(x, attrs), attrs)


def _predict(ins: tuple[Tensor, ...], attrs: BatchNormAttrs) -> tuple[Tensor, ...]:
    x, average, variance = ins
    scale = rsqrt(cast(variance, f32) + attrs.eps)
    centred = sub(cast(x, f32), _wide(cast(average, f32), x.ndim, attrs.axis))
    return cast(mul(centred, _wide(scale, x.ndim, attrs.axis)), x.dtype), average, variance


def _vjp(g: tuple[Tensor, ...], out: tuple[Tensor, ...], ins: tuple[Tensor, ...], attrs: BatchNormAttrs) -> Any:
    x, average, variance = ins
    axes = _rest(x.ndim, attrs.axis)
    centred, _, spread = _statistics(x, attrs)
    gy, gm, gv = [cast(cotangent, f32) for cotangent in g]
    y = cast(out[0], f32)
    through = sub(gy, add(mean(gy, axes, keepdims=True), y * mean(gy * y, axes, keepdims=True)))
    dx = through * rsqrt(spread + attrs.eps)
    share = attrs.momentum / _count(x.shape, attrs.axis)
    dx = add(dx, _wide(share * gm, x.ndim, attrs.axis))
    dx = add(dx, _wide((2 * share * _unbias(x, attrs)) * gv, x.ndim, attrs.axis) * centred)
    kept = 1.0 - attrs.momentum
    return cast(dx, x.dtype), cast(kept * gm, average.dtype), cast(kept * gv, variance.dtype)


def _jvp(ts: Any, out: tuple[Tensor, ...], ins: tuple[Tensor, ...], attrs: BatchNormAttrs) -> tuple[Tensor, ...]:
    x, average, variance = ins
    axes, kept = _rest(x.ndim, attrs.axis), 1.0 - attrs.momentum
    moved_mean = full_like(average, 0.0) if ts[1] is None else kept * ts[1]
    moved_var = full_like(variance, 0.0) if ts[2] is None else kept * ts[2]
    if ts[0] is None:
        return full_like(x, 0.0), moved_mean, moved_var
    centred, _, spread = _statistics(x, attrs)
    t, y = cast(ts[0], f32), cast(out[0], f32)
    through = sub(t, add(mean(t, axes, keepdims=True), y * mean(t * y, axes, keepdims=True)))
    share = attrs.momentum / _count(x.shape, attrs.axis)
    of_mean, of_var = share * sum(t, axes), (2 * share * _unbias(x, attrs)) * sum(t * centred, axes)
    moved_mean = add(moved_mean, cast(of_mean, average.dtype))
    moved_var = add(moved_var, cast(of_var, variance.dtype))
    return cast(through * rsqrt(spread + attrs.eps), x.dtype), moved_mean, moved_var


_POSITIVE = Domain(0.5, 2.0)
_DOMAINS = (Domain(), Domain(), _POSITIVE)
BATCH_NORM = Op(
    name="batch_norm", summary="mean 0 and variance 1 over a batch, and the next running averages",
    attrs=BatchNormAttrs, infer=_infer, eval=_eval, vjp=_vjp, jvp=_jvp, lower=Decompose(_lower), predict=_predict,
    kind=OpKind.REDUCTION, domain=Domain(),
    cases=(
        Case(((3, 4), (4,), (4,)), BatchNormAttrs(1, 1e-5, 0.1), domains=_DOMAINS),
        Case(((2, 3, 4, 5), (3,), (3,)), BatchNormAttrs(1, 1e-3, 0.25), domains=_DOMAINS),
        Case(((2, 5, 3), (3,), (3,)), BatchNormAttrs(2, 1e-5, 0.1), domains=_DOMAINS),
        Case(((4, 3), (3,), (3,)), BatchNormAttrs(1, 1e-3, 0.1), (f16, f32, f32), _DOMAINS),
    ),
)
