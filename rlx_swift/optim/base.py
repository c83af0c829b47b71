"""What an optimizer is: a rule written once that runs on the host and inside the device program."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..errors import ConfigError
from .arrays import Array, Namespace
from .contract import Contract

if TYPE_CHECKING:
    from .requirement import Requirement

State = dict[str, Array]


@dataclass(frozen=True)
class ParamInfo:
    """What is known of a param when optimizers are chosen.

    Attributes:
        gathered: a gather reads it, so that it is an embedding table.
    """

    name: str
    shape: tuple[int, ...]
    gathered: bool = False

    @property
    def ndim(self) -> int:
        return len(self.shape)


@dataclass(frozen=True)
class Optimizer:
    """Base of all optimizers, also of a user's own: a frozen dataclass of hyperparameters and three methods.

    The rule must be pure: no Python branch on values of arrays, no state outside `state`.

    Attributes:
        contract: what tests may expect of it.
        host_only: why it cannot run inside a device program; empty where it can.
    """

    contract: ClassVar[Contract] = Contract()
    host_only: ClassVar[str] = ""

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

    @property
    def requires(self) -> Requirement | None:
        """What `update` needs beyond the gradient, as keyword arguments; see `rlx_swift.optim.requirement`."""
        return None

    def split(self, params: Sequence[ParamInfo]) -> list[tuple[Optimizer, float, list[str]]]:
        """Who updates which of the params: optimizers with factors of their learning rate."""
        return [(self, 1.0, [param.name for param in params])]

    def start(self, param: np.ndarray) -> np.ndarray:
        """The value that training of a param starts from, given its initial value."""
        return param

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
    """Raises ConfigError for the first attribute of `settings` outside its range; NumPy's numbers become Python's."""
    for field, allowed in ranges.items():
        value = getattr(settings, field)
        require(f"{type(settings).__name__} {field}", value in allowed, allowed.text, value)
        object.__setattr__(settings, field, value if isinstance(value, int) else float(value))


def require_counts(settings: object, **least: int) -> None:
    """As `require_ranges`, for integers of at least so much."""
    for field, low in least.items():
        value = getattr(settings, field)
        good = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= low
        require(f"{type(settings).__name__} {field}", bool(good), f"an integer of at least {low}", value)
        object.__setattr__(settings, field, int(value))


def require(subject: str, condition: bool, expected: str, got: object) -> None:
    """Raises ConfigError when a setting is not what it must be."""
    if not condition:
        raise ConfigError(subject, f"expected {expected}, got {got!r}")
