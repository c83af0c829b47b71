"""How all trained params are updated together: clip, then each param's optimizer. The same on arrays and in graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ConfigError
from ..optim import Clip, Optimizer
from ..optim.arrays import NUMPY, Array, Namespace
from ..optim.base import State

Scalars = Sequence[Mapping[str, Any]]  # the optimizer's numbers, for each group


@dataclass(frozen=True)
class Group:
    """Params with one optimizer."""

    optimizer: Optimizer
    params: tuple[str, ...]


class Rule:
    """The update of every trained param.

    Attributes:
        groups: the optimizers with their params.
        shapes: of the trained params by name, in the graph's order.
        slots: shape of each state slot, by param and slot.
    """

    def __init__(self, groups: Sequence[Group], clip: Clip | None, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.groups, self.shapes, self._clip = tuple(groups), dict(shapes), clip
        self.slots: dict[str, dict[str, tuple[int, ...]]] = {}
        self._start = {}
        for group in self.groups:
            for name in group.params:
                state = group.optimizer.init(NUMPY, np.zeros(self.shapes[name], np.float32))
                self._start[name] = {slot: np.array(value, np.float32) for slot, value in state.items()}
        self.slots = {n: {slot: a.shape for slot, a in self._start[n].items()} for n in self.shapes}

    def initial_state(self, param: str) -> dict[str, np.ndarray]:
        """The slots of one param before its first update."""
        return self._start[param]

    def scalars(self, step: int, lr: float) -> list[dict[str, float]]:
        """Each group's numbers for update number `step`, from 1."""
        return [group.optimizer.scalars(step, lr) for group in self.groups]

    def apply(
        self, xp: Namespace, gradients: Mapping[str, Array], params: Mapping[str, Array], states: Mapping[str, State],
        scalars: Scalars, settled: Callable[[str, Any, Array], Array],
    ) -> tuple[dict[str, Array], dict[str, State]]:
        """The new params and states. `settled(name, new, old)` makes sure that a value is of the old one's type."""
        clipped = self._clip.apply(xp, gradients) if self._clip else gradients
        values: dict[str, Array] = {}
        news: dict[str, State] = {}
        for group, numbers in zip(self.groups, scalars, strict=True):
            for name in group.params:
                value, new = group.optimizer.update(xp, clipped[name], dict(states[name]), params[name], **numbers)
                if new.keys() != states[name].keys():
                    expected = f"expected the slots {sorted(states[name])}, got {sorted(new)}"
                    raise ConfigError(f"{type(group.optimizer).__name__} update of {name!r}", expected)
                values[name] = settled(name, value, params[name])
                news[name] = {slot: settled(f"{name}/{slot}", new[slot], old) for slot, old in states[name].items()}
        return values, news
