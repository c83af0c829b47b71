"""Muon: the momentum of a matrix made orthogonal by a few matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from .adam import AdamW
from .arrays import Array, Namespace
from .base import NONNEGATIVE, POSITIVE, UNIT, Optimizer, ParamInfo, State, require, require_counts, require_ranges
from .contract import Contract
from .lamb import norm

_QUINTIC = (3.4445, -4.7750, 2.0315)
_SCALES = ("original", "match_rms_adamw")


@dataclass(frozen=True)
class Muon(Optimizer):
    """Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon).

        m <- momentum m + (1 - momentum) g
        u = (1 - momentum) g + momentum m    with nesterov, else m
        X = u / |u|, then ns_steps times   X <- a X + (b A + c A^2) X,  A = X X'    (a, b, c) = (3.4445, -4.775, 2.0315)
        w <- w - lr weight_decay w
        w <- w - lr scale X

    The scale is sqrt(max(1, rows / columns)) ("original"), or 0.2 sqrt(max(rows, columns)) ("match_rms_adamw",
    Liu et al. 2025, arXiv:2502.16982), with rows the last but one axis. A tall matrix goes through the iteration
    transposed. Everything is computed in f32.

    Params that are not of rank 2, that a gather reads, or whose names match `heads` are left to `fallback`, at
    `fallback_lr_scale` times the learning rate. Slot: `m`.
    """

    contract = Contract(ulps=512, mixed=0.1, targets={
        "quadratic": (1, 63), "rosenbrock": (0.5, 290), "logistic": (0.3, 18),
        "factorisation": (0.03, 150),
    })

    momentum: float = 0.95
    nesterov: bool = True
    ns_steps: int = 5
    weight_decay: float = 0.0
    scale: str = "original"
    fallback: Optimizer = field(default_factory=AdamW)
    fallback_lr_scale: float = 1.0
    heads: tuple[str, ...] = ("*head*", "*embed*")

    def __post_init__(self) -> None:
        require_ranges(self, momentum=UNIT, weight_decay=NONNEGATIVE, fallback_lr_scale=POSITIVE)
        require_counts(self, ns_steps=1)
        require("Muon scale", self.scale in _SCALES, " or ".join(map(repr, _SCALES)), self.scale)
        require("Muon fallback", isinstance(self.fallback, Optimizer), "an optimizer", self.fallback)

    def split(self, params: Sequence[ParamInfo]) -> list[tuple[Optimizer, float, list[str]]]:
        own = [p.name for p in params if self._takes(p)]
        others = [p for p in params if not self._takes(p)]
        rest = [(optimizer, scale * self.fallback_lr_scale, names)
                for optimizer, scale, names in self.fallback.split(others) if names]
        return [(self, 1.0, own), *rest] if own else rest

    def _takes(self, param: ParamInfo) -> bool:
        head = any(fnmatchcase(param.name, pattern) for pattern in self.heads)
        return param.ndim == 2 and not param.gathered and not head

    def init(self, xp: Namespace, param: Array) -> State:
        return {"m": xp.zeros_like(param)}

    def update(self, xp: Namespace, grad: Array, state: State, param: Array, **scalars: Any) -> tuple[Array, State]:
        lr = scalars["lr"]
        m = self.momentum * state["m"] + (1 - self.momentum) * grad
        move = (1 - self.momentum) * grad + self.momentum * m if self.nesterov else m
        move = orthogonalised(xp, move, self.ns_steps)
        if self.weight_decay:
            param = param - (lr * self.weight_decay) * param
        return param - (lr * self._scale(*param.shape)) * move, {"m": m}

    def _scale(self, rows: int, columns: int) -> float:
        if self.scale == "original":
            return math.sqrt(max(1.0, rows / columns))
        return 0.2 * math.sqrt(max(rows, columns))


def orthogonalised(xp: Namespace, x: Array, steps: int) -> Array:
    """The quintic Newton-Schulz iteration: the singular values of x, moved towards 1. Zeros stay zeros."""
    a, b, c = _QUINTIC
    tall = x.shape[0] > x.shape[1]
    x = x / (norm(xp, x) + 1e-7)
    if tall:
        x = xp.transpose(x)
    for _ in range(steps):
        square = xp.matmul(x, x, transpose_y=True)
        x = a * x + xp.matmul(b * square + c * xp.matmul(square, square), x)
    return xp.transpose(x) if tall else x
