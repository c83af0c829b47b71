"""What `make_optim.py` and the test of its values share: the start, the gradients, and the names of the cases."""

from __future__ import annotations

import numpy as np

LR = 0.05
SHAPES = ((3, 4), (5,))

CASES = (
    "sgd", "sgd-momentum", "sgd-dampening", "sgd-nesterov", "sgd-decay", "adam", "adam-decay", "adam-amsgrad", "adamw",
    "nadamw", "radam", "radam-decay", "lion", "lamb", "muon",
)


def start(i: int) -> np.ndarray:
    """The initial value of param i, exact in f32."""
    return np.random.default_rng(i).normal(size=SHAPES[i]).astype(np.float32).astype(np.float64)


def gradients(i: int) -> list[np.ndarray]:
    """The gradients of param i over 10 updates, exact in f32, of sizes from 0.01 to 10."""
    rng = np.random.default_rng(100 + i)
    drawn = [10.0 ** rng.uniform(-2, 1) * rng.normal(size=SHAPES[i]) for _ in range(10)]
    return [g.astype(np.float32).astype(np.float64) for g in drawn]
