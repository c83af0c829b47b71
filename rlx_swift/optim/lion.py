"""Lion: the sign of an interpolated momentum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .arrays import Array, Namespace
from .base import NONNEGATIVE, UNIT, Optimizer, State, require_ranges
from .contract import Contract


@dataclass(frozen=True)
class Lion(Optimizer):
    """Lion (Chen et al. 2023, arXiv:2302.06675, algorithm 2).

        c <- beta1 m + (1 - beta1) g
        w <- w - lr (sign(c) + weight_decay w)
        m <- beta2 m + (1 - beta2) g

    Slot: `m`. Good learning rates are 3 to 10 times smaller than those of AdamW.
    """

    contract = Contract(mixed=0.1, targets={
        "quadratic": (0.3, 90), "rosenbrock": (0.02, 180), "logistic": (0.3, 14),
        "factorisation": (0.01, 370),
    })

    beta1: float = 0.9
    beta2: float = 0.99
    weight_decay: float = 0.01

    def __post_init__(self) -> None:
        require_ranges(self, beta1=UNIT, beta2=UNIT, weight_decay=NONNEGATIVE)

    def init(self, xp: Namespace, param: Array) -> State:
        return {"m": xp.zeros_like(param)}

    def update(self, xp: Namespace, grad: Array, state: State, param: Array, **scalars: Any) -> tuple[Array, State]:
        lr, m = scalars["lr"], state["m"]
        move = xp.sign(self.beta1 * m + (1 - self.beta1) * grad)
        if self.weight_decay:
            move = move + self.weight_decay * param
        return param - lr * move, {"m": self.beta2 * m + (1 - self.beta2) * grad}
