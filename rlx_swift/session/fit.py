"""The training loop over batches: epochs, progress, validation, callbacks, a clean stop on Ctrl-C."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ConfigError, FeedError
from .report import StepReport

if TYPE_CHECKING:
    from .training import TrainingSession

Batch = Mapping[str, Any]


class Callback:
    """Watches a `fit`. Either method may stop it by returning True."""

    def on_step(self, ts: TrainingSession, report: StepReport) -> bool | None:
        """Called after each update."""
        return None

    def on_epoch(self, ts: TrainingSession, logs: Mapping[str, float]) -> bool | None:
        """Called after each epoch with its means: `epoch`, `loss`, `seconds`, `val_loss`."""
        return None


@dataclass
class History:
    """Attributes:
    losses: the loss of each update.
    epochs: for each epoch `epoch`, mean `loss`, `seconds`, and `val_loss` where there was validation.
    stopped: why the run ended before its last epoch, or "".
    """

    losses: list[float] = field(default_factory=list)
    epochs: list[dict[str, float]] = field(default_factory=list)
    stopped: str = ""


class Batches:
    """Arrays cut into batches along their first axis, anew for each epoch."""

    def __init__(self, arrays: Mapping[str, Any], size: int, shuffle: bool, seed: int, drop_last: bool) -> None:
        if not arrays:
            raise ConfigError("batches", "expected at least one array")
        self._arrays = {name: np.asarray(value) for name, value in arrays.items()}
        lengths = {name: len(a) if a.ndim else 0 for name, a in self._arrays.items()}
        self._count = next(iter(lengths.values()))
        if len(set(lengths.values())) != 1 or self._count == 0:
            raise FeedError("batches", f"expected arrays with the same, non-zero number of rows, got {lengths}")
        if not isinstance(size, int) or size < 1:
            raise ConfigError("batch size", f"expected an integer of at least 1, got {size!r}")
        if drop_last and size > self._count:
            raise ConfigError("batch size", f"{size} is more than the {self._count} rows, and drop_last drops them all")
        self._size, self._shuffle, self._seed, self._drop_last = size, shuffle, seed, drop_last
        self.epoch = 0

    def __len__(self) -> int:
        return self._count // self._size if self._drop_last else -(-self._count // self._size)

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        """The batches of the next epoch; with `shuffle` in an order that depends on the seed and the epoch."""
        order = np.arange(self._count)
        if self._shuffle:
            order = np.random.default_rng([self._seed, self.epoch]).permutation(self._count)
        self.epoch += 1
        for i in range(len(self)):
            rows = order[i * self._size : (i + 1) * self._size]
            yield {name: array[rows] for name, array in self._arrays.items()}


def batches(
    arrays: Mapping[str, Any], size: int, shuffle: bool = True, seed: int = 0, drop_last: bool = False
) -> Batches:
    """Batches of `size` rows for `fit`; the last one of an epoch may be smaller unless `drop_last`."""
    return Batches(arrays, size, shuffle, seed, drop_last)


def fit(
    ts: TrainingSession, data: Iterable[Batch], epochs: int, validation: Iterable[Batch] | Batch | None,
    callbacks: Sequence[Callback], accumulate: int, progress: bool,
) -> History:
    """Trains for `epochs` passes over `data`, updating after every `accumulate` batches and at an epoch's end.

    Ctrl-C ends the run at the next step boundary with KeyboardInterrupt; the session stays usable. Raises
    ConfigError for a generator that can be read only once with more than one epoch, FeedError for no batches.
    """
    if epochs < 1 or accumulate < 1:
        raise ConfigError("fit", f"expected epochs and accumulate of at least 1, got {epochs} and {accumulate}")
    if epochs > 1 and iter(data) is data:
        problem = f"a generator can be read once, not {epochs} times"
        raise ConfigError("fit batches", problem, "use rlx.batches or a list")
    history = History()
    with _interrupt_flag() as interrupted, _bar(data, epochs, accumulate, progress) as bar:
        for epoch in range(1, epochs + 1):
            started, seen, total = time.perf_counter(), 0, 0.0
            for report in _updates(ts, data, accumulate):
                history.losses.append(report.loss)
                seen, total = seen + 1, total + report.loss
                bar(f"epoch {epoch}/{epochs}", report.loss)
                if interrupted():
                    raise KeyboardInterrupt
                if any([callback.on_step(ts, report) for callback in callbacks]):
                    history.stopped = "a callback's on_step"
                    break
            if not seen:
                raise FeedError("fit batches", f"there was no batch in epoch {epoch}")
            logs = {"epoch": epoch, "loss": total / seen, "seconds": time.perf_counter() - started}
            if validation is not None:
                logs["val_loss"] = _validate(ts, validation)
            history.epochs.append(logs)
            if any([callback.on_epoch(ts, logs) for callback in callbacks]) and not history.stopped:
                history.stopped = "a callback's on_epoch"
            if history.stopped:
                break
    return history


def _updates(ts: TrainingSession, data: Iterable[Batch], accumulate: int) -> Iterator[StepReport]:
    if accumulate == 1:
        yield from map(ts.step, data)
        return
    for batch in data:
        ts.accumulate(batch, weight=_rows(batch))
        if ts.pending_accumulation == accumulate:
            yield _flushed(ts)
    if ts.pending_accumulation:
        yield _flushed(ts)


def _flushed(ts: TrainingSession) -> StepReport:
    ts.step_accumulated()
    assert ts.last_report is not None
    return ts.last_report


def _rows(batch: Batch) -> float:
    """The number of samples, by which micro-batches are weighted."""
    shapes = [np.shape(value) for value in batch.values()]
    return float(next((s[0] for s in shapes if s), 1))


def _validate(ts: TrainingSession, validation: Iterable[Batch] | Batch) -> float:
    parts = [validation] if isinstance(validation, Mapping) else list(validation)
    weights = [_rows(batch) for batch in parts]
    losses = [ts.evaluate(batch) for batch in parts]
    return math.fsum(w * x for w, x in zip(weights, losses, strict=True)) / math.fsum(weights)


@contextmanager
def _bar(data: Iterable[Batch], epochs: int, accumulate: int, progress: bool) -> Iterator[Callable[[str, float], None]]:
    if not progress:
        yield lambda title, loss: None
        return
    from tqdm.auto import tqdm

    count = len(data) if hasattr(data, "__len__") else None
    total = None if count is None else epochs * -(-count // accumulate)
    with tqdm(total=total, unit="step", file=sys.stderr, dynamic_ncols=True) as bar:

        def advance(title: str, loss: float) -> None:
            bar.set_description(title, refresh=False)
            bar.set_postfix(loss=f"{loss:.4g}", refresh=False)
            bar.update()

        yield advance


@contextmanager
def _interrupt_flag() -> Iterator[Callable[[], bool]]:
    """Turns Ctrl-C into a flag, so that no step is cut in the middle; a second Ctrl-C acts at once."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not (
        signal.default_int_handler
    ):
        yield lambda: False
        return
    pressed = False

    def handler(number: int, frame: Any) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    signal.signal(signal.SIGINT, handler)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
