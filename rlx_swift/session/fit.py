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
    Ctrl-C raises KeyboardInterrupt between two steps. However the run ends, the session is ready for the next
    step: the micro-batches of an unfinished window are forgotten.

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
                updates = _updates(ts, data, accumulate, interrupt, weight or _rows)
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

    def observe(self, report: StepReport) -> None:
        """Takes note of an update; raises NonFiniteError when enough is enough."""
        self._skipped = self._skipped + 1 if report.skipped else 0
        self._bad = 0 if report.skipped or math.isfinite(report.loss) else self._bad + 1
        if self._bad == MOST_BAD_LOSSES:
            hint = "lower the learning rate, or clip the gradients"
            raise NonFiniteError("fit()", f"{self._bad} losses in a row were not finite, the last {report.loss}", hint)
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
    ts: TrainingSession, updates: Iterable[tuple[StepReport, float]], history: History, health: Health,
    callbacks: Sequence[Callback], bar: Bar,
) -> dict[str, float]:
    """The means over one epoch; sets `history.stopped` when a callback ends it early."""
    started, before, seen, total = time.perf_counter(), len(history.losses), 0.0, 0.0
    for report, weight in updates:
        history.losses.append(report.loss)
        health.observe(report)
        if not report.skipped:
            seen, total = seen + weight, total + weight * report.loss
        bar.advance(report.loss)
        if any([callback.on_step(ts, report) for callback in callbacks]):
            history.stopped = "a callback's on_step"
            break
    if len(history.losses) == before:
        raise FeedError("fit batches", "there was no batch in the epoch")
    return {"loss": total / seen if seen else math.nan, "seconds": time.perf_counter() - started}


def _updates(
    ts: TrainingSession, data: Iterable[Batch], accumulate: int, interrupt: Interrupt, weight: Weight
) -> Iterator[tuple[StepReport, float]]:
    """Each update with the weight of the batches behind it."""
    total = 0.0
    for batch in data:
        own = _weighed(batch, weight)
        with interrupt.held:
            if accumulate == 1:
                report = ts.step(batch)
            else:
                ts.accumulate(batch, weight=own)
        total += own
        if accumulate > 1:
            if ts.pending_accumulation < accumulate:
                continue
            report = _flushed(ts, interrupt)
        yield report, total
        total = 0.0
    if ts.pending_accumulation:
        yield _flushed(ts, interrupt), total


def _flushed(ts: TrainingSession, interrupt: Interrupt) -> StepReport:
    with interrupt.held:
        ts.step_accumulated()
    assert ts.last_report is not None
    return ts.last_report


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
