"""What an optimizer is: a rule written once that runs on the host and inside the device program."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from ..errors import ConfigError
from .arrays import Array, Namespace

State = dict[str, Array]


@dataclass(frozen=True)
class Optimizer:
    """Base of all optimizers, also of a user's own: a frozen dataclass of hyperparameters and three methods.

    The rule must be pure: no Python branch on values of arrays, no state outside `state`.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _REGISTRY[f"{cls.__module__}.{cls.__qualname__}"] = cls

    def scalars(self, step: int, lr: float) -> dict[str, float]:
        """Numbers that change from update to update, computed in Python floats and fed as f32.

        `step` counts applied updates from 1. They arrive in `update` as keyword arguments.
        """
        return {"lr": lr}

    def init(self, xp: Namespace, param: Array) -> State:
        """The state of one param before its first update: f32 arrays by slot name."""
        return {}

    def update(self, xp: Namespace, grad: Array, state: State, param: Array, **scalars: Any) -> tuple[Array, State]:
        """The param and its state after one update; shapes and slots stay as they are."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """The class name and hyperparameters as plain data."""
        return {"name": type(self).__name__, **dataclasses.asdict(self)}


_REGISTRY: dict[str, type[Optimizer]] = {}


def registry() -> Mapping[str, type[Optimizer]]:
    """All optimizer classes that have been defined, by module and name."""
    return _REGISTRY


@dataclass(frozen=True)
class Range:
    """Where a hyperparameter may lie. Infinities and NaN are in no range."""

    text: str
    low: float = 0.0
    high: float = math.inf
    low_too: bool = True

    def __contains__(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, Real):
            return False
        number = float(value)
        return (number >= self.low if self.low_too else number > self.low) and number < self.high


UNIT = Range("a number in [0, 1)", high=1.0)
NONNEGATIVE = Range("a finite number of at least 0")
POSITIVE = Range("a finite number above 0", low_too=False)


def require_ranges(settings: object, **ranges: Range) -> None:
    """Raises ConfigError for the first attribute of `settings` outside its range."""
    for field, allowed in ranges.items():
        require(f"{type(settings).__name__} {field}", getattr(settings, field) in allowed, allowed.text,
                getattr(settings, field))


def require(subject: str, condition: bool, expected: str, got: object) -> None:
    """Raises ConfigError when a setting is not what it must be."""
    if not condition:
        raise ConfigError(subject, f"expected {expected}, got {got!r}")
