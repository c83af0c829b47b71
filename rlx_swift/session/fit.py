"""The training loop over batches: epochs, windows, validation, callbacks, a clean stop on Ctrl-C."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ConfigError, FeedError, NonFiniteError, SessionError
from ..optim.base import POSITIVE, require
from ..optim.schedule import Plateau
from .feeds import require_mapping
from .interrupt import Interrupt
from .progress import Bar
from .report import StepReport
from .resident import ResidentLoop, Taken
from .staging import Staged, staged

if TYPE_CHECKING:
    from .training import TrainingSession

Batch = Mapping[str, Any]
Weight = Callable[[Batch], float]
MOST_BAD_LOSSES, MOST_SKIPS = 3, 50


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
    epochs: for each epoch `epoch`, mean `loss` of a sample over the updates that were not skipped, `seconds`, and
        `val_loss` where there was validation.
    stopped: what ended the run before its last epoch, or "".
    """

    losses: list[float] = field(default_factory=list)
    epochs: list[dict[str, float]] = field(default_factory=list)
    stopped: str = ""


def fit(
    ts: TrainingSession, data: Iterable[Batch], epochs: int, validation: Iterable[Batch] | Batch | None,
    callbacks: Sequence[Callback], accumulate: int, progress: bool, weight: Weight | None = None,
) -> History:
    """Trains for `epochs` passes over `data`, updating after every `accumulate` batches and at an epoch's end.

    Batches weigh as much as `weight(batch)` says, in a window and in mean losses: by default their number of rows.
    Ctrl-C raises KeyboardInterrupt between two steps, or in one that has written nothing yet. However the run ends, the
    session is ready for the next step: the micro-batches of an unfinished window are forgotten.

    Batches that are in memory (`rlx.batches`, a list) go to the device many at a time, where `ts.resident_reason` is
    empty and nothing looks at the run between two updates: no window, no `weight`, no callback with an `on_step`.

    Raises:
        ConfigError: a generator that can be read only once, with more than one epoch.
        FeedError: an epoch without batches.
        SessionError: micro-batches were pending before.
        NonFiniteError: three losses in a row that are not finite, or 50 updates in a row that were skipped.
    """
    _check_settings(ts, data, epochs, validation, accumulate)
    history, health = History(), Health()
    try:
        with Interrupt() as interrupt, Bar(data, epochs, accumulate, progress) as bar:
            for epoch in range(1, epochs + 1):
                bar.epoch(epoch)
                many = accumulate == 1 and weight is None and not any(map(_watches, callbacks))
                batches = staged(data) if many and not ts.resident_reason else None
                updates = (
                    _updates(ts, data, accumulate, interrupt, weight or _rows) if batches is None
                    else _resident_updates(ts, batches, interrupt)
                )
                logs = {"epoch": epoch, **_epoch(ts, updates, history, health, callbacks, bar)}
                if validation is not None:
                    logs["val_loss"] = _validate(ts, validation, weight or _rows)
                if isinstance(ts.schedule, Plateau):
                    ts.schedule.observe(logs.get("val_loss", logs["loss"]))
                history.epochs.append(logs)
                if any([callback.on_epoch(ts, logs) for callback in callbacks]) and not history.stopped:
                    history.stopped = "a callback's on_epoch"
                if history.stopped:
                    break
    finally:
        ts.discard_accumulated()
    return history


class Health:
    """Ends a run that has left the finite numbers."""

    def __init__(self) -> None:
        self._bad = self._skipped = 0

    def observe(self, taken: Taken) -> None:
        """Takes note of updates; raises NonFiniteError when enough is enough."""
        if len(taken.losses) > 1:
            self._bad = self._skipped = 0
        loss = taken.losses[-1]
        self._skipped = self._skipped + 1 if taken.skipped else 0
        self._bad = 0 if taken.skipped or math.isfinite(loss) else self._bad + 1
        if self._bad == MOST_BAD_LOSSES:
            hint = "lower the learning rate, or clip the gradients"
            raise NonFiniteError("fit()", f"{self._bad} losses in a row were not finite, the last {loss}", hint)
        if self._skipped == MOST_SKIPS:
            hint = "look for the op with rlx.precision_report, or use a policy with more f32"
            raise NonFiniteError("fit()", f"{self._skipped} updates in a row had gradients that were not finite", hint)


