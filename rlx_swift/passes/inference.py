"""The form of a graph that predicts: what only training does is gone. Ops say what stands for them."""

from __future__ import annotations

from ..errors import GraphError
from ..ir.graph import Graph, Node, is_noise
from ..ir.rewrite import Copy, drop_unused_leaves
from ..ir.symbolic import per_size
from ..ir.tensor import Tensor


@per_size
def inference(graph: Graph) -> Graph:
    """The graph without its assigns, and with every op that acts otherwise when predicting replaced.

        buffer mean, var                              buffer mean, var
        y, next, _ = batch_norm(x, mean, var)   ->    y = (x - mean) * rsqrt(var + eps)
        z = dropout(y, uniform); assign mean = next   z = y

    Raises GraphError for a graph of derivatives with such an op: they would stay those of the model that trains.
    """
    changed = [node.op.name for node in graph.live_nodes() if node.op.predict is not None]
    if graph.generated and changed:
        raise GraphError(
            "inference", f"{', '.join(graph.generated.values())} came from the graph with {changed[0]} as in training",
            "take the inference form first, then the derivative",
        )
    new = Copy(graph, _predicting).graph
    new.assigns = {}
    drop_unused_leaves(new, keep={name: x for name, x in new.leaves().items() if not is_noise(name)})
    return new


def _predicting(node: Node, operands: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
    if node.op.predict is None:
        return None
    results = node.op.predict(operands, node.attrs)
    return results if isinstance(results, tuple) else (results,)
