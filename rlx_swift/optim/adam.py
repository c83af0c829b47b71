"""Adam, with L2 decay, and AdamW, with decoupled decay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .arrays import Array, Namespace
from .base import NONNEGATIVE, UNIT, Optimizer, State, require_ranges
from .contract import Contract


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam (Kingma & Ba 2015, arXiv:1412.6980, algorithm 1), with bias correction.

        g <- g + weight_decay w
        m <- beta1 m + (1 - beta1) g
        v <- beta2 v + (1 - beta2) g^2
        w <- w - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)

    With `amsgrad` (Reddi et al. 2018, arXiv:1904.09237) the largest v so far takes v's place.
    Slots: `m`, `v`, and `v_max` with amsgrad.
    """

    contract = Contract(targets={
        "quadratic": (1, 65), "rosenbrock": (0.5, 200), "logistic": (0.3, 18),
        "factorisation": (0.1, 65),
    })

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    amsgrad: bool = False

    def __post_init__(self) -> None:
        require_ranges(self, beta1=UNIT, beta2=UNIT, eps=NONNEGATIVE, weight_decay=NONNEGATIVE)

    def scalars(self, step: int, lr: float) -> dict[str, float]:
        return {
            "lr": lr, "step_size": lr / (1 - self.beta1**step), "root_scale": 1 / math.sqrt(1 - self.beta2**step),
        }

    def init(self, xp: Namespace, param: Array) -> State:
        slots = ("m", "v", "v_max") if self.amsgrad else ("m", "v")
        return {slot: xp.zeros_like(param) for slot in slots}

    def update(self, xp: Namespace, grad: Array, state: State, param: Array, **scalars: Any) -> tuple[Array, State]:
        grad, param = self._decayed(grad, param, scalars["lr"])
        m = self.beta1 * state["m"] + (1 - self.beta1) * grad
        v = self.beta2 * state["v"] + (1 - self.beta2) * xp.square(grad)
        new = {"m": m, "v": v}
        if self.amsgrad:
            new["v_max"] = v = xp.maximum(state["v_max"], v)
        root = xp.sqrt(v) * scalars["root_scale"] + self.eps
        return param - scalars["step_size"] * (m / root), new

    def _decayed(self, grad: Array, param: Array, lr: Array) -> tuple[Array, Array]:
        return (grad + self.weight_decay * param, param) if self.weight_decay else (grad, param)


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with decoupled decay (Loshchilov & Hutter 2019, arXiv:1711.05101, algorithm 2).

    First w <- w - lr weight_decay w, then Adam's update with the plain gradient. Slots as in `Adam`.
    """

    contract = Contract(targets={
        "quadratic": (1, 63), "rosenbrock": (0.5, 290), "logistic": (0.3, 18),
        "factorisation": (0.3, 62),
    })

    weight_decay: float = 0.01

    def _decayed(self, grad: Array, param: Array, lr: Array) -> tuple[Array, Array]:
        return (grad, param - (lr * self.weight_decay) * param) if self.weight_decay else (grad, param)
