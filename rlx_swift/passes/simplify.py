"""The passes that keep values, one after another."""

from __future__ import annotations

from ..ir.graph import Graph
from ..ir.symbolic import per_size
from .algebraic import algebraic
from .cse import cse
from .fold import fold


@per_size
def simplify(graph: Graph) -> Graph:
    """The graph with constants folded, identities applied, equal nodes shared and dead ones gone.

        a = exp(x); b = exp(x); c = a * b + log(2.0) * 1.0    ->    a = exp(x); c = a * a + 0.6931472

    Every output keeps its bits, NaN and the signs of zeros included. Leaves stay, used or not.
    """
    return cse(algebraic(fold(graph)))
