"""A user's own derivative for a function that is made of ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import f32, of_numpy
from ..errors import GraphError
from ..interp import run
from ..ir.graph import Graph
from ..ir.op import Attrs, Case, Decompose, Domain, Forward, NoAttrs, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import TensorType

Rule = Callable[..., Sequence[Tensor | None]]


class CustomVjp:
    """A function of tensors with a rule of its own for the backward pass.

        @rlx.custom_vjp
        def cautious(x):
            return ops.exp(x)

        @cautious.defvjp
        def _(g, out, x):
            return (ops.clip(g * out, -1.0, 1.0),)

    The rule gives a cotangent (or None) for each argument, from that of the result, the result and the
    arguments; with several results the first two are tuples. It is written with ops, so that derivatives of
    any order and forward mode follow. All tensors that the function reads are its arguments.
    """

    def __init__(self, function: Callable[..., Tensor | tuple[Tensor, ...]]) -> None:
        self.function = function
        self.name = f"custom:{function.__module__}.{function.__qualname__}"
        self.__doc__ = function.__doc__
        self._rule: Rule | None = None
        self._traced: dict[tuple[TensorType, ...], Graph] = {}
        self._op: Op[NoAttrs] | None = None

    def defvjp(self, rule: Rule) -> Rule:
        """Gives the function its rule."""
        self._rule, self._op = rule, None
        return rule

    def __call__(self, *args: Tensor) -> Tensor | tuple[Tensor, ...]:
        if self._rule is None:
            raise GraphError(self.name, "it has no rule", "decorate one with .defvjp")
        if not args or not all(isinstance(x, Tensor) for x in args):
            given = ", ".join(type(x).__name__ for x in args) or "nothing"
            raise GraphError(self.name, f"expected tensors, got {given}")
        if self._op is None or self._op.arity != len(args):
            self._op = self._record(tuple([x.type for x in args]))
        results = args[0].graph.apply(self._op, args, NoAttrs())
        return results[0] if len(results) == 1 else results

    def _trace(self, types: tuple[TensorType, ...]) -> Graph:
        """The function on its own, for operands of those types."""
        if types not in self._traced:
            graph = Graph(self.name)
            results = self.function(*[graph.input(f"x{i}", t.shape, t.dtype) for i, t in enumerate(types)])
            results = results if isinstance(results, tuple) else (results,)
            graph.set_outputs({f"y{i}": y for i, y in enumerate(results)})
            self._traced[types] = graph
        return self._traced[types]

    def _infer(self, types: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
        return tuple([t.type for t in self._trace(types).outputs.values()])

    def _eval(self, arrays: tuple[np.ndarray, ...], attrs: Attrs) -> tuple[np.ndarray, ...]:
        wide = next((a.dtype for a in arrays if a.dtype == np.float64), None)
        dtypes = [f32 if a.dtype.kind == "f" else of_numpy(a.dtype, self.name) for a in arrays]
        types = tuple([TensorType(a.shape, dtype) for a, dtype in zip(arrays, dtypes, strict=True)])
        return tuple(run(self._trace(types), {f"x{i}": a for i, a in enumerate(arrays)}, wide)[0].values())

    def _vjp(self, g: Any, out: Any, ins: tuple[Tensor, ...], attrs: Attrs) -> Sequence[Tensor | None]:
        assert self._rule is not None
        return self._rule(g, out, *ins)

    def _record(self, types: tuple[TensorType, ...]) -> Op[NoAttrs]:
        case = Case(tuple([t.shape for t in types]), NoAttrs(), tuple([t.dtype for t in types]))
        return Op(
            name=self.name, summary=(self.__doc__ or "a function with its own rule").splitlines()[0], attrs=NoAttrs,
            infer=self._infer, eval=self._eval, vjp=self._vjp, jvp=Forward.TRANSPOSE,
            lower=Decompose(lambda ins, attrs: self.function(*ins)), kind=OpKind.REDUCTION, domain=Domain(),
            cases=(case,), listed=False, body=self._trace,
        )


def custom_vjp(function: Callable[..., Tensor | tuple[Tensor, ...]]) -> CustomVjp:
    """Makes a function of tensors one whose `defvjp` gives it a derivative rule; see `CustomVjp`."""
    return CustomVjp(function)
