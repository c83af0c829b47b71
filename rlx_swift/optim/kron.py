"""PSGD with a Kronecker-factored preconditioner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import Array, Namespace
from .base import NONNEGATIVE, POSITIVE, UNIT, Optimizer, State, require_counts, require_ranges
from .contract import Contract
from .soap import as_matrix


@dataclass(frozen=True)
class KronPSGD(Optimizer):
    """PSGD Kron (Li 2018, Preconditioned stochastic gradient descent, arXiv:1512.04202; Kronecker factors and the
    gradient-whitening criterion as in Pooladzandi & Li 2024, arXiv:2402.04553).

        m <- beta1 m + (1 - beta1) g,   m' = m / (1 - beta1^t)
        A = QL m' QR',   B = QL^-T V QR^-1     with V standard normal
        QL <- QL - precond_lr triu(A A' - B B') QL / |A A' + B B'|,    QR likewise with A'A and B'B
        u = QL'QL m' QR'QR,   u <- u / max(1, rms(u) / clip)
        w <- w - lr (u + weight_decay w)

    The factors start as multiples of the identity that whiten the first gradient, and are updated at every
    `every`th update. A param of higher rank is taken as a matrix of its first axis by the others; one of rank 0 or 1
    has a diagonal factor. V depends on the update's number and the shape alone. Slots: `m`, and `left` and `right`,
    or `diagonal`.
    """

    contract = Contract(targets={
        "quadratic": (1, 75), "rosenbrock": (0.1, 110), "logistic": (0.3, 17),
        "factorisation": (0.03, 89),
    })
    host_only = "its factors need triangular systems solved, for which Core ML programs have no operation"

    beta1: float = 0.9
    precond_lr: float = 0.1
    weight_decay: float = 0.0
    every: int = 1
    clip: float = 1.1

    def __post_init__(self) -> None:
        require_ranges(self, beta1=UNIT, precond_lr=POSITIVE, weight_decay=NONNEGATIVE, clip=POSITIVE)
        require_counts(self, every=1)

    def scalars(self, step: int, lr: float) -> dict[str, float]:
        return {
            "lr": lr, "mean_scale": 1 / (1 - self.beta1**step), "step": float(step),
            "refresh": float((step - 1) % self.every == 0),
        }

    def init(self, xp: Namespace, param: Array) -> State:
        if param.ndim < 2:
            return {"m": xp.zeros_like(param), "diagonal": np.ones_like(param)}
        rows, columns = as_matrix(param).shape
        left, right = (np.eye(size, dtype=np.float32) for size in (rows, columns))
        return {"m": xp.zeros_like(param), "left": left, "right": right}

    def update(self, xp: Namespace, grad: Array, state: State, param: Array, **scalars: Any) -> tuple[Array, State]:
        m = self.beta1 * state["m"] + (1 - self.beta1) * grad
        mean, step = scalars["mean_scale"] * m, int(scalars["step"])
        new: State = {"m": m}
        if param.ndim < 2:
            q = state["diagonal"]
            if step == 1:
                q = q * _whitening(mean, 0.5)
            if scalars["refresh"]:
                q = self._diagonal(q, mean, _probe(step, param.shape))
            new["diagonal"] = q
            move = q * q * mean
        else:
            left, right, matrix = state["left"], state["right"], as_matrix(mean)
            if step == 1:
                left, right = left * _whitening(mean, 0.25), right * _whitening(mean, 0.25)
            if scalars["refresh"] and np.isfinite(matrix).all():
                left, right = self._factors(left, right, matrix, _probe(step, matrix.shape))
            new["left"], new["right"] = left, right
            move = (left.T @ (left @ matrix @ right.T) @ right).reshape(param.shape)
        rms = np.sqrt(np.mean(np.square(move)))
        move = move / np.maximum(rms / np.float32(self.clip), np.float32(1))
        if self.weight_decay:
            move = move + self.weight_decay * param
        return param - scalars["lr"] * move, new

    def _diagonal(self, q: np.ndarray, mean: np.ndarray, probe: np.ndarray) -> np.ndarray:
        a, b = np.square(q * mean), np.square(probe / q)
        return q - self.precond_lr * (a - b) * q / np.max(a + b)

    def _factors(
        self, left: np.ndarray, right: np.ndarray, mean: np.ndarray, probe: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        a = left @ mean @ right.T
        b = np.linalg.solve(right.T, np.linalg.solve(left.T, probe).T).T
        return self._factor(left, a @ a.T, b @ b.T), self._factor(right, a.T @ a, b.T @ b)

    def _factor(self, q: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        largest = np.max(np.sum(np.abs(a + b), axis=0))
        return q - np.float32(self.precond_lr) / largest * (np.triu(a - b) @ q)


def _whitening(g: np.ndarray, power: float) -> np.float32:
    """rms(g)^-power, or 1 where g is zero."""
    rms = float(np.sqrt(np.mean(np.square(g.astype(np.float64)))))
    return np.float32(rms**-power if rms > 0 else 1.0)


def _probe(step: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng([step, *shape]).standard_normal(shape, np.float32)
