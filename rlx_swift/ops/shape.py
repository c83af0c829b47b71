"""Ops that give the same elements another shape or repeat them: reshape, transpose, broadcast_to, tile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..dtypes import f16, i32
from ..errors import ShapeError
from ..ir.graph import Leaf, LeafKind
from ..ir.op import Attrs, Batch, Case, Decompose, Domain, Forward, Mil, Op, OpKind
from ..ir.tensor import FUNCTIONS, Tensor
from ..ir.types import Shape, TensorType, as_axes, as_axis, as_ints, as_shape
from ._build import TensorLike, apply, as_tensors, public
from .select import full

_ANY = Domain()


# reshape, expand_dims, squeeze


@dataclass(frozen=True)
class ShapeAttrs(Attrs):
    shape: Shape


@dataclass(frozen=True)
class AxesAttrs(Attrs):
    axes: Shape


@public
def reshape(x: TensorLike, shape: Sequence[int] | int) -> Tensor:
    """The same elements, in C order, under another shape; one size may be -1."""
    (tensor,) = as_tensors("reshape", x)
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if -1 in sizes:
        rest = math.prod(size for size in sizes if size != -1)
        if sizes.count(-1) > 1 or rest == 0 or tensor.size % rest:
            raise ShapeError("reshape", f"{tensor.type} does not fit {sizes}", "at most one size may be -1")
        sizes = tuple(tensor.size // rest if size == -1 else size for size in sizes)
    target = as_shape(sizes, "reshape")
    return tensor if target == tensor.shape else apply(RESHAPE, tensor, attrs=ShapeAttrs(target))


@public
def expand_dims(x: TensorLike, axis: int | Sequence[int]) -> Tensor:
    """x with sizes of 1 at the axes, which are axes of the result."""
    (tensor,) = as_tensors("expand_dims", x)
    count = 1 if isinstance(axis, int) else len(axis)
    axes = as_axes(axis, tensor.ndim + count, "expand_dims")
    return apply(EXPAND_DIMS, tensor, attrs=AxesAttrs(axes)) if axes else tensor


@public
def squeeze(x: TensorLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """x without the axes, whose sizes must be 1; None drops every size of 1."""
    (tensor,) = as_tensors("squeeze", x)
    if axis is None:
        axes: Shape = tuple(i for i, size in enumerate(tensor.shape) if size == 1)
    else:
        axes = as_axes(axis, tensor.ndim, "squeeze")
    return apply(SQUEEZE, tensor, attrs=AxesAttrs(axes)) if axes else tensor


def _reshape_infer(types: tuple[TensorType, ...], attrs: ShapeAttrs) -> tuple[TensorType, ...]:
    (x,) = types
    if math.prod(attrs.shape) != x.size:
        raise ShapeError("reshape", f"{x} has {x.size} elements, {attrs.shape} has {math.prod(attrs.shape)}")
    return (x.with_shape(attrs.shape),)


def _expand_infer(types: tuple[TensorType, ...], attrs: AxesAttrs) -> tuple[TensorType, ...]:
    (x,) = types
    rank = x.rank + len(attrs.axes)
    if attrs.axes != as_axes(attrs.axes, rank, "expand_dims"):
        raise ShapeError("expand_dims", f"expected sorted axes of the result, got {attrs.axes}")
    sizes = iter(x.shape)
    return (x.with_shape(tuple(1 if axis in attrs.axes else next(sizes) for axis in range(rank))),)


def _squeeze_infer(types: tuple[TensorType, ...], attrs: AxesAttrs) -> tuple[TensorType, ...]:
    (x,) = types
    if attrs.axes != as_axes(attrs.axes, x.rank, "squeeze") or any(x.shape[axis] != 1 for axis in attrs.axes):
        raise ShapeError("squeeze", f"expected sorted axes with sizes of 1 of {x}, got {attrs.axes}")
    return (x.with_shape(tuple(size for axis, size in enumerate(x.shape) if axis not in attrs.axes)),)


def _reshape_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: Attrs) -> tuple[Tensor]:
    return (reshape(g, ins[0].shape),)


RESHAPE = Op(
    name="reshape", summary="the same elements under another shape", attrs=ShapeAttrs, infer=_reshape_infer,
    eval=lambda arrays, attrs: arrays[0].reshape(attrs.shape), vjp=_reshape_vjp, jvp=Forward.LINEAR,
    lower=Mil("reshape", ("x",), lambda attrs, ins, outs: {"shape": attrs.shape}),
    kind=OpKind.DATA_MOVEMENT, domain=_ANY, batch=Batch.SHIFT,
    cases=(
        Case(((2, 6),), ShapeAttrs((3, 4))), Case(((1,),), ShapeAttrs(())), Case(((),), ShapeAttrs((1, 1))),
        Case(((4,),), ShapeAttrs((2, 2)), (i32,)),
    ),
)
EXPAND_DIMS = Op(
    name="expand_dims", summary="sizes of 1 put in", attrs=AxesAttrs, infer=_expand_infer,
    eval=lambda arrays, attrs: np.expand_dims(arrays[0], attrs.axes), vjp=_reshape_vjp, jvp=Forward.LINEAR,
    lower=Mil("expand_dims", ("x",), lambda attrs, ins, outs: {"axes": attrs.axes}),
    kind=OpKind.DATA_MOVEMENT, domain=_ANY, batch=Batch.SHIFT,
    cases=(Case(((2, 3),), AxesAttrs((0,))), Case(((2, 3),), AxesAttrs((1, 3))), Case(((),), AxesAttrs((0,)))),
)
SQUEEZE = Op(
    name="squeeze", summary="sizes of 1 taken out", attrs=AxesAttrs, infer=_squeeze_infer,
    eval=lambda arrays, attrs: np.squeeze(arrays[0], attrs.axes), vjp=_reshape_vjp, jvp=Forward.LINEAR,
    lower=Mil("squeeze", ("x",), lambda attrs, ins, outs: {"axes": attrs.axes}),
    kind=OpKind.DATA_MOVEMENT, domain=_ANY, batch=Batch.SHIFT,
    cases=(Case(((1, 3, 1),), AxesAttrs((0,))), Case(((1, 3, 1),), AxesAttrs((0, 2))), Case(((1,),), AxesAttrs((0,)))),
)


# transpose


@dataclass(frozen=True)
class TransposeAttrs(Attrs):
    perm: Shape


@public
def transpose(x: TensorLike, axes: Sequence[int] | None = None) -> Tensor:
    """x with its axes in the given order, reversed by default."""
    (tensor,) = as_tensors("transpose", x)
    order = range(tensor.ndim)[::-1] if axes is None else axes
    perm = tuple(as_axis(axis, tensor.ndim, "transpose") for axis in as_ints(order, "transpose"))
    return tensor if perm == tuple(range(tensor.ndim)) else apply(TRANSPOSE, tensor, attrs=TransposeAttrs(perm))


@public
def swapaxes(x: Tensor, axis1: int, axis2: int) -> Tensor:
    """x with two axes exchanged."""
    order = list(range(x.ndim))
    a, b = as_axis(axis1, x.ndim, "swapaxes"), as_axis(axis2, x.ndim, "swapaxes")
    order[a], order[b] = order[b], order[a]
    return transpose(x, order)


def _transpose_infer(types: tuple[TensorType, ...], attrs: TransposeAttrs) -> tuple[TensorType, ...]:
    (x,) = types
    if sorted(attrs.perm) != list(range(x.rank)):
        raise ShapeError("transpose", f"expected each axis of {x} once, got {attrs.perm}")
    return (x.with_shape(tuple(x.shape[axis] for axis in attrs.perm)),)


def _transpose_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: TransposeAttrs) -> tuple[Tensor]:
    return (transpose(g, [attrs.perm.index(axis) for axis in range(len(attrs.perm))]),)


TRANSPOSE = Op(
    name="transpose", summary="axes in another order", attrs=TransposeAttrs, infer=_transpose_infer,
    eval=lambda arrays, attrs: np.transpose(arrays[0], attrs.perm), vjp=_transpose_vjp, jvp=Forward.LINEAR,
    lower=Mil("transpose", ("x",), lambda attrs, ins, outs: {"perm": attrs.perm}),
    kind=OpKind.DATA_MOVEMENT, domain=_ANY, batch=Batch.SHIFT,
    cases=(
        Case(((2, 3),), TransposeAttrs((1, 0))), Case(((2, 3, 4),), TransposeAttrs((1, 2, 0))),
        Case(((2, 3, 4, 5),), TransposeAttrs((0, 2, 1, 3))), Case(((2, 3),), TransposeAttrs((1, 0)), (f16,)),
    ),
)


# broadcast_to and tile


@dataclass(frozen=True)
class TileAttrs(Attrs):
    reps: Shape


@public
def broadcast_to(x: TensorLike, shape: Sequence[int]) -> Tensor:
    """x repeated to `shape` by NumPy's rules."""
    (tensor,) = as_tensors("broadcast_to", x)
    target = as_shape(shape, "broadcast_to")
    if target == tensor.shape:
        return tensor
    leaf = tensor.producer
    if isinstance(leaf, Leaf) and leaf.kind is LeafKind.CONSTANT and leaf.value.ndim == 0:
        return full(tensor.graph, target, leaf.value.item(), tensor.dtype)
    return apply(BROADCAST_TO, tensor, attrs=ShapeAttrs(target))


