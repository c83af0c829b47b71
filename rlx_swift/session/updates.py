"""The two ways of applying an optimizer: on the host in NumPy, or inside the device program.

Both leave params and buffers on the device. Where the optimizer's state lives is their own affair.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

import numpy as np

from ..errors import NameNotFoundError
from ..ir.graph import Graph
from ..optim.arrays import NUMPY
from .compiled import Programs
from .device import Device, Store
from .programs import Rule, apply_graph, fused_graph, gradient_name, next_name, scalar_name, state_name
from .report import UpdatePath

Arrays = dict[str, np.ndarray]
T = TypeVar("T")


class Update(Protocol):
    """What a session needs of a way to update; `scalars` are the optimizer's numbers for this update."""

    path: UpdatePath

    def step(self, forward: Graph, feeds: Arrays, scalars: Mapping[str, float]) -> Arrays:
        """One whole update from a batch; the program's outputs of rank 0."""
        ...

    def apply(self, gradients: Arrays, scalars: Mapping[str, float]) -> None:
        """One update from gradients."""
        ...

    def state(self, param: str) -> Arrays: ...
    def set_state(self, param: str, slots: Arrays) -> None: ...


class HostUpdate:
    """Gradients from the device, the rule in NumPy, new params to the device."""

    path = UpdatePath.GRADIENT

    def __init__(self, store: Store, gradients: Programs, params: Mapping[str, tuple[int, ...]], rule: Rule) -> None:
        self._store, self._gradients, self._rule = store, gradients, rule
        self._state: dict[str, Arrays] = {
            name: rule.optimizer.init(NUMPY, np.zeros(shape, np.float32)) for name, shape in params.items()
        }

    def step(self, forward: Graph, feeds: Arrays, scalars: Mapping[str, float]) -> Arrays:
        _, executable = self._gradients.get(forward)
        results = executable.run(feeds)
        self.apply({name: results.pop(gradient_name(name)) for name in self._state}, scalars)
        write_buffers(self._store, forward, results)
        return results

    def apply(self, gradients: Arrays, scalars: Mapping[str, float]) -> None:
        numbers = {name: np.float32(value) for name, value in scalars.items()}
        clipped = self._rule.clip.apply(NUMPY, gradients) if self._rule.clip else gradients
        values, states = {}, {}
        with np.errstate(all="ignore"):
            for name, gradient in clipped.items():
                param = self._store.get(name)
                values[name], states[name] = self._rule.optimizer.update(
                    NUMPY, gradient, self._state[name], param, **numbers
                )
        for name, value in values.items():
            self._store.put(name, value)
        self._state.update(states)

    def state(self, param: str) -> Arrays:
        return {slot: np.array(value, np.float32) for slot, value in _of(self._state, param).items()}

    def set_state(self, param: str, slots: Arrays) -> None:
        _of(self._state, param).update(slots)


class FusedUpdate:
    """The rule inside the device program; params and state never leave the device."""

    path = UpdatePath.FUSED

    def __init__(
        self, device: Device, store: Store, loss: str, params: Mapping[str, tuple[int, ...]], rule: Rule
    ) -> None:
        self._device, self._store, self._params, self._rule = device, store, params, rule
        self.programs = Programs(device, store, lambda forward: fused_graph(forward, loss, list(params), rule))
        self._apply_graph = apply_graph(params, rule)
        self.apply_programs = Programs(device, store, lambda graph: graph)
        self._slots: dict[str, list[str]] = {}
        for name, shape in params.items():
            slots = rule.optimizer.init(NUMPY, np.zeros(shape, np.float32))
            self._slots[name] = list(slots)
            for slot, value in slots.items():
                store.put(state_name(name, slot), value)

    def step(self, forward: Graph, feeds: Arrays, scalars: Mapping[str, float]) -> Arrays:
        _, executable = self.programs.get(forward)
        return executable.run({**feeds, **_scalar_feeds(scalars)})

    def apply(self, gradients: Arrays, scalars: Mapping[str, float]) -> None:
        _, executable = self.apply_programs.get(self._apply_graph)
        named = {gradient_name(name): np.asarray(g, np.float32) for name, g in gradients.items()}
        executable.run({**named, **_scalar_feeds(scalars)})

    def state(self, param: str) -> Arrays:
        return {slot: self._store.get(state_name(param, slot)) for slot in _of(self._slots, param)}

    def set_state(self, param: str, slots: Arrays) -> None:
        for slot, value in slots.items():
            self._store.put(state_name(param, slot), value)


def write_buffers(store: Store, forward: Graph, results: Arrays) -> None:
    """Moves the next values of assigned buffers from a gradient program's results to the device."""
    for name in forward.assigns:
        store.put(name, results.pop(next_name(name)))


def _scalar_feeds(scalars: Mapping[str, float]) -> Arrays:
    return {scalar_name(name): np.asarray(value, np.float32) for name, value in scalars.items()}


def _of(table: Mapping[str, T], param: str) -> T:
    if param not in table:
        raise NameNotFoundError(f"{param!r}", "no trained param has that name", f"trained are {', '.join(table)}")
    return table[param]
