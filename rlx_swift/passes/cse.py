"""Computes equal things once."""

from __future__ import annotations

from typing import Any

from ..ir.graph import Graph, Node
from ..ir.op import Op
from ..ir.rewrite import Copy
from ..ir.tensor import Tensor

Key = tuple[Op[Any], str, tuple[int, ...], str, str]


def cse(graph: Graph) -> Graph:
    """The graph with one node for all that apply the same op to the same operands.

        a = exp(x); b = exp(x); c = a * b    ->    a = exp(x); c = a * a

    Nodes of two regions that are computed again for the backward pass stay apart: to merge them would be to
    keep what shall not be kept. So do those of two scopes, since each spells a composite of its own.
    """
    known: dict[Key, tuple[Tensor, ...]] = {}

    def rule(node: Node, operands: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        if not operands:
            return None
        # Attributes by their text: 0.0 and -0.0 are equal, but not the same.
        key = (node.op, repr(node.attrs), tuple([id(x) for x in operands]), node.region, node.scope)
        if key not in known:
            types = tuple([t.type for t in node.outputs])
            known[key] = operands[0].graph.append(node.op, operands, node.attrs, types, node.scope)
        return known[key]

    return Copy(graph, rule).graph
