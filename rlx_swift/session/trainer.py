"""One run's engine: the programs, the way of updating, and the counters. Batches arrive checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from ..interp import noise
from ..ir.graph import Graph, is_noise
from ..optim.requirement import HessianDiag
from ..optim.schedule import Schedule, rate
from .cache import source
from .compiled import Programs
from .curvature import hessian_graph, probes
from .device import Device, Executable
from .names import FINITE, LOSS_SCALE, UNSCALE, accumulator_name, gradient_name
from .prepared import PreparedStep
from .programs import Recipe, gradient_graph
from .report import StepReport, UpdatePath
from .resident import Resident
from .scaling import LossScale
from .updates import Arrays, FusedUpdate, HostUpdate, Outcome, Scalars, Update
from .weights import Weights

NO_SCALE: Scalars = {}


@dataclass
class Counters:
    """Attributes:
    steps: updates applied.
    micro_batches: batches whose gradients went into updates or wait for one; keys the random numbers.
    skips: updates skipped in a row.
    """

    steps: int = 0
    micro_batches: int = 0
    skips: int = 0


@dataclass
class Window:
    """The micro-batches that wait for one update; their gradients are in the accumulators on the device.

    Attributes:
        start: `Counters.micro_batches` before the first.
        buffers: values from before the first, to go back to when the window is skipped.
        fresh: the Hessian estimates made on the first.
    """

    count: int = 0
    weight: float = 0.0
    loss: float = 0.0
    start: int = 0
    buffers: Arrays = field(default_factory=dict)
    fresh: list[HessianDiag] = field(default_factory=list)


class Trainer:
    """Updates the weights on a device by a recipe.

    Attributes:
        resident: the names of what was put on the device beside the weights, also for params no longer trained.
        counters, window, scale, schedule: with the values on the device, everything that a run is.
        fused: whether the update is part of the device program.
        prepared: the short way for batches like the last, once there is one.
    """

    def __init__(self, device: Device, weights: Weights, seed: int, schedule: Schedule, scale: LossScale) -> None:
        """`use` comes first."""
        self._device, self._weights, self._seed = device, weights, seed
        self.counters, self.window, self.scale, self.schedule = Counters(), Window(), scale, schedule
        self.resident: set[str] = set()
        self.fused = False
        self._families: dict[str, Programs] = {}
        self.prepared: PreparedStep | None = None
        self._prepared: WeakKeyDictionary[Executable, PreparedStep | None] = WeakKeyDictionary()
        self._residents: WeakKeyDictionary[Executable, Resident | None] = WeakKeyDictionary()
        self._retired: Counter[str] = Counter()
        self._seen: Graph | None = None
        self._noisy = False

    def use(self, recipe: Recipe, fused: bool) -> None:
        """Goes on with another recipe or way of updating; values on the device stay, new ones start."""
        update: Update | None = FusedUpdate(self._device, self._weights.store, recipe) if fused else None
        self._retired = Counter(self.compiled())
        self.recipe, self.fused = recipe, fused
        self._usual, self.prepared = fused and not recipe.scaled and not recipe.rule.hessians, None
        self._prepared, self._residents = WeakKeyDictionary(), WeakKeyDictionary()
        self._gradients = Programs(
            self._device, self._weights.store, lambda forward: gradient_graph(forward, recipe),
            partial(source, "gradient", recipe))
        self._update: Update = update or HostUpdate(self._weights.store, self._gradients, recipe)
        self._hessians = {
            kind: self._family(partial(hessian_graph, loss=recipe.loss, params=params, kind=kind))
            for kind, params in recipe.rule.hessians.items()
        }
        self._families = {
            "train": self._update.training_programs(), **self._update.other_programs(),
            "gradient": self._gradients, **{f"hessian_{kind.estimator}": f for kind, f in self._hessians.items()},
        }
        if not fused:
            del self._families["train"]
        store = self._weights.store
        for param in recipe.rule.shapes:
            names = recipe.rule.resident(param).keys()
            if not all(name in store for name in names):
                values = recipe.rule.start(param, store.get(param))
                while values:  # each goes when the store has it
                    store.put(*values.popitem())
            self.resident |= names

    def _family(self, build: Callable[[Graph], Graph]) -> Programs:
        return Programs(self._device, self._weights.store, build)

    @property
    def path(self) -> UpdatePath:
        return self._update.path

    def compiled(self) -> dict[str, int]:
        """How many programs of each kind were compiled."""
        counts = self._retired + Counter({kind: family.compiled for kind, family in self._families.items()})
        return dict(counts)

    def training_programs(self) -> int:
        """How many programs were compiled that a step runs."""
        return self.compiled().get("train" if self.fused else "gradient", 0)

    def lr(self) -> float:
        """The rate of the next update; raises ConfigError when the schedule gives none."""
        return rate(self.schedule, self.counters.steps)

    def ready(self, forward: Graph) -> None:
        """Compiles what a step with a batch like this will run, so that nobody has to wait for it there."""
        self._update.training_programs().get(forward)

    def step(self, forward: Graph, feeds: Arrays) -> Outcome:
        """One update from a batch."""
        lr = self.lr()
        feeds = self.with_noise(forward, feeds)
        fresh = self._estimate(forward, feeds)
        numbers = self.recipe.rule.scalars(self.counters.steps, lr, fresh)
        outcome = self._update.step(forward, feeds, numbers, self._scalars())
        self._count(outcome.applied, micro_batches=1)
        if self._usual:
            self.prepared = self._prepared_for(forward)
        return outcome

    def step_prepared(self, batch: Mapping[str, object]) -> StepReport | None:
        """An update by the short way of batches of another size than the last, where there is one."""
        for prepared in self._prepared.values():
            report = prepared(batch) if prepared is not None and prepared is not self.prepared else None
            if report is not None:
                self.prepared = prepared
                return report
        return None

    def _prepared_for(self, forward: Graph) -> PreparedStep | None:
        """The short way of the step that was just done, if the device and the graph allow one."""
        executable = self._update.training_programs().get(forward)
        if executable not in self._prepared:
            direct = None if self._noisy else executable.direct()
            self._prepared[executable] = direct and PreparedStep(self, forward, direct)
        return self._prepared[executable]

    def one_by_one(self, noisy: bool) -> str:
        """Why updates cannot be many in one call of the device, as far as it is known; empty if they can."""
        if not self.fused:
            return "the host updates the weights; see fused_reason"
        if self._hessians:
            return "estimates of the Hessian are made between updates"
        if noisy:
            return "random numbers are drawn for each batch"
        return "" if self._device.repeats else f"the {self._device.name} device makes one update a call"

    def many(self, forward: Graph) -> Resident | None:
        """What makes many updates in one call, if the program can; there must be no reason against it."""
        executable = self._update.training_programs().get(forward)
        if executable not in self._residents:
            endings = {self.recipe.loss: "not_finite", **({FINITE: "zero"} if self.recipe.scaled else {})}
            repeat = executable.repeated(endings)
            self._residents[executable] = repeat and Resident(self, repeat)
        return self._residents[executable]

    def took(self, count: int, skipped: bool) -> None:
        """Takes note of updates that `many` made; whether the last was skipped."""
        applied = count - skipped
        self.counters.steps += applied
        self.counters.micro_batches += applied
        self.counters.skips = 0 if applied else self.counters.skips
        for _ in range(applied if self.scale.dynamic else 0):
            self.scale.observe(True)
        if skipped:
            self._count(applied=False)

    def accumulate(self, forward: Graph, feeds: Arrays, weight: float) -> Scalars:
        """Adds one micro-batch to the window; the outputs of rank 0."""
        window, feeds = self.window, self.with_noise(forward, feeds)
        if not window.count:
            window = self._opened(forward, feeds)
        results = self._update.accumulate(forward, feeds, weight, self._scalars())
        window.count += 1
        window.weight += weight
        window.loss += weight * results[self.recipe.loss]
        self.window = window
        self.counters.micro_batches += 1
        return results

    def _opened(self, forward: Graph, feeds: Arrays) -> Window:
        fresh, store = self._estimate(forward, feeds), self._weights.store
        buffers = {name: store.get(name) for name in forward.assigns}
        self._clear_accumulators()
        return Window(start=self.counters.micro_batches, buffers=buffers, fresh=fresh)

    def apply_window(self) -> tuple[float, bool]:
        """One update from the window; its mean loss, and whether it was applied."""
        window = self.window
        numbers = self.recipe.rule.scalars(self.counters.steps, self.lr(), window.fresh)
        applied = self._update.apply(window.weight, numbers)
        self.window = Window()
        if not applied:
            self._go_back(window)
        self._count(applied)
        return window.loss / window.weight, applied

    def discard_window(self) -> None:
        """Forgets the pending micro-batches and what they did to buffers."""
        if self.window.count:
            self._go_back(self.window)
        self.window = Window()

    def _go_back(self, window: Window) -> None:
        self.counters.micro_batches = window.start
        for name, value in window.buffers.items():
            self._weights.store.put(name, value)

    def apply_gradients(self, gradients: Mapping[str, np.ndarray]) -> bool:
        """One update from gradients made elsewhere."""
        numbers = self.recipe.rule.scalars(self.counters.steps, self.lr())
        applied = self._update.apply_given(dict(gradients), numbers)
        self._count(applied, micro_batches=1)  # the one that the gradients are of
        return applied

    def gradients(self, forward: Graph, feeds: Arrays) -> tuple[float, Arrays]:
        """The loss and the gradients, without scale; changes nothing."""
        results = self._gradients.get(forward).run(self.with_noise(forward, feeds), self._scalars())
        return float(results[self.recipe.loss]), {n: results[gradient_name(n)] for n in self.recipe.rule.shapes}

    def with_noise(self, forward: Graph, feeds: Arrays) -> Arrays:
        """The feeds with what the next micro-batch draws."""
        if forward is not self._seen:
            self._seen, self._noisy = forward, any(map(is_noise, forward.inputs))
        if not self._noisy:
            return feeds
        return {**feeds, **noise(forward.inputs, self._seed, self.counters.micro_batches)}

    def _scalars(self) -> Scalars:
        if not self.recipe.scaled:
            return NO_SCALE
        return {LOSS_SCALE: self.scale.scale, UNSCALE: 1 / self.scale.scale}

    def _estimate(self, forward: Graph, feeds: Arrays) -> list[HessianDiag]:
        """Makes the Hessian estimates that the next update begins with; they go to the device."""
        if not self._hessians:
            return []
        due = self.recipe.rule.due(self.counters.steps)
        for kind in due:
            executable = self._hessians[kind].get(forward)
            random = probes(executable.inputs, kind, self._seed, self.counters.micro_batches)
            executable.run({**feeds, **random})
        return due

    def _clear_accumulators(self) -> None:
        rule = self.recipe.rule
        for name, shape in rule.shapes.items():
            for previous in (False, True)[: 1 + (name in rule.previous)]:
                self._weights.store.put(accumulator_name(name, previous), np.zeros(shape, np.float32))

    def _count(self, applied: bool, micro_batches: int = 0) -> None:
        if applied:
            self.counters.steps += 1
            self.counters.micro_batches += micro_batches
        self.counters.skips = 0 if applied else self.counters.skips + 1
        self.scale.observe(applied)
