"""Training by Core ML's own MLUpdateTask: what it can take of a session, and one task as a `step` or a `fit`.

A task keeps no momentum or moments for the next one, so only plain SGD can step; anything that a task does not do
is an error with the reason, never a quiet detour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ConfigError, FeedError, SessionError
from ..ir.graph import Graph
from ..ir.symbolic import sample
from ..lower.updatable import Network, Reason, network_of, weight_for
from ..lower.updatable_encoding import Rule, encode, layer_name
from ..optim import SGD, Adam, Optimizer, ParamGroups
from ..optim.schedule import Constant, rate
from ..precision import PrecisionPolicy
from .config import TrainConfig
from .fit import Callback, History
from .report import Eligible, StepReport, Unsupported, UpdatePath

if TYPE_CHECKING:
    from .training import TrainingSession

Batch = Mapping[str, Any]
SUBJECT = "update_path='mlupdatetask'"


def eligibility(
    graph: Graph, loss: str, trainable: Iterable[str], config: TrainConfig
) -> Eligible | Unsupported:
    """Whether MLUpdateTask could train the graph so, and if not, what stands in the way."""
    try:
        network_of(graph, loss, trainable)
        _check_config(config)
    except Reason as reason:
        return Unsupported(str(reason))
    return Eligible()


def _check_config(config: TrainConfig) -> None:
    """Raises Reason for settings that an update task has no form of."""
    optimizer = config.optimizer
    if isinstance(optimizer, ParamGroups):
        raise Reason("param groups; a task has one optimizer and one rate")
    if type(optimizer) is SGD:
        if optimizer.nesterov or optimizer.dampening or optimizer.weight_decay:
            raise Reason("SGD with Nesterov's form, dampening or weight decay")
        if optimizer.momentum > 1:
            raise Reason(f"SGD with momentum {optimizer.momentum}; expected at most 1")
    elif type(optimizer) is Adam:
        if optimizer.amsgrad or optimizer.weight_decay:
            raise Reason("Adam with amsgrad or weight decay")
    else:
        raise Reason(f"the optimizer {type(optimizer).__name__}; expected SGD or Adam")
    if config.clip is not None:
        raise Reason("a clip of the gradients, which a task does not show")
    if config.ema is not None:
        raise Reason("a running average of the weights")
    if config.loss_scale not in ("auto", None):
        raise Reason("a loss scale; a task computes in f32")


class UpdateTask:
    """Trains a session's weights by tasks. The session's programs still evaluate and predict.

    Raises ConfigError, with the reason, for a session that is not eligible, and DeviceError without Core ML.
    """

    def __init__(self, ts: TrainingSession) -> None:
        from .._native.handles import check_device

        form = sample(ts.graph)
        try:
            self._network: Network = network_of(form, ts.loss, ts.trainable)
            _check_config(ts.config)
        except Reason as reason:
            raise ConfigError(SUBJECT, f"Core ML cannot train this: {reason}") from None
        check_device("coreml")
        self._ts = ts

    def step(self, feeds: Mapping[str, np.ndarray]) -> StepReport:
        """One task of one mini-batch; raises SessionError for an optimizer that keeps something between steps."""
        optimizer = self._ts.config.optimizer
        if not (isinstance(optimizer, SGD) and not optimizer.momentum):
            problem = f"{type(optimizer).__name__} keeps state between steps, and a task keeps none for the next"
            raise SessionError("step()", problem, "use fit(), which is one task, or SGD without momentum")
        rows = len(feeds[self._network.input])
        losses = self._run(feeds, epochs=1, batch=rows)
        return StepReport(losses[0], UpdatePath.MLUPDATETASK)

    def fit(
        self, batches: Iterable[Batch], epochs: int, validation: object, callbacks: Sequence[Callback],
        accumulate: int, weight: object,
    ) -> History:
        """One task over all batches, read once and in their order; raises ConfigError for what a task does not do."""
        for name, given in (
            ("validation", validation is not None), ("callbacks", bool(callbacks)), ("accumulate", accumulate != 1),
            ("weight", weight is not None),
        ):
            if given:
                raise ConfigError(f"fit {name}", f"a task of {SUBJECT} has none", "leave it out")
        if not isinstance(self._ts.schedule, Constant):
            raise ConfigError("fit schedule", "a task has one rate", "give a number as lr")
        if not isinstance(epochs, int) or isinstance(epochs, bool) or epochs < 1:
            raise ConfigError("fit epochs", f"expected an integer of at least 1, got {epochs!r}")
        feeds, size = self._joined(batches)
        losses = self._run(feeds, epochs, size)
        return _history(losses, len(feeds[self._network.input]), size, epochs)

    def _joined(self, batches: Iterable[Batch]) -> tuple[dict[str, np.ndarray], int]:
        """All batches in one, and their size: the last may be smaller, no other."""
        if isinstance(batches, Mapping):
            raise ConfigError("fit batches", "expected batches, got a single dict", "use rlx.batches(arrays, size)")
        checked = [self._ts._batches.check(batch)[1] for batch in batches]
        if not checked:
            raise FeedError("fit batches", "there was no batch in the epoch")
        sizes = [len(feeds[self._network.input]) for feeds in checked]
        if any(n != sizes[0] for n in sizes[:-1]) or sizes[-1] > sizes[0]:
            raise FeedError("fit batches", f"expected batches of one size but the last, got {sizes}")
        names = (self._network.input, self._network.target)
        return {name: np.concatenate([feeds[name] for feeds in checked]) for name in names}, sizes[0]

    def _run(self, feeds: Mapping[str, np.ndarray], epochs: int, batch: int) -> list[float]:
        """Runs a task and takes its weights; on an error the session keeps its own."""
        from .._native.update import NetworkUpdate

        ts, network = self._ts, self._network
        if ts.precision_policy != PrecisionPolicy.ALWAYS_F32:
            raise SessionError(SUBJECT, "a task computes in f32", "leave the precision policy out")
        rule = _rule(ts.config.optimizer, rate(ts.schedule, ts.steps), batch, epochs)
        model = encode(network, rule, ts.params())
        data = {
            network.input_feature: np.ascontiguousarray(feeds[network.input]),
            network.target_feature: np.ascontiguousarray(feeds[network.target]),
        }
        with NetworkUpdate.run(model, data, epochs, batch) as update:
            losses = update.losses()
            ts.set_params(self._trained(update, ts.params()))
        ts._trainer.counters.steps += len(losses)
        ts._trainer.counters.micro_batches += len(losses)
        return losses

    def _trained(self, update: Any, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        trained: dict[str, np.ndarray] = {}
        for index, layer in enumerate(self._network.layers):
            if not layer.updatable:
                continue
            name = layer_name(self._network, index)
            weight = update.parameter(name, "weights", weight_for(layer, values).shape)
            trained[layer.weight] = weight.T if layer.transposed else weight
            if layer.bias:
                trained[layer.bias] = update.parameter(name, "bias", values[layer.bias].shape)
        return trained


def _rule(optimizer: Optimizer | ParamGroups, lr: float, batch: int, epochs: int) -> Rule:
    if isinstance(optimizer, Adam):
        return Rule(lr, batch, epochs, betas=(optimizer.beta1, optimizer.beta2), eps=optimizer.eps)
    assert isinstance(optimizer, SGD)
    return Rule(lr, batch, epochs, optimizer.momentum)


def _history(losses: list[float], rows: int, size: int, epochs: int) -> History:
    """The means of each epoch from the losses of its mini-batches."""
    history = History(losses=losses)
    sizes = [min(size, rows - start) for start in range(0, rows, size)]
    for epoch in range(epochs):
        part = losses[epoch * len(sizes) : (epoch + 1) * len(sizes)]
        mean = math.fsum(n * loss for n, loss in zip(sizes, part, strict=True)) / rows
        history.epochs.append({"epoch": epoch + 1, "loss": mean})
    return history
