"""The two ways of applying an optimizer: on the host in NumPy, or inside the device program.

Both keep everything on the device under the same names, so that either can go on where the other stopped.
On an error nothing has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import ConfigError
from ..ir.graph import Graph
from ..optim.arrays import NUMPY
from .cache import source
from .compiled import Programs
from .device import NO_SCALARS, Device, Store
from .names import FINITE, TOTAL, WEIGHT, accumulator_name, gradient_name, next_name, scalar_name
from .programs import Recipe, accumulate_graph, apply_graph, given_graph, step_graph
from .report import UpdatePath
from .rule import Numbers

Arrays = dict[str, np.ndarray]
Scalars = dict[str, float]


class Outcome(NamedTuple):
    """The outputs of rank 0, and whether the update was applied; if not, nothing has changed."""

    results: Scalars
    applied: bool


class Update(Protocol):
    """What a session needs of a way to update. `scale` are the inputs of the loss scale, if there is one."""

    path: UpdatePath

    def step(self, forward: Graph, feeds: Arrays, numbers: Numbers, scale: Scalars) -> Outcome:
        """One whole update from a batch."""
        ...

    def accumulate(self, forward: Graph, feeds: Arrays, weight: float, scale: Scalars) -> Scalars:
        """Adds gradients, times `weight`, to the accumulators; the outputs of rank 0."""
        ...

    def apply(self, total: float, numbers: Numbers) -> bool:
        """One update from the accumulators over `total`; whether it was applied."""
        ...

    def apply_given(self, gradients: Arrays, numbers: Numbers) -> bool:
        """One update from gradients made elsewhere, which count as those at the weights of before too."""
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

    def __init__(self, store: Store, gradients: Programs, recipe: Recipe) -> None:
        self._store, self._gradients, self._rule, self._scaled = store, gradients, recipe.rule, recipe.scaled

    def step(self, forward: Graph, feeds: Arrays, numbers: Numbers, scale: Scalars) -> Outcome:
        results, gradients, previous, buffers = self._run(forward, feeds, scale)
        applied = self._finite(gradients, previous)
        if applied:
            self._commit({**self._updated(gradients, previous, numbers), **buffers})
        return Outcome(results, applied)

    def accumulate(self, forward: Graph, feeds: Arrays, weight: float, scale: Scalars) -> Scalars:
        results, gradients, previous, buffers = self._run(forward, feeds, scale)
        sums = {accumulator_name(name): gradient for name, gradient in gradients.items()}
        sums.update({accumulator_name(name, True): gradient for name, gradient in previous.items()})
        self._commit({n: self._store.get(n) + np.float32(weight) * g for n, g in sums.items()} | buffers)
        return results

    def apply(self, total: float, numbers: Numbers) -> bool:
        divisor = np.float32(total)
        gradients = {n: self._store.get(accumulator_name(n)) / divisor for n in self._rule.shapes}
        previous = {n: self._store.get(accumulator_name(n, True)) / divisor for n in self._rule.previous}
        applied = self._finite(gradients, previous)
        if applied:
            self._commit(self._updated(gradients, previous, numbers))
        return applied

    def apply_given(self, gradients: Arrays, numbers: Numbers) -> bool:
        gradients = {name: np.array(gradient) for name, gradient in gradients.items()}  # a user's rule may write to it
        previous = {name: gradients[name] for name in self._rule.previous}
        applied = self._finite(gradients, previous)
        if applied:
            self._commit(self._updated(gradients, previous, numbers))
        return applied

    def training_programs(self) -> Programs:
        return self._gradients

    def other_programs(self) -> dict[str, Programs]:
        return {}

    def _run(self, forward: Graph, feeds: Arrays, scale: Scalars) -> tuple[Scalars, Arrays, Arrays, Arrays]:
        """The outputs of rank 0, the gradients, those at the weights before, and the next values of buffers."""
        results = self._gradients.get(forward).run(feeds, scale)
        gradients = {name: results.pop(gradient_name(name)) for name in self._rule.shapes}
        previous = {name: results.pop(gradient_name(name, True)) for name in self._rule.previous}
        buffers = {name: results.pop(next_name(name)) for name in forward.assigns}
        return {name: value.item() for name, value in results.items()}, gradients, previous, buffers

    def _finite(self, gradients: Arrays, previous: Arrays) -> bool:
        if not self._scaled:
            return True
        with np.errstate(all="ignore"):
            squares = [np.sum(np.square(g), dtype=np.float32) for g in (*gradients.values(), *previous.values())]
            return bool(np.isfinite(np.sum(squares, dtype=np.float32)))

    def _updated(self, gradients: Arrays, previous: Arrays, numbers: Numbers) -> Arrays:
        rounded = [{name: np.float32(value) for name, value in group.items()} for group in numbers]
        with np.errstate(all="ignore"):
            return self._rule.apply(NUMPY, gradients, previous, rounded, self._store.get, _settled)

    def _commit(self, values: Mapping[str, np.ndarray]) -> None:
        for name, value in values.items():
            self._store.put(name, value)


class FusedUpdate:
    """The rule inside the device program; params, state and accumulators never leave the device."""

    path = UpdatePath.FUSED

    def __init__(self, device: Device, store: Store, recipe: Recipe) -> None:
        self._recipe, self._given_graph = recipe, given_graph(recipe)
        self._steps = Programs(
            device, store, lambda forward: step_graph(forward, recipe), partial(source, "step", recipe))
        self._accumulations = Programs(
            device, store, lambda forward: accumulate_graph(forward, recipe), partial(source, "accumulate", recipe))
        self._applies = Programs(device, store, lambda graph: graph)
        self._givens = Programs(device, store, lambda graph: graph)
        self._names = [
            (group, name, scalar_name(group, name))
            for group, names in enumerate(recipe.rule.scalar_names()) for name in names
        ]

    def step(self, forward: Graph, feeds: Arrays, numbers: Numbers, scale: Scalars) -> Outcome:
        results = self._steps.get(forward).run_scalars(feeds, self._named(numbers, scale))
        return Outcome(results, bool(results.pop(FINITE, True)))

    def accumulate(self, forward: Graph, feeds: Arrays, weight: float, scale: Scalars) -> Scalars:
        return self._accumulations.get(forward).run_scalars(feeds, {WEIGHT: weight, **scale})

    def apply(self, total: float, numbers: Numbers) -> bool:
        results = self._applies.get(self._apply_graph).run_scalars({}, self._named(numbers, {TOTAL: total}))
        return bool(results.pop(FINITE, True))

    def apply_given(self, gradients: Arrays, numbers: Numbers) -> bool:
        feeds = {gradient_name(name): gradient for name, gradient in gradients.items()}
        results = self._givens.get(self._given_graph).run_scalars(feeds, self._named(numbers, NO_SCALARS))
        return bool(results.pop(FINITE, True))

    @cached_property
    def _apply_graph(self) -> Graph:
        return apply_graph(self._recipe)

    def _named(self, numbers: Numbers, others: Mapping[str, float]) -> Scalars:
        named = {full: numbers[group][name] for group, name, full in self._names}
        named.update(others)
        return named

    def training_programs(self) -> Programs:
        return self._steps

    def other_programs(self) -> dict[str, Programs]:
        return {"accumulate": self._accumulations, "apply": self._applies, "given": self._givens}


def _settled(name: str, value: Any, old: np.ndarray) -> np.ndarray:
    array = np.asarray(value, np.float32)
    if array.shape != old.shape:
        raise ConfigError(f"update of {name!r}", f"expected shape {old.shape}, got {array.shape}")
    return array
