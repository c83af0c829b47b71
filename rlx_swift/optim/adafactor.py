"""Adafactor: second moments of matrices kept as one row and one column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .arrays import Array, Namespace
from .base import NONNEGATIVE, POSITIVE, UNIT, Optimizer, State, require, require_ranges
from .contract import Contract
from .schedule import Schedule, as_schedule, rate


@dataclass(frozen=True)
class Adafactor(Optimizer):
    """Adafactor (Shazeer & Stern 2018, arXiv:1804.04235, algorithms 4 and 5).

        rho_t = min(1e-2, 1 / sqrt(t)),   alpha_t = max(eps2, rms(w)) rho_t
        b = 1 - t^decay_power
        R <- b R + (1 - b) mean over columns of (g^2 + eps1)
        C <- b C + (1 - b) mean over rows of (g^2 + eps1)
        u = g / sqrt(R C / mean(R)),   u <- u / max(1, rms(u) / clip)
        w <- w - alpha_t u

    The last two axes are factored; params of rank 0 and 1 keep the whole second moment V in place of R C. With
    `beta1` the step is a moving average of u. Decay is decoupled: w <- w - alpha_t weight_decay w first.

    `lr=None` takes the paper's relative step rho_t; a number or a function of the update's number stands for
    rho_t. The session's own rate is not used. Slots: `row` and `column`, or `v`; with `beta1`, `m`.
    """

    contract = Contract(ulps=16, targets={
        "quadratic": (0.001, 1700), "rosenbrock": (0.0005, 4000), "logistic": (0.001, 1900),
        "factorisation": (0.001, 370),
    })

    lr: float | Schedule | None = None
    decay_power: float = -0.8
    clip: float = 1.0
    eps1: float = 1e-30
    eps2: float = 1e-3
    beta1: float = 0.0
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        require_ranges(self, clip=POSITIVE, eps1=NONNEGATIVE, eps2=NONNEGATIVE, beta1=UNIT, weight_decay=NONNEGATIVE)
        require("Adafactor decay_power", -1 <= self.decay_power < 0, "a number in [-1, 0)", self.decay_power)
        if self.lr is not None:
            as_schedule(self.lr)

    def scalars(self, step: int, lr: float) -> dict[str, float]:
        relative = min(1e-2, step**-0.5) if self.lr is None else rate(as_schedule(self.lr), step - 1)
        return {"relative": relative, "kept": 1 - step**self.decay_power}

    def init(self, xp: Namespace, param: Array) -> State:
        if param.ndim < 2:
            state = {"v": xp.zeros_like(param)}
        else:
            zeros = xp.zeros_like(param)
            state = {"row": xp.mean(zeros, axis=-1), "column": xp.mean(zeros, axis=-2)}
        return {**state, "m": xp.zeros_like(param)} if self.beta1 else state

    def update(self, xp: Namespace, grad: Array, state: State, param: Array, **scalars: Any) -> tuple[Array, State]:
        kept, new = scalars["kept"], dict[str, Array]()
        square = xp.square(grad) + self.eps1
        if param.ndim < 2:
            new["v"] = kept * state["v"] + (1 - kept) * square
            move = grad / xp.sqrt(new["v"])
        else:
            row = new["row"] = kept * state["row"] + (1 - kept) * xp.mean(square, axis=-1)
            column = new["column"] = kept * state["column"] + (1 - kept) * xp.mean(square, axis=-2)
            # Two roots, since the product of R and C may be too small for f32.
            share = xp.sqrt(row / xp.mean(row, axis=-1, keepdims=True))
            move = grad / _column(xp, share) / _row(xp, xp.sqrt(column))
        move = move / xp.maximum(_rms(xp, move) / self.clip, 1.0)
        if self.beta1:
            move = new["m"] = self.beta1 * state["m"] + (1 - self.beta1) * move
        size = xp.maximum(_rms(xp, param), self.eps2) * scalars["relative"]
        if self.weight_decay:
            param = param - (size * self.weight_decay) * param
        return param - size * move, new


def _rms(xp: Namespace, x: Array) -> Array:
    return xp.sqrt(xp.mean(xp.square(x)))


def _column(xp: Namespace, x: Array) -> Array:
    return xp.reshape(x, (*x.shape, 1))


def _row(xp: Namespace, x: Array) -> Array:
    return xp.reshape(x, (*x.shape[:-1], 1, x.shape[-1]))
