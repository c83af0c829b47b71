"""Rules of operations that cut tensors, write into a part of them, or extend them."""

from __future__ import annotations

import builtins

import numpy as np

from .. import ops
from ..dtypes import i32
from ..ir.tensor import Tensor
from ..ir.types import as_axis
from .call import Call
from .table import rule


@rule("slice_by_index")
def _slice_by_index(call: Call) -> Tensor:
    x = call.tensor("x")
    begin, end = call.integers("begin"), call.integers("end")
    stride = call.integers("stride", (1,) * x.ndim)
    open_begin, open_end, single = (call.flags(f"{side}_mask", x.ndim) for side in ("begin", "end", "squeeze"))
    keys: list[builtins.slice | int] = []
    for axis in range(len(begin)):
        if single[axis]:
            keys.append(0 if open_begin[axis] else begin[axis])
        else:
            first, last = None if open_begin[axis] else begin[axis], None if open_end[axis] else end[axis]
            keys.append(builtins.slice(first, last, stride[axis]))
    return x[tuple(keys)]


@rule("slice_by_size")
def _slice_by_size(call: Call) -> Tensor:
    x = call.tensor("x")
    begin, sizes = call.integers("begin"), call.integers("size")
    firsts = [first + n if first < 0 else first for first, n in zip(begin, x.shape, strict=False)]
    ends = [n if size == -1 else first + size for first, size, n in zip(firsts, sizes, x.shape, strict=False)]
    return ops.slice(x, firsts, ends)


@rule("sliding_windows")
def _sliding_windows(call: Call) -> Tensor:
    x = call.tensor("x")
    axis, size, stride = as_axis(call.integer("axis"), x.ndim, "axis"), call.integer("size"), call.integer("stride")
    firsts = np.arange(0, x.shape[axis] - size + 1, stride, dtype=np.int32)
    return ops.gather(x, firsts[:, None] + np.arange(size, dtype=np.int32), axis)


@rule("slice_update")
def _slice_update(call: Call) -> Tensor:
    """Each element is read from where it would lie in the update, or stays. The first index may be computed."""
    x, update = call.tensor("x"), call.tensor("update")
    strides = call.integers("stride", (1,) * x.ndim)
    single, open_begin = call.flags("squeeze_mask", x.ndim), call.flags("begin_mask", x.ndim)
    update = ops.expand_dims(update, [axis for axis in range(x.ndim) if single[axis]])
    begin = call.tensor("begin")
    inside = None
    for axis, size in enumerate(x.shape):
        if update.shape[axis] == size and strides[axis] == 1:
            continue
        first = call.graph.constant(0, i32) if open_begin[axis] else begin[axis]
        first = ops.where(ops.less(first, 0), ops.add(first, size), first)
        away = ops.sub(np.arange(size, dtype=np.int32), first)
        at = ops.floor_div(away, strides[axis])
        hit = ops.logical_and(ops.greater_equal(at, 0), ops.less(at, update.shape[axis]))
        if strides[axis] != 1:
            hit = ops.logical_and(hit, ops.equal(ops.mul(at, strides[axis]), away))
        hit = ops.reshape(hit, (-1,) + (1,) * (x.ndim - axis - 1))
        inside = hit if inside is None else ops.logical_and(inside, hit)
        update = ops.gather(update, at, axis)
    return update if inside is None else ops.where(inside, update, x)


@rule("pad")
def _pad(call: Call) -> Tensor:
    x, widths, mode = call.tensor("x"), call.integers("pad"), call.text("mode")
    pairs = [(0, 0)] * (x.ndim - len(widths) // 2) + list(zip(widths[::2], widths[1::2], strict=True))
    if mode == "constant":
        return ops.pad(x, pairs, call.number("constant_val"))
    return ops.pad(x, pairs, mode="edge" if mode == "replicate" else mode)
