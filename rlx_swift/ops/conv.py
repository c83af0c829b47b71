"""Two-dimensional convolution with strides, padding, dilation and groups, and its two transposes.

The three ops are bilinear and each other's derivatives. They lower to MIL's conv and conv_transpose in the
forms that Core ML takes with weights known at run time: without dilation (the kernel is spread out with
zeros instead), and the weight gradient at stride 1 only (the output gradient is spread out instead).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..dtypes import f16
from ..errors import ConfigError, ShapeError
from ..ir.op import Attrs, Case, Decompose, Domain, Op, OpKind, find_op
from ..ir.tensor import Tensor
from ..ir.types import Shape, TensorType, as_int, as_ints
from . import conv_reference
from ._build import TensorLike, apply, as_tensors, public, require_float, same_dtype
from .arithmetic import add
from .primitives import MilConvAttrs, mil_conv, mil_conv_transpose
from .shape import reshape, transpose
from .slicing import dilate, pad_constant, slice, slice_axis

Pads = tuple[tuple[int, int], tuple[int, int]]
Padding = str | int | Sequence[int] | Sequence[Sequence[int]]


@dataclass(frozen=True)
class ConvAttrs(Attrs):
    """`padding`: (before, after) for rows, then columns."""

    strides: Shape
    padding: Pads
    dilation: Shape
    groups: int


@dataclass(frozen=True)
class ConvGradAttrs(ConvAttrs):
    """`size`: rows and columns of what the gradient is of."""

    size: Shape


@public
def conv2d(
    x: TensorLike, w: TensorLike, bias: TensorLike | None = None, strides: int | Sequence[int] = 1,
    padding: Padding = "valid", dilation: int | Sequence[int] = 1, groups: int = 1,
) -> Tensor:
    """Cross-correlation of x [N, C, H, W] with w [O, C/groups, KH, KW], plus bias [O].

    `padding` is "valid", "same" (as TensorFlow's: the odd element goes after), a number, (rows, columns),
    or ((top, bottom), (left, right)).
    """
    image, kernel = as_tensors("conv2d", x, w)
    if image.ndim != 4 or kernel.ndim != 4:
        raise ShapeError("conv2d", f"expected x of rank 4 and w of rank 4, got {image.type} and {kernel.type}")
    steps, spread = as_pair(strides, "conv2d strides"), as_pair(dilation, "conv2d dilation")
    reach = tuple((k - 1) * d + 1 for k, d in zip(kernel.shape[2:], spread, strict=True))
    pads = as_padding(padding, image.shape[2:], reach, steps, "conv2d")
    out = apply(CONV2D, image, kernel, attrs=ConvAttrs(steps, pads, spread, as_int(groups, "conv2d groups")))
    if bias is None:
        return out
    offset = image.graph.as_tensor(bias, image.dtype)
    if offset.shape != kernel.shape[:1]:
        raise ShapeError("conv2d bias", f"expected shape {kernel.shape[:1]}, got {offset.shape}")
    return add(out, reshape(offset, (-1, 1, 1)))


def as_pair(value: int | Sequence[int], subject: str) -> Shape:
    """A number for both axes, or one for each; at least 1."""
    try:
        pair = as_ints(value, subject)
    except ShapeError:
        pair = ()
    pair = pair * 2 if len(pair) == 1 else pair
    if len(pair) != 2 or min(pair) < 1:
        raise ConfigError(subject, f"expected one or two integers of at least 1, got {value!r}")
    return pair


def as_padding(padding: Padding, size: Shape, kernel: Shape, strides: Shape, subject: str) -> Pads:
    """Padding in any of its spellings as ((top, bottom), (left, right))."""
    if padding == "valid":
        return (0, 0), (0, 0)
    if padding == "same":
        around = []
        for n, k, s in zip(size, kernel, strides, strict=True):
            total = max(0, (-(-n // s) - 1) * s + k - n)
            around.append((total // 2, total - total // 2))
        return around[0], around[1]
    pair: Any = (padding, padding) if isinstance(padding, int) else padding
    try:
        sides = [as_ints(p, subject) for p in pair]
    except (TypeError, ShapeError):
        sides = []
    both = [p * 2 if len(p) == 1 else p for p in sides]
    if len(both) == 2 and all(len(p) == 2 and min(p) >= 0 for p in both):
        return (both[0][0], both[0][1]), (both[1][0], both[1][1])
    raise ConfigError(
        f"{subject} padding", f"expected 'valid', 'same', a number, two numbers or two pairs, got {padding!r}"
    )


def _out_size(size: Shape, kernel: Shape, attrs: ConvAttrs) -> Shape:
    return tuple(
        (n + sum(p) - (k - 1) * d - 1) // s + 1
        for n, k, p, d, s in zip(size, kernel, attrs.padding, attrs.dilation, attrs.strides, strict=True)
    )


def _check(subject: str, x: Shape, w: Shape, attrs: ConvAttrs, out: Shape | None = None) -> Shape:
    """The result's shape for an image and kernel; `out` must be it when given."""
    if min(*attrs.strides, *attrs.dilation) < 1 or min(min(pair) for pair in attrs.padding) < 0:
        raise ShapeError(subject, f"expected strides and dilation of at least 1, padding of at least 0, got {attrs}")
    if attrs.groups < 1 or x[1] != w[1] * attrs.groups or w[0] % attrs.groups:
        raise ShapeError(subject, f"{x[1]} and {w[0]} channels do not fit a kernel of {w[1]} in {attrs.groups} groups")
    size = _out_size(x[2:], w[2:], attrs)
    if min(w[2:]) < 1 or min(size) < 1:
        raise ShapeError(subject, f"the kernel {w[2:]} does not fit the image {x[2:]} with {attrs}")
    shape = (x[0], w[0], *size)
    if out is not None and out != shape:
        raise ShapeError(subject, f"expected an output gradient of shape {shape}, got {out}")
    return shape


def _conv_infer(types: tuple[TensorType, ...], attrs: ConvAttrs) -> tuple[TensorType, ...]:
    x, w = types
    _four(types, "conv2d")
    return (TensorType(_check("conv2d", x.shape, w.shape, attrs), x.dtype),)


def _input_grad_infer(types: tuple[TensorType, ...], attrs: ConvGradAttrs) -> tuple[TensorType, ...]:
    g, w = types
    _four(types, "conv2d_input_grad")
    shape = (g.shape[0], w.shape[1] * attrs.groups, *attrs.size)
    _check("conv2d_input_grad", shape, w.shape, attrs, g.shape)
    return (TensorType(shape, g.dtype),)


def _weight_grad_infer(types: tuple[TensorType, ...], attrs: ConvGradAttrs) -> tuple[TensorType, ...]:
    x, g = types
    _four(types, "conv2d_weight_grad")
    shape = (g.shape[1], x.shape[1] // max(attrs.groups, 1), *attrs.size)
    _check("conv2d_weight_grad", x.shape, shape, attrs, g.shape)
    return (TensorType(shape, x.dtype),)


def _four(types: tuple[TensorType, ...], subject: str) -> None:
    require_float(subject, *types)
    same_dtype(subject, *types)
    if any(t.rank != 4 for t in types):
        raise ShapeError(subject, f"expected operands of rank 4, got {types[0]} and {types[1]}")


def _plain(attrs: ConvAttrs) -> ConvAttrs:
    return ConvAttrs(attrs.strides, attrs.padding, attrs.dilation, attrs.groups)


def _input_grad(g: Tensor, w: Tensor, size: Shape, attrs: ConvAttrs) -> Tensor:
    grad = ConvGradAttrs(attrs.strides, attrs.padding, attrs.dilation, attrs.groups, size)
    return apply(CONV2D_INPUT_GRAD, g, w, attrs=grad)


def _weight_grad(x: Tensor, g: Tensor, size: Shape, attrs: ConvAttrs) -> Tensor:
    grad = ConvGradAttrs(attrs.strides, attrs.padding, attrs.dilation, attrs.groups, size)
    return apply(CONV2D_WEIGHT_GRAD, x, g, attrs=grad)


def _conv_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: ConvAttrs) -> tuple[Tensor, ...]:
    x, w = ins
    return _input_grad(g, w, x.shape[2:], attrs), _weight_grad(x, g, w.shape[2:], attrs)


def _input_grad_vjp(h: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: ConvGradAttrs) -> tuple[Tensor, ...]:
    g, w = ins
    return apply(CONV2D, h, w, attrs=_plain(attrs)), _weight_grad(h, g, w.shape[2:], attrs)


def _weight_grad_vjp(h: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: ConvGradAttrs) -> tuple[Tensor, ...]:
    x, g = ins
    return _input_grad(g, h, x.shape[2:], attrs), apply(CONV2D, x, h, attrs=_plain(attrs))


def _bilinear_jvp(op_of: str) -> Callable[..., Tensor]:
    def jvp(ts: Sequence[Tensor | None], out: Tensor, ins: tuple[Tensor, ...], attrs: ConvAttrs) -> Tensor:
        op = find_op(op_of)
        terms = [apply(op, ts[0], ins[1], attrs=attrs)] if ts[0] is not None else []
        if ts[1] is not None:
            terms.append(apply(op, ins[0], ts[1], attrs=attrs))
        return terms[0] if len(terms) == 1 else add(*terms)

    return jvp


# Lowering


def _spread_kernel(w: Tensor, dilation: Shape) -> Tensor:
    return dilate(dilate(w, 2, dilation[0]), 3, dilation[1])


def _padded(x: Tensor, padding: Pads) -> tuple[Tensor, Pads]:
    """Uneven padding as an op of its own: Core ML's conv was seen to get the last element wrong with it."""
    if all(before == after for before, after in padding):
        return x, padding
    return pad_constant(x, ((0, 0), (0, 0), *padding)), ((0, 0), (0, 0))


def _conv_lower(ins: tuple[Tensor, ...], attrs: ConvAttrs) -> Tensor:
    x, padding = _padded(ins[0], attrs.padding)
    return mil_conv(x, _spread_kernel(ins[1], attrs.dilation), MilConvAttrs(attrs.strides, padding, attrs.groups))


def _input_grad_lower(ins: tuple[Tensor, ...], attrs: ConvGradAttrs) -> Tensor:
    g, w = ins[0], _spread_kernel(ins[1], attrs.dilation)
    whole = mil_conv_transpose(g, w, MilConvAttrs(attrs.strides, ((0, 0), (0, 0)), attrs.groups))
    begin, end, widths = [0, 0], list(whole.shape[:2]), [(0, 0), (0, 0)]
    for n, size, (before, _) in zip(whole.shape[2:], attrs.size, attrs.padding, strict=True):
        begin.append(before)
        end.append(min(n, before + size))
        widths.append((0, before + size - end[-1]))  # rows that no window reached
    return pad_constant(slice(whole, begin, end), widths)


def _weight_grad_lower(ins: tuple[Tensor, ...], attrs: ConvGradAttrs) -> Tensor:
    # dw[o, c, i, j] = sum over n, y, x of x[n, c, y + i, x + j] g[n, o, y, x]: a convolution whose channels
    # are the batch and whose batch is the input channels.
    x, g = ins
    g = dilate(dilate(g, 2, attrs.strides[0]), 3, attrs.strides[1])
    image, padding = _padded(x, attrs.padding)
    reach = [(k - 1) * d + 1 for k, d in zip(attrs.size, attrs.dilation, strict=True)]
    for axis in (2, 3):  # drop what the last window does not reach
        excess = image.shape[axis] + sum(padding[axis - 2]) - (g.shape[axis] + reach[axis - 2] - 1)
        if excess:
            image, padding = pad_constant(image, ((0, 0), (0, 0), *padding)), ((0, 0), (0, 0))
            image = slice_axis(image, axis, 0, image.shape[axis] - excess)
    n, channels, h, w = image.shape
    groups, each = attrs.groups, channels // attrs.groups
    by_channel = transpose(reshape(image, (n, groups, each, h * w)), (2, 1, 0, 3))
    swapped = reshape(by_channel, (each, groups * n, h, w))
    out = mil_conv(swapped, transpose(g, (1, 0, 2, 3)), MilConvAttrs((1, 1), padding, groups))
    dense = transpose(out, (1, 0, 2, 3))
    return slice_axis(slice_axis(dense, 2, 0, reach[0], attrs.dilation[0]), 3, 0, reach[1], attrs.dilation[1])


# Records

_BASE = ConvAttrs((1, 1), ((0, 0), (0, 0)), (1, 1), 1)
_VARIANTS = (
    ((2, 3, 5, 6), (4, 3, 3, 2), _BASE),
    ((2, 2, 6, 5), (3, 2, 3, 3), replace(_BASE, strides=(2, 2), padding=((1, 1), (1, 1)))),
    ((2, 4, 6, 6), (6, 2, 3, 3), replace(_BASE, groups=2, padding=((0, 1), (1, 2)))),
    ((1, 2, 7, 7), (2, 2, 2, 3), replace(_BASE, dilation=(2, 2), strides=(1, 2), padding=((1, 1), (0, 0)))),
    ((2, 3, 4, 4), (3, 1, 2, 2), replace(_BASE, groups=3, strides=(3, 2))),
)


def _grad_attrs(attrs: ConvAttrs, size: Shape) -> ConvGradAttrs:
    return ConvGradAttrs(attrs.strides, attrs.padding, attrs.dilation, attrs.groups, size)


def _out(x: Shape, w: Shape, attrs: ConvAttrs) -> Shape:
    return (x[0], w[0], *_out_size(x[2:], w[2:], attrs))


def _eval(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def evaluate(arrays: tuple[np.ndarray, ...], attrs: ConvAttrs) -> np.ndarray:
        size = (attrs.size,) if isinstance(attrs, ConvGradAttrs) else ()
        return function(*arrays, *size, attrs.strides, attrs.padding, attrs.dilation, attrs.groups)

    return evaluate


CONV2D = Op(
    name="conv2d", summary="two-dimensional convolution", attrs=ConvAttrs, infer=_conv_infer,
    eval=_eval(conv_reference.conv2d), vjp=_conv_vjp, jvp=_bilinear_jvp("conv2d"),
    lower=Decompose(_conv_lower), kind=OpKind.COMPUTE, domain=Domain(),
    cases=(*(Case((x, w), attrs) for x, w, attrs in _VARIANTS), Case(_VARIANTS[0][:2], _BASE, (f16, f16))),
)
CONV2D_INPUT_GRAD = Op(
    name="conv2d_input_grad", summary="cotangent of conv2d's image", attrs=ConvGradAttrs, infer=_input_grad_infer,
    eval=_eval(conv_reference.conv2d_input_grad), vjp=_input_grad_vjp, jvp=_bilinear_jvp("conv2d_input_grad"),
    lower=Decompose(_input_grad_lower), kind=OpKind.COMPUTE, domain=Domain(),
    cases=tuple(Case((_out(x, w, a), w), _grad_attrs(a, x[2:])) for x, w, a in _VARIANTS),
)
CONV2D_WEIGHT_GRAD = Op(
    name="conv2d_weight_grad", summary="cotangent of conv2d's kernel", attrs=ConvGradAttrs, infer=_weight_grad_infer,
    eval=_eval(conv_reference.conv2d_weight_grad), vjp=_weight_grad_vjp, jvp=_bilinear_jvp("conv2d_weight_grad"),
    lower=Decompose(_weight_grad_lower), kind=OpKind.COMPUTE, domain=Domain(),
    cases=tuple(Case((x, _out(x, w, a)), _grad_attrs(a, w[2:])) for x, w, a in _VARIANTS),
)
