"""Gradients checked by central differences in float64 along random directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import RlxError
from ..interp import evaluate, leaf_value
from ..ir.graph import Graph
from .reverse import Wrt, differentiable_leaves, vjp

_STEP = 1e-5


class GradientMismatch(RlxError, AssertionError):
    """The derivative rules and finite differences disagree."""


def check_grads(
    graph: Graph, feeds: Mapping[str, Any], wrt: Wrt = None, order: int = 2, *,
    rtol: float = 1e-5, atol: float = 1e-6, seed: int = 0,
) -> None:
    """Compares <u, J v> by central differences with <J'u, v> by the vjp rules, for orders 1 to `order`.

    Every float output gets a random cotangent u and every leaf of `wrt` (all params by default) a random
    direction v. Order 2 checks the gradient graph in the same way. Raises GradientMismatch with the graph
    and the numbers.
    """
    rng = np.random.default_rng(seed)
    values = {name: leaf_value(t, feeds, np.dtype(np.float64)) for name, t in graph.leaves().items()}
    for level in range(1, order + 1):
        targets = list(differentiable_leaves(graph, wrt))
        derivative = vjp(graph, targets)
        cotangents = {
            derivative.generated[f"d_{name}"]: rng.standard_normal(t.shape)
            for name, t in graph.outputs.items() if t.dtype.is_float
        }
        directions = {name: rng.standard_normal(graph.leaf(name).shape) for name in targets}
        analytic = _along(derivative, {**values, **cotangents}, directions)
        numeric = _difference(graph, values, cotangents, directions, derivative)
        if not (np.isfinite(analytic) and np.isclose(analytic, numeric, rtol=rtol, atol=atol)):
            raise GradientMismatch(
                f"derivative of order {level} of {graph.name!r}", f"the rules give {analytic!r}, "
                f"central differences {numeric!r}", f"with respect to {', '.join(targets)} in\n{graph}",
            )
        graph, values = derivative, {**values, **cotangents}


def _along(derivative: Graph, feeds: Mapping[str, Any], directions: Mapping[str, np.ndarray]) -> float:
    gradients = evaluate(derivative, feeds, np.float64)
    return float(sum(np.vdot(gradients[derivative.generated[f"grad_{n}"]], v) for n, v in directions.items()))


def _difference(
    graph: Graph, values: Mapping[str, Any], cotangents: Mapping[str, np.ndarray],
    directions: Mapping[str, np.ndarray], derivative: Graph,
) -> float:
    def project(sign: float) -> float:
        moved = {n: np.asarray(values[n], np.float64) + sign * _STEP * v for n, v in directions.items()}
        outputs = evaluate(graph, {**values, **moved}, np.float64)
        return float(sum(
            np.vdot(cotangents[derivative.generated[f"d_{name}"]], outputs[name])
            for name, t in graph.outputs.items() if t.dtype.is_float
        ))

    return (project(1.0) - project(-1.0)) / (2 * _STEP)
