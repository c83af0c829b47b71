"""The small array namespace that optimizer rules are written in, over NumPy arrays and over graph tensors.

A rule may use the operators + - * / @ and unary -, indexing-free `.shape` and `.ndim`, and the functions here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import numpy as np

from .. import ops

Array = Any  # numpy.ndarray or Tensor; a rule must work on both


class Namespace(Protocol):
    """What `xp` offers to a rule. All values are f32."""

    def sqrt(self, x: Array) -> Array: ...
    def exp(self, x: Array) -> Array: ...
    def log(self, x: Array) -> Array: ...
    def abs(self, x: Array) -> Array: ...
    def sign(self, x: Array) -> Array: ...
    def square(self, x: Array) -> Array: ...
    def maximum(self, x: Array, y: Array) -> Array: ...
    def minimum(self, x: Array, y: Array) -> Array: ...
    def where(self, condition: Array, x: Array, y: Array) -> Array: ...
    def matmul(self, x: Array, y: Array, transpose_x: bool = False, transpose_y: bool = False) -> Array: ...
    def sum(self, x: Array, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array: ...
    def mean(self, x: Array, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array: ...
    def max(self, x: Array, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array: ...
    def transpose(self, x: Array, axes: Sequence[int] | None = None) -> Array: ...
    def reshape(self, x: Array, shape: Sequence[int]) -> Array: ...
    def zeros_like(self, x: Array) -> Array: ...
    def full_like(self, x: Array, value: float) -> Array: ...


def _static(*functions: Callable[..., Any]) -> tuple[Any, ...]:
    return tuple(staticmethod(function) for function in functions)


class NumpyNamespace:
    """Rules on float32 arrays."""

    sqrt, exp, log, abs = _static(np.sqrt, np.exp, np.log, np.abs)
    sign, square, maximum, minimum = _static(np.sign, np.square, np.maximum, np.minimum)
    sum, mean, max, transpose = _static(np.sum, np.mean, np.max, np.transpose)
    reshape, zeros_like, full_like = _static(np.reshape, np.zeros_like, np.full_like)

    @staticmethod
    def where(condition: Array, x: Array, y: Array) -> Array:
        return np.where(condition, np.asanyarray(x, np.float32), np.asanyarray(y, np.float32))

    @staticmethod
    def matmul(x: Array, y: Array, transpose_x: bool = False, transpose_y: bool = False) -> Array:
        return np.matmul(np.swapaxes(x, -1, -2) if transpose_x else x, np.swapaxes(y, -1, -2) if transpose_y else y)


class LeanNamespace(NumpyNamespace):
    """As NumpyNamespace, but zeros take no memory and cannot be written to."""

    @staticmethod
    def zeros_like(x: Array) -> Array:
        return np.broadcast_to(np.zeros((), np.asarray(x).dtype), np.shape(x))


class GraphNamespace:
    """Rules as nodes of a graph."""

    sqrt, exp, log, abs = _static(ops.sqrt, ops.exp, ops.log, ops.abs)
    sign, square, maximum, minimum = _static(ops.sign, ops.square, ops.maximum, ops.minimum)
    sum, mean, max, transpose = _static(ops.sum, ops.mean, ops.max, ops.transpose)
    reshape, full_like, where, matmul = _static(ops.reshape, ops.full_like, ops.where, ops.matmul)

    @staticmethod
    def zeros_like(x: Array) -> Array:
        return ops.full_like(x, 0.0)


NUMPY: Namespace = cast(Namespace, NumpyNamespace())
LEAN: Namespace = cast(Namespace, LeanNamespace())
GRAPH: Namespace = cast(Namespace, GraphNamespace())
