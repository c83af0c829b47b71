"""Order along an axis: the k largest or smallest elements, sorting. Equal elements keep their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import f16, i32
from ..errors import ShapeError
from ..ir.op import Attrs, Batch, Case, Domain, Mil, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import TensorType, as_axis, as_int
from ._build import TensorLike, as_tensors, public, require_numbers
from .along import put_along_axis, take_along_axis
from .select import full, full_like


@dataclass(frozen=True)
class TopkAttrs(Attrs):
    """`k`: from 1 to the size of the axis."""

    k: int
    axis: int
    ascending: bool


@public
def topk(x: TensorLike, k: int, axis: int = -1, largest: bool = True) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) elements along an axis, in order, and their indices (i32)."""
    (tensor,) = as_tensors("topk", x)
    attrs = TopkAttrs(as_int(k, "topk k"), as_axis(axis, tensor.ndim, "topk"), not largest)
    values, indices = tensor.graph.apply(TOPK, (tensor,), attrs)
    return values, indices


@public
def sort(x: TensorLike, axis: int = -1, descending: bool = False) -> Tensor:
    """The elements in order along an axis; NaN counts as the largest."""
    return _ordered(x, axis, descending, "sort")[0]


@public
def argsort(x: TensorLike, axis: int = -1, descending: bool = False) -> Tensor:
    """The indices (i32) that sort x along an axis."""
    return _ordered(x, axis, descending, "argsort")[1]


def _ordered(x: TensorLike, axis: int, descending: bool, subject: str) -> tuple[Tensor, Tensor]:
    (tensor,) = as_tensors(subject, x)
    at = as_axis(axis, tensor.ndim, subject)
    if not tensor.shape[at]:
        require_numbers(subject, tensor.type)
        return tensor, full(tensor.graph, tensor.shape, 0, i32)
    return topk(tensor, tensor.shape[at], at, descending)


def _infer(types: tuple[TensorType, ...], attrs: TopkAttrs) -> tuple[TensorType, ...]:
    (x,) = types
    require_numbers("topk", x)
    if not 0 <= attrs.axis < x.rank or not 1 <= attrs.k <= x.shape[attrs.axis]:
        raise ShapeError("topk", f"expected an axis of {x} and k from 1 to its size, got {attrs}")
    result = x.with_shape((*x.shape[: attrs.axis], attrs.k, *x.shape[attrs.axis + 1 :]))
    return result, result.with_dtype(i32)


def _eval(arrays: tuple[np.ndarray, ...], attrs: TopkAttrs) -> tuple[np.ndarray, np.ndarray]:
    rows = np.moveaxis(arrays[0], attrs.axis, -1)
    if attrs.ascending:
        order = np.argsort(rows, axis=-1, kind="stable")
    else:  # the ascending order of the reversed row, reversed, keeps the first of equal elements first
        order = rows.shape[-1] - 1 - np.argsort(rows[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    first = order[..., : attrs.k]
    values = np.take_along_axis(rows, first, -1)
    return np.moveaxis(values, -1, attrs.axis), np.moveaxis(first, -1, attrs.axis).astype(np.int32)


def _vjp(g: tuple[Tensor, ...], out: tuple[Tensor, ...], ins: tuple[Tensor, ...], attrs: TopkAttrs) -> tuple[Tensor]:
    return (put_along_axis(full_like(ins[0], 0.0), out[1], g[0], attrs.axis, "add"),)


def _jvp(ts: tuple[Tensor], out: tuple[Tensor, ...], ins: tuple[Tensor, ...], attrs: TopkAttrs) -> tuple[Any, None]:
    return take_along_axis(ts[0], out[1], attrs.axis), None


TOPK = Op(
    name="topk", summary="the k largest or smallest elements along an axis, and their indices", attrs=TopkAttrs,
    infer=_infer, eval=_eval, vjp=_vjp, jvp=_jvp,
    lower=Mil(
        "topk", ("x",),
        lambda a, ins, outs: {"k": a.k, "axis": a.axis, "ascending": a.ascending, "sort": True, "return_indices": True},
    ),
    kind=OpKind.DATA_MOVEMENT, domain=Domain(distinct=True), batch=Batch.SHIFT,
    cases=(
        Case(((5,),), TopkAttrs(2, 0, False)), Case(((2, 4),), TopkAttrs(4, 1, True)),
        Case(((3, 2, 2),), TopkAttrs(1, 0, False)), Case(((2, 6),), TopkAttrs(3, 1, False), (f16,)),
        Case(((2, 4),), TopkAttrs(2, 1, False), (i32,), (Domain(-50, 50, distinct=True),)),
    ),
)
