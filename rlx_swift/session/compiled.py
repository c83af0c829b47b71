"""Compiling a graph for a device and running it."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import FeedError, NameNotFoundError, ShapeError
from ..ir.graph import Graph
from ..ir.symbolic import KEPT, SymbolicGraph, bound
from ..lower.mil import lower
from ..lower.package import write_package
from . import feeds as feeding
from .device import Device, Executable, Store, pick


class Programs:
    """Executables of one family (the same graph at different sizes), made on first use, the last few kept."""

    def __init__(self, device: Device, store: Store, build: Callable[[Graph], Graph]) -> None:
        self._device, self._store, self._build = device, store, build
        self._made: OrderedDict[int, tuple[Graph, Graph, Executable]] = OrderedDict()
        self.compiled = 0

    def get(self, forward: Graph) -> tuple[Graph, Executable]:
        """The built graph and its executable for a bound forward graph."""
        key = id(forward)
        if key not in self._made:
            graph = self._build(forward)
            self._made[key] = (forward, graph, self._device.compile(graph, self._store))
            self.compiled += 1
            if len(self._made) > KEPT:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        _, graph, executable = self._made[key]
        return graph, executable

    def __len__(self) -> int:
        return len(self._made)


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
        if isinstance(graph, Graph):
            graph.verify()
        self.graph = graph
        self._store = device.make_store()
        self._programs = Programs(device, self._store, lambda forward: forward)
        self._shapes = _resident_shapes(graph)
        for name, value in initial_values(graph).items():
            self._store.put(name, value)
        if isinstance(graph, Graph) and all(name in self._store for name in self._shapes):
            self._programs.get(graph)

    @property
    def compile_count(self) -> int:
        """How often a program was compiled: once, or once for each size of a named dimension."""
        return self._programs.compiled

    def set_param(self, name: str, value: Any) -> None:
        """Gives a param or buffer its value; raises NameNotFoundError, ShapeError or DTypeError."""
        if name not in self._shapes:
            raise NameNotFoundError(f"{name!r}", "there is no param of that name", f"it has {', '.join(self._shapes)}")
        self._store.put(name, as_param(value, self._shapes[name], name))

    def param(self, name: str) -> np.ndarray:
        """A copy of a param's or buffer's value."""
        if name not in self._store:
            raise NameNotFoundError(f"{name!r}", "there is no param of that name with a value")
        return self._store.get(name)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The outputs by name. Assigned buffers take their next values.

        Raises FeedError (unknown or missing name, shape, index out of range, param without a value) and DTypeError.
        """
        forward = bound(self.graph, feeds)
        self._require_values()
        graph, executable = self._programs.get(forward)
        return executable.run(feeding.checked({n: t.type for n, t in graph.inputs.items()}, feeds))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes an .mlpackage with the params' values inside. A graph with a named dimension cannot be saved."""
        if isinstance(self.graph, SymbolicGraph):
            raise ShapeError("save", "the graph has a named dimension", "bind it: graph.bind({'B': 1})")
        self._require_values()
        write_package(path, lower(self.graph, baked={name: self._store.get(name) for name in self._shapes}).model)

    def _require_values(self) -> None:
        for name in self._shapes:
            if name not in self._store:
                raise FeedError(f"param {name!r}", "it has no value", f"call set_param({name!r}, ...) first")


def _resident_shapes(graph: Graph | SymbolicGraph) -> dict[str, tuple[int, ...]]:
    sample = graph.bind(dict.fromkeys(graph.dimensions, 1)) if isinstance(graph, SymbolicGraph) else graph
    return {name: t.shape for name, t in (*sample.params.items(), *sample.buffers.items())}


def initial_values(graph: Graph | SymbolicGraph, seed: int = 0) -> dict[str, np.ndarray]:
    """The values that params and buffers start from, for those that have one.

    An initializer gets a generator of its own, seeded by `seed` and the param's name, so that adding a
    param changes no other.
    """
    sample = graph.bind(dict.fromkeys(graph.dimensions, 1)) if isinstance(graph, SymbolicGraph) else graph
    values = {}
    for name, tensor in (*sample.params.items(), *sample.buffers.items()):
        init = tensor.producer.value  # type: ignore[union-attr]
        if callable(init):
            rng = np.random.default_rng([seed, *name.encode()])
            values[name] = as_param(init(rng, tensor.shape), tensor.shape, name)
        elif init is not None:
            values[name] = np.asarray(init, np.float32)
    return values


def as_param(value: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    """A value as f32 of exactly the param's shape."""
    array = dtypes.to_host(value, dtypes.f32, f"param {name!r}")
    if array.shape != shape:
        raise ShapeError(f"param {name!r}", f"expected shape {shape}, got {array.shape}")
    return array
