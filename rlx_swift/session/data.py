"""Arrays cut into batches for `fit`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import ConfigError, FeedError


class Batches:
    """Arrays cut into batches along their first axis, anew for each epoch.

    Attributes:
        epoch: how many epochs have begun; with the seed it decides the order of the next one.
    """

    def __init__(self, arrays: Mapping[str, Any], size: int, shuffle: bool, seed: int, drop_last: bool) -> None:
        if not arrays:
            raise ConfigError("batches", "expected at least one array")
        self._arrays = {name: np.asarray(value) for name, value in arrays.items()}
        lengths = {name: len(a) if a.ndim else 0 for name, a in self._arrays.items()}
        self._count = next(iter(lengths.values()))
        if len(set(lengths.values())) != 1 or self._count == 0:
            raise FeedError("batches", f"expected arrays with the same, non-zero number of rows, got {lengths}")
        if not isinstance(size, (int, np.integer)) or size < 1:
            raise ConfigError("batch size", f"expected an integer of at least 1, got {size!r}")
        if drop_last and size > self._count:
            raise ConfigError("batch size", f"{size} is more than the {self._count} rows, and drop_last drops them all")
        self._size, self._shuffle, self._seed, self._drop_last = int(size), shuffle, seed, drop_last
        self.epoch = 0

    def __len__(self) -> int:
        return self._count // self._size if self._drop_last else -(-self._count // self._size)

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        """The batches of the next epoch."""
        return iter(self.next_epoch())

    def next_epoch(self) -> Epoch:
        """The next epoch, as what `fit` keeps in one piece."""
        order = np.random.default_rng([self._seed, self.epoch]).permutation(self._count) if self._shuffle else None
        self.epoch += 1
        return Epoch(self._arrays, self._size, len(self), order)


class Epoch:
    """The batches of one epoch: rows of `arrays` in `order`, or as they stand, `size` a batch."""

    def __init__(self, arrays: Mapping[str, np.ndarray], size: int, count: int, order: np.ndarray | None) -> None:
        self.arrays, self.size, self.order, self._count = arrays, size, order, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, i: int) -> dict[str, np.ndarray]:
        if not 0 <= i < self._count:
            raise IndexError(i)
        rows: Any = slice(i * self.size, (i + 1) * self.size)
        if self.order is not None:
            rows = self.order[rows]
        return {name: array[rows] for name, array in self.arrays.items()}


def batches(
    arrays: Mapping[str, Any], size: int, shuffle: bool = True, seed: int = 0, drop_last: bool = False
) -> Batches:
    """Batches of `size` rows for `fit`; the last one of an epoch may be smaller unless `drop_last`."""
    return Batches(arrays, size, shuffle, seed, drop_last)
