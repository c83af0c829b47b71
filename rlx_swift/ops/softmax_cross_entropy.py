"""Losses with derivative rules of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import f32, i32
from ..errors import DTypeError, ShapeError
from ..ir.op import Attrs, Batch, Case, Decompose, Domain, NotDifferentiable, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import TensorType, as_axis
from ._build import TensorLike, apply, graph_of, public, require_float, require_integers
from .compare import equal
from .index import clamp, one_hot
from .reduce import sum
from .select import in_f32, where
from .shape import expand_dims, reshape
from .softmax import log_softmax, shifted_log_sum, softmax


@dataclass(frozen=True)
class AxisAttrs(Attrs):
    axis: int


@dataclass(frozen=True)
class ClassesAttrs(Attrs):
    count: int


@public
def softmax_cross_entropy_with_logits(logits: TensorLike, labels: TensorLike, axis: int = -1) -> Tensor:
    """-log softmax(logits) at the label, for each position: shape of logits without `axis`.

    `labels` are class indices (i32, shape of the result; clamped to the classes) or probabilities (shape of
    logits).
    """
    graph = graph_of("softmax_cross_entropy_with_logits", logits, labels)
    scores = graph.as_tensor(logits, f32)
    target = graph.as_tensor(labels, scores.dtype)
    if scores.ndim == 0:
        raise ShapeError("softmax_cross_entropy_with_logits", "expected logits of rank 1 or more, got rank 0")
    at = as_axis(axis, scores.ndim, "softmax_cross_entropy_with_logits")
    if target.dtype is i32:
        return apply(SOFTMAX_CROSS_ENTROPY, scores, target, attrs=AxisAttrs(at))
    if target.type != scores.type:
        raise ShapeError("softmax_cross_entropy_with_logits", f"expected labels like {scores.type}, got {target.type}")
    return -sum(target * log_softmax(scores, at), at)


def _infer(types: tuple[TensorType, ...], attrs: AxisAttrs) -> tuple[TensorType, ...]:
    logits, labels = types
    require_float("softmax_cross_entropy", logits)
    axis = as_axis(attrs.axis, logits.rank, "softmax_cross_entropy")
    if labels.dtype is not i32:
        raise DTypeError("softmax_cross_entropy", f"expected labels of i32, got {labels}")
    shape = (*logits.shape[:axis], *logits.shape[axis + 1 :])
    if labels.shape != shape or logits.shape[axis] == 0:
        raise ShapeError("softmax_cross_entropy", f"expected labels of shape {shape} for logits {logits}, got {labels}")
    return (logits.with_shape(shape),)


def _eval(arrays: tuple[np.ndarray, ...], attrs: AxisAttrs) -> np.ndarray:
    logits, labels = arrays
    z = logits - np.max(logits, axis=attrs.axis, keepdims=True)
    at = np.expand_dims(np.clip(labels, 0, logits.shape[attrs.axis] - 1), attrs.axis)
    picked = np.squeeze(np.take_along_axis(z, at, attrs.axis), attrs.axis)
    return np.log(np.sum(np.exp(z), axis=attrs.axis)) - picked


def _classes(logits: Tensor, axis: int) -> Tensor:
    """0, 1, ... along the class axis, with sizes of 1 elsewhere."""
    count = logits.shape[axis]
    return logits.graph.constant(np.arange(count, dtype=np.int32).reshape((count,) + (1,) * (logits.ndim - axis - 1)))


@in_f32
def _lower(ins: tuple[Tensor, ...], attrs: AxisAttrs) -> Tensor:
    # A comparison and a choice instead of a product with a one-hot: 0 * -inf would be NaN.
    logits, labels = ins
    z, total = shifted_log_sum(logits, attrs.axis)
    is_label = equal(expand_dims(clamp(labels, logits.shape[attrs.axis]), attrs.axis), _classes(logits, attrs.axis))
    picked = sum(where(is_label, z, 0.0), attrs.axis, keepdims=True)
    return reshape(total - picked, labels.shape)


def _clamp_infer(types: tuple[TensorType, ...], attrs: ClassesAttrs) -> tuple[TensorType, ...]:
    require_integers("clamp_labels", types[0])
    if attrs.count < 1:
        raise ShapeError("clamp_labels", f"expected a count of at least 1, got {attrs.count}")
    return types


def _slope(logits: Tensor, labels: Tensor, axis: int) -> Tensor:
    # An op of its own: the loss may be dead in a graph of gradients, and the check of labels is to stay.
    safe = apply(CLAMP_LABELS, labels, attrs=ClassesAttrs(logits.shape[axis]))
    return softmax(logits, axis) - one_hot(safe, logits.shape[axis], axis, logits.dtype)


def _vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: AxisAttrs) -> tuple[Tensor | None, ...]:
    return expand_dims(g, attrs.axis) * _slope(ins[0], ins[1], attrs.axis), None


def _jvp(ts: Sequence[Any], out: Tensor, ins: tuple[Tensor, ...], attrs: AxisAttrs) -> Tensor:
    return sum(ts[0] * _slope(ins[0], ins[1], attrs.axis), attrs.axis)


_LABELS = Domain(0, 2)
_NO_SLOPE = NotDifferentiable("its operand is an index")
CLAMP_LABELS = Op(
    name="clamp_labels", summary="labels moved into their classes; those that a caller feeds are checked",
    attrs=ClassesAttrs, infer=_clamp_infer, eval=lambda arrays, attrs: np.clip(arrays[0], 0, attrs.count - 1),
    vjp=_NO_SLOPE, jvp=_NO_SLOPE, lower=Decompose(lambda ins, attrs: clamp(ins[0], attrs.count)),
    kind=OpKind.ELEMENTWISE, domain=_LABELS, index_bounds=lambda types, attrs: {0: attrs.count},
    cases=(Case(((2, 3),), ClassesAttrs(3), (i32,)), Case(((),), ClassesAttrs(3), (i32,))),
)
SOFTMAX_CROSS_ENTROPY = Op(
    name="softmax_cross_entropy", summary="-log softmax at an integer label", attrs=AxisAttrs, infer=_infer, eval=_eval,
    vjp=_vjp, jvp=_jvp, lower=Decompose(_lower), kind=OpKind.REDUCTION, domain=Domain(),
    batch=Batch.SHIFT,
    index_bounds=lambda types, attrs: {1: types[0].shape[attrs.axis]},
    cases=(
        Case(((4, 3), (4,)), AxisAttrs(1), (f32, i32), (Domain(), _LABELS)),
        Case(((2, 3, 4), (2, 4)), AxisAttrs(1), (f32, i32), (Domain(), _LABELS)),
        Case(((3,), ()), AxisAttrs(0), (f32, i32), (Domain(), _LABELS)),
    ),
)
