"""Rules of operations that give the same elements another shape or order, repeat or join them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from .. import ops
from ..ir.tensor import Tensor
from ..ir.types import Shape, as_axes, as_axis
from .call import Call
from .table import rule

_MOST = 1 << 24  # elements of a range
_ZEROS_FROM_THE_RIGHT = 7  # the opset from which a 0 in reshape's shape is counted from the last axis


@rule("reshape")
def _reshape(call: Call) -> Tensor:
    x, shape = call.tensor("x"), call.integers("shape")
    return ops.reshape(x, _without_zeros(call, x.shape, shape) if x.size else shape)


def _without_zeros(call: Call, old: Shape, shape: Shape) -> Shape:
    """A 0 is the size at that place of the old shape; with CoreML7 its place is counted from the right."""
    more = (1,) * (len(shape) - len(old))
    lined_up = more + old[max(0, len(old) - len(shape)) :] if call.opset >= _ZEROS_FROM_THE_RIGHT else old + more
    return tuple([size or before for size, before in zip(shape, lined_up, strict=False)])


@rule("flatten2d")
def _flatten2d(call: Call) -> Tensor:
    x = call.tensor("x")
    axis = call.integer("axis")
    axis += x.ndim if axis < 0 else 0
    return ops.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@rule("transpose")
def _transpose(call: Call) -> Tensor:
    return ops.transpose(call.tensor("x"), call.integers("perm"))


@rule("expand_dims")
def _expand_dims(call: Call) -> Tensor:
    return ops.expand_dims(call.tensor("x"), call.integers("axes"))


@rule("squeeze")
def _squeeze(call: Call) -> Tensor:
    x = call.tensor("x")
    axes = as_axes(call.integers("axes", range(x.ndim)), x.ndim, "axes")
    return ops.squeeze(x, [axis for axis in axes if x.shape[axis] == 1])


@rule("concat")
def _concat(call: Call) -> Tensor:
    values = [ops.reshape(x, (1,)) if x.ndim == 0 else x for x in call.tensors("values")]
    axis = as_axis(call.integer("axis"), values[0].ndim, "axis")
    if not call.flag("interleave"):
        return ops.concat(values, axis)
    shape = values[0].shape
    return ops.reshape(ops.stack(values, axis + 1), (*shape[:axis], shape[axis] * len(values), *shape[axis + 1 :]))


@rule("stack")
def _stack(call: Call) -> Tensor:
    return ops.stack(call.tensors("values"), call.integer("axis"))


@rule("split")
def _split(call: Call) -> Sequence[Tensor]:
    x, axis = call.tensor("x"), call.integer("axis")
    if not call.has("split_sizes"):
        return ops.split(x, call.integer("num_splits"), axis)
    *ends, total = itertools.accumulate(call.integers("split_sizes"))
    if total != x.shape[axis]:
        raise call.malformed(f"its sizes add up to {total}, axis {axis} of {x.type} has {x.shape[axis]}")
    return ops.split(x, ends, axis)


@rule("tile")
def _tile(call: Call) -> Tensor:
    return ops.tile(call.tensor("x"), call.integers("reps"))


@rule("reverse")
def _reverse(call: Call) -> Tensor:
    x = call.tensor("x")
    return ops.flip(x, call.integers("axes", range(x.ndim)))


# Values that the shape gives


@rule("shape")
def _shape(call: Call) -> np.ndarray:
    return np.array(call.tensor("x").shape, np.int32)


@rule("fill")
def _fill(call: Call) -> Tensor:
    return _filled(call, call.integers("shape"))


@rule("fill_like")
def _fill_like(call: Call) -> Tensor:
    return _filled(call, call.tensor("ref_tensor").shape)


def _filled(call: Call, shape: Shape) -> Tensor:
    value = call.array("value").item() if call.has("value") else 0.0
    return ops.full(call.graph, shape, value, call.dtype)


@rule("range_1d")
def _range(call: Call) -> np.ndarray:
    start, end, step = (call.array(name).item() for name in ("start", "end", "step"))
    count = max(0, math.ceil((end - start) / step)) if step else 0
    if count > _MOST:
        raise call.unsupported(f"{count} elements are too many for a constant")
    return np.arange(count) * step + start


@rule("band_part")
def _band_part(call: Call) -> Tensor:
    x = call.tensor("x")
    lower, upper = call.integer("lower"), call.integer("upper")
    down = np.subtract.outer(np.arange(x.shape[-2]), np.arange(x.shape[-1]))
    inside = ((lower < 0) | (down <= lower)) & ((upper < 0) | (-down <= upper))
    return ops.where(inside, x, 0.0 if x.dtype.is_float else 0)


# Blocks of pixels and channels


@rule("pixel_shuffle")
def _pixel_shuffle(call: Call) -> Tensor:
    """Channels hold the place in the block innermost, as in PyTorch."""
    x, block = call.tensor("x"), call.integer("upscale_factor")
    n, c, h, w = x.shape
    apart = ops.reshape(x, (n, -1, block, block, h * w))
    apart = ops.reshape(ops.transpose(apart, (0, 1, 4, 2, 3)), (-1, h, w, block, block))
    return ops.reshape(ops.transpose(apart, (0, 1, 3, 2, 4)), (n, c // block**2, h * block, w * block))


@rule("pixel_unshuffle")
def _pixel_unshuffle(call: Call) -> Tensor:
    x, block = call.tensor("x"), call.integer("downscale_factor")
    n, c, h, w = x.shape
    apart = ops.transpose(ops.reshape(x, (n * c, h // block, block, w // block, block)), (0, 2, 4, 1, 3))
    return ops.reshape(apart, (n, c * block**2, h // block, w // block))


@rule("depth_to_space")
def _depth_to_space(call: Call) -> Tensor:
    """Channels hold the place in the block outermost, as in TensorFlow."""
    x, block = call.tensor("x"), call.integer("block_size")
    n, c, h, w = x.shape
    channels = c // block**2
    apart = ops.transpose(ops.reshape(x, (n, block, block, channels, h * w)), (0, 3, 4, 1, 2))
    apart = ops.transpose(ops.reshape(apart, (-1, h, w, block, block)), (0, 1, 3, 2, 4))
    return ops.reshape(apart, (n, channels, h * block, w * block))


@rule("space_to_depth")
def _space_to_depth(call: Call) -> Tensor:
    x, block = call.tensor("x"), call.integer("block_size")
    n, c, h, w = x.shape
    apart = ops.transpose(ops.reshape(x, (n * c, h // block, block, w // block, block)), (0, 2, 4, 1, 3))
    apart = ops.transpose(ops.reshape(apart, (n, c, block**2, -1)), (0, 2, 1, 3))
    return ops.reshape(apart, (n, c * block**2, h // block, w // block))
