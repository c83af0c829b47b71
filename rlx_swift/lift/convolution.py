"""Rules of convolutions over one or two axes."""

from __future__ import annotations

from .. import ops
from ..ir.tensor import Tensor
from ..ir.types import Shape
from ..ops.conv import CONV2D_INPUT_GRAD, ConvGradAttrs
from .call import Call
from .table import rule
from .windows import Windows, as_image, like, windows


@rule("conv")
def _conv(call: Call) -> Tensor:
    x, weight = call.tensor("x", call.dtype), call.weight("weight", call.dtype)
    image = as_image(x)
    over = windows(call, image.shape[2:], weight.shape[2:])
    bias = call.optional_weight("bias", call.dtype)
    out = ops.conv2d(
        image, as_image(weight), bias, over.strides, over.padding, over.dilations, call.integer("groups")
    )
    return like(out, x.ndim)


@rule("conv_transpose")
def _conv_transpose(call: Call) -> Tensor:
    """The cotangent of a convolution's image: that convolution leads from the result's size to x's."""
    x, weight = call.tensor("x", call.dtype), call.weight("weight", call.dtype)
    image, kernel = as_image(x), as_image(weight)
    strides = (1,) * (4 - x.ndim) + call.integers("strides", (1,) * (x.ndim - 2))
    size = tuple([n * s for n, s in zip(image.shape[2:], strides, strict=True)])
    over = windows(call, size, weight.shape[2:])
    if not call.text("pad_type").lower().startswith("same"):
        size = _whole(image.shape[2:], over)
    attrs = ConvGradAttrs(over.strides, over.padding, over.dilations, call.integer("groups"), size)
    out = like(call.graph.apply(CONV2D_INPUT_GRAD, (image, kernel), attrs)[0], x.ndim)
    if call.has("output_shape"):
        out = _cut_or_extended(out, (*out.shape[:2], *call.integers("output_shape")[2:]))
    bias = call.optional_weight("bias", call.dtype)
    return out if bias is None else ops.add(out, ops.reshape(bias, (-1,) + (1,) * (x.ndim - 2)))


def _whole(size: Shape, over: Windows) -> Shape:
    """What windows over `size` places reach, without the padding."""
    return tuple([
        (n - 1) * stride + (taps - 1) * spread + 1 - sum(pads)
        for n, stride, taps, spread, pads in zip(
            size, over.strides, over.kernel, over.dilations, over.padding, strict=True
        )
    ])


def _cut_or_extended(x: Tensor, shape: Shape) -> Tensor:
    """x at another size of each axis: cut at the end, or extended with zeros."""
    cut = ops.slice(x, (0,) * x.ndim, [min(old, new) for old, new in zip(x.shape, shape, strict=True)])
    return ops.pad(cut, [(0, new - old) for old, new in zip(cut.shape, shape, strict=True)])
