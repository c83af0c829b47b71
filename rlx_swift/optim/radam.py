"""Adam with its adaptive rate rectified while its variance is not known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .arrays import Array, Namespace
from .base import NONNEGATIVE, UNIT, Optimizer, Range, State, require_ranges
from .contract import Contract

FROM_FOUR = Range("a number of at least 4", low=4.0)


@dataclass(frozen=True)
class RAdam(Optimizer):
    """RAdam (Liu et al. 2020, arXiv:1908.03265, algorithm 2).

        g <- g + weight_decay w
        m <- beta1 m + (1 - beta1) g
        v <- beta2 v + (1 - beta2) g^2
        rho_inf = 2 / (1 - beta2) - 1,   rho = rho_inf - 2 t beta2^t / (1 - beta2^t)
        r = sqrt((rho - 4) (rho - 2) rho_inf / ((rho_inf - 4) (rho_inf - 2) rho))
        w <- w - lr r (m / (1 - beta1^t)) sqrt(1 - beta2^t) / (sqrt(v) + eps)    where rho > threshold
        w <- w - lr (m / (1 - beta1^t))                                          elsewhere

    The paper's threshold is 4; PyTorch and the authors' code use 5, which differs at one update.
    Slots: `m`, `v`.
    """

    contract = Contract(targets={
        "quadratic": (0.03, 630), "rosenbrock": (0.005, 6050), "logistic": (1, 36),
        "factorisation": (1, 78),
    })

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    threshold: float = 4.0

    def __post_init__(self) -> None:
        require_ranges(self, beta1=UNIT, beta2=UNIT, eps=NONNEGATIVE, weight_decay=NONNEGATIVE, threshold=FROM_FOUR)

    def scalars(self, step: int, lr: float) -> dict[str, float]:
        """`rectified` chooses the denominator, sqrt(v) + eps or 1, without a branch in the rule."""
        size = lr / (1 - self.beta1**step)
        correction = 1 - self.beta2**step
        longest = 2 / (1 - self.beta2) - 1
        length = longest - 2 * step * self.beta2**step / correction
        if length <= self.threshold:
            return {"step_size": size, "rectified": 0.0}
        shrink = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        return {"step_size": size * math.sqrt(shrink * correction), "rectified": 1.0}

    def init(self, xp: Namespace, param: Array) -> State:
        return {"m": xp.zeros_like(param), "v": xp.zeros_like(param)}

    def update(self, xp: Namespace, grad: Array, state: State, param: Array, **scalars: Any) -> tuple[Array, State]:
        if self.weight_decay:
            grad = grad + self.weight_decay * param
        m = self.beta1 * state["m"] + (1 - self.beta1) * grad
        v = self.beta2 * state["v"] + (1 - self.beta2) * xp.square(grad)
        denominator = xp.where(scalars["rectified"] > 0, xp.sqrt(v) + self.eps, 1.0)
        return param - scalars["step_size"] * (m / denominator), {"m": m, "v": v}
