"""The form of a graph that predicts: what only training does is gone."""

from __future__ import annotations

from ..ir.graph import Graph
from ..ir.rewrite import Copy
from ..ir.symbolic import per_size


@per_size
def inference(graph: Graph) -> Graph:
    """The graph without its assigns.

        buffer mean; out = f(x, mean); assign mean = g(x)      ->      buffer mean; out = f(x, mean)
    """
    new = Copy(graph).graph
    new.assigns = {}
    new.nodes = new.live_nodes()
    return new
