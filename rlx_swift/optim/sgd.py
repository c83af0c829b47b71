"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .arrays import Array, Namespace
from .base import NONNEGATIVE, UNIT, Optimizer, State, require, require_ranges
from .contract import Contract


@dataclass(frozen=True)
class SGD(Optimizer):
    """Gradient descent with momentum (Polyak 1964), dampening, Nesterov's form and L2 decay.

        g <- g + weight_decay w
        v <- momentum v + (1 - dampening) g        the first v is g
        w <- w - lr v,   or with nesterov   w - lr (g + momentum v)

    As in Sutskever et al. 2013, eq. 1-4, with the learning rate outside the velocity, so that a change of
    it acts at once. Slot: `velocity`, only with momentum.
    """

    contract = Contract(targets={
        "quadratic": (0.01, 120), "rosenbrock": (0.002, 1310), "logistic": (1, 44),
        "factorisation": (1, 21),
    })

    momentum: float = 0.0
    dampening: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        require_ranges(self, momentum=NONNEGATIVE, dampening=UNIT, weight_decay=NONNEGATIVE)
        plain = self.momentum > 0 and self.dampening == 0
        require("SGD nesterov", plain or not self.nesterov, "momentum above 0 and no dampening with it", self)

    def scalars(self, step: int, lr: float) -> dict[str, float]:
        if not self.momentum or self.dampening == 0:
            return {"lr": lr}
        return {"lr": lr, "gain": 1.0 if step == 1 else 1.0 - self.dampening}

    def init(self, xp: Namespace, param: Array) -> State:
        return {"velocity": xp.zeros_like(param)} if self.momentum else {}

    def update(self, xp: Namespace, grad: Array, state: State, param: Array, **scalars: Any) -> tuple[Array, State]:
        lr = scalars["lr"]
        if self.weight_decay:
            grad = grad + self.weight_decay * param
        if not self.momentum:
            return param - lr * grad, {}
        step = grad if self.dampening == 0 else scalars["gain"] * grad
        velocity = self.momentum * state["velocity"] + step
        move = grad + self.momentum * velocity if self.nesterov else velocity
        return param - lr * move, {"velocity": velocity}