def _check_settings(
    ts: TrainingSession, data: Iterable[Batch], epochs: int, validation: Iterable[Batch] | Batch | None, accumulate: int
) -> None:
    for name, value in (("epochs", epochs), ("accumulate", accumulate)):
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise ConfigError(f"fit {name}", f"expected an integer of at least 1, got {value!r}")
    for name, given in (("batches", data), ("validation", validation)):
        optional = given is None and name == "validation"
        if not optional and (isinstance(given, (str, bytes)) or not isinstance(given, Iterable)):
            raise ConfigError(f"fit {name}", f"expected batches, got {given!r}", "use rlx.batches or a list of dicts")
        if epochs > 1 and given is not None and iter(given) is given:
            problem = f"a generator can be read once, not {epochs} times"
            raise ConfigError(f"fit {name}", problem, "use rlx.batches or a list")
    if isinstance(data, Mapping):
        raise ConfigError("fit batches", "expected batches, got a single dict", "use rlx.batches(arrays, size)")
    if ts.pending_accumulation:
        hint = "call step_accumulated() or discard_accumulated() first"
        raise SessionError("fit()", f"{ts.pending_accumulation} accumulated micro-batches are pending", hint)


def _epoch(
    ts: TrainingSession, updates: Iterable[tuple[Taken, float]], history: History, health: Health,
    callbacks: Sequence[Callback], bar: Bar,
) -> dict[str, float]:
    """The means over one epoch; sets `history.stopped` when a callback ends it early."""
    started, before, seen, total = time.perf_counter(), len(history.losses), 0.0, 0.0
    for taken, weight in updates:
        history.losses += taken.losses
        health.observe(taken)
        for loss in taken.losses[:-1] if taken.skipped else taken.losses:
            seen, total = seen + weight, total + weight * loss
        bar.advance(taken.losses[-1], len(taken.losses))
        if any([callback.on_step(ts, taken.last()) for callback in callbacks]):
            history.stopped = "a callback's on_step"
            break
    if len(history.losses) == before:
        raise FeedError("fit batches", "there was no batch in the epoch")
    return {"loss": total / seen if seen else math.nan, "seconds": time.perf_counter() - started}


def _watches(callback: Callback) -> bool:
    """Whether it has an `on_step` of its own."""
    return getattr(callback.on_step, "__func__", None) is not Callback.on_step


def _resident_updates(ts: TrainingSession, batches: Staged, interrupt: Interrupt) -> Iterator[tuple[Taken, float]]:
    """The updates from batches in memory, with the weight of each."""
    loop, done = ResidentLoop(ts), 0
    while done < len(batches):
        weight = _weighed(batches[done], _rows)
        with interrupt.held:
            taken = loop.take(batches, done)
        done += len(taken.losses)
        yield taken, weight


def _updates(
    ts: TrainingSession, data: Iterable[Batch], accumulate: int, interrupt: Interrupt, weight: Weight
) -> Iterator[tuple[Taken, float]]:
    """Each update with the weight of the batches behind it."""
    total = 0.0
    for batch in data:
        own = _weighed(batch, weight)
        with interrupt.held:
            if accumulate == 1:
                taken = Taken.one(ts.step(batch))
            else:
                ts.accumulate(batch, weight=own)
        total += own
        if accumulate > 1:
            if ts.pending_accumulation < accumulate:
                continue
            taken = _flushed(ts, interrupt)
        yield taken, total
        total = 0.0
    if ts.pending_accumulation:
        yield _flushed(ts, interrupt), total


def _flushed(ts: TrainingSession, interrupt: Interrupt) -> Taken:
    with interrupt.held:
        ts.step_accumulated()
    assert ts.last_report is not None
    return Taken.one(ts.last_report)


def _weighed(batch: Batch, weight: Weight) -> float:
    value = weight(require_mapping(batch))
    require("fit weight", value in POSITIVE, POSITIVE.text, value)
    return float(value)


def _rows(batch: Batch) -> float:
    """The number of samples."""
    shapes = [np.shape(value) for value in batch.values()]
    return float(next((s[0] for s in shapes if s), 1))


def _validate(ts: TrainingSession, validation: Iterable[Batch] | Batch, weight: Weight) -> float:
    """The mean loss by weight."""
    parts = [validation] if isinstance(validation, Mapping) else validation
    losses = [(_weighed(batch, weight), ts.evaluate(batch)) for batch in parts]
    if not losses:
        raise FeedError("fit validation", "there was no batch")
    return math.fsum(w * x for w, x in losses) / math.fsum(w for w, _ in losses)
