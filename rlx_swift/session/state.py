"""What an optimizer keeps for each trained param, and the gradients being accumulated, both on the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import NameNotFoundError
from .device import Store
from .names import accumulator_name, state_name
from .rule import Rule
from .weights import as_array

Arrays = dict[str, np.ndarray]


class OptimizerState:
    """The slots of every trained param."""

    def __init__(self, store: Store, rule: Rule) -> None:
        self._store, self._slots = store, rule.slots
        for name, slots in rule.slots.items():
            for slot in slots:
                store.put(state_name(name, slot), rule.initial_state(name)[slot])

    def get(self, param: str) -> Arrays:
        """Copies of one param's slots; raises NameNotFoundError."""
        return {slot: self._store.get(state_name(param, slot)) for slot in self._known(param)}

    def set(self, param: str, values: Mapping[str, Any]) -> None:
        """Copies values into slots, all or none; raises NameNotFoundError, ShapeError or DTypeError."""
        known, arrays = self._known(param), {}
        for slot, value in values.items():
            if slot not in known:
                has = ", ".join(known) or "none"
                raise NameNotFoundError(f"slot {slot!r} of {param!r}", "there is no such slot", f"it has {has}")
            arrays[slot] = as_array(value, known[slot], f"{param}/{slot}")
        for slot, array in arrays.items():
            self._store.put(state_name(param, slot), array)

    def _known(self, param: str) -> Mapping[str, tuple[int, ...]]:
        if param not in self._slots:
            trained = ", ".join(self._slots)
            raise NameNotFoundError(f"param {param!r}", "no trained param has that name", f"trained are {trained}")
        return self._slots[param]


@dataclass
class Window:
    """The micro-batches that wait for one update; their gradients are in the accumulators on the device."""

    count: int = 0
    weight: float = 0.0
    loss: float = 0.0

    def add(self, weight: float, loss: float) -> None:
        self.count, self.weight, self.loss = self.count + 1, self.weight + weight, self.loss + weight * loss


def fill_accumulators(store: Store, gradients: Mapping[str, np.ndarray]) -> None:
    for name, gradient in gradients.items():
        store.put(accumulator_name(name), gradient)
