"""The rules by which operations of MIL become ops: one table, filled by the families. Knows no operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.op import Mil, NoAttrs, Op, registry
from ..ir.tensor import Tensor

if TYPE_CHECKING:
    from .call import Call

# A rule gives the operation's results; an array is one that is known before a run.
Results = Tensor | np.ndarray | Sequence[Tensor | np.ndarray]
Rule = Callable[["Call"], Results]

_RULES: dict[str, Rule] = {}


def rule(*operations: str) -> Callable[[Rule], Rule]:
    """Makes a function the rule of the operations of these names."""

    def add(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(operations, function))
        return function

    return add


@cache
def rules() -> Mapping[str, Rule]:
    """Every rule: the families', and those that the records of ops give by themselves."""
    from . import families  # noqa: F401  (fills the table)

    return {**_declared(), **_RULES}


def _declared() -> dict[str, Rule]:
    """For ops whose record says everything: the same operands under other names, and no parameters."""
    table: dict[str, Rule] = {}
    for op in registry().values():
        mil = op.lower
        if not isinstance(mil, Mil) or op.attrs is not NoAttrs or mil.params is not None or mil.variadic:
            continue
        if mil.op not in table or op.name == mil.op:
            table[mil.op] = _application(op, mil.inputs)
    return table


def _application(op: Op[Any], inputs: tuple[str, ...]) -> Rule:
    def apply(call: Call) -> Results:
        return call.graph.apply(op, tuple([call.tensor(name) for name in inputs]), NoAttrs())

    return apply
