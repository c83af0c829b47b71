"""Reductions over axes: sum, mean, max, min, and logsumexp made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import f16, i32
from ..errors import ShapeError
from ..ir.op import Attrs, Batch, Case, Decompose, Domain, Forward, Mil, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import Shape, TensorType, as_axes
from ._build import TensorLike, apply, public, require_float, require_numbers
from .arithmetic import as_numbers
from .compare import equal
from .elementwise import abs, exp, log
from .select import cast, in_f32, where
from .shape import broadcast_to, reshape

Axis = int | Sequence[int] | None


@dataclass(frozen=True)
class ReduceAttrs(Attrs):
    """`axes` sorted and counted from the front, at least one."""

    axes: Shape
    keepdims: bool


def reduced_shape(shape: Shape, axes: Shape, keepdims: bool) -> Shape:
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def restore(x: Tensor, shape: Shape, axes: Shape) -> Tensor:
    """A reduced tensor with its reduced axes back as sizes of 1."""
    return reshape(x, reduced_shape(shape, axes, keepdims=True))


def reduce(op: Op[ReduceAttrs], x: TensorLike, axis: Axis, keepdims: bool) -> Tensor:
    """Applies a reduction; a tensor of rank 0 has nothing to reduce and comes back as it is."""
    tensor = as_numbers(x, op.name)
    axes = as_axes(axis, tensor.ndim, op.name)
    if axis is not None and not axes:
        raise ShapeError(op.name, "an empty list of axes is ambiguous", "give None for all axes")
    return apply(op, tensor, attrs=ReduceAttrs(axes, bool(keepdims))) if axes else tensor


@public
def sum(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum over the axes (all by default). Bools are counted as i32."""
    return reduce(SUM, x, axis, keepdims)


@public
def mean(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean over the axes (all by default); floats only."""
    return reduce(MEAN, x, axis, keepdims)


@public
def max(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element over the axes; equal largest elements share the gradient evenly."""
    return reduce(MAX, x, axis, keepdims)


@public
def min(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest element over the axes; equal smallest elements share the gradient evenly."""
    return reduce(MIN, x, axis, keepdims)


@public
def logsumexp(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) without overflow; -inf over elements that are all -inf, with a zero gradient."""
    tensor = as_numbers(x, "logsumexp")
    require_float("logsumexp", tensor.type)
    return reduce(LOGSUMEXP, tensor, axis, keepdims)


def reduction(
    name: str, summary: str, formula: Callable[..., np.ndarray], vjp: Any, jvp: Any, *,
    floats_only: bool = False, needs_elements: bool = False, lower: Any = None, distinct: bool = False,
) -> Op[ReduceAttrs]:
    def infer(types: tuple[TensorType, ...], attrs: ReduceAttrs) -> tuple[TensorType, ...]:
        (x,) = types
        (require_float if floats_only else require_numbers)(name, x)
        if not attrs.axes or attrs.axes != as_axes(attrs.axes, x.rank, name):
            raise ShapeError(name, f"expected sorted axes of a tensor of rank {x.rank}, got {attrs.axes}")
        if needs_elements and any(x.shape[axis] == 0 for axis in attrs.axes):
            raise ShapeError(name, f"expected elements along axes {attrs.axes}, got {x}")
        return (x.with_shape(reduced_shape(x.shape, attrs.axes, attrs.keepdims)),)

    def evaluate(arrays: tuple[np.ndarray, ...], attrs: ReduceAttrs) -> np.ndarray:
        return formula(arrays[0], axis=attrs.axes, keepdims=attrs.keepdims)

    domain = Domain(distinct=distinct)
    choices = [(axes, keep) for axes in ((0,), (1, 2), (0, 1, 2)) for keep in (True, False)]
    cases = [Case(((2, 3, 4),), ReduceAttrs(axes, keep)) for axes, keep in choices]
    cases += [Case(((5,),), ReduceAttrs((0,), False)), Case(((3, 4),), ReduceAttrs((1,), False), (f16,))]
    if not floats_only:
        cases.append(Case(((3, 4),), ReduceAttrs((0,), False), (i32,)))
    return Op(
        name=name, summary=summary, attrs=ReduceAttrs, infer=infer, eval=evaluate, vjp=vjp, jvp=jvp,
        lower=lower or Mil(f"reduce_{name}", ("x",), lambda a, ins, outs: {"axes": a.axes, "keep_dims": a.keepdims}),
        kind=OpKind.REDUCTION, domain=domain, cases=tuple(cases), batch=Batch.SHIFT,
    )


def _spread(g: Tensor, x: Tensor, attrs: ReduceAttrs) -> Tensor:
    return broadcast_to(restore(g, x.shape, attrs.axes), x.shape)


def _count(x: Tensor, attrs: ReduceAttrs) -> int:
    return int(np.prod([x.shape[axis] for axis in attrs.axes]))


def _sum_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: ReduceAttrs) -> tuple[Tensor]:
    return (_spread(g, ins[0], attrs),)


def _mean_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: ReduceAttrs) -> tuple[Tensor]:
    return (_spread(g / float(_count(ins[0], attrs)), ins[0], attrs),)


