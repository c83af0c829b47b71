"""Factories for ops that differ only in a formula: elementwise with one or two operands, and comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from ..dtypes import bool_, f16, f32, i32
from ..ir.op import Attrs, Case, Decompose, Domain, Mil, NoAttrs, NotDifferentiable, Op, OpKind
from ..ir.tensor import FUNCTIONS, Tensor
from ..ir.types import TensorType, broadcast
from ._build import require_bool, require_float, require_integers, require_numbers, same_dtype

ANYWHERE = Domain()
Require = Callable[..., None]
Params = Callable[[Any, tuple[TensorType, ...], tuple[TensorType, ...]], Mapping[str, object]]


def fixed(**params: object) -> Params:
    """MIL parameters that depend on nothing."""
    return lambda attrs, ins, outs: params


def times(g: Tensor, factor: Tensor | float) -> Tensor:
    """g * factor, written without a node where the factor is 1 or -1."""
    if isinstance(factor, Tensor):
        return FUNCTIONS["mul"](g, factor)
    if factor == 1.0:
        return g
    return FUNCTIONS["neg"](g) if factor == -1.0 else FUNCTIONS["mul"](g, factor)


Slope = Callable[[Tensor, Tensor], Tensor | float]
Lower = str | Mil | Decompose | None


def unary(
    name: str,
    summary: str,
    formula: Callable[[np.ndarray], np.ndarray],
    slope: Slope | NotDifferentiable,
    *,
    lower: Lower = None,
    domain: Domain = ANYWHERE,
    require: Require = require_float,
) -> Op[NoAttrs]:
    """An elementwise op of one operand; `slope(x, out)` is d out / d x. `require` refuses dtypes it does not take."""
    rule = slope if isinstance(slope, NotDifferentiable) else _without_attrs(slope)
    return unary_with(
        name, summary, lambda x, attrs: formula(x), rule, (NoAttrs(),), lower=lower, domain=domain, require=require
    )


def _without_attrs(slope: Slope) -> Callable[[Tensor, Tensor, Any], Tensor | float]:
    return lambda x, out, attrs: slope(x, out)


A = TypeVar("A", bound=Attrs)


def unary_with(
    name: str,
    summary: str,
    formula: Callable[[np.ndarray, A], np.ndarray],
    slope: Callable[[Tensor, Tensor, A], Tensor | float] | NotDifferentiable,
    samples: tuple[A, ...],
    *,
    lower: Lower = None,
    domain: Domain = ANYWHERE,
    require: Require = require_float,
) -> Op[A]:
    """As `unary`, for an op with attributes, of which `samples` are examples."""

    def infer(types: tuple[TensorType, ...], attrs: A) -> tuple[TensorType, ...]:
        require(name, *types)
        return types

    if isinstance(slope, NotDifferentiable):
        vjp: Any = slope
        jvp: Any = slope
    else:
        rule = slope

        def vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: A) -> tuple[Tensor]:
            return (times(g, rule(ins[0], out, attrs)),)

        def jvp(ts: tuple[Tensor], out: Tensor, ins: tuple[Tensor, ...], attrs: A) -> Tensor:
            return times(ts[0], rule(ins[0], out, attrs))

    shapes: tuple[tuple[int, ...], ...] = ((), (2, 3), (2, 3, 4))
    dtype = bool_ if require is require_bool else f32
    cases = [Case((shape,), attrs, (dtype,)) for shape in shapes for attrs in samples]
    if dtype is f32:
        cases += [Case(((3, 2),), attrs, (f16,)) for attrs in samples]
    if require is require_numbers:
        cases += [Case(((2, 3),), attrs, (i32,)) for attrs in samples]
    return Op(
        name=name, summary=summary, attrs=type(samples[0]), infer=infer,
        eval=lambda arrays, attrs: formula(arrays[0], attrs), vjp=vjp, jvp=jvp,
        lower=lower if isinstance(lower, (Mil, Decompose)) else Mil(lower or name, ("x",)), kind=OpKind.ELEMENTWISE,
        domain=domain, cases=tuple(cases),
    )


Partial = Tensor | float | None


def binary(
    name: str,
    summary: str,
    formula: Callable[[np.ndarray, np.ndarray], np.ndarray],
    partials: Callable[[Tensor, Tensor, Tensor], tuple[Partial, Partial]] | NotDifferentiable,
    *,
    lower: str | None = None,
    domains: tuple[Domain, Domain] = (ANYWHERE, ANYWHERE),
    require: Require = require_numbers,
) -> Op[NoAttrs]:
    """An elementwise op of two operands that broadcast; `partials(x, y, out)` are its partial derivatives.

    `require` refuses the dtypes that it does not take.
    """

    def infer(types: tuple[TensorType, ...], attrs: NoAttrs) -> tuple[TensorType, ...]:
        require(name, *types)
        return (TensorType(broadcast(name, [t.shape for t in types]), same_dtype(name, *types)),)

    def evaluate(arrays: tuple[np.ndarray, ...], attrs: NoAttrs) -> np.ndarray:
        return formula(arrays[0], arrays[1])

    if isinstance(partials, NotDifferentiable):
        vjp: Any = partials
        jvp: Any = partials
    else:
        rule = partials

        def vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: NoAttrs) -> tuple[Tensor | None, ...]:
            x, y = ins
            return tuple(None if d is None else times(g, d) for d in rule(x, y, out))

        def jvp(ts: tuple[Tensor | None, ...], out: Tensor, ins: tuple[Tensor, ...], attrs: NoAttrs) -> Tensor:
            x, y = ins
            slopes = zip(ts, rule(x, y, out), strict=True)
            terms = [times(t, d) for t, d in slopes if t is not None and d is not None]
            return terms[0] if len(terms) == 1 else FUNCTIONS["add"](*terms)

    pairs = (((2, 3), (2, 3)), ((2, 3), (3,)), ((), (2, 3)), ((2, 1, 3), (4, 1)))
    cases: tuple[Case, ...] = ()
    if require is require_bool:
        cases += tuple(Case(pair, dtypes=(bool_, bool_)) for pair in pairs)
    elif require is not require_integers:
        cases += tuple(Case(pair, domains=domains) for pair in pairs)
        cases += (Case(pairs[1], dtypes=(f16, f16), domains=domains),)
    if require in (require_numbers, require_integers):
        cases += tuple(Case(pair, dtypes=(i32, i32), domains=(Domain(-5, 5), Domain(1, 5))) for pair in pairs[1:3])
    return Op(
        name=name, summary=summary, attrs=NoAttrs, infer=infer, eval=evaluate, vjp=vjp, jvp=jvp,
        lower=Mil(lower or name, ("x", "y")), kind=OpKind.ELEMENTWISE, domain=domains[0], cases=cases,
    )


def comparison(name: str, summary: str, formula: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Op[NoAttrs]:
    """An elementwise test of two operands that broadcast, with a result of bool."""

    def infer(types: tuple[TensorType, ...], attrs: NoAttrs) -> tuple[TensorType, ...]:
        require_numbers(name, *types)
        same_dtype(name, *types)
        return (TensorType(broadcast(name, [t.shape for t in types]), bool_),)

    reason = NotDifferentiable("its result is a truth value")
    pairs: tuple[tuple[tuple[int, ...], ...], ...] = (((2, 3), (2, 3)), ((2, 3), (3,)), ((), (2, 1)))
    return Op(
        name=name, summary=summary, attrs=NoAttrs, infer=infer,
        eval=lambda arrays, attrs: formula(arrays[0], arrays[1]),
        vjp=reason, jvp=reason, lower=Mil(name, ("x", "y")), kind=OpKind.ELEMENTWISE, domain=Domain(),
        cases=(*(Case(pair) for pair in pairs), Case(pairs[1], dtypes=(i32, i32)), Case(pairs[1], dtypes=(f16, f16))),
    )
