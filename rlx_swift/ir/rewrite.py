"""Copying a graph with changes: the one loop that every rewrite and derivative starts from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .graph import Graph, Leaf, LeafKind, Node
from .tensor import Tensor

Rule = Callable[[Node, "tuple[Tensor, ...]"], "Sequence[Tensor] | None"]


class Copy:
    """A new graph made from the live part of `source`.

    `rule(node, operands)` may return the tensors of the new graph that stand for the node's results; None
    copies the node. Leaves keep their names and order, also those that nothing uses any more.
    """

    def __init__(self, source: Graph, rule: Rule | None = None, name: str | None = None) -> None:
        self.source = source
        self.graph = Graph(name or source.name)
        self._map: dict[int, Tensor] = {}
        self._leaves()
        self._nodes(rule)
        self.graph.outputs = {name: self[t] for name, t in source.outputs.items()}
        self.graph.assigns = {name: self[t] for name, t in source.assigns.items()}
        self.graph.generated = dict(source.generated)

    def __getitem__(self, tensor: Tensor) -> Tensor:
        """What stands for a tensor of the source in the new graph."""
        found = self._map.get(id(tensor))
        if found is None:  # a constant is copied when it is first needed
            leaf = tensor.producer
            assert isinstance(leaf, Leaf) and leaf.kind is LeafKind.CONSTANT
            found = self._map[id(tensor)] = self.graph.constant(leaf.value, tensor.dtype)
        return found

    def _leaves(self) -> None:
        new = self.graph
        for name, x in self.source.inputs.items():
            self._map[id(x)] = new.input(name, x.shape, x.dtype)
        for name, x in self.source.params.items():
            self._map[id(x)] = new.param(name, x.shape, x.producer.value)  # type: ignore[union-attr]
        for name, x in self.source.buffers.items():
            self._map[id(x)] = new.buffer(name, x.shape, x.producer.value)  # type: ignore[union-attr]

    def _nodes(self, rule: Rule | None) -> None:
        for node in self.source.live_nodes():
            self.graph.region = node.region
            operands = tuple([self[x] for x in node.inputs])
            results = rule(node, operands) if rule else None
            if results is None:
                types = tuple([t.type for t in node.outputs])
                results = self.graph.append(node.op, operands, node.attrs, types, node.scope)
            for old, new in zip(node.outputs, results, strict=True):
                self._map[id(old)] = new
                if new.name is None:
                    new.name = old.name
        self.graph.region = ""


def inlined(source: Graph, graph: Graph, leaves: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Appends the live nodes of `source` to `graph`; returns what stands for the outputs.

    `leaves` has a tensor of `graph` for every named leaf that they read.
    """
    stands = {id(x): leaves[name] for name, x in source.leaves().items() if name in leaves}

    def stand(x: Tensor) -> Tensor:
        if id(x) not in stands:
            leaf = x.producer
            assert isinstance(leaf, Leaf) and leaf.kind is LeafKind.CONSTANT
            stands[id(x)] = graph.constant(leaf.value, x.dtype)
        return stands[id(x)]

    for node in source.live_nodes():
        types = tuple([t.type for t in node.outputs])
        graph.region = node.region
        results = graph.append(node.op, tuple([stand(x) for x in node.inputs]), node.attrs, types, node.scope)
        stands.update(zip(map(id, node.outputs), results, strict=True))
    graph.region = ""
    return {name: stand(t) for name, t in source.outputs.items()}


def drop_unused_leaves(graph: Graph, keep: Mapping[str, Tensor] | None = None) -> None:
    """Removes inputs, params, buffers and constants that no live node, output or assign reads, and dead nodes."""
    graph.nodes = graph.live_nodes()
    used = {id(x) for node in graph.nodes for x in node.inputs}
    used.update(id(t) for t in (*graph.outputs.values(), *graph.assigns.values()))
    used.update(id(graph.leaf(name)) for name in graph.assigns)
    used.update(id(t) for t in (keep or {}).values())
    for table in (graph.inputs, graph.params, graph.buffers):
        for name in [name for name, t in table.items() if id(t) not in used]:
            del table[name]
    graph.constants = [t for t in graph.constants if id(t) in used]
    graph._shared = {key: t for key, t in graph._shared.items() if id(t) in used}
