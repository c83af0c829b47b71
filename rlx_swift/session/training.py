"""The training session: a forward graph, its weights on a device, and an optimizer. It joins the parts."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..autodiff.reverse import loss_name
from ..errors import ConfigError, GraphError, NameNotFoundError, SessionError
from ..ir.graph import Graph
from ..ir.symbolic import SymbolicGraph, bound, sample
from ..lower.mil import lower
from ..lower.package import write_package
from ..optim.schedule import Schedule, as_schedule, rate
from . import feeds as feeding
from .compiled import Programs
from .config import TrainConfig
from .device import pick
from .fit import Callback, History, fit
from .names import gradient_name, require_unreserved
from .programs import evaluation_graph, gradient_graph, prediction_graph
from .report import Eligible, StepReport, Unsupported, UpdatePath
from .rule import Group, Rule
from .selection import matching
from .state import OptimizerState, Window, fill_accumulators
from .updates import Arrays, FusedUpdate, HostUpdate, Numbers, Update
from .weights import Weights, as_array, initial_values

Batch = Mapping[str, Any]


class TrainingSession:
    """Trains the params of a graph that has a loss.

    Args:
        graph: the forward graph; its output `loss` is a float of rank 0. A graph with a named leading
            dimension compiles once for each batch size that comes.
        trainable: names or patterns ("*.weight") of the params to train; None for all.
        initial: values of params and buffers by name, over those that the graph gives.
        config: optimizer, learning rate, clip, seed.
        device: "numpy", "cpu", "coreml", or None for the best present.
        loss: the output to minimise; by default "loss", or the only one.

    Whatever a method raises, the session goes on as if the call had not been made.

    Raises:
        NameNotFoundError: `trainable` or `initial` names what the graph does not have.
        ConfigError: a param has no value.
        GraphError: there is no such loss, or it is not of rank 0.
    """

    def __init__(
        self, graph: Graph | SymbolicGraph, trainable: Sequence[str] | str | None = None,
        initial: Mapping[str, Any] | None = None, config: TrainConfig | None = None, device: str | None = None,
        loss: str | None = None,
    ) -> None:
        self.graph, self.config = graph, config or TrainConfig()
        form = sample(graph)
        form.verify()
        require_unreserved(form.leaves())
        self.loss = _checked_loss(form, loss)
        self._device = pick(device)
        self._weights = Weights(self._device, form)
        self._weights.set({**initial_values(form, self.config.seed), **(initial or {})})
        for name in self._weights.without_value():
            raise ConfigError(f"param {name!r}", "it has no value", "give one in `initial` or as its `init`")
        self.trainable = tuple(matching(trainable, form.params))
        shapes = {name: self._weights.shapes[name] for name in self.trainable}
        self._rule = Rule([Group(self.config.optimizer, self.trainable)], self.config.clip, shapes)
        self._state = OptimizerState(self._weights.store, self._rule)
        self._schedule: Schedule = as_schedule(self.config.lr)
        self._steps, self._window = 0, Window()
        self._batches = feeding.BatchCheck(graph)
        self._prediction_inputs = list(prediction_graph(form, self.loss).inputs)
        self.last_report: StepReport | None = None
        self._gradients = self._family(lambda forward: gradient_graph(forward, self.loss, self.trainable))
        self._evaluations = self._family(lambda forward: evaluation_graph(forward, self.loss))
        self._predictions = self._family(lambda forward: prediction_graph(forward, self.loss))
        self._update: Update = HostUpdate(self._weights.store, self._gradients, self._rule)
        self._fused_reason = "with_fused_optimizer() was not called"

    def _family(self, build: Callable[[Graph], Graph]) -> Programs:
        return Programs(self._device, self._weights.store, build)

    # Settings

    def with_fused_optimizer(self) -> TrainingSession:
        """Puts the optimizer inside the device program, before the first step; returns the session.

        Where that cannot be done, the host goes on updating, `fused_active` is False and `fused_reason` says why.
        """
        self._require_fresh("with_fused_optimizer()")
        try:
            self._update = FusedUpdate(self._device, self._weights.store, self.loss, self._rule)
            self._fused_reason = ""
        except Exception as error:  # a user's rule may raise anything when it meets graph tensors
            self._fused_reason = f"{type(self.config.optimizer).__name__} cannot be part of the program: {error}"
        return self

    def _require_fresh(self, call: str) -> None:
        if self._steps or self._window.count:
            raise SessionError(call, "expected before the first step", f"{self._steps} updates have been applied")

    @property
    def fused_active(self) -> bool:
        """Whether the optimizer runs inside the device program."""
        return self._update.path is UpdatePath.FUSED

    @property
    def fused_reason(self) -> str:
        """Why it does not; empty when it does."""
        return self._fused_reason

    @property
    def update_path(self) -> UpdatePath:
        """How steps update the weights."""
        return self._update.path

    @property
    def device(self) -> str:
        """The name of the device that runs the programs."""
        return self._device.name

    @property
    def steps(self) -> int:
        """How many updates have been applied."""
        return self._steps

    @property
    def lr(self) -> float:
        """The learning rate of the next update; assigning a number or a function replaces the schedule."""
        return rate(self._schedule, self._steps)

    @lr.setter
    def lr(self, value: float | Schedule) -> None:
        self._schedule = as_schedule(value)

    @property
    def compile_count(self) -> int:
        """How many training programs were compiled: one for each batch size."""
        return self._update.training_programs().compiled

    @property
    def programs(self) -> dict[str, int]:
        """How many programs of each kind were compiled."""
        families = {
            "train": self._update.training_programs(), **self._update.other_programs(), "gradient": self._gradients,
            "evaluate": self._evaluations, "predict": self._predictions,
        }
        if families["train"] is self._gradients:
            del families["train"]
        return {kind: family.compiled for kind, family in families.items() if family.compiled}

    def mlupdatetask_eligibility(self) -> Eligible | Unsupported:
        """Whether Core ML's own MLUpdateTask could train this graph."""
        return Unsupported(
            "MLUpdateTask updates only NeuralNetwork models, and this graph becomes an ML Program; "
            "the session trains it by gradients instead"
        )

    # Training

    def step(self, batch: Batch) -> StepReport:
        """One update from one batch. The loss is that before the update.

        Raises FeedError or DTypeError for a batch that does not fit, SessionError while micro-batches are pending.
        """
        self._require_nothing_pending("step()")
        forward, feeds = self._batches.check(batch)
        results = self._update.step(forward, feeds, self._numbers())
        return self._applied(float(results.pop(self.loss)), results)

    def accumulate(self, batch: Batch, weight: float = 1.0) -> float:
        """Adds a micro-batch's gradient, times `weight`, to the pending ones; returns its loss."""
        if not (isinstance(weight, (int, float)) and math.isfinite(weight) and weight > 0):
            raise ConfigError("accumulate weight", f"expected a finite number above 0, got {weight!r}")
        forward, feeds = self._batches.check(batch)
        if not self._window.count:
            zeros = {name: np.zeros(shape, np.float32) for name, shape in self._rule.shapes.items()}
            fill_accumulators(self._weights.store, zeros)
        loss = float(self._update.accumulate(forward, feeds, float(weight))[self.loss])
        self._window.add(float(weight), loss)
        return loss

    @property
    def pending_accumulation(self) -> int:
        """How many micro-batches wait for `step_accumulated`."""
        return self._window.count

    def discard_accumulated(self) -> None:
        """Forgets the pending micro-batches."""
        self._window = Window()

    def step_accumulated(self) -> int:
        """One update from the weighted mean of the pending gradients; how many micro-batches it was, 0 if none."""
        window = self._window
        if window.count:
            self._update.apply(window.weight, self._numbers())
            self._window = Window()
            self._applied(window.loss / window.weight, {})
        return window.count

    def gradients(self, batch: Batch) -> tuple[float, Arrays]:
        """The loss and the gradient of each trained param; changes nothing."""
        forward, feeds = self._batches.check(batch)
        results = self._gradients.get(forward).run(feeds)
        return float(results[self.loss]), {name: results[gradient_name(name)] for name in self.trainable}

    def apply_gradients(self, gradients: Mapping[str, Any]) -> None:
        """One update from gradients made elsewhere, one for each trained param."""
        self._require_nothing_pending("apply_gradients()")
        for name in (*gradients, *self.trainable):
            if name not in gradients or name not in self._rule.shapes:
                raise NameNotFoundError(f"gradient {name!r}", f"expected one for each of {', '.join(self.trainable)}")
        arrays = {n: as_array(gradients[n], shape, f"gradient {n!r}") for n, shape in self._rule.shapes.items()}
        fill_accumulators(self._weights.store, arrays)
        self._update.apply(1.0, self._numbers())
        self._steps += 1

    def evaluate(self, batch: Batch) -> float:
        """The loss of a batch in the graph's inference form; changes nothing."""
        forward, feeds = self._batches.check(batch)
        return float(self._evaluations.get(forward).run(feeds)[self.loss])

    def predict(self, feeds: Batch) -> Arrays:
        """The outputs other than the loss, from the inputs that these need; changes nothing.

        Inputs that only the loss reads may be given or left out.
        """
        forward = bound(self.graph, feeding.require_mapping(feeds))
        needed = {name: forward.inputs[name].type for name in self._prediction_inputs}
        given = {name: value for name, value in feeds.items() if name in needed or name not in forward.inputs}
        return self._predictions.get(forward).run(feeding.checked(needed, given))

    def fit(
        self, batches: Iterable[Batch], epochs: int = 1, schedule: float | Schedule | None = None,
        validation: Iterable[Batch] | Batch | None = None, callbacks: Sequence[Callback] = (), accumulate: int = 1,
        progress: bool = True,
    ) -> History:
        """Steps through the batches `epochs` times; see `rlx_swift.session.fit`."""
        if schedule is not None:
            self.lr = schedule
        return fit(self, batches, epochs, validation, callbacks, accumulate, progress)

    # Values

    def param(self, name: str) -> np.ndarray:
        """A copy of a param's or buffer's value."""
        return self._weights.get(name)

    def params(self) -> Arrays:
        """Copies of all params and buffers by name."""
        return self._weights.all()

    def set_params(self, values: Mapping[str, Any]) -> None:
        """Gives params and buffers new values, all or none; never recompiles."""
        self._weights.set(values)

    def state(self, name: str) -> Arrays:
        """Copies of the optimizer's state of one trained param, by slot."""
        return self._state.get(name)

    def set_state(self, name: str, slots: Mapping[str, Any]) -> None:
        """Gives slots of one trained param's optimizer state new values, all or none."""
        self._state.set(name, slots)

    def export(
        self, path: str | os.PathLike[str], outputs: Sequence[str] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        """Writes the inference form with the trained weights inside as an .mlpackage.

        `outputs` are the graph's outputs to keep: by default all but the loss, or the loss if it is the only one.
        A Core ML program has fixed shapes: `sizes` gives those of named dimensions, 1 where it does not.
        """
        forward = self.graph
        if isinstance(forward, SymbolicGraph):
            forward = forward.bind({**dict.fromkeys(forward.dimensions, 1), **(sizes or {})})
        graph = prediction_graph(forward, self.loss, outputs)
        kept = {name: self._weights.get(name) for name in (*graph.params, *graph.buffers)}
        write_package(path, lower(graph, baked=kept).model)

    # Inside

    def _numbers(self) -> Numbers:
        return self._rule.scalars(self._steps + 1, rate(self._schedule, self._steps))

    def _applied(self, loss: float, results: Arrays) -> StepReport:
        self._steps += 1
        outputs = {name: value.item() for name, value in results.items()}
        self.last_report = StepReport(loss, self._update.path, outputs=outputs)
        return self.last_report

    def _require_nothing_pending(self, call: str) -> None:
        if self._window.count:
            hint = "call step_accumulated() or discard_accumulated() first"
            raise SessionError(call, f"{self._window.count} accumulated micro-batches are pending", hint)


def _checked_loss(form: Graph, loss: str | None) -> str:
    name = loss_name(form, loss)
    type = form.outputs[name].type
    if type.shape != () or not type.dtype.is_float:
        raise GraphError(f"loss {name!r}", f"expected a float of rank 0, got {type}", "reduce it")
    return name
