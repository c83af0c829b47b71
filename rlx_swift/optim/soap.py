"""SOAP: Adam in the slowly turning eigenbasis of Shampoo's preconditioners."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import Array, Namespace
from .base import NONNEGATIVE, UNIT, Optimizer, State, require_counts, require_ranges
from .contract import Contract


@dataclass(frozen=True)
class SOAP(Optimizer):
    """SOAP (Vyas et al. 2024, arXiv:2409.11321, algorithms 3 and 4).

        w <- w - lr weight_decay w
        G' = QL' G QR
        M <- beta1 M + (1 - beta1) G,         M' = QL' M QR
        V <- beta2 V + (1 - beta2) G'^2
        w <- w - lr QL [(M' / (1 - beta1^t)) / (sqrt(V / (1 - beta2^t)) + eps)] QR'
        L <- beta2 L + (1 - beta2) G G',      R <- beta2 R + (1 - beta2) G'G
        QL, QR <- the orthonormal factors of L QL and R QR, at every `every`th update; their eigenvectors at the first

    Bases start as the identity. A param of higher rank is taken as a matrix of its first axis by the others; one of
    rank 0 or 1, and a side longer than `longest`, keeps the identity as basis. Slots: `m`, `v`, and for each side
    that has a basis `left`, `left_basis`, `right`, `right_basis`.
    """

    contract = Contract(ulps=512, mixed=0.8, targets={
        "quadratic": (1, 87), "rosenbrock": (0.5, 66), "logistic": (0.1, 35),
        "factorisation": (0.1, 89),
    })
    host_only = "its eigenvectors need a QR decomposition, for which Core ML programs have no operation"

    beta1: float = 0.95
    beta2: float = 0.95
    eps: float = 1e-8
    weight_decay: float = 0.01
    every: int = 10
    longest: int = 10000

    def __post_init__(self) -> None:
        require_ranges(self, beta1=UNIT, beta2=UNIT, eps=NONNEGATIVE, weight_decay=NONNEGATIVE)
        require_counts(self, every=1, longest=1)

    def scalars(self, step: int, lr: float) -> dict[str, float]:
        return {
            "lr": lr, "step_size": lr / (1 - self.beta1**step), "root_scale": 1 / math.sqrt(1 - self.beta2**step),
            "first": float(step == 1), "refresh": float(step == 1 or step % self.every == 0),
        }

    def init(self, xp: Namespace, param: Array) -> State:
        state: State = {"m": xp.zeros_like(param), "v": xp.zeros_like(param)}
        if param.ndim >= 2:
            for side, size in zip(("left", "right"), as_matrix(param).shape, strict=True):
                if size <= self.longest:
                    state[side] = np.zeros((size, size), np.float32)
                    state[f"{side}_basis"] = np.eye(size, dtype=np.float32)
        return state

    def update(self, xp: Namespace, grad: Array, state: State, param: Array, **scalars: Any) -> tuple[Array, State]:
        left, right = state.get("left_basis"), state.get("right_basis")
        m = self.beta1 * state["m"] + (1 - self.beta1) * grad
        turned = _turned(grad, left, right)
        v = self.beta2 * state["v"] + (1 - self.beta2) * np.square(turned)
        move = _turned(m, left, right) / (np.sqrt(v) * scalars["root_scale"] + self.eps)
        move = _turned(move, _transposed(left), _transposed(right))
        if self.weight_decay:
            param = param - (scalars["lr"] * self.weight_decay) * param
        new = {**state, "m": m, "v": v}
        for side, square in _squares(grad).items() if param.ndim >= 2 else ():
            if side in state:
                new[side] = self.beta2 * state[side] + (1 - self.beta2) * square
                if scalars["refresh"]:
                    new[f"{side}_basis"] = _basis(new[side], state[f"{side}_basis"], bool(scalars["first"]))
        return param - scalars["step_size"] * move, new


def as_matrix(x: np.ndarray) -> np.ndarray:
    """The first axis by all others."""
    return x.reshape(x.shape[0], -1)


def _turned(x: np.ndarray, left: np.ndarray | None, right: np.ndarray | None) -> np.ndarray:
    """left' x right, in x's shape."""
    if left is None and right is None:
        return x
    matrix = as_matrix(x)
    if left is not None:
        matrix = left.T @ matrix
    if right is not None:
        matrix = matrix @ right
    return matrix.reshape(x.shape)


def _transposed(basis: np.ndarray | None) -> np.ndarray | None:
    return None if basis is None else basis.T


def _squares(grad: np.ndarray) -> dict[str, np.ndarray]:
    g = as_matrix(grad)
    return {"left": g @ g.T, "right": g.T @ g}


def _basis(moment: np.ndarray, basis: np.ndarray, first: bool) -> np.ndarray:
    if not np.isfinite(moment).all():
        return np.full_like(basis, np.nan)  # as the rest of the update; LAPACK would raise
    if first:
        return np.linalg.eigh(moment)[1]
    return np.linalg.qr(moment @ basis)[0]
