"""The graphs that a training session runs, built from the user's forward graph.

Each is a plain Graph: what it reads from the device are params and buffers, what it writes there are assigns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .. import ops
from ..autodiff.reverse import backward
from ..errors import GraphError
from ..ir.graph import Graph
from ..ir.rewrite import Copy, drop_unused_leaves
from ..ir.tensor import Tensor
from ..optim import Clip, Optimizer
from ..optim.arrays import GRAPH
from ..optim.base import State
from ..passes.inference import inference


@dataclass(frozen=True)
class Rule:
    """How all trained params are updated; `scalars` are the names of the optimizer's numbers."""

    optimizer: Optimizer
    clip: Clip | None

    @property
    def scalars(self) -> list[str]:
        return list(self.optimizer.scalars(1, 1.0))


def state_name(param: str, slot: str) -> str:
    return f"state/{param}/{slot}"


def scalar_name(scalar: str) -> str:
    return f"optimizer/{scalar}"


def gradient_name(param: str) -> str:
    return f"gradient/{param}"


def next_name(buffer: str) -> str:
    return f"next/{buffer}"


def gradient_graph(forward: Graph, loss: str, trainable: Sequence[str]) -> Graph:
    """Outputs the loss, the other outputs of rank 0, `gradient/<param>` and `next/<buffer>`; writes nothing."""
    graph, gradients = _differentiated(forward, loss, trainable)
    graph.outputs.update({gradient_name(name): g for name, g in gradients.items()})
    graph.outputs.update({next_name(name): t for name, t in graph.assigns.items()})
    graph.assigns = {}
    return _pruned(graph)


def fused_graph(forward: Graph, loss: str, trainable: Sequence[str], rule: Rule) -> Graph:
    """Outputs the loss and the other outputs of rank 0; writes params, optimizer state and buffers."""
    graph, gradients = _differentiated(forward, loss, trainable)
    _append_update(graph, gradients, rule)
    return _pruned(graph)


def apply_graph(params: Mapping[str, tuple[int, ...]], rule: Rule) -> Graph:
    """Writes params and optimizer state from the inputs `gradient/<param>`; outputs the first scalar."""
    graph = Graph("apply_gradients")
    for name, shape in params.items():
        graph.param(name, shape)
    gradients = {name: graph.input(gradient_name(name), shape) for name, shape in params.items()}
    _append_update(graph, gradients, rule)
    graph.outputs = {"lr": graph.inputs[scalar_name(rule.scalars[0])]}
    return graph


def evaluation_graph(forward: Graph, loss: str) -> Graph:
    """The inference form with the loss alone."""
    graph: Graph = inference(forward)
    graph.outputs = {loss: graph.outputs[loss]}
    return _pruned(graph)


def prediction_graph(forward: Graph, loss: str, outputs: Sequence[str] | None = None) -> Graph:
    """The inference form with the named outputs (all but the loss by default) and only the inputs these need."""
    graph = inference(forward)
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
    scalars = {name: graph.input(scalar_name(name), ()) for name in rule.scalars}
    clipped = rule.clip.apply(GRAPH, gradients) if rule.clip else dict(gradients)
    for name, gradient in clipped.items():
        param = graph.params[name]
        slots = rule.optimizer.init(GRAPH, param)
        state: State = {slot: graph.buffer(state_name(name, slot), like.shape) for slot, like in slots.items()}
        value, new_state = rule.optimizer.update(GRAPH, gradient, state, param, **scalars)
        graph.assigns[name] = _like(value, param, name)
        for slot, old in state.items():
            graph.assigns[state_name(name, slot)] = _like(new_state[slot], old, state_name(name, slot))


def _like(value: Tensor, old: Tensor, name: str) -> Tensor:
    if value.type != old.type:
        raise GraphError(f"update of {name!r}", f"expected {old.type}, got {value.type}")
    return ops.identity(old) if value is old else value


def _pruned(graph: Graph) -> Graph:
    """Without dead nodes; inputs stay, so that every program of a session takes the same feeds."""
    drop_unused_leaves(graph, keep=graph.inputs)
    return graph
