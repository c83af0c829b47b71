"""Learning rates as functions of the number of applied updates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import ConfigError
from .base import require

Schedule = Callable[[int], float]


@dataclass(frozen=True)
class Constant:
    """The same rate at every update."""

    lr: float

    def __post_init__(self) -> None:
        require("lr", math.isfinite(self.lr) and self.lr >= 0, "a finite number of at least 0", self.lr)

    def __call__(self, n: int) -> float:
        return self.lr


def as_schedule(lr: float | Schedule) -> Schedule:
    """A number as a constant schedule; a callable as it is."""
    if callable(lr):
        return lr
    if isinstance(lr, (int, float)) and not isinstance(lr, bool):
        return Constant(float(lr))
    raise ConfigError("lr", f"expected a number or a function of the update's number, got {lr!r}")
