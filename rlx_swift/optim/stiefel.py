"""Gradient descent over matrices with orthonormal columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arrays import Array, Namespace
from .base import POSITIVE, UNIT, Optimizer, ParamInfo, State, require, require_counts, require_ranges
from .contract import Contract
from .sgd import SGD


@dataclass(frozen=True)
class Stiefel(Optimizer):
    """Riemannian descent with momentum and the polar retraction (Absil & Malick 2012, Projection-like retractions
    on matrix manifolds, section 3.3), which keeps W'W = I, or WW' = I for a wide W.

        m <- momentum m + g
        m <- m - W (W'm + m'W) / 2          the part of m along the manifold
        W <- polar(W - lr m)                the nearest matrix with orthonormal columns

    The polar factor comes from `iterations` Newton-Schulz steps X <- X (3 I - X'X) / 2, each of two matrix
    products, after a division that brings the singular values below 1. Training starts from the polar factor of
    the initial value. Params that are not of rank 2 are left to `fallback`. Slot: `m`.
    """

    contract = Contract(ulps=512, targets={
        "quadratic": (0.01, 66), "rosenbrock": (0.002, 30), "logistic": (0.1, 39),
        "factorisation": (1, 42),
    })

    momentum: float = 0.9
    iterations: int = 8
    fallback: Optimizer = field(default_factory=lambda: SGD(momentum=0.9))
    fallback_lr_scale: float = 1.0

    def __post_init__(self) -> None:
        require_ranges(self, momentum=UNIT, fallback_lr_scale=POSITIVE)
        require_counts(self, iterations=1)
        require("Stiefel fallback", isinstance(self.fallback, Optimizer), "an optimizer", self.fallback)

    def split(self, params: Sequence[ParamInfo]) -> list[tuple[Optimizer, float, list[str]]]:
        own = [p.name for p in params if p.ndim == 2]
        rest = [(optimizer, scale * self.fallback_lr_scale, names)
                for optimizer, scale, names in self.fallback.split([p for p in params if p.ndim != 2]) if names]
        return [(self, 1.0, own), *rest] if own else rest

    def start(self, param: np.ndarray) -> np.ndarray:
        left, _, right = np.linalg.svd(param.astype(np.float64), full_matrices=False)
        return (left @ right).astype(np.float32)

    def init(self, xp: Namespace, param: Array) -> State:
        return {"m": xp.zeros_like(param)}

    def update(self, xp: Namespace, grad: Array, state: State, param: Array, **scalars: Any) -> tuple[Array, State]:
        wide = param.shape[0] < param.shape[1]
        m = self.momentum * state["m"] + grad
        w = xp.transpose(param) if wide else param
        m = xp.transpose(m) if wide else m
        inner = xp.matmul(w, m, transpose_x=True)
        m = m - xp.matmul(w, 0.5 * (inner + xp.transpose(inner)))
        w = polar(xp, w - scalars["lr"] * m, self.iterations)
        return (xp.transpose(w), {"m": xp.transpose(m)}) if wide else (w, {"m": m})


def polar(xp: Namespace, x: Array, iterations: int) -> Array:
    """The matrix with orthonormal columns that is nearest to a tall x, where x is not far from one."""
    square = xp.matmul(x, x, transpose_x=True)
    x = x / xp.sqrt(xp.max(xp.sum(xp.abs(square), axis=0)))  # at least the largest singular value
    for _ in range(iterations):
        x = 1.5 * x - xp.matmul(x, 0.5 * xp.matmul(x, x, transpose_x=True))
    return x
