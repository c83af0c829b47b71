"""How all trained params are updated together: clip, then each param's optimizer. The same on arrays and in graphs."""

from __future__ import annotations

from collections.abc import Callable, KeysView, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import ConfigError
from ..ir.types import Shape
from ..optim import Clip
from ..optim.arrays import LEAN, NUMPY, Array, Namespace
from ..optim.groups import Assignment
from ..optim.requirement import HessianDiag, PreviousGradient
from .names import average_name, hessian_name, previous_name, state_name

Numbers = Sequence[Mapping[str, Any]]  # the optimizers' scalars, for each assignment


class Rule:
    """The update of every trained param.

    Attributes:
        assignments: the optimizers with their params.
        shapes: of the trained params by name, in the graph's order.
        clip, ema: as in the config.
        slots: shape of each state slot, by param and slot.
        hessians: for each kind of Hessian estimate, the params that need it.
        previous: the params whose update reads the gradient at the weights of before; those are kept of all params.
    """

    def __init__(
        self, assignments: Sequence[Assignment], shapes: Mapping[str, Shape], clip: Clip | None, ema: float | None
    ) -> None:
        self.assignments, self.shapes, self.clip, self.ema = tuple(assignments), dict(shapes), clip, ema
        self._of = {name: each.optimizer for each in self.assignments for name in each.params}
        self.slots = {name: self._slot_shapes(name) for name in self.shapes}
        self.hessians: dict[HessianDiag, tuple[str, ...]] = {}
        self.previous: tuple[str, ...] = ()
        for each in self.assignments:
            needed = each.optimizer.requires
            if isinstance(needed, HessianDiag):
                self.hessians[needed] = (*self.hessians.get(needed, ()), *each.params)
            elif isinstance(needed, PreviousGradient):
                self.previous += each.params

    def _slot_shapes(self, param: str) -> dict[str, Shape]:
        blank = np.broadcast_to(np.float32(0), self.shapes[param])  # takes no memory
        return {slot: np.shape(value) for slot, value in self._initial(param, blank).items()}

    def _initial(self, param: str, value: np.ndarray) -> dict[str, Any]:
        """The state before the first update of a param that has `value`."""
        try:
            return self._of[param].init(LEAN, value)
        except ValueError:  # it writes to its zeros
            return self._of[param].init(NUMPY, value)

    def resident(self, param: str) -> dict[str, Shape]:
        """What the update keeps on the device for a param, beside the param: shapes by name there."""
        shape = self.shapes[param]
        kept = {state_name(param, slot): slot_shape for slot, slot_shape in self.slots[param].items()}
        if self.ema is not None:
            kept[average_name(param)] = shape
        if self.previous:
            kept[previous_name(param)] = shape
        if any(param in names for names in self.hessians.values()):
            kept[hessian_name(param)] = shape
        return kept

    def resident_shapes(self) -> dict[str, Shape]:
        """As `resident`, of all params."""
        return {name: shape for param in self.shapes for name, shape in self.resident(param).items()}

    def start(self, param: str, value: np.ndarray) -> dict[str, np.ndarray]:
        """The values of `resident` before the first update, for a param that has `value`."""
        slots = self._initial(param, value)
        values = {state_name(param, slot): np.asarray(array, np.float32) for slot, array in slots.items()}
        beside = {average_name(param): value, previous_name(param): value, hessian_name(param): np.zeros_like(value)}
        return values | {name: array for name, array in beside.items() if name in self.resident(param)}

    def due(self, steps: int) -> list[HessianDiag]:
        """The estimates that the update after `steps` others begins with."""
        due = {each.optimizer.requires for each in self.assignments if _is_due(each, steps)}
        return [kind for kind in self.hessians if kind in due]

    def scalars(self, steps: int, lr: float, fresh: Sequence[HessianDiag] = ()) -> list[dict[str, float]]:
        """Each optimizer's numbers for the update after `steps` others; `fresh` are the estimates made for it."""
        numbers = self._numbers(steps, lr)
        for each, own, names in zip(self.assignments, numbers, self._own_names, strict=True):
            if own.keys() != names:
                problem = f"expected the numbers {sorted(names)} at every update, got {sorted(own)}"
                raise ConfigError(f"{type(each.optimizer).__name__} scalars", problem)
            if isinstance(each.optimizer.requires, HessianDiag):
                own["hessian_fresh"] = float(each.optimizer.requires in fresh and _is_due(each, steps))
        return numbers

    def _numbers(self, steps: int, lr: float) -> list[dict[str, float]]:
        return [each.optimizer.scalars(steps - each.since + 1, lr * each.lr_scale) for each in self.assignments]

    @cached_property
    def _own_names(self) -> list[KeysView[str]]:
        """The names of the numbers that each optimizer gives itself."""
        first = max((each.since for each in self.assignments), default=0)
        return [dict(numbers).keys() for numbers in self._numbers(first, 1.0)]

    def scalar_names(self) -> list[list[str]]:
        """The names of each optimizer's numbers."""
        return [
            [*names, *(["hessian_fresh"] if isinstance(each.optimizer.requires, HessianDiag) else [])]
            for each, names in zip(self.assignments, self._own_names, strict=True)
        ]

    def apply(
        self, xp: Namespace, gradients: Mapping[str, Array], previous: Mapping[str, Array], numbers: Numbers,
        read: Callable[[str], Array], settled: Callable[[str, Any, Array], Array],
    ) -> dict[str, Array]:
        """All new values by their names on the device.

        `previous` has the gradients at the weights of before, where they are needed; `read(name)` is the present
        value on the device; `settled(name, new, old)` makes sure that a new value is of the old one's type.
        """
        if self.clip is not None:
            gradients, previous = self.clip.apply(xp, gradients), self.clip.apply(xp, previous)
        values: dict[str, Array] = {}
        for each, scalars in zip(self.assignments, numbers, strict=True):
            for name in each.params:
                extras = {}
                if isinstance(each.optimizer.requires, HessianDiag):
                    extras["hessian_diag"] = read(hessian_name(name))
                elif isinstance(each.optimizer.requires, PreviousGradient):
                    extras["previous_gradient"] = previous[name]
                param, old = read(name), {slot: read(state_name(name, slot)) for slot in self.slots[name]}
                value, new = each.optimizer.update(xp, gradients[name], dict(old), param, **extras, **scalars)
                if new.keys() != old.keys():
                    problem = f"expected the slots {sorted(old)}, got {sorted(new)}"
                    raise ConfigError(f"{type(each.optimizer).__name__} update of {name!r}", problem)
                values[name] = value = settled(name, value, param)
                for slot in old:
                    values[state_name(name, slot)] = settled(f"{name}/{slot}", new[slot], old[slot])
                if self.ema is not None:
                    average = read(average_name(name))
                    values[average_name(name)] = self.ema * average + (1 - self.ema) * value
                if self.previous:
                    values[previous_name(name)] = param
        return values


def _is_due(each: Assignment, steps: int) -> bool:
    needed = each.optimizer.requires
    return isinstance(needed, HessianDiag) and (steps - each.since) % needed.every == 0
