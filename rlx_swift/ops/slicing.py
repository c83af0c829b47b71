"""Ops that join, cut and extend tensors: concat, slice and indexing, pad, flip."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import i32
from ..errors import ShapeError
from ..ir.op import Attrs, Batch, Case, Domain, Forward, Mil, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import Shape, TensorType, as_axes, as_axis, as_shape
from ._build import TensorLike, apply, as_tensors, public, require_float, same_dtype
from .select import full
from .shape import AxesAttrs, reshape

_ANY = Domain()


# concat


@dataclass(frozen=True)
class ConcatAttrs(Attrs):
    axis: int


@public
def concat(xs: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """The tensors one after the other along an axis; their other sizes agree."""
    if len(xs) == 0:
        raise ShapeError("concat", "expected at least one tensor")
    tensors = as_tensors("concat", *xs)
    if len(tensors) == 1:
        return tensors[0]
    return apply(CONCAT, *tensors, attrs=ConcatAttrs(as_axis(axis, tensors[0].ndim, "concat")))


def _concat_infer(types: tuple[TensorType, ...], attrs: ConcatAttrs) -> tuple[TensorType, ...]:
    same_dtype("concat", *types)
    axis, first = attrs.axis, types[0]
    if first.rank == 0:
        raise ShapeError("concat", "expected tensors of rank 1 or more, got rank 0", "reshape them to (1,)")
    if not 0 <= axis < first.rank:
        raise ShapeError("concat", f"expected an axis of {first} counted from the front, got {axis}")
    rest = [(*t.shape[:axis], *t.shape[axis + 1 :]) for t in types]
    if any(t.rank != first.rank for t in types) or any(r != rest[0] for r in rest):
        given = ", ".join(map(str, types))
        raise ShapeError("concat", f"expected shapes that differ on axis {axis} only, got {given}")
    total = sum(t.shape[axis] for t in types)
    return (first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :])),)


def _concat_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: ConcatAttrs) -> list[Tensor]:
    parts, start = [], 0
    for x in ins:
        stop = start + x.shape[attrs.axis]
        parts.append(slice_axis(g, attrs.axis, start, stop))
        start = stop
    return parts


CONCAT = Op(
    name="concat", summary="tensors one after the other along an axis", attrs=ConcatAttrs, infer=_concat_infer,
    eval=lambda arrays, attrs: np.concatenate(arrays, attrs.axis), vjp=_concat_vjp, jvp=Forward.LINEAR,
    lower=Mil("concat", ("values",), lambda attrs, ins, outs: {"axis": attrs.axis, "interleave": False}, variadic=True),
    kind=OpKind.DATA_MOVEMENT, domain=_ANY, batch=Batch.SHIFT,
    cases=(
        Case(((2, 3), (1, 3)), ConcatAttrs(0)), Case(((2, 3), (2, 1), (2, 2)), ConcatAttrs(1)),
        Case(((2,), (3,)), ConcatAttrs(0), (i32, i32)),
    ),
)


# slice


@dataclass(frozen=True)
class SliceAttrs(Attrs):
    """Per axis: first index, number of elements, and step (not 0); all indices stay inside."""

    start: Shape
    count: Shape
    step: Shape


@public
def slice(x: TensorLike, begin: Sequence[int], end: Sequence[int], stride: Sequence[int] | None = None) -> Tensor:
    """x[begin[0]:end[0]:stride[0], ...] with Python's rules for every axis."""
    (tensor,) = as_tensors("slice", x)
    steps = (1,) * tensor.ndim if stride is None else tuple(stride)
    if not len(begin) == len(end) == len(steps) == tensor.ndim:
        raise ShapeError("slice", f"expected begin, end and stride for each axis of {tensor.type}")
    keys = [builtins.slice(b, e, s) for b, e, s in zip(begin, end, steps, strict=True)]
    return _slice(tensor, keys)


@public
def slice_axis(x: Tensor, axis: int, start: int, stop: int, step: int = 1) -> Tensor:
    """x with one axis cut to start:stop:step."""
    keys = [builtins.slice(None)] * x.ndim
    keys[as_axis(axis, x.ndim, "slice_axis")] = builtins.slice(start, stop, step)
    return _slice(x, keys)


def _slice(x: Tensor, keys: Sequence[builtins.slice]) -> Tensor:
    spans = [_span(key, size) for key, size in zip(keys, x.shape, strict=True)]
    if all(span == range(size) for span, size in zip(spans, x.shape, strict=True)):
        return x
    attrs = SliceAttrs(
        tuple(span.start if len(span) else 0 for span in spans), tuple(len(span) for span in spans),
        tuple(span.step if len(span) > 1 else 1 for span in spans),
    )
    return apply(SLICE, x, attrs=attrs)


def _span(key: builtins.slice, size: int) -> range:
    try:
        return range(*key.indices(size))
    except (TypeError, ValueError):
        raise ShapeError("slice", f"expected integers or None, and steps other than 0, got {key}") from None


