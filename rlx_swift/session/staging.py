"""Batches that are in memory, for programs to read many of them in one call; knows nothing of updates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from .. import dtypes
from ..errors import DTypeError
from ..ir.graph import Graph
from ..ir.types import TensorType
from .data import Batches, Epoch
from .device import Series

LARGEST_COPY = 1 << 28  # bytes of an array of another type: beyond, its batches are converted one by one
LARGEST_STAGE = 1 << 25  # bytes of batches that are copied for one call
LARGEST_STAGED = 1 << 18  # bytes of a batch beyond which copying it takes longer than a call of its own


class Staged(Protocol):
    """Batches in memory, in their order."""

    def __len__(self) -> int: ...

    def __getitem__(self, i: int, /) -> Mapping[str, Any]:
        """Batch `i` as it was given."""
        ...

    def series(self, forward: Graph, i: int, most: int) -> tuple[int, dict[str, Series]]:
        """How many batches from `i` on, and at most `most`, one call can read, and where, if they are more than one; of
        `forward`'s inputs, which batch `i` fits."""
        ...


def staged(batches: Iterable[Mapping[str, Any]]) -> Staged | None:
    """Batches as they are in memory, None when they are made while they are read. Begins an epoch of `rlx.batches`.

    A class of a user's own may make other batches than its base.
    """
    if type(batches) is Batches:
        return StagedEpoch(batches.next_epoch())
    return StagedList(batches) if type(batches) is list or type(batches) is tuple else None


class StagedEpoch:
    """Rows of arrays: the device gathers them where they are."""

    def __init__(self, epoch: Epoch) -> None:
        self._epoch = epoch
        self._arrays: dict[str, np.ndarray] | None = {}

    def __len__(self) -> int:
        return len(self._epoch)

    def __getitem__(self, i: int) -> Mapping[str, Any]:
        return self._epoch[i]

    def series(self, forward: Graph, i: int, most: int) -> tuple[int, dict[str, Series]]:
        if self._arrays is not None and not self._arrays:
            self._arrays = self._converted({name: t.type for name, t in forward.inputs.items()})
        if self._arrays is None:
            return 0, {}
        size, order = self._epoch.size, self._epoch.order
        rows = len(next(iter(self._arrays.values())))
        count = min(most, rows // size - i, len(self) - i)
        part = slice(i * size, (i + count) * size)
        if order is None:
            return count, {name: Series(array[part]) for name, array in self._arrays.items()}
        return count, {name: Series(array, order[part]) for name, array in self._arrays.items()}

    def _converted(self, types: Mapping[str, TensorType]) -> dict[str, np.ndarray] | None:
        """The arrays as the inputs take them; None where that costs too much, or a row cannot be so."""
        arrays = {}
        for name, type in types.items():
            array = self._epoch.arrays[name]
            ready = array.dtype == type.dtype.numpy and array.flags.c_contiguous
            if not ready and array.size * type.dtype.numpy.itemsize > LARGEST_COPY:
                return None
            try:
                arrays[name] = np.ascontiguousarray(dtypes.to_host(array, type.dtype, f"input {name!r}"))
            except DTypeError:
                return None
        return arrays


class StagedList:
    """Dicts of arrays. Those of one call are copied together, one that comes again only once."""

    def __init__(self, batches: Sequence[Mapping[str, Any]]) -> None:
        self._batches = batches

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, i: int) -> Mapping[str, Any]:
        return self._batches[i]

    def series(self, forward: Graph, i: int, most: int) -> tuple[int, dict[str, Series]]:
        inputs = [(name, x.dtype.numpy, x.shape) for name, x in forward.inputs.items()]
        bytes = sum(x.type.size * x.dtype.numpy.itemsize for x in forward.inputs.values())
        if bytes > LARGEST_STAGED:
            return 0, {}
        batches, order = self._batches, tuple(self._batches[i])
        places: dict[int, int] = {}  # by identity
        where: list[int] = []
        members: list[Mapping[str, Any]] = []
        for k in range(i, min(i + most, len(batches))):
            batch = batches[k]
            place = places.get(id(batch))
            if place is None:
                place = places[id(batch)] = len(members)
                if not _is_ready(batch, order, inputs) or (place + 1) * bytes > LARGEST_STAGE:
                    break  # the first that cannot be in the call
                members.append(batch)
            where.append(place)
        if len(where) < 2:
            return len(where), {}
        chosen = np.array(where, np.int64)
        return len(where), {
            name: Series(np.array([batch[name] for batch in members], dtype), chosen) for name, dtype, _ in inputs
        }


def _is_ready(batch: Any, order: tuple[str, ...], inputs: list[tuple[str, np.dtype[Any], tuple[int, ...]]]) -> bool:
    """Whether a batch is exactly what the program takes, its names in that order."""
    if type(batch) is not dict or tuple(batch) != order:
        return False
    for name, dtype, shape in inputs:
        value = batch[name]
        if type(value) is not np.ndarray or value.dtype is not dtype or value.shape != shape:
            return False
    return True
