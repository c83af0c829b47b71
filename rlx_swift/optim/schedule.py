"""Learning rates as functions of the number of applied updates."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import ConfigError
from .base import NONNEGATIVE, require_ranges

Schedule = Callable[[int], float]


@dataclass(frozen=True)
class Constant:
    """The same rate at every update."""

    lr: float

    def __post_init__(self) -> None:
        require_ranges(self, lr=NONNEGATIVE)

    def __call__(self, n: int) -> float:
        return self.lr


def rate(schedule: Schedule, n: int) -> float:
    """The rate for update `n`; raises ConfigError unless it is a finite number of at least 0."""
    lr = schedule(n)
    if lr not in NONNEGATIVE:
        raise ConfigError("lr", f"expected {NONNEGATIVE.text} for update {n}, got {lr!r}")
    return float(lr)


def as_schedule(lr: float | Schedule) -> Schedule:
    """A number as a constant schedule; a callable as it is."""
    if callable(lr):
        return lr
    if isinstance(lr, numbers.Real) and not isinstance(lr, bool):
        return Constant(float(lr))
    raise ConfigError("lr", f"expected a number or a function of the update's number, got {lr!r}")
