"""Softmax and its logarithm: composites with derivative rules of their own, in stable forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import f16
from ..errors import ShapeError
from ..ir.op import Attrs, Batch, Case, Decompose, Domain, Mil, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import TensorType, as_axis
from ._build import TensorLike, apply, as_tensors, public, require_float
from .elementwise import exp, log
from .reduce import max, sum
from .select import in_f32


@dataclass(frozen=True)
class AxisAttrs(Attrs):
    axis: int


@public
def softmax(x: TensorLike, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis. NaN where all elements are -inf: mask with finite values."""
    return _along(SOFTMAX, x, axis)


@public
def log_softmax(x: TensorLike, axis: int = -1) -> Tensor:
    """log(softmax(x)) without overflow or log(0)."""
    return _along(LOG_SOFTMAX, x, axis)


def _along(op: Op[AxisAttrs], x: TensorLike, axis: int) -> Tensor:
    (tensor,) = as_tensors(op.name, x)
    if not tensor.ndim:
        raise ShapeError(op.name, "expected a tensor of rank 1 or more, got rank 0")
    return apply(op, tensor, attrs=AxisAttrs(as_axis(axis, tensor.ndim, op.name)))


def _axis_infer(types: tuple[TensorType, ...], attrs: AxisAttrs) -> tuple[TensorType, ...]:
    (x,) = types
    require_float("softmax", x)
    if as_axis(attrs.axis, x.rank, "softmax") != attrs.axis:
        raise ShapeError("softmax", f"expected an axis counted from the front, got {attrs.axis}")
    if x.shape[attrs.axis] == 0:
        raise ShapeError("softmax", f"axis {attrs.axis} of {x} has no elements")
    return types


def _shifted(x: np.ndarray, axis: int) -> np.ndarray:
    return x - np.max(x, axis=axis, keepdims=True)


def _softmax_eval(arrays: tuple[np.ndarray, ...], attrs: AxisAttrs) -> np.ndarray:
    e = np.exp(_shifted(arrays[0], attrs.axis))
    return e / np.sum(e, axis=attrs.axis, keepdims=True)


def _log_softmax_eval(arrays: tuple[np.ndarray, ...], attrs: AxisAttrs) -> np.ndarray:
    z = _shifted(arrays[0], attrs.axis)
    return z - np.log(np.sum(np.exp(z), axis=attrs.axis, keepdims=True))


def _softmax_slope(t: Tensor, out: Tensor, axis: int) -> Tensor:
    """The Jacobian of softmax, which is symmetric, applied to t."""
    weighted = t * out
    return weighted - out * sum(weighted, axis, keepdims=True)


def _log_softmax_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: AxisAttrs) -> tuple[Tensor]:
    return (g - exp(out) * sum(g, attrs.axis, keepdims=True),)


def _log_softmax_jvp(ts: tuple[Tensor], out: Tensor, ins: tuple[Tensor, ...], attrs: AxisAttrs) -> Tensor:
    return ts[0] - sum(exp(out) * ts[0], attrs.axis, keepdims=True)


def shifted_log_sum(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """x - max, and log(sum(exp(x - max))), both with the axis kept."""
    z = x - max(x, axis, keepdims=True)
    return z, log(sum(exp(z), axis, keepdims=True))


@in_f32
def _log_softmax_lower(ins: tuple[Tensor, ...], attrs: AxisAttrs) -> Tensor:
    z, total = shifted_log_sum(ins[0], attrs.axis)
    return z - total


_AXIS_CASES = (
    Case(((2, 3),), AxisAttrs(1)), Case(((2, 3, 4),), AxisAttrs(1)), Case(((5,),), AxisAttrs(0)),
    Case(((3, 2),), AxisAttrs(0), (f16,)),
)


def _softmax_like(name: str, summary: str, evaluate: Any, vjp: Any, jvp: Any, lower: Mil | Decompose) -> Op[AxisAttrs]:
    return Op(
        name=name, summary=summary, attrs=AxisAttrs, infer=_axis_infer, eval=evaluate, vjp=vjp, jvp=jvp, lower=lower,
        kind=OpKind.REDUCTION, domain=Domain(), batch=Batch.SHIFT, cases=_AXIS_CASES,
    )


SOFTMAX = _softmax_like(
    "softmax", "exp(x) / sum(exp(x)) along an axis", _softmax_eval,
    lambda g, out, ins, attrs: (_softmax_slope(g, out, attrs.axis),),
    lambda ts, out, ins, attrs: _softmax_slope(ts[0], out, attrs.axis),
    Mil("softmax", ("x",), lambda attrs, ins, outs: {"axis": attrs.axis}),
)
LOG_SOFTMAX = _softmax_like(
    "log_softmax", "log(softmax(x)) along an axis", _log_softmax_eval, _log_softmax_vjp, _log_softmax_jvp,
    Decompose(_log_softmax_lower),
)
