"""Convolution over one or two axes with strides, padding, dilation and groups, and its two transposes.

The three ops are bilinear and each other's derivatives. They lower to MIL's conv and conv_transpose in the
forms that Core ML takes with weights known at run time: without dilation (the kernel is spread out with
zeros instead), and the weight gradient at stride 1 only (the output gradient is spread out instead).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..dtypes import f16
from ..errors import ShapeError
from ..ir.op import Attrs, Case, Decompose, Domain, Op, OpKind, find_op
from ..ir.tensor import Tensor
from ..ir.types import Shape, TensorType, as_int
from . import conv_reference
from ._build import TensorLike, apply, as_tensors, public, require_float, same_dtype
from ._conv_batch import as_groups
from .arithmetic import add
from .primitives import MilConvAttrs, mil_conv, mil_conv_transpose
from .select import zeros_of_nothing
from .shape import reshape, transpose
from .slicing import dilate, pad_constant, slice, slice_axis
from .windows import Padding, Pads, as_padding, as_sizes, reach_of, window_counts

Size = int | Sequence[int]


@dataclass(frozen=True)
class ConvAttrs(Attrs):
    """Each field has an entry for each spatial axis; `padding`: (before, after)."""

    strides: Shape
    padding: Pads
    dilation: Shape
    groups: int


@dataclass(frozen=True)
class ConvGradAttrs(ConvAttrs):
    """`size`: the spatial sizes of the result."""

    size: Shape


@public
def conv1d(
    x: TensorLike, w: TensorLike, bias: TensorLike | None = None, strides: Size = 1, padding: Padding = "valid",
    dilation: Size = 1, groups: int = 1,
) -> Tensor:
    """Cross-correlation of x [N, C, L] with w [O, C/groups, K], plus bias [O]; arguments as for `conv2d`."""
    return _conv("conv1d", 1, x, w, bias, strides, padding, dilation, groups)


@public
def conv2d(
    x: TensorLike, w: TensorLike, bias: TensorLike | None = None, strides: Size = 1, padding: Padding = "valid",
    dilation: Size = 1, groups: int = 1,
) -> Tensor:
    """Cross-correlation of x [N, C, H, W] with w [O, C/groups, KH, KW], plus bias [O].

    `padding` is "valid", "same" (as TensorFlow's: the odd element goes after), a number, one for each axis,
    or a pair (before, after) for each axis. Raises ShapeError and ConfigError.
    """
    return _conv("conv2d", 2, x, w, bias, strides, padding, dilation, groups)


@public
def depthwise_conv2d(
    x: TensorLike, w: TensorLike, bias: TensorLike | None = None, strides: Size = 1, padding: Padding = "valid",
    dilation: Size = 1,
) -> Tensor:
    """`conv2d` of each channel on its own: x [N, C, H, W], w [C * multiplier, 1, KH, KW]."""
    image, kernel = as_tensors("depthwise_conv2d", x, w)
    groups = image.shape[1] if image.ndim == 4 else 1
    return _conv("depthwise_conv2d", 2, image, kernel, bias, strides, padding, dilation, groups)


def _conv(
    subject: str, rank: int, x: TensorLike, w: TensorLike, bias: TensorLike | None, strides: Size, padding: Padding,
    dilation: Size, groups: int,
) -> Tensor:
    image, kernel = conv_operands(subject, rank, x, w)
    steps, spread = as_sizes(strides, rank, f"{subject} strides"), as_sizes(dilation, rank, f"{subject} dilation")
    pads = as_padding(padding, image.shape[2:], reach_of(kernel.shape[2:], spread), steps, subject)
    out = apply(CONV, image, kernel, attrs=ConvAttrs(steps, pads, spread, as_int(groups, f"{subject} groups")))
    return with_bias(subject, out, bias)


def conv_operands(subject: str, rank: int, x: TensorLike, w: TensorLike) -> tuple[Tensor, Tensor]:
    """Image and kernel with `rank` spatial axes; raises ShapeError for other ranks."""
    image, kernel = as_tensors(subject, x, w)
    if image.ndim != rank + 2 or kernel.ndim != rank + 2:
        raise ShapeError(subject, f"expected x and w of rank {rank + 2}, got {image.type} and {kernel.type}")
    return image, kernel


def with_bias(subject: str, out: Tensor, bias: TensorLike | None) -> Tensor:
    """The result plus a number for each channel."""
    if bias is None:
        return out
    offset = out.graph.as_tensor(bias, out.dtype)
    if offset.shape != out.shape[1:2]:
        raise ShapeError(f"{subject} bias", f"expected shape {out.shape[1:2]}, got {offset.shape}")
    return add(out, reshape(offset, (-1,) + (1,) * (out.ndim - 2)))


# Shapes


def _result(subject: str, x: Shape, w: Shape, attrs: ConvAttrs) -> Shape:
    """The shape of the convolution of an image and a kernel; raises ShapeError where there is none."""
    rank = len(attrs.strides)
    if len(attrs.padding) != rank or len(attrs.dilation) != rank or len(x) != rank + 2 or len(w) != rank + 2:
        raise ShapeError(subject, f"expected operands with {rank} spatial axes, got shapes {x} and {w}")
    if min(*attrs.strides, *attrs.dilation) < 1 or min(min(pair) for pair in attrs.padding) < 0:
        raise ShapeError(subject, f"expected strides and dilation of at least 1, padding of at least 0, got {attrs}")
    if attrs.groups < 1 or x[1] != w[1] * attrs.groups or w[0] % attrs.groups:
        raise ShapeError(subject, f"{x[1]} and {w[0]} channels do not fit a kernel of {w[1]} in {attrs.groups} groups")
    size = window_counts(x[2:], reach_of(w[2:], attrs.dilation), attrs.strides, attrs.padding)
    if min(w[2:]) < 1 or min(size) < 1:
        raise ShapeError(subject, f"the kernel {w[2:]} does not fit the image {x[2:]} with {attrs}")
    return (x[0], w[0], *size)


def _floats(subject: str, types: tuple[TensorType, ...]) -> None:
    require_float(subject, *types)
    same_dtype(subject, *types)
    if min(t.rank for t in types) < 3:
        raise ShapeError(subject, f"expected operands of rank 3 or more, got {types[0]} and {types[1]}")


def _conv_infer(types: tuple[TensorType, ...], attrs: ConvAttrs) -> tuple[TensorType, ...]:
    x, w = types
    _floats("conv", types)
    return (x.with_shape(_result("conv", x.shape, w.shape, attrs)),)


def _transpose_infer(types: tuple[TensorType, ...], attrs: ConvGradAttrs) -> tuple[TensorType, ...]:
    g, w = types
    _floats("conv_transpose", types)
    shape = (g.shape[0], w.shape[1] * attrs.groups, *attrs.size)
    if _result("conv_transpose", shape, w.shape, attrs) != g.shape:
        raise ShapeError("conv_transpose", f"{g} is not what {shape} gives with {w} and {attrs}")
    return (g.with_shape(shape),)


def _weight_grad_infer(types: tuple[TensorType, ...], attrs: ConvGradAttrs) -> tuple[TensorType, ...]:
    x, g = types
    _floats("conv_weight_grad", types)
    shape = (g.shape[1], x.shape[1] // max(attrs.groups, 1), *attrs.size)
    if _result("conv_weight_grad", x.shape, shape, attrs) != g.shape:
        raise ShapeError("conv_weight_grad", f"{g} is not what {x} gives with a kernel of {shape} and {attrs}")
    return (x.with_shape(shape),)


# Derivatives


def _plain(attrs: ConvAttrs) -> ConvAttrs:
    return ConvAttrs(attrs.strides, attrs.padding, attrs.dilation, attrs.groups)


def conv_transpose(g: Tensor, w: Tensor, size: Shape, attrs: ConvAttrs) -> Tensor:
    """What a convolution with `attrs` has as the cotangent of its image, of spatial `size`."""
    sized = ConvGradAttrs(attrs.strides, attrs.padding, attrs.dilation, attrs.groups, size)
    return apply(CONV_TRANSPOSE, g, w, attrs=sized)


def _weight_grad(x: Tensor, g: Tensor, size: Shape, attrs: ConvAttrs) -> Tensor:
    sized = ConvGradAttrs(attrs.strides, attrs.padding, attrs.dilation, attrs.groups, size)
    return apply(CONV_WEIGHT_GRAD, x, g, attrs=sized)


def _conv_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: ConvAttrs) -> tuple[Tensor, ...]:
    x, w = ins
    return conv_transpose(g, w, x.shape[2:], attrs), _weight_grad(x, g, w.shape[2:], attrs)


def _transpose_vjp(h: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: ConvGradAttrs) -> tuple[Tensor, ...]:
    g, w = ins
    return apply(CONV, h, w, attrs=_plain(attrs)), _weight_grad(h, g, w.shape[2:], attrs)


def _weight_grad_vjp(h: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: ConvGradAttrs) -> tuple[Tensor, ...]:
    x, g = ins
    return conv_transpose(g, h, x.shape[2:], attrs), apply(CONV, x, h, attrs=_plain(attrs))


def _bilinear_jvp(name: str) -> Callable[..., Tensor]:
    def jvp(ts: Sequence[Tensor | None], out: Tensor, ins: tuple[Tensor, ...], attrs: ConvAttrs) -> Tensor:
        op = find_op(name)
        terms = [apply(op, ts[0], ins[1], attrs=attrs)] if ts[0] is not None else []
        if ts[1] is not None:
            terms.append(apply(op, ins[0], ts[1], attrs=attrs))
        return terms[0] if len(terms) == 1 else add(*terms)

    return jvp


# Lowering


def _spread(x: Tensor, steps: Shape) -> Tensor:
    """x with step - 1 zeros between neighbours along each spatial axis."""
    for axis, step in reversed(list(enumerate(steps, 2))):
        x = dilate(x, axis, step)
    return x


def _padded(x: Tensor, padding: Pads) -> tuple[Tensor, Pads]:
    """Uneven padding as an op of its own: Core ML's conv was seen to get the last element wrong with it."""
    if all(before == after for before, after in padding):
        return x, padding
    return pad_constant(x, ((0, 0), (0, 0), *padding)), ((0, 0),) * len(padding)


@zeros_of_nothing(_conv_infer)
def _conv_lower(ins: tuple[Tensor, ...], attrs: ConvAttrs) -> Tensor:
    x, padding = _padded(ins[0], attrs.padding)
    return mil_conv(x, _spread(ins[1], attrs.dilation), MilConvAttrs(attrs.strides, padding, attrs.groups))


@zeros_of_nothing(_transpose_infer)
def _transpose_lower(ins: tuple[Tensor, ...], attrs: ConvGradAttrs) -> Tensor:
    g, w = ins[0], _spread(ins[1], attrs.dilation)
    whole = mil_conv_transpose(g, w, MilConvAttrs(attrs.strides, ((0, 0),) * len(attrs.size), attrs.groups))
    begin, end, widths = [0, 0], list(whole.shape[:2]), [(0, 0), (0, 0)]
    for n, size, (before, _) in zip(whole.shape[2:], attrs.size, attrs.padding, strict=True):
        begin.append(before)
        end.append(min(n, before + size))
        widths.append((0, before + size - end[-1]))  # what no window reached
    return pad_constant(slice(whole, begin, end), widths)


@zeros_of_nothing(_weight_grad_infer)
def _weight_grad_lower(ins: tuple[Tensor, ...], attrs: ConvGradAttrs) -> Tensor:
    # dw[o, c, i] = sum over n, y of x[n, c, y + i] g[n, o, y]: a convolution whose channels are the batch and
    # whose batch is the input channels.
    x, g = ins
    g = _spread(g, attrs.strides)
    image, padding = _padded(x, attrs.padding)
    reach = reach_of(attrs.size, attrs.dilation)
    for axis, span in enumerate(reach, 2):  # drop what the last window does not reach
        excess = image.shape[axis] + sum(padding[axis - 2]) - (g.shape[axis] + span - 1)
        if excess:
            image, padding = pad_constant(image, ((0, 0), (0, 0), *padding)), ((0, 0),) * len(reach)
            image = slice_axis(image, axis, 0, image.shape[axis] - excess)
    n, channels, *spatial = image.shape
    groups, each = attrs.groups, channels // attrs.groups
    by_channel = transpose(reshape(image, (n, groups, each, math.prod(spatial))), (2, 1, 0, 3))
    swapped = reshape(by_channel, (each, groups * n, *spatial))
    out = mil_conv(swapped, _exchanged(g), MilConvAttrs((1,) * len(reach), padding, groups))
    dense = _exchanged(out)
    for axis, (span, step) in enumerate(zip(reach, attrs.dilation, strict=True), 2):
        dense = slice_axis(dense, axis, 0, span, step)
    return dense


def _exchanged(x: Tensor) -> Tensor:
    """The first two axes exchanged."""
    return transpose(x, (1, 0, *range(2, x.ndim)))


# Records

_FLAT = ConvAttrs((1, 1), ((0, 0), (0, 0)), (1, 1), 1)
_LINE = ConvAttrs((1,), ((0, 0),), (1,), 1)
_VARIANTS: tuple[tuple[Shape, Shape, ConvAttrs], ...] = (
    ((2, 3, 5, 6), (4, 3, 3, 2), _FLAT),
    ((2, 2, 6, 5), (3, 2, 3, 3), replace(_FLAT, strides=(2, 2), padding=((1, 1), (1, 1)))),
    ((2, 4, 6, 6), (6, 2, 3, 3), replace(_FLAT, groups=2, padding=((0, 1), (1, 2)))),
    ((1, 2, 7, 7), (2, 2, 2, 3), replace(_FLAT, dilation=(2, 2), strides=(1, 2), padding=((1, 1), (0, 0)))),
    ((2, 3, 4, 4), (3, 1, 2, 2), replace(_FLAT, groups=3, strides=(3, 2))),
    ((2, 3, 7), (4, 3, 3), _LINE),
    ((2, 4, 8), (4, 2, 3), replace(_LINE, strides=(2,), padding=((2, 1),), dilation=(2,), groups=2)),
)


def _grad_attrs(attrs: ConvAttrs, size: Shape) -> ConvGradAttrs:
    return ConvGradAttrs(attrs.strides, attrs.padding, attrs.dilation, attrs.groups, size)


def _out(x: Shape, w: Shape, attrs: ConvAttrs) -> Shape:
    return _result("conv", x, w, attrs)


def _eval(function: Callable[..., np.ndarray]) -> Callable[[tuple[np.ndarray, ...], Any], np.ndarray]:
    def evaluate(arrays: tuple[np.ndarray, ...], attrs: ConvAttrs) -> np.ndarray:
        size = (attrs.size,) if isinstance(attrs, ConvGradAttrs) else ()
        return function(*arrays, *size, attrs.strides, attrs.padding, attrs.dilation, attrs.groups)

    return evaluate


CONV = Op(
    name="conv", summary="convolution over one or two axes", attrs=ConvAttrs, infer=_conv_infer,
    eval=_eval(conv_reference.conv), vjp=_conv_vjp, jvp=_bilinear_jvp("conv"), lower=Decompose(_conv_lower),
    kind=OpKind.COMPUTE, domain=Domain(), batch=as_groups("conv", kernel=1),
    cases=tuple(Case((x, w), attrs) for x, w, attrs in _VARIANTS) + (Case(_VARIANTS[0][:2], _FLAT, (f16, f16)),),
)
CONV_TRANSPOSE = Op(
    name="conv_transpose", summary="transposed convolution: the cotangent of conv's image", attrs=ConvGradAttrs,
    infer=_transpose_infer, eval=_eval(conv_reference.conv_transpose), vjp=_transpose_vjp,
    jvp=_bilinear_jvp("conv_transpose"), lower=Decompose(_transpose_lower), kind=OpKind.COMPUTE, domain=Domain(),
    batch=as_groups("conv_transpose", kernel=1),
    cases=tuple(Case((_out(x, w, a), w), _grad_attrs(a, x[2:])) for x, w, a in _VARIANTS),
)
CONV_WEIGHT_GRAD = Op(
    name="conv_weight_grad", summary="cotangent of conv's kernel", attrs=ConvGradAttrs, infer=_weight_grad_infer,
    eval=_eval(conv_reference.conv_weight_grad), vjp=_weight_grad_vjp, jvp=_bilinear_jvp("conv_weight_grad"),
    lower=Decompose(_weight_grad_lower), kind=OpKind.COMPUTE, domain=Domain(),
    batch=as_groups("conv_weight_grad", kernel=2),
    cases=tuple(Case((x, _out(x, w, a)), _grad_attrs(a, w[2:])) for x, w, a in _VARIANTS),
)
