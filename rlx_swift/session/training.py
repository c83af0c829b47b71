"""The training session: a forward graph, its weights on a device, and an optimizer."""

from __future__ import annotations

import fnmatch
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..autodiff.reverse import loss_name
from ..errors import ConfigError, FeedError, GraphError, NameNotFoundError, RlxError, SessionError
from ..ir.graph import Graph
from ..ir.symbolic import SymbolicGraph, bound
from ..lower.mil import lower
from ..lower.package import write_package
from ..optim.schedule import Schedule, as_schedule
from . import feeds as feeding
from .compiled import Programs, as_param, initial_values
from .config import TrainConfig
from .device import pick
from .fit import Callback, History, fit
from .programs import Rule, evaluation_graph, gradient_graph, gradient_name, prediction_graph
from .report import Eligible, StepReport, Unsupported, UpdatePath
from .updates import Arrays, FusedUpdate, HostUpdate, Update, write_buffers

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

    Raises NameNotFoundError, ConfigError (a param without a value), GraphError (no such loss, not of rank 0).
    """

    def __init__(
        self, graph: Graph | SymbolicGraph, trainable: Sequence[str] | str | None = None,
        initial: Mapping[str, Any] | None = None, config: TrainConfig | None = None, device: str | None = None,
        loss: str | None = None,
    ) -> None:
        self.graph, self.config = graph, config or TrainConfig()
        sample = graph.bind(dict.fromkeys(graph.dimensions, 2)) if isinstance(graph, SymbolicGraph) else graph
        sample.verify()
        self.loss = loss_name(sample, loss)
        if sample.outputs[self.loss].shape != () or not sample.outputs[self.loss].dtype.is_float:
            raise GraphError(
                f"loss {self.loss!r}", f"expected a float of rank 0, got {sample.outputs[self.loss].type}", "reduce it"
            )
        self._resident = {n: t.shape for n, t in (*sample.params.items(), *sample.buffers.items())}
        self._trainable = _matching(trainable, list(sample.params))
        self._device = pick(device)
        self._store = self._device.make_store()
        for name, value in self._starting_values(sample, initial or {}).items():
            self._store.put(name, value)
        self._schedule: Schedule = as_schedule(self.config.lr)
        self._rule = Rule(self.config.optimizer, self.config.clip)
        self._steps = 0
        self._accumulated: Arrays | None = None
        self._accumulated_weight, self._accumulated_loss, self._pending = 0.0, 0.0, 0
        self.last_report: StepReport | None = None
        self._fused_reason = "with_fused_optimizer() was not called"
        self._gradients = self._family(lambda forward: gradient_graph(forward, self.loss, self._trainable))
        self._evaluations = self._family(lambda forward: evaluation_graph(forward, self.loss))
        self._predictions = self._family(lambda forward: prediction_graph(forward, self.loss))
        shapes = {name: self._resident[name] for name in self._trainable}
        self._update: Update = HostUpdate(self._store, self._gradients, shapes, self._rule)

    def _family(self, build: Callable[[Graph], Graph]) -> Programs:
        return Programs(self._device, self._store, build)

    def _starting_values(self, sample: Graph, initial: Mapping[str, Any]) -> Arrays:
        for name in initial:
            if name not in self._resident:
                raise NameNotFoundError(
                    f"initial value {name!r}", "there is no param or buffer of that name",
                    f"the graph has {', '.join(self._resident)}",
                )
        values = initial_values(sample, self.config.seed)
        values.update({name: as_param(value, self._resident[name], name) for name, value in initial.items()})
        missing = [name for name in self._resident if name not in values]
        if missing:
            raise ConfigError(f"param {missing[0]!r}", "it has no value", "give one in `initial` or as its `init`")
        return values

    # Settings

    def with_fused_optimizer(self) -> TrainingSession:
        """Puts the optimizer inside the device program, before the first step; returns the session.

        Where that cannot be done, the host goes on updating, `fused_active` is False and `fused_reason` says why.
        """
        self._require_fresh("with_fused_optimizer()")
        shapes = {name: self._resident[name] for name in self._trainable}
        try:
            self._update = FusedUpdate(self._device, self._store, self.loss, shapes, self._rule)
            self._fused_reason = ""
        except (RlxError, NotImplementedError) as error:
            self._fused_reason = f"{type(self.config.optimizer).__name__} cannot be part of the program: {error}"
        return self

    def _require_fresh(self, call: str) -> None:
        if self._steps or self._pending:
            raise SessionError(call, "expected before the first step", f"{self._steps} updates have been applied")

    @property
    def fused_active(self) -> bool:
        """Whether the optimizer runs inside the device program."""
        return isinstance(self._update, FusedUpdate)

    @property
    def fused_reason(self) -> str:
        """Why it does not; empty when it does."""
        return self._fused_reason

    @property
    def update_path(self) -> UpdatePath:
        return self._update.path

    @property
    def device(self) -> str:
        return self._device.name

    @property
    def steps(self) -> int:
        """How many updates have been applied."""
        return self._steps

    @property
    def lr(self) -> float:
        """The learning rate of the next update; assigning a number or a function replaces the schedule."""
        return float(self._schedule(self._steps))

    @lr.setter
    def lr(self, value: float | Schedule) -> None:
        self._schedule = as_schedule(value)

    @property
    def compile_count(self) -> int:
        """How many training programs were compiled: one for each batch size."""
        return self._training_programs().compiled

    @property
    def programs(self) -> dict[str, int]:
        """How many programs of each kind were compiled."""
        families = {"train" if self.fused_active else "gradient": self._training_programs()}
        if isinstance(self._update, FusedUpdate):
            families |= {"gradient": self._gradients, "apply": self._update.apply_programs}
        families |= {"evaluate": self._evaluations, "predict": self._predictions}
        return {kind: family.compiled for kind, family in families.items() if family.compiled}

    def _training_programs(self) -> Programs:
        return self._update.programs if isinstance(self._update, FusedUpdate) else self._gradients

    def mlupdatetask_eligibility(self) -> Eligible | Unsupported:
        """Whether Core ML's own MLUpdateTask could train this graph."""
        return Unsupported(
            "MLUpdateTask updates only NeuralNetwork models, and this graph becomes an ML Program; "
            "the session trains it by gradients instead"
        )

    # Training

    def step(self, batch: Batch) -> StepReport:
        """One update from one batch. The loss is that before the update.

        Raises FeedError and DTypeError for a bad batch, with weights unchanged; SessionError while
        micro-batches are pending.
        """
        if self._pending:
            raise SessionError(
                "step()", f"{self._pending} accumulated micro-batches are pending",
                "call step_accumulated() or discard_accumulated() first",
            )
        forward, feeds = self._checked(batch)
        results = self._update.step(forward, feeds, self._scalars())
        self._steps += 1
        return self._reported(float(results.pop(self.loss)), results)

    def accumulate(self, batch: Batch, weight: float = 1.0) -> float:
        """Adds a micro-batch's gradient, times `weight`, to the pending ones; returns its loss."""
        if not (isinstance(weight, (int, float)) and math.isfinite(weight) and weight > 0):
            raise ConfigError("accumulate weight", f"expected a finite number above 0, got {weight!r}")
        loss, gradients = self._gradient_run(batch, write=True)
        scaled = {name: np.float32(weight) * g for name, g in gradients.items()}
        if self._accumulated is None:
            self._accumulated = scaled
        else:
            for name, gradient in scaled.items():
                self._accumulated[name] += gradient
        self._accumulated_weight += weight
        self._accumulated_loss += weight * loss
        self._pending += 1
        return loss

    @property
    def pending_accumulation(self) -> int:
        """How many micro-batches wait for `step_accumulated`."""
        return self._pending

    def discard_accumulated(self) -> None:
        """Forgets the pending micro-batches."""
        self._accumulated, self._pending = None, 0
        self._accumulated_weight = self._accumulated_loss = 0.0

    def step_accumulated(self) -> int:
        """One update from the weighted mean of the pending gradients; how many micro-batches it was, 0 if none."""
        count = self._pending
        if self._accumulated is None:
            return 0
        total = np.float32(self._accumulated_weight)
        self._update.apply({name: g / total for name, g in self._accumulated.items()}, self._scalars())
        self._steps += 1
        self._reported(self._accumulated_loss / self._accumulated_weight, {})
        self.discard_accumulated()
        return count

    def gradients(self, batch: Batch) -> tuple[float, Arrays]:
        """The loss and the gradient of each trained param; changes nothing."""
        return self._gradient_run(batch, write=False)

    def apply_gradients(self, gradients: Mapping[str, Any]) -> None:
        """One update from gradients made elsewhere, one for each trained param."""
        if set(gradients) != set(self._trainable):
            odd = sorted(set(gradients) ^ set(self._trainable))
            raise NameNotFoundError(f"gradient {odd[0]!r}", f"expected one for each of {', '.join(self._trainable)}")
        arrays = {name: as_param(gradients[name], self._resident[name], name) for name in self._trainable}
        self._update.apply(arrays, self._scalars())
        self._steps += 1

    def evaluate(self, batch: Batch) -> float:
        """The loss of a batch in the graph's inference form; changes nothing."""
        forward, feeds = self._checked(batch)
        _, executable = self._evaluations.get(forward)
        return float(executable.run(feeds)[self.loss])

    def predict(self, feeds: Batch) -> Arrays:
        """The outputs other than the loss, from the inputs that these need; changes nothing."""
        graph, executable = self._predictions.get(self._bound_for_prediction(feeds))
        wanted = {name: t.type for name, t in graph.inputs.items()}
        extra = {name for name in feeds if name not in wanted and name in self._input_names()}
        return executable.run(feeding.checked(wanted, {n: v for n, v in feeds.items() if n not in extra}))

    def fit(
        self, batches: Iterable[Batch], epochs: int = 1, schedule: float | Schedule | None = None,
        validation: Iterable[Batch] | Batch | None = None, callbacks: Sequence[Callback] = (), accumulate: int = 1,
        progress: bool = True,
    ) -> History:
        """Steps through the batches `epochs` times; see `rlx_swift.session.fit`."""
        if schedule is not None:
            self.lr = schedule 
        return fit(self, batches, epochs, validation, callbacks, accumulate, progress)

    # Weights

    def param(self, name: str) -> np.ndarray:
        """A copy of a param's or buffer's value."""
        self._require_name(name)
        return self._store.get(name)

    def params(self) -> Arrays:
        """Copies of all params and buffers by name."""
        return {name: self._store.get(name) for name in self._resident}

    def set_params(self, values: Mapping[str, Any]) -> None:
        """Gives params and buffers new values, all or none; never recompiles."""
        for name in values:
            self._require_name(name)
        arrays = {name: as_param(value, self._resident[name], name) for name, value in values.items()}
        for name, array in arrays.items():
            self._store.put(name, array)

    def state(self, name: str) -> Arrays:
        """Copies of the optimizer's state of one trained param, by slot."""
        return self._update.state(name)

    def set_state(self, name: str, slots: Mapping[str, Any]) -> None:
        """Gives the optimizer's state of one trained param new values."""
        known = self._update.state(name)
        for slot in slots:
            if slot not in known:
                raise NameNotFoundError(f"state {slot!r} of {name!r}", f"it has {', '.join(known) or 'no slots'}")
        self._update.set_state(
            name, {slot: as_param(value, known[slot].shape, f"{name}/{slot}") for slot, value in slots.items()}
        )

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
        kept = {name: self._store.get(name) for name in (*graph.params, *graph.buffers)}
        write_package(path, lower(graph, baked=kept).model)

    # Inside

    def _scalars(self) -> dict[str, float]:
        lr = float(self._schedule(self._steps))
        if not (math.isfinite(lr) and lr >= 0):
            raise ConfigError("lr", f"expected a finite number of at least 0 for update {self._steps}, got {lr!r}")
        return self.config.optimizer.scalars(self._steps + 1, lr)

    def _checked(self, batch: Batch) -> tuple[Graph, Arrays]:
        forward = bound(self.graph, batch)
        return forward, feeding.checked({name: t.type for name, t in forward.inputs.items()}, batch)

    def _gradient_run(self, batch: Batch, write: bool) -> tuple[float, Arrays]:
        forward, feeds = self._checked(batch)
        _, executable = self._gradients.get(forward)
        results = executable.run(feeds)
        if write:
            write_buffers(self._store, forward, results)
        return float(results[self.loss]), {name: results[gradient_name(name)] for name in self._trainable}

    def _reported(self, loss: float, results: Arrays) -> StepReport:
        outputs = {name: value.item() for name, value in results.items() if value.ndim == 0}
        self.last_report = StepReport(loss, self._update.path, outputs=outputs)
        return self.last_report

    def _input_names(self) -> set[str]:
        return set(self.graph.inputs)

    def _bound_for_prediction(self, feeds: Batch) -> Graph:
        """Prediction may lack the inputs that only the loss reads, so any input gives the size."""
        if isinstance(self.graph, Graph):
            return self.graph
        given = {d: np.shape(feeds[n])[0] for n, s in self.graph.inputs.items() if (d := s.dimension) and n in feeds}
        missing = [d for d in self.graph.dimensions if d not in given]
        if missing:
            raise FeedError(f"dimension {missing[0]!r}", "no input that has it was given")
        return self.graph.bind(given)

    def _require_name(self, name: str) -> None:
        if name not in self._resident:
            raise NameNotFoundError(
                f"{name!r}", "there is no param or buffer of that name", f"it has {', '.join(self._resident)}"
            )


def _matching(trainable: Sequence[str] | str | None, params: list[str]) -> list[str]:
    """The params that the names and patterns select, in the graph's order."""
    if trainable is None:
        chosen = params
    else:
        patterns = [trainable] if isinstance(trainable, str) else list(trainable)
        for pattern in patterns:
            if not fnmatch.filter(params, pattern) and pattern not in params:
                raise NameNotFoundError(
                    f"trainable {pattern!r}", "no param matches", f"the graph has {', '.join(params) or 'none'}"
                )
        chosen = [p for p in params if any(p == x or fnmatch.fnmatchcase(p, x) for x in patterns)]
    if not chosen:
        raise ConfigError("trainable", "there is no param to train")
    return chosen
