"""Average pooling over one to three axes: linear, its transpose is a convolution with a kernel of ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.op import Batch, Case, Decompose, Domain, Forward, Mil, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import Shape, TensorType
from . import conv_reference
from ._build import TensorLike, apply, as_tensors, public
from .arithmetic import mul
from .max_pool import BASES
from .pool import PoolAttrs, Size, arguments, flat_padding, pool_infer, pooled, views, window_axes
from .primitives import MilConvAttrs, mil_conv_transpose
from .reduce import mean
from .select import zeros_of_nothing
from .slicing import concat, pad_constant, slice, slice_axis
from .windows import Padding, as_sizes


@dataclass(frozen=True)
class AvgPoolAttrs(PoolAttrs):
    count_padding: bool


@dataclass(frozen=True)
class AvgPoolGradAttrs(AvgPoolAttrs):
    """`size`: the spatial sizes of the image."""

    size: Shape


@public
def avg_pool1d(
    x: TensorLike, kernel: Size, strides: Size | None = None, padding: Padding = "valid", count_padding: bool = True,
    ceil_mode: bool = False,
) -> Tensor:
    """The mean of each window of x [N, C, L]; arguments as for `avg_pool2d`."""
    return _avg_pool("avg_pool1d", 1, x, kernel, strides, padding, count_padding, ceil_mode)


@public
def avg_pool2d(
    x: TensorLike, kernel: Size, strides: Size | None = None, padding: Padding = "valid", count_padding: bool = True,
    ceil_mode: bool = False,
) -> Tensor:
    """The mean of each window of x [N, C, H, W]; padding counts as zeros unless `count_padding` is False.

    With `ceil_mode` a last window that reaches past the end counts too; what it reaches there never counts.
    """
    return _avg_pool("avg_pool2d", 2, x, kernel, strides, padding, count_padding, ceil_mode)


@public
def avg_pool3d(
    x: TensorLike, kernel: Size, strides: Size | None = None, padding: Padding = "valid", count_padding: bool = True,
    ceil_mode: bool = False,
) -> Tensor:
    """The mean of each window of x [N, C, D, H, W]; arguments as for `avg_pool2d`."""
    return _avg_pool("avg_pool3d", 3, x, kernel, strides, padding, count_padding, ceil_mode)


@public
def global_avg_pool(x: TensorLike) -> Tensor:
    """The mean over all spatial axes of x [N, C, ...], kept as sizes of 1."""
    (image,) = as_tensors("global_avg_pool", x)
    if image.ndim < 3:
        raise ShapeError("global_avg_pool", f"expected x of rank 3 or more, got {image.type}")
    return mean(image, range(2, image.ndim), keepdims=True)


@public
def adaptive_avg_pool(x: TensorLike, size: Size) -> Tensor:
    """x [N, C, ...] averaged to other spatial sizes.

    Of n elements to o, result i is the mean of those from floor(i n / o) up to ceil((i + 1) n / o).
    """
    (image,) = as_tensors("adaptive_avg_pool", x)
    if image.ndim < 3 or min(image.shape[2:]) < 1:
        raise ShapeError("adaptive_avg_pool", f"expected x of rank 3 or more with elements, got {image.type}")
    for axis, count in enumerate(as_sizes(size, image.ndim - 2, "adaptive_avg_pool size"), 2):
        n = image.shape[axis]
        if count != n:
            spans = [(i * n // count, -(-(i + 1) * n // count)) for i in range(count)]
            parts = [mean(slice_axis(image, axis, start, stop), axis, keepdims=True) for start, stop in spans]
            image = concat(parts, axis)
    return image


def _avg_pool(
    subject: str, rank: int, x: TensorLike, kernel: Size, strides: Size | None, padding: Padding, count_padding: bool,
    ceil_mode: bool,
) -> Tensor:
    image, window, extra = arguments(subject, rank, x, kernel, strides, padding, ceil_mode)
    attrs = AvgPoolAttrs(window.kernel, window.strides, window.padding, bool(count_padding))
    out = apply(AVG_POOL, image, attrs=attrs)
    if not count_padding or not any(extra):
        return out
    inside = tuple((before, after - more) for (before, after), more in zip(window.padding, extra, strict=True))
    ones = np.pad(np.ones(image.shape[2:], np.float32), inside, constant_values=1.0)
    reached = np.pad(ones, [(0, more) for more in extra])[None, None]
    unpadded = PoolAttrs(window.kernel, window.strides, ((0, 0),) * rank)
    counts = views(reached, unpadded, 0.0).sum(window_axes(unpadded))[0, 0]
    return mul(out, image.graph.constant((math.prod(window.kernel) / counts).astype(image.dtype.numpy)))


def _counts(size: Shape, attrs: AvgPoolAttrs) -> np.ndarray:
    """How many elements each window's mean is over, [out...]."""
    ones = np.ones((1, 1, *size), np.float32)
    fill = 1.0 if attrs.count_padding else 0.0
    return np.asarray(views(ones, attrs, fill).sum(window_axes(attrs), dtype=np.float32)[0, 0])


