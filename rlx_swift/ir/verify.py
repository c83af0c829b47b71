"""The rules that every graph keeps; changes nothing."""

from __future__ import annotations

import numpy as np

from ..dtypes import f32
from ..errors import GraphError, RlxError
from .graph import Graph, Leaf, LeafKind, Node
from .printer import Namer, print_node


def verify(graph: Graph) -> None:
    """Raises GraphError for the first rule broken, with the text of the node.

    Rules: leaves stand in their own table under their own name, which no other leaf has; params and buffers are
    f32; a constant has its type's value; operands are made before they are used, in this graph; result types are
    those that the op infers; outputs and assigns are tensors of this graph; an assign has its buffer's type.
    """
    names = Namer(graph)
    taken: set[str] = set()
    known: set[int] = set()
    tables = {LeafKind.INPUT: graph.inputs, LeafKind.PARAM: graph.params, LeafKind.BUFFER: graph.buffers}
    for kind, table in tables.items():
        for name, tensor in table.items():
            leaf = tensor.producer
            if not isinstance(leaf, Leaf) or leaf.kind is not kind or leaf.name != name or tensor.graph is not graph:
                raise GraphError(f"{kind.value} {name!r}", "the leaf under this name is another one")
            if name in taken:
                raise GraphError(f"{kind.value} {name!r}", "an input, param or buffer of that name comes before it")
            if kind is not LeafKind.INPUT and tensor.dtype is not f32:
                raise GraphError(f"{kind.value} {name!r}", f"expected f32, got {tensor.type}")
            taken.add(name)
            known.add(id(tensor))
    for tensor in graph.constants:
        value = tensor.producer.value if isinstance(tensor.producer, Leaf) else None
        if not isinstance(value, np.ndarray) or (value.shape, value.dtype) != (tensor.shape, tensor.dtype.numpy):
            raise GraphError(f"constant {names(tensor)}", f"its value is not of {tensor.type}")
        known.add(id(tensor))
    for node in graph.nodes:
        problem = _fault(graph, node, known)
        if problem:
            raise GraphError(print_node(node, names), problem)
        known.update([id(t) for t in node.outputs])
    for kind_name, results in (("output", graph.outputs), ("assign", graph.assigns)):
        for name, tensor in results.items():
            if id(tensor) not in known:
                raise GraphError(f"{kind_name} {name!r}", "the tensor is not one of this graph")
    for name, tensor in graph.assigns.items():
        target = graph.buffers.get(name, graph.params.get(name))
        if target is None:
            raise GraphError(f"assign {name!r}", "there is no buffer or param of that name")
        if tensor.type != target.type:
            raise GraphError(f"assign {name!r}", f"expected {target.type}, got {tensor.type}")


def _fault(graph: Graph, node: Node, known: set[int]) -> str:
    """What is wrong with a node, or nothing."""
    for position, operand in enumerate(node.inputs):
        if operand.graph is not graph:
            return f"operand {position} belongs to another graph"
        if id(operand) not in known:
            return f"operand {position} is used before it is made"
    if any(t.graph is not graph or t.producer is not node or t.index != i for i, t in enumerate(node.outputs)):
        return "a result is not this node's own"
    try:
        types = node.op.result_types(tuple([x.type for x in node.inputs]), node.attrs)
    except RlxError as error:
        return f"the op refuses its operands: {error}"
    if types != tuple([t.type for t in node.outputs]):
        return f"the op infers {', '.join(map(str, types))}"
    return ""
