"""Shapes with element types, and the arithmetic of shapes; knows nothing of graphs."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..dtypes import DType, f32
from ..errors import ShapeError

Shape = tuple[int, ...]


@dataclass(frozen=True)
class TensorType:
    """A fixed shape (each size >= 0, rank >= 0) and an element type."""

    shape: Shape
    dtype: DType = f32

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def with_shape(self, shape: Shape) -> TensorType:
        return TensorType(shape, self.dtype)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(self.shape, dtype)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


def as_shape(shape: Sequence[int] | int, subject: str) -> Shape:
    """`shape` as a tuple of ints; raises ShapeError for anything else or a negative size."""
    result = as_ints(shape, subject)
    if any(size < 0 for size in result):
        raise ShapeError(subject, f"expected sizes of at least 0, got {shape!r}")
    return result


def as_ints(values: Sequence[int] | int, subject: str) -> Shape:
    """One integer or a sequence of them, Python's or NumPy's, as a tuple; raises ShapeError for anything else."""
    several = values.ndim > 0 if isinstance(values, np.ndarray) else isinstance(values, Sequence)
    if several and not isinstance(values, str):
        return tuple([as_int(value, subject) for value in values])  # type: ignore[union-attr]
    return (as_int(values, subject),)


def as_int(value: object, subject: str) -> int:
    """A Python or NumPy integer as int; raises ShapeError for anything else, bools too."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ShapeError(subject, f"expected integers, got {value!r}") from None


def broadcast(subject: str, shapes: Iterable[Shape]) -> Shape:
    """The shape to which all of `shapes` broadcast by NumPy's rules; raises ShapeError if there is none."""
    shapes = tuple(shapes)
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    rank = max(map(len, shapes))
    result = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            if size != 1:
                if result[axis] not in (1, size):
                    raise ShapeError(subject, "expected shapes that broadcast, got " + " and ".join(map(str, shapes)))
                result[axis] = size
    return tuple(result)


def as_axis(axis: int, rank: int, subject: str) -> int:
    """`axis` counted from the front; raises ShapeError when it is outside the rank."""
    position = as_int(axis, subject)
    if not -rank <= position < rank:
        allowed = f"from {-rank} to {rank - 1}" if rank else "of a tensor of rank 1 or more"
        raise ShapeError(subject, f"expected an axis {allowed}, got {position}")
    return position % rank


def as_axes(axes: int | Sequence[int] | None, rank: int, subject: str) -> Shape:
    """`axes` sorted and counted from the front, None for all of them; repeated axes are an error."""
    if axes is None:
        return tuple(range(rank))
    given = as_ints(axes, subject)
    result = tuple(sorted(as_axis(axis, rank, subject) for axis in given))
    if len(set(result)) != len(result):
        raise ShapeError(subject, f"expected different axes, got {given}")
    return result
