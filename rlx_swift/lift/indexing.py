"""Rules of reading and writing at integer positions, and of order. Indices below 0 count from the end."""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..dtypes import i32
from ..ir.graph import Leaf, LeafKind, Node
from ..ir.tensor import Tensor
from ..ir.types import Shape, as_axis
from .call import Call
from .table import rule


def _indices(call: Call, sizes: int | Shape) -> Tensor:
    """The operand `indices` counted from the front; `sizes` are those of the axes that they are for."""
    known, limit = call.known("indices"), np.asarray(sizes, np.int32)
    if known is not None:
        signed = known.astype(np.int64)
        if known.dtype in (np.uint8, np.uint16):  # coremltools narrows -1 to 65535
            signed = np.where(signed >= limit, signed - (1 << 8 * known.itemsize), signed)
        return call.graph.constant(np.where(signed < 0, signed + limit, signed), i32)
    indices = call.tensor("indices")
    if _never_negative(indices):
        return indices
    return ops.where(ops.less(indices, 0), ops.add(indices, limit), indices)


def _never_negative(x: Tensor) -> bool:
    """Whether it is max(..., a constant that is not below 0), as our own programs clamp their indices."""
    node = x.producer
    if not isinstance(node, Node) or node.op.name != "maximum":
        return False
    leaves = [operand.producer for operand in node.inputs]
    return any(isinstance(leaf, Leaf) and leaf.kind is LeafKind.CONSTANT and (leaf.value >= 0).all() for leaf in leaves)


# gather


@rule("gather")
def _gather(call: Call) -> Tensor:
    x = call.tensor("x")
    axis, batch = as_axis(call.integer("axis"), x.ndim, "axis"), call.integer("batch_dims", 0)
    indices = _indices(call, x.shape[axis])
    if not batch:
        return ops.gather(x, indices, axis)
    if axis != batch:
        raise call.unsupported(f"axis {axis} with {batch} batch dimensions is not lifted")
    lead, size = math.prod(x.shape[:batch]), x.shape[axis]
    offsets = np.arange(lead, dtype=np.int32).reshape(x.shape[:batch] + (1,) * (indices.ndim - batch)) * size
    return ops.gather(ops.reshape(x, (lead * size, *x.shape[axis + 1 :])), ops.add(indices, offsets))


@rule("gather_along_axis")
def _gather_along_axis(call: Call) -> Tensor:
    x, axis = call.tensor("x"), call.integer("axis")
    return ops.take_along_axis(x, _indices(call, x.shape[axis]), axis)


@rule("gather_nd")
def _gather_nd(call: Call) -> Tensor:
    if call.integer("batch_dims", 0):
        raise call.unsupported("batch dimensions are not lifted")
    x = call.tensor("x")
    return ops.gather_nd(x, _places(call, x))


def _places(call: Call, x: Tensor) -> Tensor:
    """Indices whose last axis is a place in the first axes of x."""
    return _indices(call, x.shape[: call.tensor("indices").shape[-1]])


# scatter


@rule("scatter")
def _scatter(call: Call) -> Tensor:
    data = call.tensor("data")
    axis = as_axis(call.integer("axis"), data.ndim, "axis")
    indices, (updates, mode) = _indices(call, data.shape[axis]), _written(call)
    if mode == "add" and data.dtype.is_float:
        return ops.add(data, ops.scatter_add(updates, indices, data.shape[axis], axis))
    column = ops.reshape(indices, (1,) * axis + (-1,) + (1,) * (data.ndim - axis - 1))
    return ops.put_along_axis(data, column, updates, axis, mode)


@rule("scatter_along_axis")
def _scatter_along_axis(call: Call) -> Tensor:
    data, axis = call.tensor("data"), call.integer("axis")
    indices, (updates, mode) = _indices(call, data.shape[axis]), _written(call)
    return ops.put_along_axis(data, indices, updates, axis, mode)


@rule("scatter_nd")
def _scatter_nd(call: Call) -> Tensor:
    data, (updates, mode) = call.tensor("data"), _written(call)
    return ops.scatter_nd(data, _places(call, data), updates, mode)


def _written(call: Call) -> tuple[Tensor, str]:
    """What is written, and how it meets what is there."""
    updates, mode = call.tensor("updates"), call.text("mode")
    if mode in ("mul", "div"):
        raise call.unsupported(f"the mode {mode!r} is not lifted")
    return (ops.neg(updates), "add") if mode == "sub" else (updates, mode)


# Order and classes


@rule("topk")
def _topk(call: Call) -> list[Tensor]:
    x = call.tensor("x")
    axis, count = as_axis(call.integer("axis"), x.ndim, "axis"), call.integer("k")
    size = x.shape[axis] if count == -1 else count
    results = ops.topk(x, size, axis, not call.flag("ascending"))
    return list(results if call.flag("return_indices", True) else results[:1])


@rule("argsort")
def _argsort(call: Call) -> Tensor:
    return ops.argsort(call.tensor("x"), call.integer("axis"), not call.flag("ascending"))


@rule("one_hot")
def _one_hot(call: Call) -> Tensor:
    indices, depth, axis = call.tensor("indices"), call.integer("one_hot_vector_size"), call.integer("axis")
    hits = ops.one_hot(indices, depth, axis, call.dtype)
    on, off = (call.array(name).item() if call.has(name) else default for name, default in _ON_OFF)
    return hits if (on, off) == (1, 0) else ops.where(ops.equal(hits, 1), on, ops.full_like(hits, off))


_ON_OFF = (("on_value", 1), ("off_value", 0))