@public
def tile(x: TensorLike, reps: Sequence[int] | int) -> Tensor:
    """x repeated `reps[i]` times along each axis i, the last axes if there are fewer; more add axes in front."""
    (tensor,) = as_tensors("tile", x)
    counts = as_shape(reps, "tile")
    tensor = reshape(tensor, (1,) * (len(counts) - tensor.ndim) + tensor.shape)
    counts = (1,) * (tensor.ndim - len(counts)) + counts
    return tensor if all(r == 1 for r in counts) else apply(TILE, tensor, attrs=TileAttrs(counts))


def _broadcast_infer(types: tuple[TensorType, ...], attrs: ShapeAttrs) -> tuple[TensorType, ...]:
    (x,) = types
    lead = len(attrs.shape) - x.rank
    if lead < 0 or any(a not in (1, b) for a, b in zip(x.shape, attrs.shape[lead:], strict=True)):
        raise ShapeError("broadcast_to", f"{x} does not broadcast to {attrs.shape}")
    return (x.with_shape(attrs.shape),)


def _broadcast_lower(ins: tuple[Tensor, ...], attrs: ShapeAttrs) -> Tensor:
    (x,) = ins
    full_rank = reshape(x, (1,) * (len(attrs.shape) - x.ndim) + x.shape)
    return tile(full_rank, tuple(b if a == 1 else 1 for a, b in zip(full_rank.shape, attrs.shape, strict=True)))


