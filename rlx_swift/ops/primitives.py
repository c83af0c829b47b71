"""Ops that exist because MIL has them: the last step of a decomposition, not for users.

They are made after differentiation, so none has a derivative rule. Arguments obey what Core ML accepts:
indices already clamped and of rank 1 or more, convolutions without dilation, weights known at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import f32, i32
from ..errors import ShapeError
from ..ir.op import Attrs, Case, Domain, Mil, NotDifferentiable, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import Shape, TensorType
from ._build import apply, require_float, require_integers, require_numbers, same_dtype
from .select import full

_LATE = NotDifferentiable("it is made after differentiation")


def _primitive(name: str, attrs: type[Any], infer: Any, evaluate: Any, mil: Mil, kind: OpKind, *cases: Case) -> Op[Any]:
    return Op(
        name=name, summary=f"MIL's {mil.op}", attrs=attrs, infer=infer, eval=evaluate, vjp=_LATE, jvp=_LATE,
        lower=mil, kind=kind, domain=Domain(), cases=cases,
    )


# gather and scatter


@dataclass(frozen=True)
class AxisAttrs(Attrs):
    axis: int


def gather_clamped(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    return apply(GATHER_CLAMPED, x, indices, attrs=AxisAttrs(axis))


def scatter_add_clamped(updates: Tensor, indices: Tensor, size: int, axis: int) -> Tensor:
    """`updates` added at the rank-1 `indices` of zeros with `size` along an axis."""
    shape = (*updates.shape[:axis], size, *updates.shape[axis + 1 :])
    zeros = full(updates.graph, shape, 0.0, updates.dtype)
    return apply(SCATTER_ADD_CLAMPED, zeros, indices, updates, attrs=AxisAttrs(axis))


def _gather_infer(types: tuple[TensorType, ...], attrs: AxisAttrs) -> tuple[TensorType, ...]:
    x, indices = types
    require_numbers("gather_clamped", x)
    require_integers("gather_clamped", indices)
    if not 0 <= attrs.axis < x.rank or indices.rank == 0 or (x.shape[attrs.axis] == 0 and indices.size):
        raise ShapeError("gather_clamped", f"{indices} are no indices for axis {attrs.axis} of {x}")
    return (x.with_shape((*x.shape[: attrs.axis], *indices.shape, *x.shape[attrs.axis + 1 :])),)


def _scatter_infer(types: tuple[TensorType, ...], attrs: AxisAttrs) -> tuple[TensorType, ...]:
    data, indices, updates = types
    require_numbers("scatter_add_clamped", data)
    require_integers("scatter_add_clamped", indices)
    fits = 0 <= attrs.axis < data.rank and indices.rank == 1 and (data.shape[attrs.axis] or not indices.size)
    if not fits or updates != data.with_shape((*data.shape[: attrs.axis], indices.size, *data.shape[attrs.axis + 1 :])):
        raise ShapeError("scatter_add_clamped", f"{updates} at {indices} do not fit axis {attrs.axis} of {data}")
    return (data,)


def _scatter_eval(arrays: tuple[np.ndarray, ...], attrs: AxisAttrs) -> np.ndarray:
    data, indices, updates = arrays
    out = np.moveaxis(data.copy(), attrs.axis, 0)
    np.add.at(out, indices, np.moveaxis(updates, attrs.axis, 0))
    return np.moveaxis(out, 0, attrs.axis)


_IDS = Domain(0, 3)
GATHER_CLAMPED = _primitive(
    "gather_clamped", AxisAttrs, _gather_infer,
    lambda arrays, attrs: np.take(arrays[0], arrays[1], axis=attrs.axis),
    Mil(
        "gather", ("x", "indices"),
        lambda attrs, ins, outs: {"axis": attrs.axis, "batch_dims": 0, "validate_indices": False},
    ),
    OpKind.DATA_MOVEMENT,
    Case(((4, 3), (2, 2)), AxisAttrs(0), (f32, i32), (Domain(), _IDS)),
)
SCATTER_ADD_CLAMPED = _primitive(
    "scatter_add_clamped", AxisAttrs, _scatter_infer, _scatter_eval,
    Mil(
        "scatter", ("data", "indices", "updates"),
        lambda attrs, ins, outs: {"axis": attrs.axis, "mode": "add", "validate_indices": False},
    ),
    OpKind.DATA_MOVEMENT,
    Case(((4, 3), (5,), (5, 3)), AxisAttrs(0), (f32, i32, f32), (Domain(), _IDS, Domain())),
)


# gather and scatter along an axis


@dataclass(frozen=True)
class ScatterAlongAttrs(Attrs):
    """`mode`: "update", "add", "max" or "min"."""

    axis: int
    mode: str


def gather_along_clamped(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    return apply(GATHER_ALONG_CLAMPED, x, indices, attrs=AxisAttrs(axis))


def scatter_along_clamped(x: Tensor, indices: Tensor, updates: Tensor, attrs: ScatterAlongAttrs) -> Tensor:
    return apply(SCATTER_ALONG_CLAMPED, x, indices, updates, attrs=attrs)


def _check_along(subject: str, x: TensorType, indices: TensorType, axis: int) -> None:
    require_numbers(subject, x)
    require_integers(subject, indices)
    rest = [(*t.shape[:axis], *t.shape[axis + 1 :]) for t in (x, indices)]
    fits = indices.rank == x.rank and 0 <= axis < x.rank and rest[0] == rest[1]
    if not fits or (x.shape[axis] == 0 and indices.size):
        raise ShapeError(subject, f"{indices} does not fit axis {axis} of {x}")


def _gather_along_infer(types: tuple[TensorType, ...], attrs: AxisAttrs) -> tuple[TensorType, ...]:
    x, indices = types
    _check_along("gather_along_clamped", x, indices, attrs.axis)
    return (x.with_shape(indices.shape),)


def _scatter_along_infer(types: tuple[TensorType, ...], attrs: ScatterAlongAttrs) -> tuple[TensorType, ...]:
    x, indices, updates = types
    _check_along("scatter_along_clamped", x, indices, attrs.axis)
    if updates != x.with_shape(indices.shape):
        raise ShapeError("scatter_along_clamped", f"expected updates for {indices} into {x}, got {updates}")
    return (x,)


def _scatter_along_eval(arrays: tuple[np.ndarray, ...], attrs: ScatterAlongAttrs) -> np.ndarray:
    x, indices, updates = arrays
    out = x.copy()
    at: list[np.ndarray] = list(np.indices(indices.shape, sparse=True))
    at[attrs.axis] = indices
    if attrs.mode == "update":
        out[tuple(at)] = updates
    else:
        {"add": np.add, "max": np.maximum, "min": np.minimum}[attrs.mode].at(out, tuple(at), updates)
    return out


GATHER_ALONG_CLAMPED = _primitive(
    "gather_along_clamped", AxisAttrs, _gather_along_infer,
    lambda arrays, attrs: np.take_along_axis(arrays[0], arrays[1], attrs.axis),
    Mil(
        "gather_along_axis", ("x", "indices"),
        lambda attrs, ins, outs: {"axis": attrs.axis, "validate_indices": False},
    ),
    OpKind.DATA_MOVEMENT, Case(((4, 3), (2, 3)), AxisAttrs(0), (f32, i32), (Domain(), _IDS)),
)
SCATTER_ALONG_CLAMPED = _primitive(
    "scatter_along_clamped", ScatterAlongAttrs, _scatter_along_infer, _scatter_along_eval,
    Mil(
        "scatter_along_axis", ("data", "indices", "updates"),
        lambda attrs, ins, outs: {"axis": attrs.axis, "mode": attrs.mode, "validate_indices": False},
    ),
    OpKind.DATA_MOVEMENT,
    *(
        Case(((4, 3), (5, 3), (5, 3)), ScatterAlongAttrs(0, mode), (f32, i32, f32), (Domain(), _IDS, Domain()))
        for mode in ("update", "add", "max", "min")
    ),
)


# argmax and argmin


@dataclass(frozen=True)
class ArgReduceAttrs(Attrs):
    axis: int
    keepdims: bool


def arg_infer(types: tuple[TensorType, ...], attrs: ArgReduceAttrs) -> tuple[TensorType, ...]:
    (x,) = types
    require_numbers("argmax or argmin", x)
    if not 0 <= attrs.axis < x.rank or x.shape[attrs.axis] == 0:
        raise ShapeError("argmax or argmin", f"axis {attrs.axis} of {x} has no elements or is none of its axes")
    kept = (1,) if attrs.keepdims else ()
    return (TensorType((*x.shape[: attrs.axis], *kept, *x.shape[attrs.axis + 1 :]), i32),)


def _mil_arg(which: str, function: Callable[..., np.ndarray]) -> Op[ArgReduceAttrs]:
    return _primitive(
        f"mil_{which}", ArgReduceAttrs, arg_infer,
        lambda arrays, attrs: function(arrays[0], axis=attrs.axis, keepdims=attrs.keepdims),
        Mil(f"reduce_{which}", ("x",), lambda a, ins, outs: {"axis": a.axis, "keep_dims": a.keepdims}),
        OpKind.REDUCTION, Case(((3, 4),), ArgReduceAttrs(1, False)), Case(((3, 4),), ArgReduceAttrs(0, True), (i32,)),
    )


MIL_ARGMAX = _mil_arg("argmax", np.argmax)
MIL_ARGMIN = _mil_arg("argmin", np.argmin)


# convolution


@dataclass(frozen=True)
class MilConvAttrs(Attrs):
    """`padding`: (before, after) for each spatial axis."""

    strides: Shape
    padding: tuple[tuple[int, int], ...]
    groups: int


def mil_conv(x: Tensor, w: Tensor, attrs: MilConvAttrs) -> Tensor:
    return apply(MIL_CONV, x, w, attrs=attrs)


def mil_conv_transpose(x: Tensor, w: Tensor, attrs: MilConvAttrs) -> Tensor:
    return apply(MIL_CONV_TRANSPOSE, x, w, attrs=attrs)


def _check_conv(subject: str, x: TensorType, w: TensorType, attrs: MilConvAttrs) -> None:
    require_float(subject, x, w)
    same_dtype(subject, x, w)
    rank = len(attrs.strides) + 2
    if x.rank != rank or w.rank != rank or len(attrs.padding) != rank - 2 or min(w.shape) < 1:
        raise ShapeError(subject, f"expected an image and a kernel of rank {rank}, got {x} and {w}")
    if min(*attrs.strides, attrs.groups) < 1 or min(min(pair) for pair in attrs.padding) < 0:
        raise ShapeError(subject, f"expected strides and groups of at least 1, padding of at least 0, got {attrs}")


def _conv_infer(types: tuple[TensorType, ...], attrs: MilConvAttrs) -> tuple[TensorType, ...]:
    x, w = types
    _check_conv("mil_conv", x, w, attrs)
    sizes = tuple(
        (size + sum(pads) - kernel) // stride + 1
        for size, pads, kernel, stride in zip(x.shape[2:], attrs.padding, w.shape[2:], attrs.strides, strict=True)
    )
    if x.shape[1] != w.shape[1] * attrs.groups or w.shape[0] % attrs.groups or min(sizes) < 1:
        raise ShapeError("mil_conv", f"{w} does not fit {x} with {attrs}")
    return (x.with_shape((x.shape[0], w.shape[0], *sizes)),)


def _conv_transpose_infer(types: tuple[TensorType, ...], attrs: MilConvAttrs) -> tuple[TensorType, ...]:
    x, w = types
    _check_conv("mil_conv_transpose", x, w, attrs)
    sizes = tuple(
        (size - 1) * stride + kernel - sum(pads)
        for size, pads, kernel, stride in zip(x.shape[2:], attrs.padding, w.shape[2:], attrs.strides, strict=True)
    )
    if x.shape[1] != w.shape[0] or w.shape[0] % attrs.groups or min(*x.shape[2:], *sizes) < 1:
        raise ShapeError("mil_conv_transpose", f"{w} does not fit {x} with {attrs}")
    return (x.with_shape((x.shape[0], w.shape[1] * attrs.groups, *sizes)),)


def _conv_eval(arrays: tuple[np.ndarray, ...], attrs: MilConvAttrs) -> np.ndarray:
    from .conv_reference import conv

    x, w = arrays
    return conv(x, w, attrs.strides, attrs.padding, (1,) * len(attrs.strides), attrs.groups)


def _conv_transpose_eval(arrays: tuple[np.ndarray, ...], attrs: MilConvAttrs) -> np.ndarray:
    from .conv_reference import conv_transpose

    g, w = arrays
    out = _conv_transpose_infer((TensorType(g.shape), TensorType(w.shape)), attrs)[0].shape
    return conv_transpose(g, w, out[2:], attrs.strides, attrs.padding, (1,) * len(attrs.strides), attrs.groups)


def _conv_params(attrs: MilConvAttrs, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> dict[str, object]:
    return {
        "strides": attrs.strides, "pad_type": "custom", "pad": tuple(n for pair in attrs.padding for n in pair),
        "dilations": (1,) * len(attrs.strides), "groups": attrs.groups,
    }


_PLAIN = MilConvAttrs((1, 1), ((1, 1), (1, 1)), 1)
_PLAIN_LINE = MilConvAttrs((2,), ((1, 1),), 2)
MIL_CONV = _primitive(
    "mil_conv", MilConvAttrs, _conv_infer, _conv_eval, Mil("conv", ("x", "weight"), _conv_params), OpKind.COMPUTE,
    Case(((2, 3, 5, 6), (4, 3, 3, 3)), _PLAIN), Case(((2, 4, 7), (6, 2, 3)), _PLAIN_LINE),
)
MIL_CONV_TRANSPOSE = _primitive(
    "mil_conv_transpose", MilConvAttrs, _conv_transpose_infer, _conv_transpose_eval,
    Mil("conv_transpose", ("x", "weight"), _conv_params), OpKind.COMPUTE,
    Case(((2, 4, 5, 6), (4, 3, 3, 3)), _PLAIN), Case(((2, 4, 5), (4, 3, 3)), _PLAIN_LINE),
)
