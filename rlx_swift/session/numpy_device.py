"""The device that interprets graphs in NumPy: the reference, present everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..errors import NameNotFoundError, ShapeError
from ..interp import run
from ..ir.graph import Graph
from .device import NO_SCALARS, DeviceStatus, Store
from .feeds import check_ranges, index_ranges


class NumpyStore:
    """Arrays by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def put(self, name: str, value: np.ndarray) -> None:
        if name in self.arrays and self.arrays[name].shape != value.shape:
            raise ShapeError(f"{name!r}", f"expected shape {self.arrays[name].shape}, got {value.shape}")
        self.arrays[name] = np.array(value, np.float32)

    def get(self, name: str) -> np.ndarray:
        if name not in self.arrays:
            raise NameNotFoundError(f"{name!r}", "there is no tensor of that name on the device")
        return np.array(self.arrays[name])

    def __contains__(self, name: str) -> bool:
        return name in self.arrays


class NumpyExecutable:
    def __init__(self, graph: Graph, store: NumpyStore) -> None:
        self._graph, self._store = graph, store
        self.inputs = {name: t.shape for name, t in graph.inputs.items()}
        self._resident = [*graph.params, *graph.buffers]
        self._ranges = index_ranges(graph)

    def run(self, feeds: Mapping[str, np.ndarray], scalars: Mapping[str, float] = NO_SCALARS) -> dict[str, np.ndarray]:
        check_ranges(self._ranges, feeds)
        resident = {name: self._store.arrays[name] for name in self._resident}
        numbers = {name: np.asarray(value, np.float32) for name, value in scalars.items()}
        fed = {name: feeds[name] for name in self.inputs if name in feeds}
        outputs, assigns = run(self._graph, {**resident, **fed, **numbers})
        self._store.arrays.update(assigns)
        return outputs

    def statistics(self) -> dict[str, int]:
        return {}

    def direct(self) -> None:
        return None

    def repeated(self, endings: Mapping[str, str]) -> None:
        return None

    def run_scalars(self, feeds: Mapping[str, np.ndarray], scalars: Mapping[str, float]) -> dict[str, float]:
        return {name: value.item() for name, value in self.run(feeds, scalars).items()}


class NumpyDevice:
    name, repeats = "numpy", False

    def status(self) -> DeviceStatus:
        return DeviceStatus(self.name, True, f"the NumPy interpreter (NumPy {np.__version__})")

    def kernel(self) -> str:
        return f"numpy {np.__version__}"

    def make_store(self) -> NumpyStore:
        return NumpyStore()

    def compile(self, graph: Graph, store: Store) -> NumpyExecutable:
        assert isinstance(store, NumpyStore)
        return NumpyExecutable(graph, store)

    def compile_kept(self, key: str, build: Callable[[], Graph], store: Store) -> NumpyExecutable:
        return self.compile(build(), store)
