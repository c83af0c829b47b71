"""The graphs that a training session runs, built from the user's forward graph.

Each is a plain Graph: what it reads from the device are params and buffers, what it writes there are assigns.
Every program of a forward graph takes that graph's inputs, used or not, so that one check of a batch serves all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .. import ops
from ..autodiff.reverse import backward
from ..errors import ConfigError, GraphError
from ..ir.graph import Graph
from ..ir.rewrite import Copy, drop_unused_leaves
from ..ir.tensor import Tensor
from ..optim.arrays import GRAPH
from ..passes.inference import inference
from .names import TOTAL, WEIGHT, accumulator_name, gradient_name, next_name, scalar_name, state_name
from .rule import Rule


def gradient_graph(forward: Graph, loss: str, trainable: Sequence[str]) -> Graph:
    """Outputs the loss, the other outputs of rank 0, `gradient/<param>` and `next/<buffer>`; writes nothing."""
    graph, gradients = _differentiated(forward, loss, trainable)
    graph.outputs.update({gradient_name(name): g for name, g in gradients.items()})
    graph.outputs.update({next_name(name): t for name, t in graph.assigns.items()})
    graph.assigns = {}
    return _pruned(graph)


def step_graph(forward: Graph, loss: str, rule: Rule) -> Graph:
    """A whole update from a batch: outputs the loss and the other outputs of rank 0."""
    graph, gradients = _differentiated(forward, loss, list(rule.shapes))
    _append_update(graph, gradients, rule)
    return _pruned(graph)


def accumulate_graph(forward: Graph, loss: str, rule: Rule) -> Graph:
    """Adds the gradients, times the input `session/weight`, to the accumulators; outputs as `step_graph`."""
    graph, gradients = _differentiated(forward, loss, list(rule.shapes))
    weight = graph.input(WEIGHT, ())
    for name, gradient in gradients.items():
        total = graph.buffer(accumulator_name(name), gradient.shape)
        graph.assigns[accumulator_name(name)] = total + weight * gradient
    return _pruned(graph)


def apply_graph(rule: Rule) -> Graph:
    """An update from the accumulators over the input `session/total`. No outputs."""
    graph = Graph("apply")
    total = graph.input(TOTAL, ())
    gradients = {}
    for name, shape in rule.shapes.items():
        graph.param(name, shape)
        gradients[name] = graph.buffer(accumulator_name(name), shape) / total
    _append_update(graph, gradients, rule)
    return graph


def evaluation_graph(forward: Graph, loss: str) -> Graph:
    """The inference form with the loss alone."""
    graph: Graph = inference(forward)
    graph.outputs = {loss: graph.outputs[loss]}
    return _pruned(graph)


def prediction_graph(forward: Graph, loss: str, outputs: Sequence[str] | None = None) -> Graph:
    """The inference form with the named outputs (all but the loss by default) and only the inputs these need."""
    graph: Graph = inference(forward)
    names = list(outputs) if outputs is not None else [n for n in graph.outputs if n != loss] or [loss]
    for name in names:
        if name not in graph.outputs:
            raise GraphError(f"output {name!r}", f"the graph has {', '.join(graph.outputs)}")
    graph.outputs = {name: graph.outputs[name] for name in names}
    drop_unused_leaves(graph)
    return graph


def _differentiated(forward: Graph, loss: str, trainable: Sequence[str]) -> tuple[Graph, dict[str, Tensor]]:
    graph = Copy(forward).graph
    value = graph.outputs[loss]
    seed = graph.constant(1.0, value.dtype)
    gradients = backward(graph, {value: seed}, [graph.params[name] for name in trainable])
    graph.outputs = {name: t for name, t in graph.outputs.items() if t.shape == ()}
    return graph, dict(zip(trainable, gradients, strict=True))


def _append_update(graph: Graph, gradients: Mapping[str, Tensor], rule: Rule) -> None:
    params = {name: graph.params[name] for name in rule.shapes}
    states = {
        name: {slot: graph.buffer(state_name(name, slot), shape) for slot, shape in slots.items()}
        for name, slots in rule.slots.items()
    }
    scalars = [
        {name: graph.input(scalar_name(index, name), ()) for name in numbers}
        for index, numbers in enumerate(rule.scalars(1, 1.0))
    ]
    values, news = rule.apply(GRAPH, gradients, params, states, scalars, _settled)
    graph.assigns.update(values)
    for name, new in news.items():
        graph.assigns.update({state_name(name, slot): value for slot, value in new.items()})


def _settled(name: str, value: Tensor, old: Tensor) -> Tensor:
    value = old.graph.as_tensor(value, old.dtype)
    if value.type != old.type:
        raise ConfigError(f"update of {name!r}", f"expected {old.type}, got {value.type}")
    return ops.identity(old) if value is old else value


def _pruned(graph: Graph) -> Graph:
    drop_unused_leaves(graph, keep=graph.inputs)
    return graph
