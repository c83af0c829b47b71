"""Graphs as text for people; changes nothing."""

from __future__ import annotations

import dataclasses

import numpy as np

from .graph import Graph, Leaf, Node
from .tensor import Tensor


class Namer:
    """Gives each tensor the name it has in print: a leaf's own, a scalar's value, or %n."""

    def __init__(self, graph: Graph) -> None:
        self._names: dict[int, str] = {}
        for i, tensor in enumerate(graph.constants):
            value = getattr(tensor.producer, "value", None)  # a graph that is not whole is printed too
            is_scalar = isinstance(value, np.ndarray) and value.ndim == 0
            self._names[id(tensor)] = repr(value.item()) if is_scalar else f"const_{i}"  # type: ignore[union-attr]
        count = 0
        for node in graph.nodes:
            for tensor in node.outputs:
                self._names[id(tensor)] = f"%{count}"
                count += 1

    def __call__(self, tensor: Tensor) -> str:
        if isinstance(tensor.producer, Leaf) and tensor.name:
            return tensor.name
        return self._names.get(id(tensor), "%?")


def print_node(node: Node, names: Namer) -> str:
    """One line: results with types, op, operands, attributes."""
    results = ", ".join(f"{names(t)}: {t.type}" for t in node.outputs)
    attributes = [
        f"{f.name}={getattr(node.attrs, f.name)!r}" for f in dataclasses.fields(node.attrs)
    ]
    labels = [label for label in (node.scope, node.region) if label]
    scope = f"  # {', '.join(labels)}" if labels else ""
    return f"{results} = {node.op.name}({', '.join([*map(names, node.inputs), *attributes])}){scope}"


def print_graph(graph: Graph) -> str:
    """The whole graph: leaves, nodes in order, outputs and assigns."""
    names = Namer(graph)
    lines = [f"graph {graph.name}:"]
    for title, table in (("input", graph.inputs), ("param", graph.params), ("buffer", graph.buffers)):
        lines += [f"  {title} {name}: {tensor.type}" for name, tensor in table.items()]
    for tensor in graph.constants:
        value = getattr(tensor.producer, "value", None)
        if isinstance(value, np.ndarray) and value.ndim:
            text = np.array2string(value, threshold=6, edgeitems=2).replace("\n", "")
            lines.append(f"  {names(tensor)}: {tensor.type} = {text}")
    lines += ["  " + print_node(node, names) for node in graph.nodes]
    lines += [f"  assign {name} = {names(tensor)}" for name, tensor in graph.assigns.items()]
    lines += [f"  output {name}: {tensor.type} = {names(tensor)}" for name, tensor in graph.outputs.items()]
    return "\n".join(lines)
