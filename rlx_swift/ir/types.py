"""Shapes with element types, and the arithmetic of shapes; knows nothing of graphs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    result = []
    for size in sizes:
        try:
            result.append(size.__index__())
        except (AttributeError, TypeError):
            raise ShapeError(subject, f"expected a shape of integers, got {shape!r}") from None
        if result[-1] < 0:
            raise ShapeError(subject, f"expected sizes of at least 0, got {shape!r}")
    return tuple(result)


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
    if not -rank <= axis < rank:
        raise ShapeError(subject, f"expected an axis from {-rank} to {rank - 1}, got {axis}")
    return axis % rank


def as_axes(axes: int | Sequence[int] | None, rank: int, subject: str) -> Shape:
    """`axes` sorted and counted from the front, None for all of them; repeated axes are an error."""
    if axes is None:
        return tuple(range(rank))
    given = (axes,) if isinstance(axes, int) else tuple(axes)
    result = tuple(sorted(as_axis(axis, rank, subject) for axis in given))
    if len(set(result)) != len(result):
        raise ShapeError(subject, f"expected different axes, got {given}")
    return result