def _slice_infer(types: tuple[TensorType, ...], attrs: SliceAttrs) -> tuple[TensorType, ...]:
    (x,) = types
    if not len(attrs.start) == len(attrs.count) == len(attrs.step) == x.rank:
        raise ShapeError("slice", f"expected one start, count and step for each axis of {x}")
    for size, start, count, step in zip(x.shape, attrs.start, attrs.count, attrs.step, strict=True):
        last = start + (count - 1) * step
        if step == 0 or count < 0 or (count and not (0 <= start < size and 0 <= last < size)):
            raise ShapeError("slice", f"elements {start} to {last} by {step} are outside {x}")
    return (x.with_shape(attrs.count),)


def _keys(attrs: SliceAttrs) -> tuple[builtins.slice, ...]:
    keys = []
    for start, count, step in zip(attrs.start, attrs.count, attrs.step, strict=True):
        stop = start + count * step
        keys.append(builtins.slice(start, stop if stop >= 0 else None, step))
    return tuple(keys)


def _slice_mil(attrs: SliceAttrs, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> dict[str, object]:
    keys = _keys(attrs)
    none = (False,) * len(keys)
    return {
        "begin": attrs.start, "end": tuple(0 if key.stop is None else key.stop for key in keys), "stride": attrs.step,
        "begin_mask": none, "end_mask": tuple(key.stop is None for key in keys), "squeeze_mask": none,
    }


def _slice_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: SliceAttrs) -> tuple[Tensor]:
    (x,) = ins
    starts, backwards = list(attrs.start), []
    for axis, (count, step) in enumerate(zip(attrs.count, attrs.step, strict=True)):
        if step < 0:
            backwards.append(axis)
            starts[axis] += (count - 1) * step
    if backwards:
        g = flip(g, backwards)
    for axis, step in reversed(list(enumerate(attrs.step))):
        g = dilate(g, axis, abs(step))
    widths = [(start, size - start - now) for start, size, now in zip(starts, x.shape, g.shape, strict=True)]
    return (pad_constant(g, widths),)


def dilate(x: Tensor, axis: int, step: int) -> Tensor:
    """x with step - 1 zeros between neighbours along an axis.

    For several axes the last comes first: then no reshape joins rows that are unevenly spaced.
    """
    size = x.shape[axis]
    if step == 1 or size <= 1:
        return x
    lead, trail = x.shape[:axis], x.shape[axis + 1 :]
    apart = reshape(x, (math.prod(lead), size, 1, math.prod(trail)))
    apart = pad_constant(apart, ((0, 0), (0, 0), (0, step - 1), (0, 0)))
    joined = reshape(apart, (math.prod(lead), size * step, math.prod(trail)))
    return reshape(slice_axis(joined, 1, 0, (size - 1) * step + 1), (*lead, (size - 1) * step + 1, *trail))


SLICE = Op(
    name="slice", summary="evenly spaced elements along each axis", attrs=SliceAttrs, infer=_slice_infer,
    eval=lambda arrays, attrs: arrays[0][_keys(attrs)].copy(), vjp=_slice_vjp, jvp=Forward.LINEAR,
    lower=Mil("slice_by_index", ("x",), _slice_mil), kind=OpKind.DATA_MOVEMENT, domain=_ANY, batch=Batch.SHIFT,
    cases=(
        Case(((4, 5),), SliceAttrs((1, 0), (2, 5), (1, 1))), Case(((4, 7),), SliceAttrs((0, 1), (4, 3), (1, 2))),
        Case(((5, 3),), SliceAttrs((4, 2), (3, 3), (-2, -1))), Case(((4,),), SliceAttrs((2,), (1,), (1,)), (i32,)),
    ),
)


# pad


@dataclass(frozen=True)
class PadAttrs(Attrs):
    """`widths`: (before, after) for each axis."""

    widths: tuple[tuple[int, int], ...]
    value: float


def pad_constant(x: TensorLike, widths: Sequence[Sequence[int]], value: float = 0.0) -> Tensor:
    """x with `widths[i] = (before, after)` elements of `value` put around each axis i."""
    (tensor,) = as_tensors("pad", x)
    if not isinstance(widths, (Sequence, np.ndarray)):
        raise ShapeError("pad", f"expected a pair of widths for each axis of {tensor.type}, got {widths!r}")
    pairs = tuple(as_shape(pair, "pad") for pair in widths)
    if len(pairs) != tensor.ndim or any(len(pair) != 2 for pair in pairs):
        raise ShapeError("pad", f"expected a pair of widths for each axis of {tensor.type}, got {tuple(widths)}")
    if not any(before or after for before, after in pairs):
        return tensor
    if not tensor.dtype.is_float:  # MIL pads floats only
        for axis, pair in enumerate(pairs):
            lead, trail = tensor.shape[:axis], tensor.shape[axis + 1 :]
            before, after = (full(tensor.graph, (*lead, n, *trail), value, tensor.dtype) for n in pair)
            tensor = concat([part for part in (before, tensor, after) if part.shape[axis]], axis)
        return tensor
    return apply(PAD, tensor, attrs=PadAttrs(tuple((p[0], p[1]) for p in pairs), float(value)))


