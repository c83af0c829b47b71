"""Sums and products along an axis: running ones, and the product over axes with a derivative that takes zeros."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..dtypes import f16, i32
from ..errors import ShapeError
from ..ir.op import Attrs, Batch, Case, Domain, Forward, Mil, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import TensorType, as_axes, as_axis
from ._build import TensorLike, apply, public, require_numbers
from .arithmetic import as_numbers, mul
from .reduce import Axis, ReduceAttrs, reduce, reduction, restore
from .reduce import sum as reduce_sum
from .select import in_f32
from .shape import expand_dims, reshape, transpose
from .slicing import flip, pad_constant, slice_axis


@dataclass(frozen=True)
class CumsumAttrs(Attrs):
    """`reverse`: sums run from the end."""

    axis: int
    reverse: bool


@public
def cumsum(x: TensorLike, axis: int | None = None, reverse: bool = False) -> Tensor:
    """The sum of the elements up to each one along an axis; from the end if `reverse`. Bools are counted as i32.

    The axis may be left out for a tensor of rank 1.
    """
    tensor, at = _along(x, axis, "cumsum")
    return apply(CUMSUM, tensor, attrs=CumsumAttrs(at, bool(reverse)))


@public
def cumprod(x: TensorLike, axis: int | None = None) -> Tensor:
    """The product of the elements up to each one along an axis, which may be left out for a tensor of rank 1."""
    return _products(*_along(x, axis, "cumprod"))


@in_f32  # products of a few elements may leave the range of f16 where those of all stay in it
def _products(x: Tensor, axis: int) -> Tensor:
    size, shift = x.shape[axis], 1
    while shift < size:  # after a round each element is the product of the last 2 * shift
        earlier = slice_axis(_shifted(x, axis, shift), axis, 0, size)
        x, shift = mul(x, earlier), 2 * shift
    return x


def _along(x: TensorLike, axis: int | None, subject: str) -> tuple[Tensor, int]:
    tensor = as_numbers(x, subject)
    if axis is None and tensor.ndim != 1:
        raise ShapeError(subject, f"an axis is needed for {tensor.type}")
    return tensor, as_axis(0 if axis is None else axis, tensor.ndim, subject)


def _shifted(x: Tensor, axis: int, count: int) -> Tensor:
    """x with `count` ones put before it along an axis."""
    widths = [(0, 0)] * x.ndim
    widths[axis] = (count, 0)
    return pad_constant(x, widths, 1.0)


def _cumsum_infer(types: tuple[TensorType, ...], attrs: CumsumAttrs) -> tuple[TensorType, ...]:
    require_numbers("cumsum", *types)
    if not 0 <= attrs.axis < types[0].rank:
        raise ShapeError("cumsum", f"expected an axis of {types[0]} counted from the front, got {attrs.axis}")
    return types


def _cumsum_eval(arrays: tuple[np.ndarray, ...], attrs: CumsumAttrs) -> np.ndarray:
    x = np.flip(arrays[0], attrs.axis) if attrs.reverse else arrays[0]
    out = np.cumsum(x, attrs.axis, dtype=x.dtype)
    return np.flip(out, attrs.axis) if attrs.reverse else out


CUMSUM = Op(
    name="cumsum", summary="running sum along an axis", attrs=CumsumAttrs, infer=_cumsum_infer, eval=_cumsum_eval,
    vjp=lambda g, out, ins, attrs: (cumsum(g, attrs.axis, not attrs.reverse),), jvp=Forward.LINEAR,
    lower=Mil("cumsum", ("x",), lambda a, ins, outs: {"axis": a.axis, "exclusive": False, "reverse": a.reverse}),
    kind=OpKind.REDUCTION, domain=Domain(), batch=Batch.SHIFT,
    cases=(
        Case(((5,),), CumsumAttrs(0, False)), Case(((2, 4),), CumsumAttrs(1, True)),
        Case(((2, 3, 4),), CumsumAttrs(1, False)), Case(((2, 3),), CumsumAttrs(0, True), (i32,)),
        Case(((2, 3),), CumsumAttrs(1, False), (f16,)),
    ),
)


# prod


@public
def prod(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The product over the axes (all by default). Bools are counted as i32."""
    return reduce(PROD, x, axis, keepdims)


def others(x: Tensor, axes: Axis) -> Tensor:
    """For each element the product of all others over the axes, without a division.

    Pairs are multiplied up a tree, then each node hands its own others times its sibling down:

        1 2 3 4  ->  2 12            1 1  ->  12 2  ->  24 12 8 6
    """
    reduced = as_axes(axes, x.ndim, "prod")
    kept = [axis for axis in range(x.ndim) if axis not in reduced]
    order = [*kept, *reduced]
    rows = transpose(x, order)
    lead, count = math.prod(rows.shape[: len(kept)]), math.prod(rows.shape[len(kept) :])
    size = 1 << max(count - 1, 0).bit_length()
    levels = [pad_constant(reshape(rows, (lead, count)), ((0, 0), (0, size - count)), 1.0)]
    while levels[-1].shape[1] > 1:
        pairs = reshape(levels[-1], (lead, levels[-1].shape[1] // 2, 2))
        levels.append(mul(pairs[:, :, 0], pairs[:, :, 1]))
    result = None
    for level in reversed(levels[:-1]):
        siblings = flip(reshape(level, (lead, level.shape[1] // 2, 2)), 2)
        handed = siblings if result is None else mul(expand_dims(result, 2), siblings)
        result = reshape(handed, level.shape)
    if result is None:
        return x.graph.constant(np.ones(x.shape, x.dtype.numpy))
    back = reshape(slice_axis(result, 1, 0, count), rows.shape)
    return transpose(back, [order.index(axis) for axis in range(x.ndim)])


def _prod_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: ReduceAttrs) -> tuple[Tensor]:
    return (_prod_slope(g, ins[0], attrs),)


@in_f32  # as in `_products`: also the others' product may leave the range of f16 where that times g does not
def _prod_slope(g: Tensor, x: Tensor, attrs: ReduceAttrs) -> Tensor:
    return restore(g, x.shape, attrs.axes) * others(x, attrs.axes)


def _prod_jvp(ts: tuple[Tensor], out: Tensor, ins: tuple[Tensor, ...], attrs: ReduceAttrs) -> Tensor:
    return _prod_change(ts[0], ins[0], attrs)


@in_f32
def _prod_change(t: Tensor, x: Tensor, attrs: ReduceAttrs) -> Tensor:
    return reduce_sum(t * others(x, attrs.axes), attrs.axes, attrs.keepdims)


PROD = reduction("prod", "product over axes", np.prod, _prod_vjp, _prod_jvp)
