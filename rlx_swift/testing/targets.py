"""The four standard problems that every optimizer is asked to minimise; each deterministic and small."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import ops
from ..dtypes import i32
from ..ir.graph import Graph


@dataclass(frozen=True)
class Target:
    """Attributes:
    graph: a forward graph with the output "loss" and initial values.
    batch: what to feed at every step.
    solved: the loss below which it counts as minimised.
    """

    graph: Graph
    batch: Mapping[str, Any]
    solved: float


def quadratic() -> Target:
    """0.5 sum h (w - c)^2 over six elements, with curvatures h from 1 to 100."""
    g = Graph("quadratic")
    w = g.param("w", (6,), init=np.zeros(6, np.float32))
    curvature, centre = np.geomspace(1, 100, 6), np.array([1.0, -1.0, 0.5, 2.0, -0.5, 1.5])
    g.set_outputs({"loss": 0.5 * (g.constant(curvature) * (w - g.constant(centre)) ** 2).sum()})
    return Target(g, {}, solved=1e-3 * float(0.5 * np.sum(curvature * centre**2)))


def rosenbrock() -> Target:
    """(1 - x)^2 + 100 (y - x^2)^2 from (-1.2, 1) (Rosenbrock 1960)."""
    g = Graph("rosenbrock")
    w = g.param("w", (2,), init=np.array([-1.2, 1.0]))
    x, y = w[0], w[1]
    g.set_outputs({"loss": (1.0 - x) ** 2 + 100.0 * (y - x**2) ** 2})
    return Target(g, {}, solved=0.1)


def logistic() -> Target:
    """Logistic regression of 64 samples with 5 features, with weights and a bias; the loss is its mean."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 5))
    y = np.where(x @ np.array([1.0, -2.0, 0.5, 0.0, 3.0]) + 0.5 + 3 * rng.normal(size=64) > 0, 1.0, -1.0)
    g = Graph("logistic")
    features, labels = g.input("x", (64, 5)), g.input("y", (64,))
    weights, bias = g.param("w", (5,), init=0.0), g.param("b", (1,), init=0.0)
    margin = labels * (features @ weights + bias)
    g.set_outputs({"loss": (ops.maximum(-margin, 0.0) + ops.log(1.0 + ops.exp(-ops.abs(margin)))).mean()})
    return Target(g, {"x": x, "y": y}, solved=0.343)  # from log 2 = 0.693; the least is 0.3329


def factorisation() -> Target:
    """|A - U V|^2 / 2 for a 6x5 matrix A with two singular values of 1, so that orthonormal U and V solve it."""
    rng = np.random.default_rng(1)
    left, right = (np.linalg.qr(rng.normal(size=(n, 2)))[0] for n in (6, 5))
    u, v = (np.linalg.qr(rng.normal(size=(n, 2)))[0] for n in (6, 5))
    g = Graph("factorisation")
    a = g.constant(left @ right.T)
    first, second = g.param("u", (6, 2), init=u), g.param("v", (2, 5), init=v.T)
    g.set_outputs({"loss": 0.5 * ((a - first @ second) ** 2).sum()})
    return Target(g, {}, solved=0.01)


def classifier() -> Target:
    """Two layers of 4 to 8 to 3 over 16 samples, for runs in mixed precision."""
    rng = np.random.default_rng(2)
    g = Graph("classifier")
    x, y = g.input("x", (16, 4)), g.input("y", (16,), i32)
    w1, b1 = g.param("w1", (4, 8), init=rng.normal(0, 0.5, (4, 8))), g.param("b1", (8,), init=0.0)
    w2, b2 = g.param("w2", (8, 3), init=rng.normal(0, 0.5, (8, 3))), g.param("b2", (3,), init=0.0)
    logits = ops.tanh(x @ w1 + b1) @ w2 + b2
    g.set_outputs({"loss": ops.softmax_cross_entropy_with_logits(logits, y).mean()})
    return Target(g, {"x": rng.normal(size=(16, 4)), "y": rng.integers(0, 3, 16)}, solved=0.5)


TARGETS: Mapping[str, Callable[[], Target]] = {
    "quadratic": quadratic, "rosenbrock": rosenbrock, "logistic": logistic, "factorisation": factorisation,
}
