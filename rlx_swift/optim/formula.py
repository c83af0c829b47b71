"""An optimizer's per-update numbers as plain data, so that a program without Python can compute them.

`trace` calls `scalars` with numbers that write down what is done to them. A formula is a float, "step" or "lr", or a
tuple of an operator and formulas; a branch on a comparison is followed both ways. Knows no optimizer.
"""

from __future__ import annotations

import functools
import math
import operator
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, cast

from ..errors import ConfigError

if TYPE_CHECKING:
    from .base import Optimizer

Formula = float | str | tuple[Any, ...]

SMALLEST_PRODUCT = 1e-20  # 1 minus anything below it is 1
_FUNCTIONS = ("sqrt", "exp", "log", "cos", "sin", "tanh", "floor", "ceil", "fabs", "pow")
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<": operator.lt, "<=": operator.le, "==": operator.eq,
}
_DEEPEST, _MOST_PATHS = 10, 64
_STEPS = (*range(1, 33), 99, 100, 101, 999, 1000, 1001, 2500, 12345, 1000000)
_RATES = (0.0, 1e-2, 0.3)
_ONE_AT_A_TIME = threading.RLock()  # for the module math, which all threads share


class Traced:
    """A number that remembers how it came about."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, formula: Formula) -> None:
        self.formula = formula

    def __neg__(self) -> Traced:
        return Traced(("*", -1.0, self.formula))

    def __abs__(self) -> Traced:
        return Traced(("fabs", self.formula))

    def __lt__(self, other: Any) -> Asked:
        return Asked(("<", self.formula, _formula(other)))

    def __le__(self, other: Any) -> Asked:
        return Asked(("<=", self.formula, _formula(other)))

    def __gt__(self, other: Any) -> Asked:
        return Asked(("<", _formula(other), self.formula))

    def __ge__(self, other: Any) -> Asked:
        return Asked(("<=", _formula(other), self.formula))

    def __eq__(self, other: object) -> Asked:  # type: ignore[override]
        return Asked(("==", self.formula, _formula(other)))

    def __ne__(self, other: object) -> Asked:  # type: ignore[override]
        return Asked(("==", self.formula, _formula(other)), wanted=False)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __float__(self) -> NoReturn:
        raise TypeError("float(), int() and functions imported from math by name end the tracing of a number")

    __int__ = __index__ = __float__


def _operator(symbol: str) -> tuple[Callable[[Traced, Any], Traced], Callable[[Traced, Any], Traced]]:
    return (
        lambda self, other: Traced((symbol, self.formula, _formula(other))),
        lambda self, other: Traced((symbol, _formula(other), self.formula)),
    )


_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
}
for _name, _symbol in _OPERATORS.items():
    _plain, _reflected = _operator(_symbol)
    setattr(Traced, f"__{_name}__", _plain)
    setattr(Traced, f"__r{_name}__", _reflected)


class Asked:
    """A comparison of traced numbers; to be told its answer ends or forks the trace."""

    def __init__(self, condition: Formula, wanted: bool = True) -> None:
        self._condition, self._wanted = condition, wanted

    def __bool__(self) -> bool:
        return _Path.current.answer(self._condition) is self._wanted

    def __float__(self) -> float:
        return float(bool(self))

    def __int__(self) -> int:
        return int(bool(self))


class _Fork(BaseException):
    """A condition without an answer on this path; no rule's own `except` may catch it."""

    def __init__(self, condition: Formula) -> None:
        self.condition = condition


class _Path:
    """The answers given so far."""

    current: _Path

    def __init__(self, answers: Mapping[Formula, bool]) -> None:
        self._answers = answers

    def answer(self, condition: Formula) -> bool:
        if condition not in self._answers:
            raise _Fork(condition)
        return self._answers[condition]


def running_product(term: Callable[[Any], Any], count: int, known: list[float]) -> float:
    """term(1) ... term(count), 0.0 from where it is below 1e-20 on; `known` keeps what was computed so far."""
    if isinstance(count, Traced):
        return cast(float, Traced(("product", _formula(term(Traced("step"))), count.formula)))
    while len(known) < count and known[-1:] != [0.0]:
        product = (known[-1] if known else 1.0) * term(len(known) + 1)
        known.append(product if product >= SMALLEST_PRODUCT else 0.0)
    return known[min(count, len(known)) - 1]


