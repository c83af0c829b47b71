"""Programs that estimate the diagonal of the loss's Hessian, and the random numbers that they are fed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .. import ops
from ..autodiff.forward import hvp
from ..autodiff.reverse import backward
from ..errors import ConfigError
from ..ir.graph import Graph
from ..ir.rewrite import Copy, drop_unused_leaves
from ..ir.tensor import Tensor
from ..ir.types import Shape
from ..optim.requirement import HessianDiag
from ..philox import signs, uniform
from .names import hessian_name, probe_name


def hessian_graph(forward: Graph, loss: str, params: Sequence[str], kind: HessianDiag) -> Graph:
    """Writes `hessian/<param>` from a batch and the inputs `probe/...`."""
    if kind.estimator == "hutchinson":
        return _hutchinson(forward, loss, params)
    return _gauss_newton_bartlett(forward, loss, params)


def probes(inputs: Mapping[str, Shape], kind: HessianDiag, seed: int, micro_batch: int) -> dict[str, np.ndarray]:
    """A value for each `probe/...` input of a program made by `hessian_graph`."""
    draw = signs if kind.estimator == "hutchinson" else uniform
    prefix = probe_name("")
    return {n: draw(seed, micro_batch, n, shape) for n, shape in inputs.items() if n.startswith(prefix)}


def _hutchinson(forward: Graph, loss: str, params: Sequence[str]) -> Graph:
    """u * Hu for random signs u: its mean is the diagonal (Hutchinson 1989)."""
    graph: Graph = hvp(forward, list(params), loss)
    graph.assigns = {}
    for name in params:
        u = graph.inputs.pop(graph.generated[f"v_{name}"])
        graph.inputs[probe_name(name)] = _renamed(u, probe_name(name))
        estimate = u * graph.outputs[graph.generated[f"hvp_{name}"]]
        _write(graph, name, estimate)
    graph.outputs = {}
    for name, x in forward.inputs.items():
        if name not in graph.inputs:
            graph.input(name, x.shape, x.dtype)
    drop_unused_leaves(graph, keep=graph.inputs)
    return graph


def _gauss_newton_bartlett(forward: Graph, loss: str, params: Sequence[str]) -> Graph:
    """The square of a gradient for labels drawn from the model itself.

    With c the loss's derivative by one sample's cross-entropy (1/B for a mean over B samples), the gradient
    is that of sum sqrt(c) cross-entropy, whose square has the mean sum c J'SJ; for a mean it is the B g * g
    of Liu et al. 2023, algorithm 2.
    """
    graph = Copy(forward).graph
    graph.assigns = {}
    value = graph.outputs[loss]
    losses = [node for node in graph.live_nodes() if node.op.name == "softmax_cross_entropy"]
    if not losses:
        problem = "the graph has no softmax_cross_entropy_with_logits with labels that are indices"
        raise ConfigError("hessian_diag estimator 'gnb'", problem, 'use "hutchinson"')
    weights = backward(graph, {value: graph.constant(1.0, value.dtype)}, [node.outputs[0] for node in losses])
    seeds: dict[Tensor, Tensor] = {}
    for i, (node, weight) in enumerate(zip(losses, weights, strict=True)):
        logits, axis = node.inputs[0], node.attrs.axis  # type: ignore[attr-defined]
        u = graph.input(probe_name(f"labels/{i}"), logits.shape)
        scores = logits - ops.log(-ops.log(u))  # the largest is a draw from softmax(logits): Gumbel's trick
        drawn = ops.cast(scores >= ops.max(scores, axis, keepdims=True), logits.dtype)
        share = ops.expand_dims(ops.sqrt(ops.maximum(weight, 0.0)), axis)
        slope = share * (ops.softmax(logits, axis) - drawn)
        seeds[logits] = seeds[logits] + slope if logits in seeds else slope
    for name, gradient in zip(params, backward(graph, seeds, [graph.params[name] for name in params]), strict=True):
        _write(graph, name, ops.square(gradient))
    graph.outputs = {}
    drop_unused_leaves(graph, keep=graph.inputs)
    return graph


def _write(graph: Graph, param: str, estimate: Tensor) -> None:
    graph.buffer(hessian_name(param), estimate.shape)
    graph.assigns[hessian_name(param)] = estimate


def _renamed(x: Tensor, name: str) -> Tensor:
    x.name = x.producer.name = name  # type: ignore[union-attr]
    return x
