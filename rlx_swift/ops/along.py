"""Reading and writing one element of each row along an axis, at integer positions; indices are as for `gather`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import f16, f32, i32
from ..errors import ConfigError, ShapeError
from ..ir.op import Attrs, Batch, Case, Decompose, Domain, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import Shape, TensorType, as_axis, broadcast
from ._build import TensorLike, apply, graph_of, public, require_integers, require_numbers, same_dtype
from .compare import equal
from .index import clamp, positions
from .primitives import AxisAttrs, ScatterAlongAttrs, gather_along_clamped, scatter_along_clamped
from .select import cast, full_like
from .shape import broadcast_to

MODES = ("update", "add", "max", "min")


@dataclass(frozen=True)
class PutAttrs(Attrs):
    """`mode`: how a value meets the element that is there, one of MODES."""

    axis: int
    mode: str


@public
def take_along_axis(x: TensorLike, indices: TensorLike, axis: int = -1) -> Tensor:
    """x[..., indices[..., i, ...], ...] along an axis, as `numpy.take_along_axis`; indices as for `gather`.

    x and indices have the same rank and broadcast along the other axes.
    """
    graph = graph_of("take_along_axis", x, indices)
    tensor = graph.as_tensor(x, f32)
    at = as_axis(axis, tensor.ndim, "take_along_axis")
    places = positions("take_along_axis", graph, indices, tensor.shape[at])
    return apply(TAKE_ALONG_AXIS, *_fitted("take_along_axis", tensor, places, at), attrs=AxisAttrs(at))


@public
def put_along_axis(
    x: TensorLike, indices: TensorLike, values: TensorLike, axis: int = -1, mode: str = "update"
) -> Tensor:
    """x with `values` put at the indices (as for `gather`) along an axis; shapes of indices and values broadcast.

    `mode` "update" replaces (of several values for one place the last stays and gets the gradient), "add",
    "max" and "min" combine. Tied extremes share the gradient evenly.
    """
    if mode not in MODES:
        raise ConfigError("put_along_axis mode", f"expected one of {', '.join(MODES)}, got {mode!r}")
    graph = graph_of("put_along_axis", x, indices, values)
    data = graph.as_tensor(x, f32)
    at = as_axis(axis, data.ndim, "put_along_axis")
    place, new = positions("put_along_axis", graph, indices, data.shape[at]), graph.as_tensor(values, data.dtype)
    if place.ndim != data.ndim:
        raise ShapeError("put_along_axis", f"expected indices of the rank of {data.type}, got {place.type}")
    rest = (*data.shape[:at], 1, *data.shape[at + 1 :])
    shape = broadcast("put_along_axis", (place.shape, new.shape, rest))
    operands = data, broadcast_to(place, shape), broadcast_to(new, shape)
    return apply(PUT_ALONG_AXIS, *operands, attrs=PutAttrs(at, mode))


def _fitted(subject: str, x: Tensor, indices: Tensor, at: int) -> tuple[Tensor, Tensor]:
    """Both broadcast to one shape, but for the axis."""
    if indices.ndim != x.ndim:
        raise ShapeError(subject, f"expected indices of the rank of {x.type}, got {indices.type}")
    shapes = [(*t.shape[:at], 1, *t.shape[at + 1 :]) for t in (x, indices)]
    shape = broadcast(subject, shapes)

    def fit(t: Tensor) -> Tensor:
        return broadcast_to(t, (*shape[:at], t.shape[at], *shape[at + 1 :]))

    return fit(x), fit(indices)


def _check(subject: str, x: TensorType, indices: TensorType, axis: int) -> None:
    require_numbers(subject, x)
    require_integers(subject, indices)
    if indices.rank != x.rank or not 0 <= axis < x.rank:
        raise ShapeError(subject, f"expected {indices} of the rank of {x} and an axis of it, got axis {axis}")
    rest = [(*t.shape[:axis], *t.shape[axis + 1 :]) for t in (x, indices)]
    if rest[0] != rest[1] or (x.shape[axis] == 0 and indices.size):
        raise ShapeError(subject, f"{indices} does not fit axis {axis} of {x}")


# take


def _take_infer(types: tuple[TensorType, ...], attrs: AxisAttrs) -> tuple[TensorType, ...]:
    x, indices = types
    _check("take_along_axis", x, indices, attrs.axis)
    return (x.with_shape(indices.shape),)


def _clipped(indices: np.ndarray, size: int) -> np.ndarray:
    return np.clip(indices, 0, max(size - 1, 0))


def _take_eval(arrays: tuple[np.ndarray, ...], attrs: AxisAttrs) -> np.ndarray:
    x, indices = arrays
    return np.take_along_axis(x, _clipped(indices, x.shape[attrs.axis]), attrs.axis)


def _take_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: AxisAttrs) -> tuple[Tensor | None, ...]:
    x, indices = ins
    return put_along_axis(full_like(x, 0.0), indices, g, attrs.axis, "add"), None


_IDS = Domain(0, 3)
_TAKEN: tuple[tuple[Shape, Shape, int], ...] = (((4,), (3,), 0), ((2, 4), (2, 5), 1), ((4, 2, 3), (6, 2, 3), 0))
TAKE_ALONG_AXIS = Op(
    name="take_along_axis", summary="one element of each row along an axis", attrs=AxisAttrs, infer=_take_infer,
    eval=_take_eval, vjp=_take_vjp, jvp=lambda ts, out, ins, attrs: take_along_axis(ts[0], ins[1], attrs.axis),
    lower=Decompose(
        lambda ins, attrs: gather_along_clamped(ins[0], clamp(ins[1], ins[0].shape[attrs.axis]), attrs.axis)
    ),
    kind=OpKind.DATA_MOVEMENT, domain=Domain(), batch=Batch.SHIFT,
    index_bounds=lambda types, attrs: {1: types[0].shape[attrs.axis]},
    cases=(
        *(Case((x, ids), AxisAttrs(axis), (f32, i32), (Domain(), _IDS)) for x, ids, axis in _TAKEN),
        Case(((2, 4), (2, 5)), AxisAttrs(1), (i32, i32), (_IDS, _IDS)),
        Case(((2, 4), (2, 5)), AxisAttrs(1), (f16, i32), (Domain(), _IDS)),
    ),
)


# put


def _put_infer(types: tuple[TensorType, ...], attrs: PutAttrs) -> tuple[TensorType, ...]:
    x, indices, values = types
    _check("put_along_axis", x, indices, attrs.axis)
    same_dtype("put_along_axis", x, values)
    if values.shape != indices.shape or attrs.mode not in MODES:
        raise ShapeError("put_along_axis", f"expected values like {indices} and one of {MODES}, got {values}, {attrs}")
    return (x,)


def _put_eval(arrays: tuple[np.ndarray, ...], attrs: PutAttrs) -> np.ndarray:
    x, indices, values = arrays
    out = x.copy()
    at: list[np.ndarray] = list(np.indices(indices.shape, sparse=True))
    at[attrs.axis] = _clipped(indices, x.shape[attrs.axis])
    if attrs.mode == "update":
        out[tuple(at)] = values
    else:
        {"add": np.add, "max": np.maximum, "min": np.minimum}[attrs.mode].at(out, tuple(at), values)
    return out


def _shares(out: Tensor, ins: tuple[Tensor, ...], attrs: PutAttrs) -> tuple[Tensor, Tensor]:
    """How much of each result comes from what was there and from each value."""
    x, indices, values = ins
    if attrs.mode == "add":
        return full_like(x, 1.0), full_like(values, 1.0)
    if attrs.mode == "update":
        return _update_shares(x, indices, values, attrs.axis)
    kept = cast(equal(x, out), x.dtype)
    won = cast(equal(values, take_along_axis(out, indices, attrs.axis)), x.dtype)
    count = put_along_axis(kept, indices, won, attrs.axis, "add")
    return kept / count, won / take_along_axis(count, indices, attrs.axis)


def _update_shares(x: Tensor, indices: Tensor, values: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """1 where nothing was written, and 1 for the value that stayed: numbered values are written and read back."""
    count = indices.shape[axis]
    numbers = np.arange(1, count + 1, dtype=np.int32).reshape((count,) + (1,) * (x.ndim - axis - 1))
    number = broadcast_to(x.graph.constant(numbers), indices.shape)
    blank = broadcast_to(x.graph.constant(np.zeros((1,) * x.ndim, np.int32)), x.shape)
    last = put_along_axis(blank, indices, number, axis)
    stayed = equal(take_along_axis(last, indices, axis), number)
    return cast(equal(last, 0), x.dtype), cast(stayed, values.dtype)


def _put_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: PutAttrs) -> tuple[Tensor | None, ...]:
    kept, won = _shares(out, ins, attrs)
    return g * kept, None, take_along_axis(g, ins[1], attrs.axis) * won


def _put_jvp(ts: Sequence[Any], out: Tensor, ins: tuple[Tensor, ...], attrs: PutAttrs) -> Tensor:
    x, indices, _ = ins
    kept, won = _shares(out, ins, attrs)
    there = full_like(x, 0.0) if ts[0] is None else ts[0] * kept
    return there if ts[2] is None else put_along_axis(there, indices, ts[2] * won, attrs.axis, "add")


def _put_lower(ins: tuple[Tensor, ...], attrs: PutAttrs) -> Tensor:
    x, indices, values = ins
    at = clamp(indices, x.shape[attrs.axis])
    return scatter_along_clamped(x, at, values, ScatterAlongAttrs(attrs.axis, attrs.mode))


_SPACED = Domain(distinct=True)
PUT_ALONG_AXIS = Op(
    name="put_along_axis", summary="values put at one place of each row along an axis", attrs=PutAttrs,
    infer=_put_infer, eval=_put_eval, vjp=_put_vjp, jvp=_put_jvp, lower=Decompose(_put_lower),
    kind=OpKind.DATA_MOVEMENT, domain=_SPACED, batch=Batch.SHIFT,
    index_bounds=lambda types, attrs: {1: types[0].shape[attrs.axis]},
    cases=(
        *(
            Case((x, ids, ids), PutAttrs(axis, mode), (f32, i32, f32), (_SPACED, _IDS, _SPACED))
            for mode in MODES for x, ids, axis in _TAKEN
        ),
        Case(((2, 4), (2, 5), (2, 5)), PutAttrs(1, "max"), (i32, i32, i32), (_IDS, _IDS, _IDS)),
        Case(((2, 4), (2, 5), (2, 5)), PutAttrs(1, "update"), (f16, i32, f16), (_SPACED, _IDS, _SPACED)),
    ),
)
