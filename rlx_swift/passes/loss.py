"""A loss put on an output of a graph, with an input for what the output should have been."""

from __future__ import annotations

from collections.abc import Callable

from .. import ops
from ..dtypes import f32, i32
from ..errors import ConfigError, GraphError, NameNotFoundError
from ..ir.graph import Graph, Node
from ..ir.rewrite import Copy
from ..ir.tensor import FUNCTIONS, Tensor
from ..ir.types import as_axis

_SQUASHED = {"softmax_cross_entropy": "softmax", "sigmoid_cross_entropy": "sigmoid"}
_OF_ONE_SHAPE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sigmoid_cross_entropy": ops.bce_with_logits, "mse": ops.mse_loss, "l1": ops.l1_loss, "huber": ops.huber_loss,
}
_KINDS = ("softmax_cross_entropy", *_OF_ONE_SHAPE)
_PASSED = ("cast", "identity", "stop_gradient")  # what may stand between a softmax and the output


def with_loss(
    graph: Graph, kind: str, logits: str | None = None, labels: str = "labels", loss: str = "loss", axis: int = -1
) -> Graph:
    """See `Graph.with_loss`."""
    if kind not in _KINDS:
        raise ConfigError("with_loss", f"expected one of {', '.join(_KINDS)}, got {kind!r}")
    if loss in graph.outputs:
        raise GraphError("with_loss", f"the graph has an output {loss!r} already", "give the loss another name")
    new = Copy(graph).graph
    scores = ops.cast(_before(_output(new, logits), _SQUASHED.get(kind, "")), f32)
    if kind in _OF_ONE_SHAPE:
        new.outputs[loss] = _OF_ONE_SHAPE[kind](scores, new.input(labels, scores.shape))
        return new
    at = as_axis(axis, scores.ndim, "with_loss axis")
    classes = new.input(labels, (*scores.shape[:at], *scores.shape[at + 1 :]), i32)
    new.outputs[loss] = ops.cross_entropy(scores, classes, axis=at)
    return new


def _output(graph: Graph, name: str | None) -> Tensor:
    known = ", ".join(graph.outputs)
    if name is None and len(graph.outputs) != 1:
        raise GraphError("with_loss", f"the graph has the outputs {known}", 'say which one by logits="..."')
    name = next(iter(graph.outputs)) if name is None else name
    if name not in graph.outputs:
        raise NameNotFoundError(f"output {name!r}", "there is no output of that name", f"the graph has {known}")
    tensor = graph.outputs[name]
    if not tensor.dtype.is_float:
        raise GraphError(f"output {name!r}", f"expected floats for a loss, got {tensor.type}")
    return tensor


def _before(tensor: Tensor, squashing: str) -> Tensor:
    """What goes into the softmax or sigmoid that the tensor comes from; the tensor itself where there is none."""
    node = tensor.producer
    while isinstance(node, Node) and node.op.name in _PASSED:
        node = node.inputs[0].producer
    return node.inputs[0] if isinstance(node, Node) and node.op.name == squashing else tensor


FUNCTIONS["with_loss"] = with_loss
