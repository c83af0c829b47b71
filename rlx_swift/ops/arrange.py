"""Joining, cutting and shifting tensors, and their triangles: compositions of concat, slice and where."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir.tensor import Tensor
from ..ir.types import as_axis, as_int, as_ints
from ._build import TensorLike, as_tensors, public
from .select import full_like, where
from .shape import expand_dims, reshape
from .slicing import concat, slice_axis


@public
def stack(xs: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis."""
    if len(xs) == 0:
        raise ShapeError("stack", "expected at least one tensor")
    tensors = as_tensors("stack", *xs)
    if any(t.shape != tensors[0].shape for t in tensors):
        raise ShapeError("stack", "expected tensors of one shape, got " + ", ".join(str(t.type) for t in tensors))
    at = as_axis(axis, tensors[0].ndim + 1, "stack")
    return concat([expand_dims(t, at) for t in tensors], at)


@public
def split(x: TensorLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """x cut along an axis into a number of equal parts, or before each of the given indices, as `numpy.split`."""
    (tensor,) = as_tensors("split", x)
    at = as_axis(axis, tensor.ndim, "split")
    size = tensor.shape[at]
    if isinstance(indices_or_sections, Sequence):
        cuts = as_ints(indices_or_sections, "split")
    else:
        count = as_int(indices_or_sections, "split")
        if count < 1 or size % count:
            raise ShapeError("split", f"axis {at} of {tensor.type} does not fall into {count} equal parts")
        cuts = tuple(range(size // count, size, size // count)) if size else (0,) * (count - 1)
    ends = (0, *cuts, size)
    return tuple(slice_axis(tensor, at, start, stop) for start, stop in itertools.pairwise(ends))


@public
def roll(x: TensorLike, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor:
    """x with its elements moved on by `shift` along an axis, those that fall off coming back at the start.

    Without an axis the flattened tensor is rolled.
    """
    (tensor,) = as_tensors("roll", x)
    if axis is None:
        flat = roll(reshape(tensor, (tensor.size,)), shift, 0)
        return reshape(flat, tensor.shape)
    shifts, axes = as_ints(shift, "roll"), as_ints(axis, "roll")
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    if len(shifts) != len(axes):
        raise ShapeError("roll", f"expected as many shifts as axes, got {shifts} and {axes}")
    for count, position in zip(shifts, axes, strict=True):
        at = as_axis(position, tensor.ndim, "roll")
        size = tensor.shape[at]
        cut = size - count % size if size else 0
        if 0 < cut < size:
            tensor = concat([slice_axis(tensor, at, cut, size), slice_axis(tensor, at, 0, cut)], at)
    return tensor


@public
def tril(x: TensorLike, k: int = 0) -> Tensor:
    """The last two axes with zeros above the k-th diagonal."""
    return _triangle(x, k, "tril", lower=True)


@public
def triu(x: TensorLike, k: int = 0) -> Tensor:
    """The last two axes with zeros below the k-th diagonal."""
    return _triangle(x, k, "triu", lower=False)


def _triangle(x: TensorLike, k: int, subject: str, lower: bool) -> Tensor:
    (tensor,) = as_tensors(subject, x)
    if tensor.ndim < 2:
        raise ShapeError(subject, f"expected a tensor of rank 2 or more, got {tensor.type}")
    rows, columns = tensor.shape[-2:]
    below = np.tri(rows, columns, as_int(k, subject) - (0 if lower else 1), dtype=np.bool_)
    return where(tensor.graph.constant(below if lower else ~below), tensor, full_like(tensor, 0.0))
