"""LAMB: Adam's direction, with each param's step in proportion to its norm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .arrays import Array, Namespace
from .base import NONNEGATIVE, UNIT, Optimizer, State, require_ranges
from .contract import Contract


@dataclass(frozen=True)
class LAMB(Optimizer):
    """LAMB (You et al. 2020, arXiv:1904.00962, algorithm 2), with phi the identity.

        m <- beta1 m + (1 - beta1) g
        v <- beta2 v + (1 - beta2) g^2
        u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay w
        w <- w - lr (|w| / |u|) u        the ratio is 1 where |w| or |u| is 0

    Slots: `m`, `v`.
    """

    contract = Contract(ulps=16, targets={
        "quadratic": (0.1, 120), "rosenbrock": (0.1, 270), "logistic": (0.1, 50),
        "factorisation": (0.1, 99),
    })

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-6
    weight_decay: float = 0.01

    def __post_init__(self) -> None:
        require_ranges(self, beta1=UNIT, beta2=UNIT, eps=NONNEGATIVE, weight_decay=NONNEGATIVE)

    def scalars(self, step: int, lr: float) -> dict[str, float]:
        return {
            "lr": lr, "mean_scale": 1 / (1 - self.beta1**step), "root_scale": 1 / math.sqrt(1 - self.beta2**step),
        }

    def init(self, xp: Namespace, param: Array) -> State:
        return {"m": xp.zeros_like(param), "v": xp.zeros_like(param)}

    def update(self, xp: Namespace, grad: Array, state: State, param: Array, **scalars: Any) -> tuple[Array, State]:
        m = self.beta1 * state["m"] + (1 - self.beta1) * grad
        v = self.beta2 * state["v"] + (1 - self.beta2) * xp.square(grad)
        move = scalars["mean_scale"] * m / (xp.sqrt(v) * scalars["root_scale"] + self.eps)
        if self.weight_decay:
            move = move + self.weight_decay * param
        size, length = norm(xp, param), norm(xp, move)
        ratio = xp.where(length > 0, size / xp.where(length > 0, length, 1.0), 1.0)
        ratio = xp.where(size > 0, ratio, 1.0)
        return param - (scalars["lr"] * ratio) * move, {"m": m, "v": v}


def norm(xp: Namespace, x: Array) -> Array:
    """The root of the sum of squares of all elements."""
    return xp.sqrt(xp.sum(xp.square(x)))
