"""The two ways of applying an optimizer: on the host in NumPy, or inside the device program.

Both keep everything on the device under the same names, so that either can go on where the other stopped.
On an error nothing has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from ..errors import ConfigError
from ..ir.graph import Graph
from ..optim.arrays import NUMPY
from .compiled import Programs
from .device import Device, Store
from .names import TOTAL, WEIGHT, accumulator_name, gradient_name, next_name, scalar_name, state_name
from .programs import accumulate_graph, apply_graph, step_graph
from .report import UpdatePath
from .rule import Rule

Arrays = dict[str, np.ndarray]
Numbers = list[dict[str, float]]  # the optimizers' scalars by group


class Update(Protocol):
    """What a session needs of a way to update."""

    path: UpdatePath

    def step(self, forward: Graph, feeds: Arrays, scalars: Numbers) -> Arrays:
        """One whole update from a batch; the loss and the other outputs of rank 0."""
        ...

    def accumulate(self, forward: Graph, feeds: Arrays, weight: float) -> Arrays:
        """Adds gradients, times `weight`, to the accumulators; results as of `step`."""
        ...

    def apply(self, total: float, scalars: Numbers) -> None:
        """One update from the accumulators over `total`."""
        ...

    def training_programs(self) -> Programs:
        """The programs that `step` runs."""
        ...

    def other_programs(self) -> dict[str, Programs]:
        """Further programs of this way alone, by kind."""
        ...


class HostUpdate:
    """Gradients from the device, the rule in NumPy, new values to the device."""

    path = UpdatePath.GRADIENT

    def __init__(self, store: Store, gradients: Programs, rule: Rule) -> None:
        self._store, self._gradients, self._rule = store, gradients, rule

    def step(self, forward: Graph, feeds: Arrays, scalars: Numbers) -> Arrays:
        results, gradients, buffers = self._run(forward, feeds)
        self._commit({**self._updated(gradients, scalars), **buffers})
        return results

    def accumulate(self, forward: Graph, feeds: Arrays, weight: float) -> Arrays:
        results, gradients, buffers = self._run(forward, feeds)
        names = {name: accumulator_name(name) for name in gradients}
        sums = {names[n]: self._store.get(names[n]) + np.float32(weight) * g for n, g in gradients.items()}
        self._commit({**sums, **buffers})
        return results

    def apply(self, total: float, scalars: Numbers) -> None:
        sums = {name: self._store.get(accumulator_name(name)) for name in self._rule.shapes}
        self._commit(self._updated({name: value / np.float32(total) for name, value in sums.items()}, scalars))

    def training_programs(self) -> Programs:
        return self._gradients

    def other_programs(self) -> dict[str, Programs]:
        return {}

    def _run(self, forward: Graph, feeds: Arrays) -> tuple[Arrays, Arrays, Arrays]:
        """The outputs of rank 0, the gradients, and the next values of buffers."""
        results = self._gradients.get(forward).run(feeds)
        gradients = {name: results.pop(gradient_name(name)) for name in self._rule.shapes}
        buffers = {name: results.pop(next_name(name)) for name in forward.assigns}
        return results, gradients, buffers

    def _updated(self, gradients: Arrays, scalars: Numbers) -> Arrays:
        """The new params and slots by their names on the device."""
        numbers = [{name: np.float32(value) for name, value in group.items()} for group in scalars]
        params = {name: self._store.get(name) for name in self._rule.shapes}
        states = {
            name: {slot: self._store.get(state_name(name, slot)) for slot in slots}
            for name, slots in self._rule.slots.items()
        }
        with np.errstate(all="ignore"):
            new, news = self._rule.apply(NUMPY, gradients, params, states, numbers, _settled)
        new.update({state_name(n, slot): value for n, slots in news.items() for slot, value in slots.items()})
        return new

    def _commit(self, values: Mapping[str, np.ndarray]) -> None:
        for name, value in values.items():
            self._store.put(name, value)


class FusedUpdate:
    """The rule inside the device program; params, state and accumulators never leave the device."""

    path = UpdatePath.FUSED

    def __init__(self, device: Device, store: Store, loss: str, rule: Rule) -> None:
        self._apply_graph = apply_graph(rule)
        self._steps = Programs(device, store, lambda forward: step_graph(forward, loss, rule))
        self._accumulations = Programs(device, store, lambda forward: accumulate_graph(forward, loss, rule))
        self._applies = Programs(device, store, lambda graph: graph)

    def step(self, forward: Graph, feeds: Arrays, scalars: Numbers) -> Arrays:
        return self._steps.get(forward).run(feeds, _named(scalars))

    def accumulate(self, forward: Graph, feeds: Arrays, weight: float) -> Arrays:
        return self._accumulations.get(forward).run(feeds, {WEIGHT: weight})

    def apply(self, total: float, scalars: Numbers) -> None:
        self._applies.get(self._apply_graph).run({}, {**_named(scalars), TOTAL: total})

    def training_programs(self) -> Programs:
        return self._steps

    def other_programs(self) -> dict[str, Programs]:
        return {"accumulate": self._accumulations, "apply": self._applies}


def _named(scalars: Numbers) -> dict[str, float]:
    return {scalar_name(i, name): value for i, group in enumerate(scalars) for name, value in group.items()}


def _settled(name: str, value: Any, old: np.ndarray) -> np.ndarray:
    array = np.asarray(value, np.float32)
    if array.shape != old.shape:
        raise ConfigError(f"update of {name!r}", f"expected shape {old.shape}, got {array.shape}")
    return array
