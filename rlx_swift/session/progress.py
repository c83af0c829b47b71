"""The progress bar of `fit`, on stderr; asks tqdm for little, so that it costs little."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sized
from typing import Any

_PERIOD = 0.1  # seconds between two redraws


class Bar:
    """Counts updates; a no-op unless `shown`."""

    def __init__(self, data: Iterable[Any], epochs: int, accumulate: int, shown: bool) -> None:
        count = len(data) if isinstance(data, Sized) else None
        self._total = None if count is None else epochs * -(-count // accumulate)
        self._epochs, self._shown = epochs, shown
        self._bar: Any = None
        self._waiting, self._loss, self._next = 0, 0.0, 0.0

    def __enter__(self) -> Bar:
        if self._shown:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=self._total, unit="step", file=sys.stderr, dynamic_ncols=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._draw()
            self._bar.close()

    def epoch(self, number: int) -> None:
        """Names the epoch that begins."""
        if self._bar is not None:
            self._draw()
            self._bar.set_description(f"epoch {number}/{self._epochs}", refresh=False)

    def advance(self, loss: float, updates: int = 1) -> None:
        """So many updates more, the last with this loss."""
        if self._bar is not None:
            self._waiting, self._loss = self._waiting + updates, loss
            if time.perf_counter() >= self._next:
                self._draw()

    def _draw(self) -> None:
        if self._waiting:
            self._bar.set_postfix(loss=f"{self._loss:.4g}", refresh=False)
            self._bar.update(self._waiting)
        self._waiting, self._next = 0, time.perf_counter() + _PERIOD
