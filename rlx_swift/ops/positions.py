"""Reading and writing blocks at positions that are tensors: compositions of gather, scatter and where.

Positions are clamped so that what is read or written lies inside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..dtypes import f32, i32
from ..errors import ShapeError
from ..ir.graph import Leaf, LeafKind
from ..ir.tensor import Tensor
from ..ir.types import Shape, as_shape
from ._build import TensorLike, as_tensors, graph_of, public, require_integers, same_dtype
from .along import put_along_axis
from .arithmetic import add, maximum, minimum, mul, sub
from .compare import greater_equal, less
from .index import clamp, gather, positions
from .logical import logical_and
from .select import where
from .shape import reshape
from .slicing import slice_axis

Starts = TensorLike | Sequence[TensorLike]


@public
def take(x: TensorLike, indices: TensorLike, axis: int | None = None) -> Tensor:
    """`gather` under its NumPy name; without an axis, from the flattened tensor."""
    (tensor,) = as_tensors("take", x)
    if axis is None:
        return gather(reshape(tensor, (tensor.size,)), indices, 0)
    return gather(tensor, indices, axis)


@public
def index_select(x: TensorLike, axis: int, indices: TensorLike) -> Tensor:
    """The slices of x at `indices` of rank 1 along an axis."""
    graph = graph_of("index_select", x, indices)
    at = graph.as_tensor(indices, i32)
    if at.ndim != 1:
        raise ShapeError("index_select", f"expected indices of rank 1, got {at.type}", "use gather")
    return gather(x, at, axis)


# gather_nd and scatter_nd


@public
def gather_nd(x: TensorLike, indices: TensorLike) -> Tensor:
    """x[indices[..., 0], ..., indices[..., k-1]]: the shape indices.shape[:-1] + x.shape[k:]."""
    graph = graph_of("gather_nd", x, indices)
    data, at = graph.as_tensor(x, f32), graph.as_tensor(indices, i32)
    depth = _depth("gather_nd", data, at)
    rows = reshape(data, (math.prod(data.shape[:depth]), *data.shape[depth:]))
    return gather(rows, _flat(at, data.shape[:depth]), 0)


@public
def scatter_nd(x: TensorLike, indices: TensorLike, updates: TensorLike, mode: str = "add") -> Tensor:
    """x with `updates`, of the shape indices.shape[:-1] + x.shape[k:], put at x[indices[..., 0], ...].

    `mode` as for `put_along_axis`.
    """
    graph = graph_of("scatter_nd", x, indices, updates)
    data, at = graph.as_tensor(x, f32), graph.as_tensor(indices, i32)
    new = graph.as_tensor(updates, data.dtype)
    depth = _depth("scatter_nd", data, at)
    expected = (*at.shape[:-1], *data.shape[depth:])
    if new.shape != expected:
        raise ShapeError("scatter_nd", f"expected updates of shape {expected}, got {new.type}")
    rows, width = math.prod(data.shape[:depth]), math.prod(data.shape[depth:])
    places = reshape(_flat(at, data.shape[:depth]), (math.prod(at.shape[:-1]), 1))
    table, values = reshape(data, (rows, width)), reshape(new, (places.shape[0], width))
    return reshape(put_along_axis(table, places, values, 0, mode), data.shape)


def _depth(subject: str, x: Tensor, indices: Tensor) -> int:
    require_integers(subject, indices.type)
    depth = indices.shape[-1] if indices.ndim else 0
    if not 1 <= depth <= x.ndim:
        raise ShapeError(subject, f"expected indices whose last axis has 1 to {x.ndim} entries, got {indices.type}")
    return depth


def _flat(indices: Tensor, sizes: Shape) -> Tensor:
    """The row-major number of each position, of the shape indices.shape[:-1]."""
    total = None
    for k, size in enumerate(sizes):
        part = _column(indices, k, size)
        total = part if total is None else add(mul(total, size), part)
    assert total is not None
    return total


def _column(indices: Tensor, k: int, size: int) -> Tensor:
    """Entry k of each position, inside its axis."""
    leaf = indices.producer
    if isinstance(leaf, Leaf) and leaf.kind is LeafKind.CONSTANT:
        return positions("positions", indices.graph, leaf.value[..., k], size)
    return clamp(reshape(slice_axis(indices, -1, k, k + 1), indices.shape[:-1]), size)


# Slices at run-time positions


@public
def dynamic_slice(x: TensorLike, starts: Starts, sizes: Sequence[int]) -> Tensor:
    """The block of `sizes` whose first element is at `starts`: one i32 scalar an axis, or a tensor of them."""
    (tensor,) = as_tensors("dynamic_slice", x)
    shape = as_shape(sizes, "dynamic_slice")
    _check_block("dynamic_slice", tensor, shape)
    for axis, (start, size) in enumerate(zip(_scalars("dynamic_slice", tensor, starts), shape, strict=True)):
        if size != tensor.shape[axis]:
            tensor = gather(tensor, add(_fitting(start, tensor.shape[axis], size), _numbers(tensor, size)), axis)
    return tensor


@public
def dynamic_update_slice(x: TensorLike, update: TensorLike, starts: Starts) -> Tensor:
    """x with the block whose first element is at `starts` replaced by `update`."""
    tensor, block = as_tensors("dynamic_update_slice", x, update)
    same_dtype("dynamic_update_slice", tensor.type, block.type)
    _check_block("dynamic_update_slice", tensor, block.shape)
    inside = None
    sizes = block.shape
    for axis, (start, size) in enumerate(zip(_scalars("dynamic_update_slice", tensor, starts), sizes, strict=True)):
        whole = tensor.shape[axis]
        if size == whole:
            continue
        offset = sub(_numbers(tensor, whole), _fitting(start, whole, size))
        covered = reshape(
            logical_and(greater_equal(offset, 0), less(offset, size)), (whole,) + (1,) * (tensor.ndim - axis - 1)
        )
        block = gather(block, offset, axis)  # clamped, so that what lies outside is some element
        inside = covered if inside is None else logical_and(inside, covered)
    return block if inside is None else where(inside, block, tensor)


def _check_block(subject: str, x: Tensor, sizes: Shape) -> None:
    if len(sizes) != x.ndim or any(not 0 < size <= whole for size, whole in zip(sizes, x.shape, strict=True)):
        raise ShapeError(subject, f"a block of {sizes} does not fit {x.type}")


def _scalars(subject: str, x: Tensor, starts: Starts) -> list[Tensor]:
    """One i32 tensor of rank 0 for each axis."""
    if isinstance(starts, (Tensor, np.ndarray)):
        whole = x.graph.as_tensor(starts, i32)
        if whole.shape != (x.ndim,):
            raise ShapeError(subject, f"expected one start for each axis of {x.type}, got {whole.type}")
        parts = [whole[axis] for axis in range(x.ndim)]
    else:
        parts = [x.graph.as_tensor(start, i32) for start in starts] if isinstance(starts, Sequence) else []
    if len(parts) != x.ndim or any(part.ndim for part in parts):
        raise ShapeError(subject, f"expected one scalar start for each axis of {x.type}, got {starts!r}")
    require_integers(subject, *[part.type for part in parts])
    return parts


def _fitting(start: Tensor, whole: int, size: int) -> Tensor:
    return maximum(minimum(start, whole - size), 0)


def _numbers(x: Tensor, count: int) -> Tensor:
    return x.graph.constant(np.arange(count, dtype=np.int32))
