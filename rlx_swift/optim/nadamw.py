"""Adam with Nesterov momentum and decoupled decay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

from .arrays import Array, Namespace
from .base import NONNEGATIVE, UNIT, Optimizer, State, require_ranges
from .contract import Contract
from .formula import running_product


@dataclass(frozen=True)
class NAdamW(Optimizer):
    """NAdam (Dozat 2016, Incorporating Nesterov momentum into Adam, algorithm 8) with AdamW's decay.

        mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2)
        w <- w - lr weight_decay w
        m <- beta1 m + (1 - beta1) g
        v <- beta2 v + (1 - beta2) g^2
        n = (1 - mu_t) g / (1 - mu_1 ... mu_t) + mu_(t+1) m / (1 - mu_1 ... mu_(t+1))
        w <- w - lr n / (sqrt(v / (1 - beta2^t)) + eps)

    Slots: `m`, `v`. The defaults are PyTorch's, with `decoupled_weight_decay`.
    """

    contract = Contract(targets={
        "quadratic": (1, 17), "rosenbrock": (0.05, 700), "logistic": (1, 8),
        "factorisation": (0.1, 26),
    })

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.01
    momentum_decay: float = 0.004

    def __post_init__(self) -> None:
        require_ranges(
            self, beta1=UNIT, beta2=UNIT, eps=NONNEGATIVE, weight_decay=NONNEGATIVE, momentum_decay=NONNEGATIVE
        )

    def scalars(self, step: int, lr: float) -> dict[str, float]:
        product, mu, mu_next = _momentum(self.beta1, self.momentum_decay, step)
        return {
            "lr": lr, "gradient_size": lr * (1 - mu) / (1 - product),
            "momentum_size": lr * mu_next / (1 - product * mu_next),
            "root_scale": 1 / math.sqrt(1 - self.beta2**step),
        }

    def init(self, xp: Namespace, param: Array) -> State:
        return {"m": xp.zeros_like(param), "v": xp.zeros_like(param)}

    def update(self, xp: Namespace, grad: Array, state: State, param: Array, **scalars: Any) -> tuple[Array, State]:
        if self.weight_decay:
            param = param - (scalars["lr"] * self.weight_decay) * param
        m = self.beta1 * state["m"] + (1 - self.beta1) * grad
        v = self.beta2 * state["v"] + (1 - self.beta2) * xp.square(grad)
        root = xp.sqrt(v) * scalars["root_scale"] + self.eps
        move = scalars["gradient_size"] * grad + scalars["momentum_size"] * m
        return param - move / root, {"m": m, "v": v}


def _momentum(beta1: float, decay: float, step: int) -> tuple[float, float, float]:
    """mu_1 ... mu_t, mu_t and mu_(t+1)."""

    def mu(t: int) -> float:
        return beta1 * (1 - 0.5 * 0.96 ** (t * decay))

    return running_product(mu, step, _products(beta1, decay)), mu(step), mu(step + 1)


@cache
def _products(beta1: float, decay: float) -> list[float]:
    """The products known so far, up to the first that is 0."""
    return []
