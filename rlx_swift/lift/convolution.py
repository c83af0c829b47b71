"""Rules of convolutions over one to three axes."""

from __future__ import annotations

from .. import ops
from ..ir.tensor import Tensor
from ..ir.types import Shape
from .call import Call
from .table import rule
from .windows import for_axes, windows

_CONV = (ops.conv1d, ops.conv2d, ops.conv3d)
_TRANSPOSED = (ops.conv_transpose1d, ops.conv_transpose2d, ops.conv_transpose3d)


@rule("conv")
def _conv(call: Call) -> Tensor:
    x, weight = call.tensor("x", call.dtype), call.weight("weight", call.dtype)
    over, bias = windows(call, x.shape[2:], weight.shape[2:]), call.optional_weight("bias", call.dtype)
    conv, groups = for_axes(call, x, _CONV), call.integer("groups")
    return conv(x, weight, bias, over.strides, over.padding, over.dilations, groups)


@rule("conv_transpose")
def _conv_transpose(call: Call) -> Tensor:
    """With padding "same" a size becomes size * stride. An `output_shape` cuts the result or extends it with zeros."""
    x, weight = call.tensor("x", call.dtype), call.weight("weight", call.dtype)
    strides = call.integers("strides", (1,) * (x.ndim - 2))
    over = windows(call, tuple([n * s for n, s in zip(x.shape[2:], strides, strict=True)]), weight.shape[2:])
    extra = (0,) * len(strides)
    if call.text("pad_type").lower().startswith("same"):
        extra = tuple([max(0, stride - reach) for stride, reach in zip(strides, over.reach, strict=True)])
    transposed = for_axes(call, x, _TRANSPOSED)
    out = transposed(x, weight, None, strides, over.padding, extra, over.dilations, call.integer("groups"))
    if call.has("output_shape"):
        out = _cut_or_extended(out, (*out.shape[:2], *call.integers("output_shape")[2:]))
    bias = call.optional_weight("bias", call.dtype)
    return out if bias is None else ops.add(out, ops.reshape(bias, (-1,) + (1,) * (x.ndim - 2)))


def _cut_or_extended(x: Tensor, shape: Shape) -> Tensor:
    """x at another size of each axis: cut at the end, or extended with zeros."""
    cut = ops.slice(x, (0,) * x.ndim, [min(old, new) for old, new in zip(x.shape, shape, strict=True)])
    return ops.pad(cut, [(0, new - old) for old, new in zip(cut.shape, shape, strict=True)])
