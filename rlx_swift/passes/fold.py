"""Computes beforehand what depends on constants alone."""

from __future__ import annotations

import numpy as np

from ..interp import node_values
from ..ir.graph import Graph, Leaf, LeafKind, Node
from ..ir.rewrite import Copy
from ..ir.tensor import Tensor

# A folded value may be this much larger than the constants it came from: a table is cheaper to make than to store.
_GROWTH = 4096


def fold(graph: Graph) -> Graph:
    """The graph with constants in place of nodes that read only constants.

        y = x * exp(2.0)    ->    y = x * 7.389056

    A constant has its dtype's precision, also where the graph is then evaluated in float64.
    Nodes with a scope, which spell a composite, stay.
    """

    def rule(node: Node, operands: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        values = [_constant(x) for x in operands]
        arrays = [value for value in values if value is not None]
        if not arrays or len(arrays) < len(values) or node.scope:
            return None
        if sum(t.size for t in node.outputs) > _GROWTH + sum(array.size for array in arrays):
            return None
        with np.errstate(all="ignore"):
            results = node_values(node, arrays)
        new = operands[0].graph
        return tuple([new.constant(value, t.dtype) for value, t in zip(results, node.outputs, strict=True)])

    return Copy(graph, rule).graph


def _constant(x: Tensor) -> np.ndarray | None:
    leaf = x.producer
    return leaf.value if isinstance(leaf, Leaf) and leaf.kind is LeafKind.CONSTANT else None
