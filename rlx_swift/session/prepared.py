"""The common training step without detours: everything that is the same from step to step is looked up beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import FeedError
from ..ir.graph import Graph
from ..optim.schedule import rate
from .device import Direct
from .names import scalar_name
from .report import StepReport, UpdatePath

if TYPE_CHECKING:
    from .trainer import Trainer


class PreparedStep:
    """A fused step for batches of one size, of arrays that are exactly what the program takes.

    Called with anything else it returns None and nothing has happened: the trainer's own way then does what it
    takes, or says what is wrong.
    """

    def __init__(self, trainer: Trainer, forward: Graph, direct: Direct) -> None:
        rule = trainer.recipe.rule
        self._trainer, self._run, self._run_lent, self._lent = trainer, direct.run, direct.run_lent, direct.lent
        self._unheard = direct.unheard
        self._inputs = [
            (name, direct.inputs.get(name), x.dtype.numpy, x.shape) for name, x in forward.inputs.items()
        ]
        self._optimizers = [
            (each.optimizer.scalars, each.since, each.lr_scale, len(names),
             [(name, direct.inputs[scalar_name(i, name)]) for name in names if scalar_name(i, name) in direct.inputs])
            for i, (each, names) in enumerate(zip(rule.assignments, rule.scalar_names(), strict=True))
        ]
        self._loss = direct.outputs[trainer.recipe.loss]
        self._others = [(name, buffer) for name, buffer in direct.outputs.items() if name != trainer.recipe.loss]

    def __call__(self, batch: Mapping[str, Any]) -> StepReport | None:
        """One update and its report, or None where the batch is not as expected."""
        if type(batch) is not dict or len(batch) != len(self._inputs):
            return None
        for name, buffer, dtype, shape in self._inputs:
            value = batch.get(name)
            if type(value) is not np.ndarray or value.dtype is not dtype or value.shape != shape:
                return None
            if buffer is not None:
                buffer[...] = value
        trainer = self._trainer
        counters = trainer.counters
        steps = counters.steps
        lr = trainer.schedule(steps)
        if type(lr) is not float or not 0.0 <= lr < inf:
            lr = rate(trainer.schedule, steps)
        for scalars, since, scale, count, slots in self._optimizers:
            numbers = scalars(steps - since + 1, lr * scale)
            if len(numbers) != count:
                return None
            for name, buffer in slots:
                buffer[0] = numbers[name]
        try:
            if self._lent:
                self._run_lent([batch[name] for name in self._lent])
            else:
                self._run()
        except FeedError:
            return None
        except BaseException:  # a signal handler's, which may come after the run
            trainer.took(self._unheard(), skipped=False)
            raise
        counters.steps = steps + 1
        counters.micro_batches += 1
        outputs = {name: buffer.item() for name, buffer in self._others} if self._others else {}
        return StepReport(self._loss.item(), UpdatePath.FUSED, False, outputs)
