"""Learning rates as functions of the number of applied updates, from 0."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError
from .base import NONNEGATIVE, POSITIVE, UNIT, Range, require, require_counts, require_ranges
from .formula import Traced

Schedule = Callable[[int], float]
_FACTOR = Range("a number in (0, 1]", high=1.0 + 1e-12, low_too=False)


@dataclass(frozen=True)
class Constant:
    """The same rate at every update."""

    lr: float

    def __post_init__(self) -> None:
        require_ranges(self, lr=NONNEGATIVE)

    def __call__(self, n: int) -> float:
        return self.lr


@dataclass(frozen=True)
class Step:
    """lr factor^(n // every)."""

    lr: float
    every: int
    factor: float = 0.1

    def __post_init__(self) -> None:
        require_ranges(self, lr=NONNEGATIVE, factor=_FACTOR)
        require_counts(self, every=1)

    def __call__(self, n: int) -> float:
        return self.lr * self.factor ** (n // self.every)


@dataclass(frozen=True)
class Exponential:
    """lr factor^n."""

    lr: float
    factor: float

    def __post_init__(self) -> None:
        require_ranges(self, lr=NONNEGATIVE, factor=_FACTOR)

    def __call__(self, n: int) -> float:
        return self.lr * self.factor**n


@dataclass(frozen=True)
class Cosine:
    """A linear rise over `warmup` updates to `lr`, then half a cosine down to `final` at update `total`
    (Loshchilov & Hutter 2017, arXiv:1608.03983, eq. 5), and `final` from there on.

    The first update has lr / warmup, the last of the rise has lr.
    """

    lr: float
    total: int
    warmup: int = 0
    final: float = 0.0

    def __post_init__(self) -> None:
        require_ranges(self, lr=NONNEGATIVE, final=NONNEGATIVE)
        require_counts(self, warmup=0)
        require_counts(self, total=self.warmup + 1)

    def __call__(self, n: int) -> float:
        if n < self.warmup:
            return self.lr * (n + 1) / self.warmup
        return _cosine(self.lr, self.final, (n - self.warmup) / (self.total - self.warmup))


@dataclass(frozen=True)
class OneCycle:
    """A rise from lr / start_divisor to `lr` over the first `rise` of `total` updates, then a fall to
    lr / start_divisor / final_divisor, both along half a cosine (Smith & Topin 2018, arXiv:1708.07120, in PyTorch's
    form with its defaults). The last rate holds from there on.
    """

    lr: float
    total: int
    rise: float = 0.3
    start_divisor: float = 25.0
    final_divisor: float = 1e4

    def __post_init__(self) -> None:
        require_ranges(self, lr=NONNEGATIVE, rise=UNIT, start_divisor=POSITIVE, final_divisor=POSITIVE)
        require_counts(self, total=2)

    def __call__(self, n: int) -> float:
        start, top, end = self.lr / self.start_divisor, self.rise * self.total - 1, self.total - 1
        if n <= top:
            return _cosine(start, self.lr, n / top) if top > 0 else self.lr
        return _cosine(self.lr, start / self.final_divisor, (n - top) / (end - top))


def _cosine(start: float, end: float, part: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * min(max(part, 0.0), 1.0))) / 2


@dataclass
class Plateau:
    """Multiplies the rate by `factor` when the watched number has not become smaller for more than `patience` epochs,
    down to `lowest`.

    `fit` shows it the validation loss of each epoch, or the training loss without validation. Smaller means below
    best (1 - threshold). A session works on a copy.

    Attributes:
        best, waited: what it has seen.
    """

    lr: float
    factor: float = 0.1
    patience: int = 10
    threshold: float = 1e-4
    lowest: float = 0.0
    best: float | None = None
    waited: int = 0

    def __post_init__(self) -> None:
        require_ranges(self, lr=NONNEGATIVE, factor=_FACTOR, threshold=UNIT, lowest=NONNEGATIVE)
        require_counts(self, patience=0, waited=0)
        if self.best is not None:
            require("Plateau best", math.isfinite(self.best), "a finite number or None", self.best)

    def __call__(self, n: int) -> float:
        return self.lr

    def observe(self, value: float) -> None:
        """One more epoch with the given number; NaN and infinities are not smaller than anything."""
        if math.isfinite(value) and (self.best is None or value < self.best * (1 - self.threshold)):
            self.best, self.waited = float(value), 0
            return
        self.waited += 1
        if self.waited > self.patience:
            self.lr, self.waited = min(self.lr, max(self.lr * self.factor, self.lowest)), 0


_NAMED = {kind.__name__: kind for kind in (Constant, Step, Exponential, Cosine, OneCycle, Plateau)}


def rate(schedule: Schedule, n: int) -> float:
    """The rate for update `n`; raises ConfigError unless it is a finite number of at least 0."""
    lr = schedule(n)
    if isinstance(lr, Traced) or (type(lr) is float and 0.0 <= lr < math.inf):
        return lr
    if lr not in NONNEGATIVE:
        raise ConfigError("lr", f"expected {NONNEGATIVE.text} for update {n}, got {lr!r}")
    return float(lr)


def as_schedule(lr: float | Schedule) -> Schedule:
    """A number as a constant schedule; one that learns as a copy; any other callable as it is."""
    if isinstance(lr, Plateau):
        return dataclasses.replace(lr)
    if callable(lr) and not isinstance(lr, type):
        return lr
    if isinstance(lr, numbers.Real) and not isinstance(lr, bool):
        return Constant(float(lr))
    raise ConfigError("lr", f"expected a number or a function of the update's number, got {lr!r}")


def to_data(schedule: Schedule) -> dict[str, Any]:
    """A schedule of this module as plain data; any other callable by its name alone."""
    kind = type(schedule).__name__
    if _NAMED.get(kind) is type(schedule):
        return {"name": kind, **dataclasses.asdict(schedule)}
    return {"callable": getattr(schedule, "__qualname__", kind)}


def from_data(data: dict[str, Any]) -> Schedule:
    """The schedule that `to_data` described; raises ConfigError when it must be given anew."""
    if data.get("name") not in _NAMED:
        what = data.get("callable", data.get("name"))
        raise ConfigError(f"schedule {what!r}", "it is a function of yours and not in the file", "give schedule=")
    return _NAMED[data["name"]](**{key: value for key, value in data.items() if key != "name"})