def _pad_infer(types: tuple[TensorType, ...], attrs: PadAttrs) -> tuple[TensorType, ...]:
    (x,) = types
    require_float("pad", x)  # `pad_constant` joins other dtypes from parts
    if len(attrs.widths) != x.rank or any(before < 0 or after < 0 for before, after in attrs.widths):
        raise ShapeError("pad", f"expected a pair of widths of at least 0 for each axis of {x}, got {attrs.widths}")
    return (x.with_shape(tuple(s + b + a for s, (b, a) in zip(x.shape, attrs.widths, strict=True))),)


def _pad_mil(attrs: PadAttrs, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> dict[str, object]:
    return {"pad": tuple(n for pair in attrs.widths for n in pair), "mode": "constant", "constant_val": attrs.value}


def _pad_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: PadAttrs) -> tuple[Tensor]:
    begin = [before for before, _ in attrs.widths]
    return (slice(g, begin, [b + size for b, size in zip(begin, ins[0].shape, strict=True)]),)


def _pad_jvp(ts: Sequence[Any], out: Tensor, ins: tuple[Tensor, ...], attrs: PadAttrs) -> Tensor:
    return pad_constant(ts[0], attrs.widths)


PAD = Op(
    name="pad", summary="a constant put around each axis", attrs=PadAttrs, infer=_pad_infer,
    eval=lambda arrays, attrs: np.pad(arrays[0], attrs.widths, constant_values=attrs.value),
    vjp=_pad_vjp, jvp=_pad_jvp, lower=Mil("pad", ("x",), _pad_mil), kind=OpKind.DATA_MOVEMENT, domain=_ANY,
    batch=Batch.SHIFT,
    cases=(
        Case(((2, 3),), PadAttrs(((1, 0), (0, 2)), 0.0)), Case(((2,),), PadAttrs(((1, 1),), -1.5)),
        Case(((1, 2, 2, 2),), PadAttrs(((0, 0), (0, 0), (1, 1), (2, 0)), -3.0)),
    ),
)


# flip


@public
def flip(x: TensorLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """x with the order of elements reversed along the axes (all by default)."""
    (tensor,) = as_tensors("flip", x)
    axes = as_axes(axis, tensor.ndim, "flip")
    return apply(FLIP, tensor, attrs=AxesAttrs(axes)) if axes else tensor


def _flip_infer(types: tuple[TensorType, ...], attrs: AxesAttrs) -> tuple[TensorType, ...]:
    if not attrs.axes or attrs.axes != as_axes(attrs.axes, types[0].rank, "flip"):
        raise ShapeError("flip", f"expected sorted axes of {types[0]}, got {attrs.axes}")
    return types


FLIP = Op(
    name="flip", summary="elements in reverse order along axes", attrs=AxesAttrs, infer=_flip_infer,
    eval=lambda arrays, attrs: np.flip(arrays[0], attrs.axes).copy(),
    vjp=lambda g, out, ins, attrs: (flip(g, attrs.axes),), jvp=Forward.LINEAR,
    lower=Mil("reverse", ("x",), lambda attrs, ins, outs: {"axes": attrs.axes}),
    kind=OpKind.DATA_MOVEMENT, domain=_ANY, batch=Batch.SHIFT,
    cases=(Case(((2, 3),), AxesAttrs((1,))), Case(((2, 3),), AxesAttrs((0, 1)))),
)


# indexing


@public
def getitem(x: Tensor, key: object) -> Tensor:
    """x[key] for integers, slices, None and Ellipsis; for index tensors use `gather`."""
    keys = list(key) if isinstance(key, tuple) else [key]
    given = sum(1 for k in keys if k is not None and k is not Ellipsis)
    dots = [i for i, k in enumerate(keys) if k is Ellipsis]
    if given > x.ndim or len(dots) > 1:
        raise ShapeError("indexing", f"{given} indices and {len(dots)} ellipses for {x.type}")
    fill = [builtins.slice(None)] * (x.ndim - given)
    at = dots[0] if dots else len(keys)
    keys[at : at + 1] = fill
    cuts: list[builtins.slice] = []
    shape: list[int] = []
    for k in keys:
        if k is None:
            shape.append(1)
            continue
        size = x.shape[len(cuts)]
        if isinstance(k, builtins.slice):
            cuts.append(k)
            shape.append(len(_span(k, size)))
        elif isinstance(k, (int, np.integer)) and not isinstance(k, bool):
            index = as_axis(int(k), size, "index") if size else 0
            if not size:
                raise ShapeError("indexing", f"axis {len(cuts)} of {x.type} has no elements")
            cuts.append(builtins.slice(index, index + 1, 1))
        else:
            raise ShapeError("indexing", f"expected integers, slices, None or ..., got {k!r}", "use rlx.ops.gather")
    return reshape(_slice(x, cuts), shape)

