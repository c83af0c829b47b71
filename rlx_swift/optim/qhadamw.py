"""Quasi-hyperbolic Adam with decoupled decay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .arrays import Array, Namespace
from .base import NONNEGATIVE, UNIT, Optimizer, Range, State, require_ranges
from .contract import Contract

SHARE = Range("a number from 0 to 1", high=1.0 + 1e-12)


@dataclass(frozen=True)
class QHAdamW(Optimizer):
    """QHAdam (Ma & Yarats 2019, arXiv:1810.06801, section 4) with AdamW's decay.

        w <- w - lr weight_decay w
        m <- beta1 m + (1 - beta1) g,       m' = m / (1 - beta1^t)
        v <- beta2 v + (1 - beta2) g^2,     v' = v / (1 - beta2^t)
        w <- w - lr ((1 - nu1) g + nu1 m') / (sqrt((1 - nu2) g^2 + nu2 v') + eps)

    Slots: `m`, `v`.
    """

    contract = Contract(mixed=0.1, targets={
        "quadratic": (1, 23), "rosenbrock": (0.5, 140), "logistic": (0.3, 15),
        "factorisation": (0.3, 27),
    })

    beta1: float = 0.995
    beta2: float = 0.999
    nu1: float = 0.7
    nu2: float = 1.0
    eps: float = 1e-8
    weight_decay: float = 0.01

    def __post_init__(self) -> None:
        require_ranges(
            self, beta1=UNIT, beta2=UNIT, nu1=SHARE, nu2=SHARE, eps=NONNEGATIVE, weight_decay=NONNEGATIVE
        )

    def scalars(self, step: int, lr: float) -> dict[str, float]:
        return {
            "lr": lr, "m_share": self.nu1 / (1 - self.beta1**step), "v_share": self.nu2 / (1 - self.beta2**step),
        }

    def init(self, xp: Namespace, param: Array) -> State:
        return {"m": xp.zeros_like(param), "v": xp.zeros_like(param)}

    def update(self, xp: Namespace, grad: Array, state: State, param: Array, **scalars: Any) -> tuple[Array, State]:
        if self.weight_decay:
            param = param - (scalars["lr"] * self.weight_decay) * param
        square = xp.square(grad)
        m = self.beta1 * state["m"] + (1 - self.beta1) * grad
        v = self.beta2 * state["v"] + (1 - self.beta2) * square
        above = (1 - self.nu1) * grad + scalars["m_share"] * m
        below = xp.sqrt((1 - self.nu2) * square + scalars["v_share"] * v) + self.eps
        return param - scalars["lr"] * (above / below), {"m": m, "v": v}
