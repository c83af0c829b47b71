"""Reading and adding at integer positions: gather, its transpose scatter_add, one_hot.

Indices are clamped to their range, since Core ML reads or drops something else without an error. Those that
a caller feeds are checked before a run, see `rlx_swift.session`; constants are checked when a graph is built.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import DType, bool_, f16, f32, i32
from ..errors import ShapeError
from ..ir.graph import Graph, Leaf, LeafKind
from ..ir.op import Attrs, Batch, Case, Decompose, Domain, Mil, NotDifferentiable, Op, OpKind
from ..ir.tensor import FUNCTIONS, Tensor
from ..ir.types import Shape, TensorType, as_axis, as_int
from ._batch import repeated
from ._build import TensorLike, apply, as_tensors, graph_of, public, require_float, require_integers, require_numbers
from .arithmetic import maximum, minimum
from .linalg import matmul
from .primitives import gather_clamped, scatter_add_clamped
from .select import cast, full
from .shape import broadcast_to, reshape, transpose

# Above this many positions times table rows, a product with a one-hot matrix costs more than a scatter.
_ONE_HOT_LIMIT = 1 << 20


@dataclass(frozen=True)
class GatherAttrs(Attrs):
    axis: int


@dataclass(frozen=True)
class ScatterAttrs(Attrs):
    axis: int
    size: int


@dataclass(frozen=True)
class OneHotAttrs(Attrs):
    depth: int
    axis: int
    dtype: DType


@public
def gather(x: TensorLike, indices: TensorLike, axis: int = 0) -> Tensor:
    """The slices of x at `indices` (i32, any rank) along an axis: x.shape[:axis] + indices.shape + x.shape[axis+1:].

    Constant indices are `numpy.take`'s: negative ones count from the end, others outside are a ShapeError. What
    is only known at run time is clamped, as with mode "clip".
    """
    graph = graph_of("gather", x, indices)
    table = graph.as_tensor(x, f32)
    if table.dtype is bool_:  # MIL gathers no bools
        return cast(gather(cast(table, i32), indices, axis), bool_)
    at = as_axis(axis, table.ndim, "gather")
    return apply(GATHER, table, positions("gather", graph, indices, table.shape[at]), attrs=GatherAttrs(at))


def positions(subject: str, graph: Graph, indices: TensorLike, size: int) -> Tensor:
    """Indices into an axis of `size` as a tensor; constants as NumPy takes them, from the end where negative."""
    tensor = graph.as_tensor(indices, i32)
    leaf = tensor.producer
    if not isinstance(leaf, Leaf) or leaf.kind is not LeafKind.CONSTANT or tensor.dtype is not i32:
        return tensor
    outside = (leaf.value < -size) | (leaf.value >= size)
    if outside.any():
        raise ShapeError(subject, f"index {leaf.value[outside][0]} is outside an axis of {size} elements")
    return graph.constant(np.where(leaf.value < 0, leaf.value + size, leaf.value).astype(np.int32))


@public
def scatter_add(updates: TensorLike, indices: TensorLike, size: int, axis: int = 0) -> Tensor:
    """Zeros of `size` along an axis, with each slice of `updates` added at its index: the transpose of `gather`."""
    graph = graph_of("scatter_add", updates, indices)
    values, count = graph.as_tensor(updates, f32), as_int(size, "scatter_add size")
    where = positions("scatter_add", graph, indices, count)
    at = as_axis(axis, values.ndim - where.ndim + 1, "scatter_add")
    return apply(SCATTER_ADD, values, where, attrs=ScatterAttrs(at, count))


@public
def one_hot(indices: TensorLike, depth: int, axis: int = -1, dtype: DType = f32) -> Tensor:
    """1 at each index along a new axis of size `depth`, 0 elsewhere; all 0 for an index outside it."""
    (tensor,) = as_tensors("one_hot", indices)
    depth = as_int(depth, "one_hot depth")
    if not tensor.ndim:
        return reshape(one_hot(reshape(tensor, (1,)), depth, 1, dtype), (depth,))
    return apply(ONE_HOT, tensor, attrs=OneHotAttrs(depth, as_axis(axis, tensor.ndim + 1, "one_hot"), dtype))


def _gather_infer(types: tuple[TensorType, ...], attrs: GatherAttrs) -> tuple[TensorType, ...]:
    x, indices = types
    require_numbers("gather", x)
    require_integers("gather", indices)
    if x.rank == 0 or as_axis(attrs.axis, x.rank, "gather") != attrs.axis:
        raise ShapeError("gather", f"expected an axis of {x} counted from the front, got {attrs.axis}")
    if x.shape[attrs.axis] == 0 and indices.size:
        raise ShapeError("gather", f"axis {attrs.axis} of {x} has no elements")
    return (x.with_shape((*x.shape[: attrs.axis], *indices.shape, *x.shape[attrs.axis + 1 :])),)


def _gather_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: GatherAttrs) -> tuple[Tensor | None, ...]:
    x, indices = ins
    return scatter_add(g, indices, x.shape[attrs.axis], attrs.axis), None


def _gather_batch(ins: tuple[Tensor, ...], many: tuple[bool, ...], attrs: GatherAttrs, size: int) -> Tensor:
    x, indices = ins
    if not many[1]:
        return gather(x, indices, attrs.axis + 1)
    if not many[0]:
        rows, at = gather(x, indices, attrs.axis), attrs.axis
        return transpose(rows, (at, *[axis for axis in range(rows.ndim) if axis != at]))
    lead, trail = x.shape[: attrs.axis + 1], x.shape[attrs.axis + 2 :]
    picked = FUNCTIONS["take_along_axis"](x, _along(indices, lead, trail), attrs.axis + 1)
    return reshape(picked, (*lead, *indices.shape[1:], *trail))


def _along(indices: Tensor, lead: Shape, trail: Shape) -> Tensor:
    """Indices [size, ...] as [*lead, count, *trail], where lead begins with the size."""
    count = math.prod(indices.shape[1:])
    line = reshape(indices, (lead[0], *(1,) * (len(lead) - 1), count, *(1,) * len(trail)))
    return broadcast_to(line, (*lead, count, *trail))


def _gather_lower(ins: tuple[Tensor, ...], attrs: GatherAttrs) -> Tensor:
    x, indices = ins
    safe = clamp(reshape(indices, indices.shape or (1,)), x.shape[attrs.axis])
    rows = gather_clamped(x, safe, attrs.axis)
    return reshape(rows, (*x.shape[: attrs.axis], *indices.shape, *x.shape[attrs.axis + 1 :]))


def clamp(indices: Tensor, size: int) -> Tensor:
    """Indices moved into 0 ... size - 1."""
    return maximum(minimum(indices, size - 1), 0)


def _scatter_infer(types: tuple[TensorType, ...], attrs: ScatterAttrs) -> tuple[TensorType, ...]:
    updates, indices = types
    require_float("scatter_add", updates)
    require_integers("scatter_add", indices)
    if attrs.axis < 0 or attrs.size < min(indices.size, 1):
        raise ShapeError("scatter_add", f"expected an axis from 0 and room for {indices}, got {attrs}")
    lead, trail = updates.shape[: attrs.axis], updates.shape[attrs.axis + indices.rank :]
    if updates.shape != (*lead, *indices.shape, *trail):
        raise ShapeError("scatter_add", f"expected the shape of indices {indices} at axis {attrs.axis} of {updates}")
    return (updates.with_shape((*lead, attrs.size, *trail)),)


def _scatter_eval(arrays: tuple[np.ndarray, ...], attrs: ScatterAttrs) -> np.ndarray:
    updates, indices = arrays
    lead, trail = updates.shape[: attrs.axis], updates.shape[attrs.axis + indices.ndim :]
    out = np.zeros((attrs.size, *lead, *trail), updates.dtype)
    flat = updates.reshape(*lead, indices.size, *trail)
    np.add.at(out, np.clip(indices.reshape(-1), 0, attrs.size - 1), np.moveaxis(flat, len(lead), 0))
    return np.moveaxis(out, 0, len(lead))


def _scatter_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: ScatterAttrs) -> tuple[Tensor | None, ...]:
    return gather(g, ins[1], attrs.axis), None


def _scatter_jvp(ts: Sequence[Any], out: Tensor, ins: tuple[Tensor, ...], attrs: ScatterAttrs) -> Tensor:
    return scatter_add(ts[0], ins[1], attrs.size, attrs.axis)


def _scatter_batch(ins: tuple[Tensor, ...], many: tuple[bool, ...], attrs: ScatterAttrs, size: int) -> Tensor:
    updates, indices = ins
    if not many[1]:
        return scatter_add(updates, indices, attrs.size, attrs.axis + 1)
    if not many[0]:
        updates = repeated(updates, size)
    axis = attrs.axis + 1
    lead, trail = updates.shape[:axis], updates.shape[axis + indices.ndim - 1 :]
    zeros = full(updates.graph, (*lead, attrs.size, *trail), 0.0, updates.dtype)
    at = _along(indices, lead, trail)
    return FUNCTIONS["put_along_axis"](zeros, at, reshape(updates, at.shape), axis, "add")


def _scatter_lower(ins: tuple[Tensor, ...], attrs: ScatterAttrs) -> Tensor:
    updates, indices = ins
    axis, count = attrs.axis, math.prod(indices.shape)
    lead, trail = updates.shape[:axis], updates.shape[axis + indices.ndim :]
    at = clamp(reshape(indices, (count,)), attrs.size)
    if updates.dtype is f16 or count * attrs.size > _ONE_HOT_LIMIT:
        return scatter_add_clamped(reshape(updates, (*lead, count, *trail)), at, attrs.size, axis)
    rows = reshape(updates, (math.prod(lead), count, math.prod(trail)))
    flat = reshape(transpose(rows, (1, 0, 2)), (count, rows.shape[0] * rows.shape[2]))
    sums = matmul(one_hot(at, attrs.size), flat, transpose_x=True)
    table = transpose(reshape(sums, (attrs.size, rows.shape[0], rows.shape[2])), (1, 0, 2))
    return reshape(table, (*lead, attrs.size, *trail))


def _one_hot_infer(types: tuple[TensorType, ...], attrs: OneHotAttrs) -> tuple[TensorType, ...]:
    (indices,) = types
    require_integers("one_hot", indices)
    if indices.rank == 0:
        raise ShapeError("one_hot", "expected indices of rank 1 or more, got rank 0", "call rlx.ops.one_hot")
    if attrs.depth < 1:
        raise ShapeError("one_hot", f"expected a depth of at least 1, got {attrs.depth}")
    if not 0 <= attrs.axis <= indices.rank:
        raise ShapeError("one_hot", f"expected an axis of the result counted from the front, got {attrs.axis}")
    shape = (*indices.shape[: attrs.axis], attrs.depth, *indices.shape[attrs.axis :])
    return (TensorType(shape, attrs.dtype),)


def _one_hot_eval(arrays: tuple[np.ndarray, ...], attrs: OneHotAttrs) -> np.ndarray:
    hits = arrays[0][..., None] == np.arange(attrs.depth)
    return np.moveaxis(hits, -1, attrs.axis).astype(attrs.dtype.numpy)


def _one_hot_mil(attrs: OneHotAttrs, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> dict[str, object]:
    scalar = attrs.dtype.numpy.type
    return {"one_hot_vector_size": attrs.depth, "axis": attrs.axis, "on_value": scalar(1), "off_value": scalar(0)}


_IDS = Domain(0, 3)
GATHER = Op(
    name="gather", summary="slices at indices along an axis", attrs=GatherAttrs, infer=_gather_infer,
    eval=lambda arrays, attrs: np.take(arrays[0], arrays[1], axis=attrs.axis, mode="clip"),
    vjp=_gather_vjp, jvp=lambda ts, out, ins, attrs: gather(ts[0], ins[1], attrs.axis),
    lower=Decompose(_gather_lower), kind=OpKind.DATA_MOVEMENT, domain=Domain(),
    batch=_gather_batch, index_bounds=lambda types, attrs: {1: types[0].shape[attrs.axis]},
    cases=tuple(
        Case((shape, ids), GatherAttrs(axis), (f32, i32), (Domain(), _IDS))
        for shape, ids, axis in (((4, 3), (5,), 0), ((4, 3), (2, 3), 0), ((2, 4, 3), (2,), 1), ((4,), (), 0))
    ),
)
SCATTER_ADD = Op(
    name="scatter_add", summary="slices added at indices along an axis", attrs=ScatterAttrs, infer=_scatter_infer,
    eval=_scatter_eval, vjp=_scatter_vjp, jvp=_scatter_jvp, lower=Decompose(_scatter_lower),
    kind=OpKind.DATA_MOVEMENT, domain=Domain(), batch=_scatter_batch,
    index_bounds=lambda types, attrs: {1: attrs.size},
    cases=tuple(
        Case((shape, ids), ScatterAttrs(axis, 4), (f32, i32), (Domain(), _IDS))
        for shape, ids, axis in (((5, 3), (5,), 0), ((2, 3, 3), (2, 3), 0), ((2, 2, 3), (2,), 1), ((), (), 0))
    ),
)
_NO_SLOPE = NotDifferentiable("its operand is an index")
ONE_HOT = Op(
    name="one_hot", summary="1 at each index along a new axis", attrs=OneHotAttrs, infer=_one_hot_infer,
    eval=_one_hot_eval, vjp=_NO_SLOPE, jvp=_NO_SLOPE, lower=Mil("one_hot", ("indices",), _one_hot_mil),
    kind=OpKind.DATA_MOVEMENT, domain=_IDS, batch=Batch.SHIFT, index_bounds=lambda types, attrs: {0: attrs.depth},
    cases=(
        Case(((5,),), OneHotAttrs(4, 1, f32), (i32,)), Case(((2, 3),), OneHotAttrs(4, 0, f32), (i32,)),
        Case(((4,),), OneHotAttrs(3, 1, i32), (i32,), (Domain(0, 2),)),
    ),
)
