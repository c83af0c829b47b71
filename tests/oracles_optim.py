"""Optimizers in float64, written from the papers and independent of `rlx_swift`.

Each is `rule(w, g, state, t, lr, **hyperparameters) -> w`, with `t` counting updates from 1 and `state` a dict
that the rule fills.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Rule = Callable[..., np.ndarray]


def sgd(w, g, state, t, lr, *, momentum, dampening, nesterov, weight_decay):
    g = g + weight_decay * w
    if momentum == 0:
        return w - lr * g
    state["velocity"] = g if t == 1 else momentum * state["velocity"] + (1 - dampening) * g
    return w - lr * (g + momentum * state["velocity"] if nesterov else state["velocity"])


def adam(w, g, state, t, lr, *, beta1, beta2, eps, weight_decay, amsgrad):
    g = g + weight_decay * w
    m = state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * g
    v = state["v"] = beta2 * state.get("v", 0.0) + (1 - beta2) * g**2
    if amsgrad:
        v = state["v_max"] = np.maximum(state.get("v_max", 0.0), v)
    return w - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)


def adamw(w, g, state, t, lr, *, weight_decay, **rest):
    return adam(w, g, state, t, lr, weight_decay=0.0, **rest) - lr * weight_decay * w


ORACLES: dict[str, Rule] = {"SGD": sgd, "Adam": adam, "AdamW": adamw}


def run(optimizer: Any, w: np.ndarray, gradients: list[np.ndarray], lr: float) -> np.ndarray:
    """The param after updates with the given gradients, by the oracle for `optimizer` (a dataclass)."""
    rule, state = ORACLES[type(optimizer).__name__], {}
    w = np.asarray(w, np.float64)
    for t, g in enumerate(gradients, 1):
        w = rule(w, np.asarray(g, np.float64), state, t, lr, **vars(optimizer))
    return w