def _extreme_weights(out: Tensor, x: Tensor, attrs: ReduceAttrs) -> Tensor:
    """1 / (number of winners) at each winner, else 0."""
    winners = cast(equal(x, restore(out, x.shape, attrs.axes)), x.dtype)
    return winners / sum(winners, attrs.axes, keepdims=True)


def _extreme_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: ReduceAttrs) -> tuple[Tensor]:
    (x,) = ins
    return (restore(g, x.shape, attrs.axes) * _extreme_weights(out, x, attrs),)


def _extreme_jvp(ts: tuple[Tensor], out: Tensor, ins: tuple[Tensor, ...], attrs: ReduceAttrs) -> Tensor:
    return sum(ts[0] * _extreme_weights(out, ins[0], attrs), attrs.axes, attrs.keepdims)


def _logsumexp_eval(x: np.ndarray, axis: Shape, keepdims: bool) -> np.ndarray:
    top = np.max(x, axis=axis, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0).astype(x.dtype)
    with np.errstate(divide="ignore"):
        out = np.log(np.sum(np.exp(x - safe), axis=axis, keepdims=True)) + safe
    return out if keepdims else np.squeeze(out, axis=axis)


def _is_infinite(x: Tensor) -> Tensor:
    return equal(abs(x), float("inf"))


@in_f32
def _logsumexp_lower(ins: tuple[Tensor, ...], attrs: ReduceAttrs) -> Tensor:
    (x,) = ins
    top = max(x, attrs.axes, keepdims=True)
    safe = where(_is_infinite(top), 0.0, top)
    out = log(sum(exp(x - safe), attrs.axes, keepdims=True)) + safe
    return out if attrs.keepdims else reshape(out, reduced_shape(x.shape, attrs.axes, keepdims=False))


def _softmax_weights(out: Tensor, x: Tensor, attrs: ReduceAttrs) -> Tensor:
    total = restore(out, x.shape, attrs.axes)
    empty = equal(total, float("-inf"))
    return where(empty, 0.0, exp(x - where(empty, 0.0, total)))


def _logsumexp_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: ReduceAttrs) -> tuple[Tensor]:
    (x,) = ins
    return (restore(g, x.shape, attrs.axes) * _softmax_weights(out, x, attrs),)


def _logsumexp_jvp(ts: tuple[Tensor], out: Tensor, ins: tuple[Tensor, ...], attrs: ReduceAttrs) -> Tensor:
    return sum(ts[0] * _softmax_weights(out, ins[0], attrs), attrs.axes, attrs.keepdims)


SUM = reduction("sum", "sum over axes", np.sum, _sum_vjp, Forward.LINEAR)
MEAN = reduction("mean", "mean over axes", np.mean, _mean_vjp, Forward.LINEAR, floats_only=True, needs_elements=True)
MAX = reduction(
    "max", "largest element over axes", np.max, _extreme_vjp, _extreme_jvp, needs_elements=True, distinct=True
)
MIN = reduction(
    "min", "smallest element over axes", np.min, _extreme_vjp, _extreme_jvp, needs_elements=True, distinct=True
)
LOGSUMEXP = reduction(
    "logsumexp", "log of the sum of exponentials over axes", _logsumexp_eval, _logsumexp_vjp, _logsumexp_jvp,
    floats_only=True, needs_elements=True, lower=Decompose(_logsumexp_lower),
)
