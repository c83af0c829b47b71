"""MARS: AdamW on gradients whose variance is reduced by the gradient before."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .arrays import Array, Namespace
from .base import NONNEGATIVE, UNIT, Optimizer, State, require_ranges
from .contract import Contract
from .lamb import norm
from .requirement import PreviousGradient, Requirement


@dataclass(frozen=True)
class MARS(Optimizer):
    """MARS-AdamW (Yuan et al. 2024, arXiv:2411.10438, algorithm 2).

        c = g + gamma beta1 / (1 - beta1) (g - g'),   c <- c / max(1, |c|)
        m <- beta1 m + (1 - beta1) c
        v <- beta2 v + (1 - beta2) c^2
        w <- w - lr weight_decay w
        w <- w - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)

    g' is the gradient of the update before, and g itself at the first. With `exact` it is the gradient of the
    present batch at the weights of before, as in the paper's equation 8, at the cost of a second pass.
    Slots: `m`, `v`, and without `exact`, `g`.
    """

    contract = Contract(ulps=16, mixed=0.2, targets={
        "quadratic": (1, 11), "rosenbrock": (0.5, 48), "logistic": (1, 8),
        "factorisation": (0.3, 35),
    })

    beta1: float = 0.95
    beta2: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0.01
    gamma: float = 0.025
    exact: bool = False

    def __post_init__(self) -> None:
        require_ranges(self, beta1=UNIT, beta2=UNIT, eps=NONNEGATIVE, weight_decay=NONNEGATIVE, gamma=NONNEGATIVE)

    @property
    def requires(self) -> Requirement | None:
        return PreviousGradient() if self.exact else None

    def scalars(self, step: int, lr: float) -> dict[str, float]:
        return {
            "lr": lr, "gain": 0.0 if step == 1 else self.gamma * self.beta1 / (1 - self.beta1),
            "step_size": lr / (1 - self.beta1**step), "root_scale": 1 / math.sqrt(1 - self.beta2**step),
        }

    def init(self, xp: Namespace, param: Array) -> State:
        slots = ("m", "v") if self.exact else ("m", "v", "g")
        return {slot: xp.zeros_like(param) for slot in slots}

    def update(self, xp: Namespace, grad: Array, state: State, param: Array, **scalars: Any) -> tuple[Array, State]:
        before = scalars["previous_gradient"] if self.exact else state["g"]
        corrected = grad + scalars["gain"] * (grad - before)
        corrected = corrected / xp.maximum(norm(xp, corrected), 1.0)
        m = self.beta1 * state["m"] + (1 - self.beta1) * corrected
        v = self.beta2 * state["v"] + (1 - self.beta2) * xp.square(corrected)
        root = xp.sqrt(v) * scalars["root_scale"] + self.eps
        if self.weight_decay:
            param = param - (scalars["lr"] * self.weight_decay) * param
        new = {"m": m, "v": v} if self.exact else {"m": m, "v": v, "g": grad}
        return param - scalars["step_size"] * (m / root), new
