"""Sophia: momentum over a running diagonal of the Hessian, clipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .arrays import Array, Namespace
from .base import NONNEGATIVE, POSITIVE, UNIT, Optimizer, State, require_counts, require_ranges
from .contract import Contract
from .requirement import HessianDiag


@dataclass(frozen=True)
class SophiaH(Optimizer):
    """Sophia (Liu et al. 2023, arXiv:2305.14342, algorithm 3).

        m <- beta1 m + (1 - beta1) g
        h <- beta2 h + (1 - beta2) h'     at every `every`th update, with h' a new estimate of the Hessian's diagonal
        w <- w - lr weight_decay w
        w <- w - lr clip(m / max(gamma h, eps), 1)

    The estimator is "hutchinson" (algorithm 1) or "gnb", Gauss-Newton-Bartlett (algorithm 2), for which the
    authors use gamma = 0.05. Slots: `m`, `h`.
    """

    contract = Contract(targets={
        "quadratic": (0.1, 190), "rosenbrock": (0.1, 69), "logistic": (0.1, 48),
        "factorisation": (0.03, 260),
    })

    beta1: float = 0.965
    beta2: float = 0.99
    weight_decay: float = 0.1
    gamma: float = 0.01
    eps: float = 1e-12
    every: int = 10
    estimator: str = "hutchinson"

    def __post_init__(self) -> None:
        require_ranges(self, beta1=UNIT, beta2=UNIT, weight_decay=NONNEGATIVE, gamma=POSITIVE, eps=POSITIVE)
        require_counts(self, every=1)
        HessianDiag(self.every, self.estimator)

    @property
    def requires(self) -> HessianDiag:
        return HessianDiag(self.every, self.estimator)

    def init(self, xp: Namespace, param: Array) -> State:
        return {"m": xp.zeros_like(param), "h": xp.zeros_like(param)}

    def update(self, xp: Namespace, grad: Array, state: State, param: Array, **scalars: Any) -> tuple[Array, State]:
        lr = scalars["lr"]
        m = self.beta1 * state["m"] + (1 - self.beta1) * grad
        taken = self.beta2 * state["h"] + (1 - self.beta2) * scalars["hessian_diag"]
        h = xp.where(scalars["hessian_fresh"] > 0, taken, state["h"])
        move = xp.minimum(xp.maximum(m / xp.maximum(self.gamma * h, self.eps), -1.0), 1.0)
        if self.weight_decay:
            param = param - (lr * self.weight_decay) * param
        return param - lr * move, {"m": m, "h": h}
