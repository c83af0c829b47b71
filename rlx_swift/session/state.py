"""What an optimizer keeps on the device for each trained param, for users to read and set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import NameNotFoundError
from .device import Store
from .names import average_name, state_name
from .rule import Rule
from .weights import as_array

Arrays = dict[str, np.ndarray]


class OptimizerState:
    """The slots of every trained param."""

    def __init__(self, store: Store, rule: Rule) -> None:
        self._store, self._slots = store, rule.slots

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

    def averages(self) -> Arrays:
        """Copies of the running averages of the trained params."""
        return {name: self._store.get(average_name(name)) for name in self._slots}

    def _known(self, param: str) -> Mapping[str, tuple[int, ...]]:
        if param not in self._slots:
            trained = ", ".join(self._slots)
            raise NameNotFoundError(f"param {param!r}", "no trained param has that name", f"trained are {trained}")
        return self._slots[param]
