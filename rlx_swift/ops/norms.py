"""Normalisation over axes: layer, RMS, group and instance norms, and unit length. Sums run in f32."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import f16
from ..errors import ConfigError, ShapeError
from ..ir.op import Attrs, Batch, Case, Decompose, Domain, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import Shape, TensorType, as_axes, as_int
from ._build import TensorLike, apply, as_tensors, public, require_float
from .arithmetic import add, div, maximum, mul
from .elementwise import rsqrt, square
from .reduce import mean
from .select import in_f32
from .shape import reshape
from .statistics import norm


@dataclass(frozen=True)
class NormAttrs(Attrs):
    """`axes` sorted and counted from the front, at least one; `eps` is added to the mean square."""

    axes: Shape
    eps: float


@public
def layer_norm(
    x: TensorLike, gamma: TensorLike | None = None, beta: TensorLike | None = None,
    axis: int | Sequence[int] = -1, eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(variance + eps) * gamma + beta, with the biased variance over the axes.

    Ba, Kiros & Hinton 2016, arXiv:1607.06450, eq. 3. gamma and beta broadcast against x.
    """
    return _affine(_normalised(LAYER_NORM, x, axis, eps), gamma, beta)


@public
def rms_norm(
    x: TensorLike, gamma: TensorLike | None = None, axis: int | Sequence[int] = -1, eps: float = 1e-6
) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * gamma over the axes (Zhang & Sennrich 2019, arXiv:1910.07467, eq. 4)."""
    return _affine(_normalised(RMS_NORM, x, axis, eps), gamma, None)


@public
def group_norm(
    x: TensorLike, groups: int, gamma: TensorLike | None = None, beta: TensorLike | None = None, eps: float = 1e-5
) -> Tensor:
    """Layer norm over each group of channels of x [N, C, ...]; gamma and beta have one entry a channel.

    Wu & He 2018, arXiv:1803.08494.
    """
    (image,) = as_tensors("group_norm", x)
    count = as_int(groups, "group_norm groups")
    if image.ndim < 2 or count < 1 or image.shape[1] % count:
        raise ShapeError("group_norm", f"the channels of {image.type} do not fall into {count} groups")
    n, channels = image.shape[:2]
    rows = reshape(image, (n, count, math.prod(image.shape[2:]) * (channels // count)))
    out = reshape(_normalised(LAYER_NORM, rows, -1, eps), image.shape)
    return _affine(out, by_channel("group_norm", out, gamma), by_channel("group_norm", out, beta))


@public
def instance_norm(
    x: TensorLike, gamma: TensorLike | None = None, beta: TensorLike | None = None, eps: float = 1e-5
) -> Tensor:
    """Layer norm over the spatial axes of each channel of x [N, C, ...]; gamma and beta have one entry a channel."""
    (image,) = as_tensors("instance_norm", x)
    if image.ndim < 3:
        raise ShapeError("instance_norm", f"expected x of rank 3 or more, got {image.type}")
    return group_norm(image, image.shape[1], gamma, beta, eps)


@public
def l2_normalize(x: TensorLike, axis: int | Sequence[int] = -1, eps: float = 1e-12) -> Tensor:
    """x / max(|x|, eps) over the axes; a zero vector stays zero, with a finite gradient."""
    (tensor,) = as_tensors("l2_normalize", x)
    require_float("l2_normalize", tensor.type)
    return _unit(tensor, axis, checked_eps("l2_normalize", eps))


@in_f32
def _unit(x: Tensor, axis: int | Sequence[int], eps: float) -> Tensor:
    return div(x, maximum(norm(x, 2, axis, keepdims=True), eps))


def _normalised(op: Op[NormAttrs], x: TensorLike, axis: int | Sequence[int], eps: float) -> Tensor:
    (tensor,) = as_tensors(op.name, x)
    return apply(op, tensor, attrs=NormAttrs(as_axes(axis, tensor.ndim, op.name), checked_eps(op.name, eps)))


def checked_eps(subject: str, eps: float) -> float:
    if not isinstance(eps, (int, float, np.floating)) or not eps >= 0:
        raise ConfigError(f"{subject} eps", f"expected a number of at least 0, got {eps!r}")
    return float(eps)


def _affine(x: Tensor, gamma: TensorLike | None, beta: TensorLike | None) -> Tensor:
    scaled = x if gamma is None else mul(x, gamma)
    out = scaled if beta is None else add(scaled, beta)
    if out.shape != x.shape:
        raise ShapeError("norm", f"gamma and beta do not fit {x.type}")
    return out


def by_channel(subject: str, x: Tensor, value: TensorLike | None) -> Tensor | None:
    """One entry a channel (axis 1 of x), shaped to broadcast."""
    if value is None:
        return None
    entries = x.graph.as_tensor(value, x.dtype)
    if entries.shape != x.shape[1:2]:
        raise ShapeError(subject, f"expected one entry for each channel of {x.type}, got {entries.type}")
    return reshape(entries, (-1,) + (1,) * (x.ndim - 2))


# Records


def _infer(types: tuple[TensorType, ...], attrs: NormAttrs) -> tuple[TensorType, ...]:
    (x,) = types
    require_float("norm", x)
    if not attrs.axes or attrs.axes != as_axes(attrs.axes, x.rank, "norm"):
        raise ShapeError("norm", f"expected sorted axes of {x}, at least one, got {attrs.axes}")
    if any(x.shape[axis] == 0 for axis in attrs.axes):
        raise ShapeError("norm", f"expected elements along axes {attrs.axes}, got {x}")
    return types


def _scaled(x: np.ndarray, attrs: NormAttrs) -> np.ndarray:
    power = np.mean(np.square(x), axis=attrs.axes, keepdims=True)
    return x / np.sqrt(power + x.dtype.type(attrs.eps))


def _inverse(x: Tensor, attrs: NormAttrs) -> Tensor:
    """1 / sqrt(mean square + eps), with the axes kept."""
    return rsqrt(mean(square(x), attrs.axes, keepdims=True) + attrs.eps)


def _centred(x: Tensor, attrs: NormAttrs) -> Tensor:
    return x - mean(x, attrs.axes, keepdims=True)


@in_f32
def _layer_lower(ins: tuple[Tensor, ...], attrs: NormAttrs) -> Tensor:
    centred = _centred(ins[0], attrs)
    return centred * _inverse(centred, attrs)


@in_f32
def _rms_lower(ins: tuple[Tensor, ...], attrs: NormAttrs) -> Tensor:
    return ins[0] * _inverse(ins[0], attrs)


# Both Jacobians are symmetric, so that one function gives vjp and jvp.


@in_f32
def _layer_slope(t: Tensor, out: Tensor, x: Tensor, attrs: NormAttrs) -> Tensor:
    along = mean(t * out, attrs.axes, keepdims=True)
    return (_centred(t, attrs) - out * along) * _inverse(_centred(x, attrs), attrs)


@in_f32
def _rms_slope(t: Tensor, out: Tensor, x: Tensor, attrs: NormAttrs) -> Tensor:
    return (t - out * mean(t * out, attrs.axes, keepdims=True)) * _inverse(x, attrs)


def _record(
    name: str, summary: str, evaluate: Callable[..., np.ndarray], slope: Callable[..., Tensor], lower: Any
) -> Op[NormAttrs]:
    return Op(
        name=name, summary=summary, attrs=NormAttrs, infer=_infer,
        eval=lambda arrays, attrs: evaluate(arrays[0], attrs),
        vjp=lambda g, out, ins, attrs: (slope(g, out, ins[0], attrs),),
        jvp=lambda ts, out, ins, attrs: slope(ts[0], out, ins[0], attrs),
        lower=Decompose(lower), kind=OpKind.REDUCTION, domain=Domain(), batch=Batch.SHIFT,
        cases=(
            Case(((2, 5),), NormAttrs((1,), 1e-5)), Case(((2, 3, 4),), NormAttrs((1, 2), 1e-5)),
            Case(((2, 3, 4),), NormAttrs((1,), 1e-3)), Case(((2, 5),), NormAttrs((1,), 1e-3), (f16,)),
        ),
    )


def _layer_eval(x: np.ndarray, attrs: NormAttrs) -> np.ndarray:
    return _scaled(x - np.mean(x, axis=attrs.axes, keepdims=True), attrs)


LAYER_NORM = _record("layer_norm", "mean 0 and variance 1 over axes", _layer_eval, _layer_slope, _layer_lower)
RMS_NORM = _record("rms_norm", "mean square 1 over axes", _scaled, _rms_slope, _rms_lower)
