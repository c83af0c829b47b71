"""Which params are trained, by which optimizer, and since when; changes when the user trains others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..ir.graph import Graph, Leaf
from ..ir.types import Shape
from ..optim import Optimizer, ParamInfo
from ..optim.groups import Assignment, assign
from .config import TrainConfig
from .rule import Rule
from .selection import matching
from .weights import Weights


class Trained:
    """Attributes:
    params: every param of the graph.
    rule: the update of the params that are trained now.
    since: for every param that ever was trained, how many updates it had missed by the last one that it had.
    left: for those of them that are not trained now, how many updates had been applied when they left.
    """

    def __init__(self, form: Graph, config: TrainConfig) -> None:
        gathered = _gathered(form)
        self.params = {name: ParamInfo(name, t.shape, name in gathered) for name, t in form.params.items()}
        self._config = config
        self.rule = Rule([], {}, config.clip, config.ema)
        self.since: dict[str, int] = {}
        self.left: dict[str, int] = {}

    def choose(self, trainable: Sequence[str] | str | None, steps: int) -> Rule:
        """Trains what names and patterns select, after `steps` updates; raises as `matching` and `assign`."""
        names = matching(trainable, self.params)
        parts = assign(self._config.optimizer, [self.params[name] for name in names], list(self.params.values()))
        left = {**{name: steps for name in self.rule.shapes if name not in names}, **self.left}
        since = {**dict.fromkeys(names, steps), **self.since}
        since.update({name: since[name] + steps - left.pop(name) for name in names if name in left})
        shapes: dict[str, Shape] = {name: self.params[name].shape for name in names}
        assignments = [piece for part in parts for piece in _by_age(part, since)]
        rule = Rule(assignments, shapes, self._config.clip, self._config.ema)
        self.rule, self.since, self.left = rule, since, left
        return rule

    def starts(self, weights: Weights) -> dict[str, np.ndarray]:
        """The values that the trained params start from, where an optimizer asks for another than theirs."""
        starts = {}
        for each in self.rule.assignments:
            if type(each.optimizer).start is not Optimizer.start:
                starts.update({name: each.optimizer.start(weights.get(name)) for name in each.params})
        return starts

    def host_only(self) -> str:
        """Why the update cannot be part of a device program, as far as the optimizers say; empty if it can."""
        reasons = {
            f"{type(each.optimizer).__name__}: {each.optimizer.host_only}"
            for each in self.rule.assignments if each.optimizer.host_only
        }
        return "; ".join(sorted(reasons))


def _by_age(part: Assignment, since: dict[str, int]) -> list[Assignment]:
    """One assignment for each time at which some of its params joined."""
    ages = sorted({since[name] for name in part.params})
    return [replace(part, params=tuple(n for n in part.params if since[n] == age), since=age) for age in ages]


def _gathered(form: Graph) -> set[str]:
    """The params that a gather reads rows of."""
    names = set()
    for node in form.live_nodes():
        if node.op.name == "gather" and isinstance(node.inputs[0].producer, Leaf):
            names.add(node.inputs[0].name or "")
    return names
