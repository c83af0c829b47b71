"""The rules that every graph keeps; changes nothing."""

from __future__ import annotations

from ..errors import GraphError, RlxError
from .graph import Graph, Leaf, LeafKind
from .printer import Namer, print_node


def verify(graph: Graph) -> None:
    """Raises GraphError for the first rule broken, with the text of the node.

    Rules: leaves stand in their own table under their own name; operands are made before they are used, in
    this graph; result types are those that the op infers; outputs and assigns are tensors of this graph;
    an assign has its buffer's type.
    """
    names = Namer(graph)
    known: set[int] = set()
    for kind, table in ((LeafKind.INPUT, graph.inputs), (LeafKind.PARAM, graph.params), (LeafKind.BUFFER, graph.buffers)):
        for name, tensor in table.items():
            leaf = tensor.producer
            if not isinstance(leaf, Leaf) or leaf.kind is not kind or leaf.name != name or tensor.graph is not graph:
                raise GraphError(f"{kind.value} {name!r}", "the leaf under this name is another one")
            known.add(id(tensor))
    known.update(id(t) for t in graph.constants)
    for node in graph.nodes:
        text = print_node(node, names)
        for position, operand in enumerate(node.inputs):
            if operand.graph is not graph:
                raise GraphError(text, f"operand {position} belongs to another graph")
            if id(operand) not in known:
                raise GraphError(text, f"operand {position} is used before it is made")
        try:
            types = node.op.infer(tuple(x.type for x in node.inputs), node.attrs)
        except RlxError as error:
            raise GraphError(text, f"the op refuses its operands: {error}") from error
        if types != tuple(t.type for t in node.outputs):
            raise GraphError(text, f"the op infers {', '.join(map(str, types))}")
        known.update(id(t) for t in node.outputs)
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