def _broadcast_batch(ins: tuple[Tensor, ...], many: tuple[bool, ...], attrs: ShapeAttrs, size: int) -> Tensor:
    (x,) = ins
    room = (1,) * (len(attrs.shape) + 1 - x.ndim)
    return broadcast_to(reshape(x, (size, *room, *x.shape[1:])), (size, *attrs.shape))


def _tile_infer(types: tuple[TensorType, ...], attrs: TileAttrs) -> tuple[TensorType, ...]:
    (x,) = types
    if len(attrs.reps) != x.rank or x.rank == 0:
        raise ShapeError("tile", f"expected one count an axis of {x}, got {attrs.reps}")
    return (x.with_shape(tuple(size * r for size, r in zip(x.shape, attrs.reps, strict=True))),)


def _tile_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: TileAttrs) -> tuple[Tensor]:
    for axis, (size, reps) in enumerate(zip(ins[0].shape, attrs.reps, strict=True)):
        if reps != 1:  # one axis at a time keeps the rank at 4
            lead, trail = g.shape[:axis], g.shape[axis + 1 :]
            copies = reshape(g, (math.prod(lead), reps, size, math.prod(trail)))
            g = reshape(FUNCTIONS["sum"](copies, 1), (*lead, size, *trail))
    return (g,)


BROADCAST_TO = Op(
    name="broadcast_to", summary="repeated to a shape by NumPy's rules", attrs=ShapeAttrs, infer=_broadcast_infer,
    eval=lambda arrays, attrs: np.ascontiguousarray(np.broadcast_to(arrays[0], attrs.shape)),
    vjp=lambda g, out, ins, attrs: (g,),  # the reverse walk sums over what was repeated
    jvp=Forward.LINEAR, lower=Decompose(_broadcast_lower), kind=OpKind.DATA_MOVEMENT, domain=_ANY,
    batch=_broadcast_batch,
    cases=(
        Case(((3,),), ShapeAttrs((2, 3))), Case(((2, 1, 3),), ShapeAttrs((2, 4, 3))), Case(((),), ShapeAttrs((2,))),
        Case(((1, 3),), ShapeAttrs((2, 3)), (i32,)),
    ),
)
TILE = Op(
    name="tile", summary="repeated along each axis", attrs=TileAttrs, infer=_tile_infer,
    eval=lambda arrays, attrs: np.tile(arrays[0], attrs.reps), vjp=_tile_vjp, jvp=Forward.LINEAR,
    lower=Mil("tile", ("x",), lambda attrs, ins, outs: {"reps": attrs.reps}),
    kind=OpKind.DATA_MOVEMENT, domain=_ANY, batch=Batch.SHIFT,
    cases=(
        Case(((2, 3),), TileAttrs((2, 1))), Case(((2, 3),), TileAttrs((3, 2))),
        Case(((1, 2, 1),), TileAttrs((2, 1, 4))),
    ),
)
