"""Many updates in one call of the device: batches that are in memory, and every update's numbers computed ahead.

What an update cannot share such a call with, it is made by itself: one by one, `TrainingSession.step` is the meaning.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from copy import copy
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from ..errors import RlxError
from ..optim.formula import depends_on_step
from ..optim.schedule import Constant, rate
from .device import Ran, Repeat, Series
from .names import FINITE, LOSS_SCALE, UNSCALE, scalar_name
from .report import StepReport, UpdatePath
from .staging import Staged

if TYPE_CHECKING:
    from .trainer import Trainer
    from .training import TrainingSession

FIRST_CALL, LARGEST_CALL = 16, 4096  # updates
MOST_ALONE = 16


class Taken(NamedTuple):
    """Updates made one after another. None but the last was skipped or had a loss that is not finite.

    Attributes:
        losses, outputs: of each update.
        skipped: whether the last was.
    """

    losses: list[float]
    outputs: Mapping[str, list[float]]
    path: UpdatePath
    skipped: bool

    @classmethod
    def one(cls, report: StepReport) -> Taken:
        return cls([report.loss], {name: [x] for name, x in report.outputs.items()}, report.path, report.skipped)

    def report(self, k: int) -> StepReport:
        """What `step` would have said of update `k`."""
        skipped = self.skipped and k == len(self.losses) - 1
        return StepReport(self.losses[k], self.path, skipped, {name: x[k] for name, x in self.outputs.items()})

    def last(self) -> StepReport:
        """What `step` would have said of the last."""
        return self.report(len(self.losses) - 1)


class StepReports(Sequence[StepReport]):
    """The reports of updates in their order, each made when it is asked for.

    Attributes:
        losses: the loss of each update.
    """

    def __init__(self, taken: Sequence[Taken]) -> None:
        self._taken = taken
        self._ends = list(accumulate(len(each.losses) for each in taken))
        self.losses = [loss for each in taken for loss in each.losses]

    def __len__(self) -> int:
        return len(self.losses)

    @overload
    def __getitem__(self, k: int) -> StepReport: ...
    @overload
    def __getitem__(self, k: slice) -> list[StepReport]: ...
    def __getitem__(self, k: int | slice) -> StepReport | list[StepReport]:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        i = range(len(self))[k]
        at = bisect_right(self._ends, i)
        taken = self._taken[at]
        return taken.report(i - self._ends[at] + len(taken.losses))

    def __repr__(self) -> str:
        return repr(list(self))


class Resident:
    """Fused updates from batches of one size; made once for a program."""

    def __init__(self, trainer: Trainer, repeat: Repeat) -> None:
        self._trainer, self._repeat = trainer, repeat
        rule = trainer.recipe.rule
        self._groups = [
            (each.optimizer.scalars, each.since, each.lr_scale, names)
            for each, names in zip(rule.assignments, rule.scalar_names(), strict=True)
        ]
        self._names = [scalar_name(group, name) for group, (*_, names) in enumerate(self._groups) for name in names]
        self._by_rate_alone = not any(depends_on_step(each.optimizer) for each in rule.assignments)

    def __call__(self, batches: Mapping[str, Series], count: int) -> Taken | None:
        """As many of the next `count` updates as one call makes; None when the first is to be made by itself."""
        trainer = self._trainer
        count, numbers = self._numbers(count)
        done, outputs, raised = self._repeat({**batches, **numbers}, count) if count else Ran(0, {})
        if not done:
            return None
        finite = outputs.pop(FINITE, None)
        skipped = finite is not None and not finite[-1]
        trainer.took(done, skipped)
        if raised is not None:
            raise raised
        results = {name: values.tolist() for name, values in outputs.items()}
        return Taken(results.pop(trainer.recipe.loss), results, UpdatePath.FUSED, skipped)

    def _numbers(self, count: int) -> tuple[int, dict[str, Series]]:
        """How many of the next updates have numbers, and what they are fed beside their batches, if none is skipped."""
        trainer = self._trainer
        rows: list[list[float]] = []
        schedule, first = trainer.schedule, trainer.counters.steps
        steady = self._by_rate_alone and type(schedule) is Constant
        try:
            rows.extend(self._row(n, rate(schedule, n)) for n in range(first, first + (1 if steady else count)))
        except Exception:  # which a user's schedule or optimizer raises for an update that may never come
            count = len(rows)
        table = np.array(rows, np.float32).reshape(len(rows), len(self._names)).T
        table = np.broadcast_to(table, (len(self._names), count)) if steady and rows else table
        fed = {name: Series(np.ascontiguousarray(row)) for name, row in zip(self._names, table, strict=True)}
        if trainer.recipe.scaled:
            scale, factors = copy(trainer.scale), []
            for _ in range(count):
                factors.append(scale.scale)
                scale.observe(True)
            fed[LOSS_SCALE] = Series(np.array(factors, np.float32))
            fed[UNSCALE] = Series(np.array([1 / factor for factor in factors], np.float32))
        return count, fed

    def _row(self, n: int, lr: float) -> list[float]:
        row = []
        for scalars, since, scale, names in self._groups:
            numbers = scalars(n - since + 1, lr * scale)
            if len(numbers) != len(names):
                raise KeyError(*numbers)
            row += [numbers[name] for name in names]
        return row


class ResidentLoop:
    """Takes a session through batches that are in memory, as many to a call as the session and the device allow."""

    def __init__(self, ts: TrainingSession) -> None:
        self._ts, self._most = ts, FIRST_CALL
        self._alone, self._alone_next = 0, 1  # batches to be stepped without a look at what follows
        self._one_by_one = bool(ts.resident_reason)

    def take(self, batches: Staged, i: int) -> Taken:
        """The updates from batch `i` on: at least one; raises as `step` does."""
        return self._many(batches, i) or Taken.one(self._ts.step(batches[i]))

    def _many(self, batches: Staged, i: int) -> Taken | None:
        ts = self._ts
        if self._one_by_one or ts.pending_accumulation:
            return None
        if self._alone:
            self._alone -= 1
            return None
        try:
            forward, _ = ts._batches.check(batches[i])
        except RlxError:
            return None
        resident = ts._trainer.many(forward)
        count, feeds = batches.series(forward, i, self._most) if resident else (0, {})
        taken = resident(feeds, count) if resident and count > 1 else None
        if count < 2:  # sizes that alternate go on alternating, likely
            self._alone, self._alone_next = self._alone_next, min(2 * self._alone_next, MOST_ALONE)
        if taken is not None:
            self._alone_next = 1
            ts.last_report = taken.last()
            done = len(taken.losses)
            self._most = min(2 * done if done == count else max(done, 2), LARGEST_CALL)
        return taken
