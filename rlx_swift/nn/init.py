"""Initial values of weights: functions of a NumPy generator and a shape, for `init=` of params.

Fan-in and fan-out follow the layouts of the ops: a matrix is [in, out] as `x @ w` reads it, a kernel is
[out, in/groups, spatial...].
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Shape = tuple[int, ...]
Initializer = Callable[[np.random.Generator, Shape], np.ndarray]


def fans(shape: Shape) -> tuple[int, int]:
    """The number of values that one output sums over, and that one input feeds."""
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    if len(shape) == 2:
        return shape[0], shape[1]
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive


def constant(value: float) -> Initializer:
    """One value everywhere."""
    return lambda rng, shape: np.full(shape, value, np.float32)


def normal(std: float = 0.02, mean: float = 0.0) -> Initializer:
    """A normal distribution."""
    return lambda rng, shape: (mean + std * rng.standard_normal(shape)).astype(np.float32)


def truncated_normal(std: float = 0.02) -> Initializer:
    """A normal distribution cut at two standard deviations, by drawing again."""

    def init(rng: np.random.Generator, shape: Shape) -> np.ndarray:
        values = rng.standard_normal(shape)
        while (outside := np.abs(values) > 2).any():
            values = np.where(outside, rng.standard_normal(shape), values)
        return (std * values).astype(np.float32)

    return init


def he_normal() -> Initializer:
    """Variance 2 / fan-in, for relu (He et al. 2015, arXiv:1502.01852, eq. 10)."""
    return lambda rng, shape: normal(math.sqrt(2 / max(fans(shape)[0], 1)))(rng, shape)


def glorot_uniform() -> Initializer:
    """Uniform in +-sqrt(6 / (fan-in + fan-out)) (Glorot & Bengio 2010, eq. 16)."""

    def init(rng: np.random.Generator, shape: Shape) -> np.ndarray:
        limit = math.sqrt(6 / max(sum(fans(shape)), 1))
        return rng.uniform(-limit, limit, shape).astype(np.float32)

    return init