def _avg_eval(arrays: tuple[np.ndarray, ...], attrs: AvgPoolAttrs) -> np.ndarray:
    (x,) = arrays
    return (views(x, attrs, 0.0).sum(window_axes(attrs)) / _counts(x.shape[2:], attrs)).astype(x.dtype)


def _avg(x: Tensor, attrs: AvgPoolAttrs) -> Tensor:
    plain = AvgPoolAttrs(attrs.kernel, attrs.strides, attrs.padding, attrs.count_padding)
    return apply(AVG_POOL, x, attrs=plain)


def _grad_infer(types: tuple[TensorType, ...], attrs: AvgPoolGradAttrs) -> tuple[TensorType, ...]:
    (g,) = types
    image = g.with_shape((*g.shape[:2], *attrs.size))
    if pool_infer((image,), attrs) != (g,):
        raise ShapeError("avg_pool_grad", f"{image} does not pool to {g}")
    return (image,)


def _grad_eval(arrays: tuple[np.ndarray, ...], attrs: AvgPoolGradAttrs) -> np.ndarray:
    (g,) = arrays
    each = np.expand_dims((g / _counts(attrs.size, attrs)).astype(g.dtype), window_axes(attrs))
    cols = np.broadcast_to(each, (*g.shape, *attrs.kernel))
    return conv_reference.add_windows(cols, attrs.size, attrs.strides, attrs.padding, (1,) * len(attrs.kernel))


@zeros_of_nothing(_grad_infer)
def _grad_lower(ins: tuple[Tensor, ...], attrs: AvgPoolGradAttrs) -> Tensor:
    (g,) = ins
    channels, rank = g.shape[1], len(attrs.kernel)
    share = mul(g, g.graph.constant((1 / _counts(attrs.size, attrs)).astype(g.dtype.numpy)))
    ones = g.graph.constant(np.ones((channels, 1, *attrs.kernel), g.dtype.numpy))
    whole = mil_conv_transpose(share, ones, MilConvAttrs(attrs.strides, ((0, 0),) * rank, channels))
    starts = [before for before, _ in attrs.padding]
    ends = [min(n, b + s) for n, b, s in zip(whole.shape[2:], starts, attrs.size, strict=True)]
    inside = slice(whole, [0, 0, *starts], [*whole.shape[:2], *ends])
    missing = [(0, s - n) for s, n in zip(attrs.size, inside.shape[2:], strict=True)]
    return pad_constant(inside, [(0, 0), (0, 0), *missing])


def _grad(g: Tensor, size: Shape, attrs: AvgPoolAttrs) -> Tensor:
    graded = AvgPoolGradAttrs(attrs.kernel, attrs.strides, attrs.padding, attrs.count_padding, size)
    return apply(AVG_POOL_GRAD, g, attrs=graded)


def _mil(attrs: AvgPoolAttrs, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> dict[str, Any]:
    return {
        "kernel_sizes": attrs.kernel, "strides": attrs.strides, "pad_type": "custom", "pad": flat_padding(attrs),
        "ceil_mode": False, "exclude_padding_from_average": not attrs.count_padding,
    }


_BASES = tuple(
    (shape, AvgPoolAttrs(a.kernel, a.strides, a.padding, counted)) for shape, a in BASES for counted in (True, False)
)
AVG_POOL = Op(
    name="avg_pool", summary="mean of each window", attrs=AvgPoolAttrs, infer=pool_infer, eval=_avg_eval,
    vjp=lambda g, out, ins, attrs: (_grad(g, ins[0].shape[2:], attrs),),
    jvp=Forward.LINEAR, lower=Mil("avg_pool", ("x",), _mil), kind=OpKind.REDUCTION, domain=Domain(), batch=Batch.MERGE,
    cases=tuple(Case((shape,), attrs) for shape, attrs in _BASES),
)
AVG_POOL_GRAD = Op(
    name="avg_pool_grad", summary="each window's share given to its elements", attrs=AvgPoolGradAttrs,
    infer=_grad_infer, eval=_grad_eval, vjp=lambda h, out, ins, attrs: (_avg(h, attrs),),
    jvp=lambda ts, out, ins, attrs: _grad(ts[0], attrs.size, attrs),
    lower=Decompose(_grad_lower), kind=OpKind.REDUCTION, domain=Domain(), batch=Batch.MERGE,
    cases=tuple(
        Case((pooled(shape, a),), AvgPoolGradAttrs(a.kernel, a.strides, a.padding, a.count_padding, shape[2:]))
        for shape, a in _BASES
    ),
)
