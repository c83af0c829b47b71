"""Choosing, converting and filling: where, cast, full."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from .. import dtypes
from ..dtypes import DType, bool_, f16, f32, i32
from ..errors import DTypeError, ShapeError
from ..ir.graph import Graph
from ..ir.op import Attrs, Batch, Case, Domain, Forward, Mil, NoAttrs, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import Shape, TensorType, as_shape, broadcast
from ._build import TensorLike, apply, as_tensors, graph_of, public, same_dtype

Rule = TypeVar("Rule", bound=Callable[..., Tensor])


# where


@public
def where(condition: TensorLike, x: TensorLike, y: TensorLike) -> Tensor:
    """x where the condition (a tensor of bool) holds, else y; the three broadcast.

    The side not chosen gets a zero gradient, also through elementwise functions of infinite slope before it.
    Through others, a sum say, 0 * inf is NaN: guard the operand of such a function as well.
    """
    from .shape import broadcast_to

    graph = graph_of("where", condition, x, y)
    test = graph.as_tensor(condition, bool_)
    like = next((v.dtype for v in (x, y) if isinstance(v, Tensor)), f32)
    a, b = graph.as_tensor(x, like), graph.as_tensor(y, like)
    shape = broadcast("where", (test.shape, a.shape, b.shape))
    return apply(WHERE, *(broadcast_to(v, shape) for v in (test, a, b)))


def _where_infer(types: tuple[TensorType, ...], attrs: NoAttrs) -> tuple[TensorType, ...]:
    condition, x, y = types
    if condition.dtype is not bool_:
        raise DTypeError("where", f"expected a condition of bool, got {condition}", "compare it with something")
    same_dtype("where", x, y)
    if not condition.shape == x.shape == y.shape:
        raise ShapeError("where", f"expected operands of one shape, got {condition}, {x} and {y}")
    return (x,)


def _where_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: NoAttrs) -> tuple[Tensor | None, ...]:
    zero = full_like(g, 0.0)
    return None, apply(WHERE, ins[0], g, zero), apply(WHERE, ins[0], zero, g)


def _where_jvp(ts: Sequence[Tensor | None], out: Tensor, ins: tuple[Tensor, ...], attrs: NoAttrs) -> Tensor:
    zero = full_like(out, 0.0)
    return apply(WHERE, ins[0], ts[1] if ts[1] is not None else zero, ts[2] if ts[2] is not None else zero)


_TEST = Domain(0, 1)
WHERE = Op(
    name="where", summary="x where the condition holds, else y", attrs=NoAttrs, infer=_where_infer,
    eval=lambda arrays, attrs: np.where(*arrays), vjp=_where_vjp, jvp=_where_jvp,
    lower=Mil("select", ("cond", "a", "b")), kind=OpKind.ELEMENTWISE, domain=Domain(), batch=Batch.SHIFT, selects=True,
    cases=tuple(
        Case((shape,) * 3, dtypes=(bool_, dtype, dtype), domains=(_TEST, Domain(), Domain()))
        for shape, dtype in (((2, 3), f32), ((), f32), ((4,), i32), ((2, 2), f16))
    ),
)


# cast


@dataclass(frozen=True)
class CastAttrs(Attrs):
    dtype: DType


@public
def cast(x: TensorLike, dtype: DType) -> Tensor:
    """x converted: floats to i32 towards zero (saturating, NaN to 0), anything to bool as x != 0."""
    (tensor,) = as_tensors("cast", x)
    if not isinstance(dtype, DType):
        raise DTypeError("cast", f"expected a dtype such as rlx.f32, got {dtype!r}")
    return tensor if tensor.dtype is dtype else apply(CAST, tensor, attrs=CastAttrs(dtype))


def _cast_eval(arrays: tuple[np.ndarray, ...], attrs: CastAttrs) -> np.ndarray:
    (x,) = arrays
    if attrs.dtype is i32 and x.dtype.kind == "f":
        limits = np.iinfo(np.int32)
        return np.clip(np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0), limits.min, limits.max).astype(np.int32)
    if attrs.dtype is bool_:
        return x != 0
    return x.astype(attrs.dtype.numpy) if x.dtype.kind != "f" else x  # the interpreter rounds floats


def _cast_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: CastAttrs) -> tuple[Tensor | None]:
    return (cast(g, ins[0].dtype) if ins[0].dtype.is_float else None,)


def _cast_jvp(ts: tuple[Tensor], out: Tensor, ins: tuple[Tensor, ...], attrs: CastAttrs) -> Tensor:
    return cast(ts[0], attrs.dtype)


CAST = Op(
    name="cast", summary="conversion to another dtype", attrs=CastAttrs,
    infer=lambda types, attrs: (types[0].with_dtype(attrs.dtype),), eval=_cast_eval, vjp=_cast_vjp, jvp=_cast_jvp,
    lower=Mil("cast", ("x",), lambda attrs, ins, outs: {"dtype": attrs.dtype}),
    kind=OpKind.DATA_MOVEMENT, domain=Domain(-3, 3), batch=Batch.ELEMENTWISE,
    cases=tuple(
        Case(((2, 3),), CastAttrs(to), (of,)) for of in dtypes.ALL for to in dtypes.ALL if of is not to
    ),
)


def in_f32(rule: Rule) -> Rule:
    """A rule of tensors that sums or squares, run in f32 where its operands are f16, and its result rounded."""

    def is_half(value: object) -> bool:
        if isinstance(value, tuple):
            return any(map(is_half, value))
        return isinstance(value, Tensor) and value.dtype is f16

    def widen(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple([widen(v) for v in value])
        return cast(value, f32) if is_half(value) else value

    @functools.wraps(rule)
    def run(*args: Any) -> Any:
        return cast(rule(*widen(args)), f16) if is_half(args) else rule(*args)

    return run  # type: ignore[return-value]


# full

Lower = Callable[[tuple[Tensor, ...], Any], Tensor]


@dataclass(frozen=True)
class FullAttrs(Attrs):
    shape: Shape
    value: float
    dtype: DType


@public
def full(graph: Graph, shape: Sequence[int] | int, value: float, dtype: DType = f32) -> Tensor:
    """A tensor of `graph` with one value everywhere."""
    sizes = as_shape(shape, "full")
    if not isinstance(dtype, DType):
        raise DTypeError("full", f"expected a dtype such as rlx.f32, got {dtype!r}")
    if not dtype.is_float and isinstance(value, float) and value.is_integer():
        value = bool(value) if dtype is bool_ and value in (0, 1) else int(value)
    host = dtypes.to_host(value, dtype, "full")
    if host.ndim:
        raise ShapeError("full", f"expected one value, got an array of shape {host.shape}")
    if not sizes or dtype is bool_:
        return graph.constant(np.full(sizes, host), dtype)
    return graph.apply(FULL, (), FullAttrs(sizes, float(value), dtype))[0]


def zeros_of_nothing(infer: Callable[..., tuple[TensorType, ...]]) -> Callable[[Lower], Lower]:
    """For a lowering whose MIL ops need elements: where an operand has none there is nothing to sum."""

    def decorate(lower: Lower) -> Lower:
        @functools.wraps(lower)
        def build(ins: tuple[Tensor, ...], attrs: Any) -> Tensor:
            if all(x.size for x in ins):
                return lower(ins, attrs)
            (result,) = infer(tuple([x.type for x in ins]), attrs)
            return full(ins[0].graph, result.shape, 0.0, result.dtype)

        return build

    return decorate


@public
def full_like(x: Tensor, value: float) -> Tensor:
    """One value everywhere, with the shape and dtype of x."""
    return full(x.graph, x.shape, value, x.dtype)


FULL = Op(
    name="full", summary="one value everywhere", attrs=FullAttrs,
    infer=lambda types, attrs: (TensorType(attrs.shape, attrs.dtype),),
    eval=lambda arrays, attrs: np.full(attrs.shape, attrs.value, attrs.dtype.numpy),
    vjp=lambda g, out, ins, attrs: (), jvp=Forward.LINEAR,
    lower=Mil(
        "fill", (),
        lambda attrs, ins, outs: {
            "shape": attrs.shape,
            "value": attrs.dtype.numpy.type(attrs.value),
        },
    ),
    kind=OpKind.DATA_MOVEMENT, domain=Domain(),
    cases=(
        Case((), FullAttrs((2, 3), 1.5, f32)), Case((), FullAttrs((4,), 2.0, i32)),
        Case((), FullAttrs((2,), 0.5, f16)),
    ),
)


