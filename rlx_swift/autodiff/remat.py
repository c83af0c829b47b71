"""Regions whose results the backward pass computes again instead of keeping them (Chen et al. 2016)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from ..errors import GraphError
from ..ir.graph import Graph, Node
from ..ir.tensor import Tensor

F = TypeVar("F", bound=Callable[..., object])


def remat(function: F) -> F:
    """A function of tensors whose inner results are not kept for the backward pass, but computed again there.

    What the function returns is kept, and so is what it reads. Gradients are the same; memory is less by what
    lies between, time more by one forward pass of the function.
    """

    @functools.wraps(function)
    def run(*args: object, **kwargs: object) -> object:
        tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        if not tensors:
            raise GraphError("remat", "expected a tensor among the arguments")
        graph, outer = tensors[0].graph, tensors[0].graph.region
        graph.region = graph.fresh_region()
        try:
            return function(*args, **kwargs)
        finally:
            graph.region = outer

    return run  # type: ignore[return-value]


class Recomputed:
    """The nodes of regions made anew, each region at the first use of one of its nodes."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._regions: dict[str, list[Node]] = {}
        for node in graph.nodes:
            if node.region:
                self._regions.setdefault(node.region, []).append(node)
        self._stands: dict[int, Node] = {}

    def of(self, node: Node) -> Node:
        """What stands for a node in the backward pass: itself outside regions."""
        if not node.region:
            return node
        if id(node) not in self._stands:
            self._repeat(self._regions[node.region])
        return self._stands[id(node)]

    def _repeat(self, nodes: list[Node]) -> None:
        graph, tensors = self._graph, dict[int, Tensor]()
        outer, graph.region = graph.region, graph.fresh_region()
        for node in nodes:
            inputs = tuple([tensors.get(id(x), x) for x in node.inputs])
            results = graph.append(node.op, inputs, node.attrs, tuple([t.type for t in node.outputs]), node.scope)
            tensors.update(zip(map(id, node.outputs), results, strict=True))
            stand = results[0].producer
            assert isinstance(stand, Node)
            self._stands[id(node)] = stand
        graph.region = outer
