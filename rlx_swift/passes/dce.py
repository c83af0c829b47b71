"""Drops what no output or assign needs."""

from __future__ import annotations

from ..ir.graph import Graph
from ..ir.rewrite import Copy


def dce(graph: Graph) -> Graph:
    """The graph without dead nodes and constants; leaves stay, used or not.

        a = exp(x); b = log(x); output a    ->    a = exp(x); output a
    """
    return Copy(graph).graph
