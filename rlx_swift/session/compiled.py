"""Compiling a graph for a device and running it."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import FeedError, ShapeError
from ..interp import noise
from ..ir.graph import Graph
from ..ir.symbolic import KEPT, SymbolicGraph, bound, sample
from ..ir.types import Shape
from ..lower.mil import lower
from ..lower.package import write_package
from . import feeds as feeding
from .device import Device, Executable, Store, pick
from .weights import Weights, initial_values


class Programs:
    """Executables of one family (the same graph at different sizes), made on first use, the last few kept.

    `source` gives the key under which the device may keep what it makes of a forward graph.

    Attributes:
        compiled: how many were made so far.
    """

    def __init__(
        self, device: Device, store: Store, build: Callable[[Graph], Graph],
        source: Callable[[Graph], str] | None = None,
    ) -> None:
        self._device, self._store, self._build, self._source = device, store, build, source
        self._made: OrderedDict[tuple[Shape, ...], Executable] = OrderedDict()
        self._last: tuple[Graph | None, Executable | None] = (None, None)
        self.compiled = 0

    def get(self, forward: Graph) -> Executable:
        """The executable for a bound forward graph."""
        last, executable = self._last
        if last is forward and executable is not None:
            return executable
        key = tuple([t.shape for t in forward.inputs.values()])
        executable = self._made.get(key)
        if executable is None:
            executable = self._made[key] = self._compiled(forward)
            self.compiled += 1
            if len(self._made) > KEPT:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        self._last = (forward, executable)
        return executable

    def _compiled(self, forward: Graph) -> Executable:
        source = self._source(forward) if self._source else ""
        return self._device.compile_kept(source, lambda: self._build(forward), self._store)

    def statistics(self) -> dict[str, int]:
        """What the device counts of the program that was used last."""
        executable = self._last[1]
        return executable.statistics() if executable is not None else {}


class Session:
    """Compiles graphs for one device: "numpy", "cpu", "coreml", or None for the best present."""

    def __init__(self, device: str | None = None) -> None:
        self._device = pick(device)

    @property
    def device(self) -> str:
        return self._device.name

    def compile(self, graph: Graph | SymbolicGraph) -> CompiledGraph:
        """The graph ready to run; one with a named dimension compiles at first use, once a size."""
        return CompiledGraph(graph, self._device)


class CompiledGraph:
    """A graph on a device. Params and buffers stay there between runs; setting one never recompiles."""

    def __init__(self, graph: Graph | SymbolicGraph, device: Device) -> None:
        self.graph, self._runs = graph, 0
        form = sample(graph)
        form.verify()
        self._weights = Weights(device, form)
        self._programs = Programs(device, self._weights.store, lambda forward: forward)
        self._weights.set(initial_values(form))
        if isinstance(graph, Graph) and not self._weights.without_value():
            self._programs.get(graph)

    @property
    def compile_count(self) -> int:
        """How often a program was compiled: once, or once for each size of a named dimension."""
        return self._programs.compiled

    @property
    def statistics(self) -> dict[str, int]:
        """What the device counts of the program used last: on "cpu" the `runs`, the `instructions` of one, and
        `arena_bytes`, the memory planned for the values inside a run; on "numpy" nothing.
        """
        return self._programs.statistics()

    def set_param(self, name: str, value: Any) -> None:
        """Gives a param or buffer its value; raises NameNotFoundError, ShapeError or DTypeError."""
        self._weights.set({name: value})

    def param(self, name: str) -> np.ndarray:
        """A copy of a param's or buffer's value."""
        return self._weights.get(name)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The outputs by name. Assigned buffers take their next values. Noise that is not fed is drawn for each run.

        Raises FeedError (unknown or missing name, shape, index out of range, param without a value) and DTypeError.
        """
        forward = bound(self.graph, feeding.require_mapping(feeds))
        self._require_values()
        drawn = noise(forward.inputs, 0, self._runs)
        types = {name: t.type for name, t in forward.inputs.items() if name not in drawn or name in feeds}
        results = self._programs.get(forward).run({**drawn, **feeding.checked(types, feeds)})
        self._runs += 1
        return results

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes an .mlpackage with the params' values inside. A graph with a named dimension cannot be saved."""
        if isinstance(self.graph, SymbolicGraph):
            raise ShapeError("save", "the graph has a named dimension", "bind it: graph.bind({'B': 1})")
        self._require_values()
        write_package(path, lower(self.graph, baked=self._weights.all()).model)

    def _require_values(self) -> None:
        for name in self._weights.without_value():
            raise FeedError(f"param {name!r}", "it has no value", f"call set_param({name!r}, ...) first")
