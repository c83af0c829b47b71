"""The params and buffers of a graph on a device, checked by name and shape; knows nothing of training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import NameNotFoundError, ShapeError
from ..ir.graph import Graph
from .device import Device


class Weights:
    """Values by name on a device, each f32 and of its leaf's shape.

    Attributes:
        store: where they are; programs compiled for it read and write them.
        shapes: of every param and buffer, params first.
    """

    def __init__(self, device: Device, graph: Graph) -> None:
        self.store = device.make_store()
        self.shapes = {name: t.shape for name, t in (*graph.params.items(), *graph.buffers.items())}

    def set(self, values: Mapping[str, Any]) -> None:
        """Copies values in, all or none; raises NameNotFoundError, ShapeError or DTypeError."""
        for name in values:
            self.require(name)
        arrays = {name: as_array(value, self.shapes[name], name) for name, value in values.items()}
        for name, array in arrays.items():
            self.store.put(name, array)

    def get(self, name: str) -> np.ndarray:
        """A copy of one value; raises NameNotFoundError."""
        self.require(name)
        if name not in self.store:
            raise NameNotFoundError(f"param {name!r}", "it has no value yet")
        return self.store.get(name)

    def all(self) -> dict[str, np.ndarray]:
        """Copies of every value."""
        return {name: self.store.get(name) for name in self.shapes}

    def without_value(self) -> list[str]:
        """The names that have none yet."""
        return [name for name in self.shapes if name not in self.store]

    def require(self, name: str) -> None:
        """Raises NameNotFoundError when there is no param or buffer of that name."""
        if name not in self.shapes:
            known = ", ".join(self.shapes) or "none"
            raise NameNotFoundError(f"param {name!r}", "there is no param or buffer of that name", f"it has {known}")


def initial_values(graph: Graph, seed: int = 0) -> dict[str, Any]:
    """The values that params and buffers start from, for those that have one.

    An initializer gets a generator of its own, seeded by `seed` and the param's name, so that adding a
    param changes no other.
    """
    values = {}
    for name, tensor in (*graph.params.items(), *graph.buffers.items()):
        init = tensor.producer.value  # type: ignore[union-attr]
        if callable(init):
            init = init(np.random.default_rng([seed, *name.encode()]), tensor.shape)
        if init is not None:
            values[name] = init
    return values


def as_array(value: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    """A value as f32 of exactly the param's shape."""
    array = dtypes.to_host(value, dtypes.f32, f"param {name!r}")
    if array.shape != shape:
        raise ShapeError(f"param {name!r}", f"expected shape {shape}, got {array.shape}")
    return array