def trace(optimizer: Optimizer) -> dict[str, Formula]:
    """The formula of each of an optimizer's numbers; raises ConfigError for what no formula can say, with the reason.

    The formulas were compared with `scalars` itself at a spread of updates and rates.
    """
    subject = f"{type(optimizer).__name__}.scalars"
    with _traced_math():
        found = _explored(optimizer, {}, subject, [_MOST_PATHS])
    for step in _STEPS:
        for lr in _RATES:
            try:
                expected = optimizer.scalars(step, lr)
            except (ArithmeticError, ValueError):
                continue
            got = {name: value(formula, step, lr) for name, formula in found.items()}
            if got != {name: float(number) for name, number in expected.items()}:
                problem = f"it depends on more than its arguments: at step {step}, lr {lr}, its formulas give {got}"
                raise ConfigError(subject, problem, "compute from `step`, `lr` and hyperparameters alone")
    return found


def depends_on_step(optimizer: Optimizer) -> bool:
    """Whether an optimizer's numbers may differ at two updates of one rate."""
    _Path.current = _Path({})
    try:
        numbers = optimizer.scalars(cast(int, Traced("step")), 1.0)
    except (_Fork, Exception):  # it does something with the step
        return True
    return any(isinstance(number, Traced) for number in numbers.values())


def _explored(
    optimizer: Optimizer, answers: Mapping[Formula, bool], subject: str, paths_left: list[int]
) -> dict[str, Formula]:
    if len(answers) > _DEEPEST or not paths_left[0]:
        problem = "it asks more of `step` than a formula can follow, as a loop up to it does"
        raise ConfigError(subject, problem, "write it in closed form")
    paths_left[0] -= 1
    _Path.current = _Path(answers)
    try:
        numbers = optimizer.scalars(cast(int, Traced("step")), cast(float, Traced("lr")))
        return {name: _formula(number) for name, number in numbers.items()}
    except _Fork as fork:
        condition = fork.condition
    except Exception as error:
        hint = "use operators, comparisons and functions as math.sqrt on `step` and `lr`"
        raise ConfigError(subject, f"it cannot be written as a formula: {error}", hint) from error
    yes, no = (_explored(optimizer, {**answers, condition: it}, subject, paths_left) for it in (True, False))
    if yes.keys() != no.keys():
        raise ConfigError(subject, f"it gives {sorted(yes)} or {sorted(no)}", "give the same names at every update")
    return {name: yes[name] if yes[name] == no[name] else ("if", condition, yes[name], no[name]) for name in yes}


def value(formula: Formula, step: float, lr: float) -> float:
    """What a formula gives, in float64, as Python computes it."""
    if isinstance(formula, str):
        return float(step if formula == "step" else lr)
    if not isinstance(formula, tuple):
        return formula
    kind, *parts = formula
    if kind == "if":
        return value(parts[1] if value(parts[0], step, lr) else parts[2], step, lr)
    if kind == "product":
        return running_product(lambda i: value(parts[0], i, lr), int(value(parts[1], step, lr)), [])
    operands = [value(part, step, lr) for part in parts]
    return float(_BINARY[kind](*operands) if kind in _BINARY else getattr(math, kind)(*operands))


def _formula(number: Any) -> Formula:
    if isinstance(number, Traced):
        return number.formula
    if isinstance(number, Asked):
        number = bool(number)
    exact = float(number)
    if exact != number and exact == exact:
        raise TypeError(f"{number!r} is no float64")
    return exact


@contextmanager
def _traced_math() -> Iterator[None]:
    """Functions of the module math that take traced numbers too; for others, of any thread, they are as they were."""
    with _ONE_AT_A_TIME:
        yield from _lifted_math()


def _lifted_math() -> Iterator[None]:
    kept = {name: getattr(math, name) for name in _FUNCTIONS}

    def lifted(name: str, *operands: Any) -> Any:
        if not any(isinstance(operand, Traced) for operand in operands):
            return kept[name](*operands)
        symbol = "**" if name == "pow" else name
        return Traced((symbol, *map(_formula, operands)))

    try:
        for name in _FUNCTIONS:
            setattr(math, name, functools.partial(lifted, name))
        yield
    finally:
        for name, function in kept.items():
            setattr(math, name, function)
