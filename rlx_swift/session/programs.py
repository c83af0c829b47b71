"""The graphs that a training session runs, built from the user's forward graph.

Each is a plain Graph: what it reads from the device are params and buffers, what it writes there are assigns.
Every program of a forward graph takes that graph's inputs, used or not, so that one check of a batch serves all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import ops
from ..autodiff.reverse import backward
from ..errors import ConfigError, GraphError
from ..ir.graph import Graph
from ..ir.rewrite import Copy, drop_unused_leaves, inlined
from ..ir.tensor import Tensor
from ..optim.arrays import GRAPH
from ..passes.inference import inference
from ..passes.simplify import simplify
from ..precision import PrecisionPolicy, with_precision
from .names import (
    FINITE,
    LOSS_SCALE,
    TOTAL,
    UNSCALE,
    WEIGHT,
    accumulator_name,
    gradient_name,
    next_name,
    previous_name,
    scalar_name,
)
from .rule import Rule

Gradients = dict[str, Tensor]
_LARGEST = 3.4028234663852886e38


@dataclass(frozen=True)
class Recipe:
    """What the programs of one run have in common.

    Attributes:
        loss: the output to minimise.
        rule: the update.
        policy: where half precision is used.
        scaled: whether gradients travel under a loss scale, and an update that is not finite is skipped.
    """

    loss: str
    rule: Rule
    policy: PrecisionPolicy
    scaled: bool


def gradient_graph(forward: Graph, recipe: Recipe) -> Graph:
    """Outputs the loss, the other outputs of rank 0, the gradients and `next/<buffer>`; writes nothing."""
    graph, gradients, previous = _differentiated(forward, recipe)
    graph.outputs.update({gradient_name(name): g for name, g in gradients.items()})
    graph.outputs.update({gradient_name(name, True): g for name, g in previous.items()})
    graph.outputs.update({next_name(name): t for name, t in graph.assigns.items()})
    graph.assigns = {}
    return _finished(graph)


def step_graph(forward: Graph, recipe: Recipe) -> Graph:
    """A whole update from a batch: outputs the loss, the other outputs of rank 0, and whether it was applied."""
    graph, gradients, previous = _differentiated(forward, recipe)
    _append_update(graph, gradients, previous, recipe)
    return _finished(graph)


def accumulate_graph(forward: Graph, recipe: Recipe) -> Graph:
    """Adds the gradients, times the input `session/weight`, to the accumulators; outputs as `gradient_graph`."""
    graph, gradients, previous = _differentiated(forward, recipe)
    weight = graph.input(WEIGHT, ())
    for group in (gradients, previous):
        for name, gradient in group.items():
            accumulator = accumulator_name(name, group is previous)
            graph.assigns[accumulator] = graph.buffer(accumulator, gradient.shape) + weight * gradient
    return _finished(graph)


def apply_graph(recipe: Recipe) -> Graph:
    """An update from the accumulators over the input `session/total`; outputs whether it was applied."""
    graph = Graph("apply")
    total = graph.input(TOTAL, ())
    rule = recipe.rule
    for name, shape in rule.shapes.items():
        graph.param(name, shape)
    gradients = {n: graph.buffer(accumulator_name(n), shape) / total for n, shape in rule.shapes.items()}
    previous = {n: graph.buffer(accumulator_name(n, True), rule.shapes[n]) / total for n in rule.previous}
    _append_update(graph, gradients, previous, recipe)
    return _finished(graph)


def given_graph(recipe: Recipe) -> Graph:
    """An update from gradients that are fed; outputs whether it was applied."""
    graph = Graph("given")
    for name, shape in recipe.rule.shapes.items():
        graph.param(name, shape)
    gradients = {name: graph.input(gradient_name(name), shape) for name, shape in recipe.rule.shapes.items()}
    _append_update(graph, gradients, {name: gradients[name] for name in recipe.rule.previous}, recipe)
    return graph


def evaluation_graph(forward: Graph, loss: str, policy: PrecisionPolicy) -> Graph:
    """The inference form with the loss alone."""
    graph: Graph = inference(forward)
    graph.outputs = {loss: graph.outputs[loss]}
    return _finished(with_precision(graph, policy))


def prediction_graph(
    forward: Graph, loss: str, policy: PrecisionPolicy, outputs: Sequence[str] | None = None
) -> Graph:
    """The inference form with the named outputs (all but the loss by default) and only the inputs these need."""
    graph: Graph = inference(forward)
    names = list(outputs) if outputs is not None else [n for n in graph.outputs if n != loss] or [loss]
    for name in names:
        if name not in graph.outputs:
            raise GraphError(f"output {name!r}", f"the graph has {', '.join(graph.outputs)}")
    graph.outputs = {name: graph.outputs[name] for name in names}
    graph = simplify(with_precision(graph, policy))
    drop_unused_leaves(graph)
    return graph


def _differentiated(forward: Graph, recipe: Recipe) -> tuple[Graph, Gradients, Gradients]:
    """The forward graph with its gradients in f32 without scale, at the params and, where needed, at those before."""
    forward = with_precision(forward, recipe.policy)
    graph = Copy(forward).graph
    scale = graph.input(LOSS_SCALE, ()) if recipe.scaled else graph.constant(1.0, graph.outputs[recipe.loss].dtype)
    unscale = graph.input(UNSCALE, ()) if recipe.scaled else None

    def gradients(loss: Tensor, wrt: Mapping[str, Tensor]) -> Gradients:
        found = backward(graph, {loss: ops.cast(scale, loss.dtype)}, list(wrt.values()))
        return {n: g if unscale is None else g * unscale for n, g in zip(wrt, found, strict=True)}

    present = gradients(graph.outputs[recipe.loss], {name: graph.params[name] for name in recipe.rule.shapes})
    previous: Gradients = {}
    if recipe.rule.previous:
        before = {n: graph.buffer(previous_name(n), graph.params[n].shape) for n in recipe.rule.shapes}
        again = inlined(forward, graph, {**graph.leaves(), **before})
        previous = gradients(again[recipe.loss], {name: before[name] for name in recipe.rule.previous})
    graph.outputs = {name: t for name, t in graph.outputs.items() if t.shape == ()}
    return graph, present, previous


def _append_update(graph: Graph, gradients: Gradients, previous: Gradients, recipe: Recipe) -> None:
    def read(name: str) -> Tensor:
        table = graph.params if name in graph.params else graph.buffers
        return table[name] if name in table else graph.buffer(name, resident[name])

    resident = recipe.rule.resident_shapes()
    numbers = [
        {name: graph.input(scalar_name(index, name), ()) for name in names}
        for index, names in enumerate(recipe.rule.scalar_names())
    ]
    values = recipe.rule.apply(GRAPH, gradients, previous, numbers, read, _settled)
    for name in values:
        read(name)  # what is only written needs its leaf too
    graph.assigns.update(values)
    if recipe.scaled:
        finite = _all_finite([*gradients.values(), *previous.values()])
        graph.outputs[FINITE] = finite
        graph.assigns = {name: ops.where(finite, value, read(name)) for name, value in graph.assigns.items()}


def _all_finite(gradients: Sequence[Tensor]) -> Tensor:
    """Whether the sum of all squares is finite: an infinity or NaN anywhere makes it so."""
    total = ops.sum(ops.square(gradients[0]))
    for gradient in gradients[1:]:
        total = total + ops.sum(ops.square(gradient))
    return total <= _LARGEST


def _settled(name: str, value: Any, old: Tensor) -> Tensor:
    value = old.graph.as_tensor(value, old.dtype)
    if value.type != old.type:
        raise ConfigError(f"update of {name!r}", f"expected {old.type}, got {value.type}")
    return ops.identity(old) if value is old else value


def _finished(graph: Graph) -> Graph:
    simple: Graph = simplify(graph)
    drop_unused_leaves(simple, keep=simple.inputs)
    return simple
