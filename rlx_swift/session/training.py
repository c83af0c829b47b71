"""The training session: what users call. It checks what they give and joins the parts that do the work."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from ..autodiff.reverse import loss_name
from ..errors import ConfigError, GraphError, NameNotFoundError, SessionError
from ..ir.graph import Graph, is_noise
from ..ir.symbolic import SymbolicGraph, bound, sample
from ..lower.mil import lower
from ..lower.package import write_package
from ..optim.base import POSITIVE, require
from ..optim.schedule import Schedule, as_schedule
from ..precision import PrecisionPolicy, as_policy
from . import checkpoint
from . import feeds as feeding
from .assignment import Trained
from .bundle import export_bundle
from .compiled import Programs
from .config import TrainConfig
from .device import pick
from .fit import Callback, History, fit
from .interrupt import Interrupt
from .names import require_unreserved
from .programs import Recipe, evaluation_graph, prediction_graph
from .report import Eligible, StepReport, Unsupported, UpdatePath
from .resident import ResidentLoop, StepReports, Taken
from .scaling import loss_scale
from .staging import staged
from .state import OptimizerState
from .trainer import Trainer
from .update_task import UpdateTask, eligibility
from .updates import Arrays
from .weights import Weights, as_array, initial_values

Batch = Mapping[str, Any]


class TrainingSession:
    """Trains the params of a graph that has a loss.

    Args:
        graph: the forward graph; its output `loss` is a float of rank 0. A graph with a named leading
            dimension compiles once for each batch size that comes.
        trainable: names or patterns ("*.weight") of the params to train; None for all.
        initial: values of params and buffers by name, over those that the graph gives.
        config: optimizer, learning rate, clip, loss scale, average, seed.
        device: "numpy", "cpu", "coreml", or None for the best present.
        loss: the output to minimise; by default "loss", or the only one.

    Whatever a method raises, the session goes on as if the call had not been made. One thread at a time may use it.

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
        self._trained = Trained(form, self.config)
        self._policy = PrecisionPolicy.ALWAYS_F32
        self._fused_reason = "with_fused_optimizer() was not called"
        self._batches = feeding.BatchCheck(graph)
        self._trained.choose(trainable, 0)
        self._weights.set(self._trained.starts(self._weights))
        scale = loss_scale(self.config.loss_scale, half=False)
        self._trainer = Trainer(self._device, self._weights, self.config.seed, as_schedule(self.config.lr), scale)
        self._configure()
        self._task = UpdateTask(self) if self.config.update_path else None
        self.last_report: StepReport | None = None

    @cached_property
    def _prediction_inputs(self) -> list[str]:
        predicting = prediction_graph(sample(self.graph), self.loss, PrecisionPolicy.ALWAYS_F32)
        return [name for name in predicting.inputs if not is_noise(name)]

    def _configure(self, fused: bool | None = None) -> None:
        """Makes programs anew for the present params, policy and way of updating."""
        trainer, store, policy = self._trainer, self._weights.store, self._policy
        recipe = Recipe(self.loss, self._trained.rule, policy, trainer.scale.active)
        trainer.use(recipe, trainer.fused if fused is None else fused)
        self._state = OptimizerState(store, recipe.rule)
        self._evaluations = Programs(self._device, store, lambda f: evaluation_graph(f, self.loss, policy))
        self._predictions = Programs(self._device, store, lambda f: prediction_graph(f, self.loss, policy))

    # Settings

    def with_fused_optimizer(self) -> TrainingSession:
        """Puts the optimizer inside the device program, before the first step; returns the session.

        Where that cannot be done, the host goes on updating, `fused_active` is False and `fused_reason` says why.
        """
        self._require_own_path("with_fused_optimizer()")
        self._require_fresh("with_fused_optimizer()")
        self._fused_reason = self._trained.host_only()
        if not self._fused_reason:
            try:
                self._configure(fused=True)
            except Exception as error:  # a user's rule may raise anything when it meets graph tensors
                names = ", ".join(sorted({type(each.optimizer).__name__ for each in self._trained.rule.assignments}))
                self._fused_reason = f"{names} cannot be part of the program: {error}"
        return self

    def with_precision_policy(self, policy: PrecisionPolicy | str) -> TrainingSession:
        """Computes by a precision policy, before the first step; returns the session.

        Weights, optimizer state and the loss stay f32. With half precision and `loss_scale="auto"`, gradients are
        scaled, and an update with a non-finite one is skipped whole.
        """
        self._require_own_path("with_precision_policy()")
        self._require_fresh("with_precision_policy()")
        self._use_policy(as_policy(policy))
        return self

    def _use_policy(self, policy: PrecisionPolicy) -> None:
        self._policy = policy
        self._trainer.scale = loss_scale(self.config.loss_scale, policy.half)
        self._configure()

    def set_trainable(self, patterns: Sequence[str] | str | None) -> None:
        """Trains other params from here on; raises as the constructor does, and SessionError in an open window.

        Params that stay keep their state; new ones start theirs, and their optimizer counts its updates from
        now. One that comes back finds its state as it was. The training program is compiled again.
        """
        self._require_nothing_pending("set_trainable()")
        self._require_own_path("set_trainable()")
        before, kept = self.trainable, copy(self._trained)
        self._trained.choose(patterns, self.steps)
        try:
            joined = {n: v for n, v in self._trained.starts(self._weights).items() if n not in before}
            old = {name: self._weights.get(name) for name in joined}
            self._weights.set(joined)  # first: averages start from what the params start from
            if self.fused_active and (reason := self._trained.host_only()):
                self._fused_reason = reason
                self._configure(fused=False)
            else:
                self._configure()
        except Exception:
            self._trained = kept
            self._weights.set(old)
            self._configure()
            raise

    def _require_fresh(self, call: str) -> None:
        if self.steps or self._trainer.window.count:
            raise SessionError(call, "expected before the first step", f"{self.steps} updates have been applied")

    @property
    def trainable(self) -> tuple[str, ...]:
        """The params that are trained, in the graph's order."""
        return tuple(self._trained.rule.shapes)

    @property
    def fused_active(self) -> bool:
        """Whether the optimizer runs inside the device program."""
        return self._trainer.fused

    @property
    def fused_reason(self) -> str:
        """Why it does not; empty when it does."""
        return self._fused_reason

    @property
    def resident_reason(self) -> str:
        """Why `run_steps` and `fit` call the device for each update; empty where one call makes many."""
        if self._task is not None:
            return "each update is a task of Core ML's"
        return self._trainer.one_by_one(noisy=any(map(is_noise, sample(self.graph).inputs)))

    @property
    def update_path(self) -> UpdatePath:
        """How steps update the weights."""
        return UpdatePath.MLUPDATETASK if self._task is not None else self._trainer.path

    @property
    def precision_policy(self) -> PrecisionPolicy:
        """Where half precision is used."""
        return self._policy

    @property
    def device(self) -> str:
        """The name of the device that runs the programs."""
        return self._device.name

    @property
    def steps(self) -> int:
        """How many updates have been applied."""
        return self._trainer.counters.steps

    @property
    def loss_scale(self) -> float:
        """What gradients are multiplied by on their way through half precision; 1.0 without."""
        return self._trainer.scale.scale

    @property
    def lr(self) -> float:
        """The learning rate of the next update; assigning a number or a function replaces the schedule."""
        return self._trainer.lr()

    @lr.setter
    def lr(self, value: float | Schedule) -> None:
        self._trainer.schedule = as_schedule(value)

    @property
    def schedule(self) -> Schedule:
        """The function that gives each update's rate."""
        return self._trainer.schedule

    @property
    def compile_count(self) -> int:
        """How many training programs were compiled: one for each batch size."""
        return self._trainer.training_programs()

    @property
    def programs(self) -> dict[str, int]:
        """How many programs of each kind were compiled."""
        predicting = {"evaluate": self._evaluations.compiled, "predict": self._predictions.compiled}
        return {kind: count for kind, count in (self._trainer.compiled() | predicting).items() if count}

    def mlupdatetask_eligibility(self) -> Eligible | Unsupported:
        """Whether Core ML's own MLUpdateTask could train this graph."""
        return eligibility(sample(self.graph), self.loss, self.trainable, self.config)

    # Training

    def step(self, batch: Batch) -> StepReport:
        """One update from one batch. The loss is that before the update.

        Ctrl-C ends it with nothing changed, or after all of it.

        Raises FeedError or DTypeError for a batch that does not fit, SessionError while micro-batches are pending.
        """
        trainer = self._trainer
        if trainer.window.count:
            self._require_nothing_pending("step()")
        if self._task is not None:
            self.last_report = self._task.step(self._batches.check(batch)[1])
            return self.last_report
        report = None
        if trainer.prepared is not None:
            report = trainer.prepared(batch) or trainer.step_prepared(batch)
        if report is None:
            forward, feeds = self._batches.check(batch)
            trainer.ready(forward)
            with Interrupt() as interrupt, interrupt.held:
                outputs, applied = trainer.step(forward, feeds)
            report = StepReport(outputs.pop(self.loss), trainer.path, not applied, outputs)
        self.last_report = report
        return report

    def run_steps(self, batches: Iterable[Batch]) -> StepReports:
        """One update from each batch, as `step` makes them one after another, and what it would report of each:
        a sequence, and its `losses`.

        Where `resident_reason` is empty one call of the device makes many of them, from batches that are in memory: the
        next epoch of `rlx.batches`, or a list of dicts of arrays of the inputs' own types. Other iterables make each
        batch after the update from the one before it. When an update fails, those before it stand. Ctrl-C acts between
        two updates.

        Raises as `step` does.
        """
        if isinstance(batches, Mapping) or not isinstance(batches, Iterable):
            got = "a single dict" if isinstance(batches, Mapping) else repr(batches)
            raise ConfigError("run_steps batches", f"expected batches, got {got}", "use step(), or a list")
        loop, data, taken, done = ResidentLoop(self), staged(batches), [], 0
        with Interrupt() as interrupt:
            if data is None:
                for batch in batches:
                    with interrupt.held:
                        taken.append(Taken.one(self.step(batch)))
                return StepReports(taken)
            while done < len(data):
                with interrupt.held:
                    taken.append(loop.take(data, done))
                done += len(taken[-1].losses)
        return StepReports(taken)

    def accumulate(self, batch: Batch, weight: float = 1.0) -> float:
        """Adds a micro-batch's gradient, times `weight`, to the pending ones; returns its loss."""
        self._require_own_path("accumulate()")
        require("accumulate weight", weight in POSITIVE, POSITIVE.text, weight)
        feeds = self._batches.check(batch)
        with Interrupt() as interrupt, interrupt.held:
            return self._trainer.accumulate(*feeds, float(weight))[self.loss]

    @property
    def pending_accumulation(self) -> int:
        """How many micro-batches wait for `step_accumulated`."""
        return self._trainer.window.count

    def discard_accumulated(self) -> None:
        """Forgets the pending micro-batches, and what they did to buffers."""
        self._trainer.discard_window()

    def step_accumulated(self) -> int:
        """One update from the weighted mean of the pending gradients; how many micro-batches it was, 0 if none."""
        count = self._trainer.window.count
        if count:
            with Interrupt() as interrupt, interrupt.held:
                loss, applied = self._trainer.apply_window()
            self.last_report = StepReport(loss, self._trainer.path, not applied)
        return count

    def gradients(self, batch: Batch) -> tuple[float, Arrays]:
        """The loss and the gradient of each trained param; changes nothing."""
        return self._trainer.gradients(*self._batches.check(batch))

    def apply_gradients(self, gradients: Mapping[str, Any]) -> bool:
        """One update from gradients made elsewhere, one for each trained param; whether it was applied, not skipped.

        It counts as one micro-batch. Estimates of the Hessian need a batch, so none is made here.
        """
        self._require_own_path("apply_gradients()")
        self._require_nothing_pending("apply_gradients()")
        shapes = self._trained.rule.shapes
        for name in (*gradients, *shapes):
            if name not in gradients or name not in shapes:
                raise NameNotFoundError(f"gradient {name!r}", f"expected one for each of {', '.join(shapes)}")
        arrays = {n: as_array(gradients[n], shape, f"gradient {n!r}") for n, shape in shapes.items()}
        with Interrupt() as interrupt, interrupt.held:
            return self._trainer.apply_gradients(arrays)

    def evaluate(self, batch: Batch) -> float:
        """The loss of a batch in the graph's inference form; changes nothing."""
        forward, feeds = self._batches.check(batch)
        return float(self._evaluations.get(forward).run(self._trainer.with_noise(forward, feeds))[self.loss])

    def predict(self, feeds: Batch) -> Arrays:
        """The outputs other than the loss, from the inputs that these need; changes nothing.

        Inputs that only the loss reads may be given or left out.
        """
        forward = bound(self.graph, feeding.require_mapping(feeds))
        needed = {name: forward.inputs[name].type for name in self._prediction_inputs}
        given = {name: value for name, value in feeds.items() if name in needed or name not in forward.inputs}
        arrays = self._trainer.with_noise(forward, feeding.checked(needed, given))
        return self._predictions.get(forward).run(arrays)

    def fit(
        self, batches: Iterable[Batch], epochs: int = 1, schedule: float | Schedule | None = None,
        validation: Iterable[Batch] | Batch | None = None, callbacks: Sequence[Callback] = (), accumulate: int = 1,
        progress: bool = True, weight: Callable[[Batch], float] | None = None,
    ) -> History:
        """Steps through the batches `epochs` times; see `rlx_swift.session.fit`."""
        if schedule is not None:
            self.lr = schedule
        if self._task is not None:
            return self._task.fit(batches, epochs, validation, callbacks, accumulate, weight)
        return fit(self, batches, epochs, validation, callbacks, accumulate, progress, weight)

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

    def ema_params(self) -> Arrays:
        """Copies of the running averages of the trained params; ConfigError without `ema` in the config."""
        if self.config.ema is None:
            raise ConfigError("ema_params()", "the config has no `ema`", "TrainConfig(ema=0.999)")
        return self._state.averages()

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
        graph = prediction_graph(forward, self.loss, self._policy, outputs)
        kept = {name: self._weights.get(name) for name in (*graph.params, *graph.buffers)}
        write_package(path, lower(graph, baked=kept).model)

    def export_bundle(
        self, path: str | os.PathLike[str], sizes: Mapping[str, int | Sequence[int]] | None = None
    ) -> None:
        """Writes the run as a directory from which a Swift program goes on without Python.

        It has the training and prediction programs, a checkpoint (that `load` takes too), and a manifest with
        everything else as data. Its training updates inside the program, as after `with_fused_optimizer()`; from
        the same checkpoint both go on bit for bit on the CPU device. The same run gives the same bytes.

        Programs have fixed shapes: `sizes` gives those of named dimensions, one or several of each, such as
        `{"B": [64, 23, 1]}` for batches, the last of an epoch, and single samples. Swift takes the programs that a
        batch fits. The model to deploy has the smallest size.

        Raises:
            ConfigError: what a bundle cannot hold: a Python function as schedule, an optimizer that runs on the
                host alone, `scalars` that no formula can say.
            ShapeError: a named dimension without a size.
            LoweringError: a graph that Core ML cannot express.
            SessionError: a run by update tasks of Core ML's.
        """
        self._require_own_path("export_bundle()")
        export_bundle(self, path, sizes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything that the run is as one safetensors file, whole or not at all.

        That is: the graph, weights, buffers, optimizer state, averages, pending gradients, counters, schedule, loss
        scale and settings. The position in the data is not part of it.
        """
        checkpoint.save(self, path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], graph: Graph | SymbolicGraph | None = None,
        schedule: float | Schedule | None = None, device: str | None = None,
    ) -> TrainingSession:
        """The run that `save` wrote, to go on with bit for bit on the same machine and GEMM kernel.

        `graph` is needed for a graph with a named dimension, and otherwise compared with the saved one.
        `schedule` is needed where the rate came from a function of the user's. `device` is by default the one that
        the run was on, where that is present, and else the best that is.

        Raises:
            CheckpointError: a file that is not whole, of another version, or of another graph, and the difference.
            ConfigError: `graph` or `schedule` is needed, or the class of the optimizer is not defined.
        """
        return checkpoint.load(cls, path, graph, schedule, device)

    def _require_own_path(self, call: str) -> None:
        if self._task is not None:
            problem = "an update task of Core ML's shows no gradients and has no part of a program"
            raise SessionError(call, problem, "leave update_path out of the config")

    def _require_nothing_pending(self, call: str) -> None:
        if self._trainer.window.count:
            hint = "call step_accumulated() or discard_accumulated() first"
            raise SessionError(call, f"{self._trainer.window.count} accumulated micro-batches are pending", hint)


def _checked_loss(form: Graph, loss: str | None) -> str:
    name = loss_name(form, loss)
    type = form.outputs[name].type
    if type.shape != () or not type.dtype.is_float:
        raise GraphError(f"loss {name!r}", f"expected a float of rank 0, got {type}", "reduce it")
    return name
