"""Rewrites every op that MIL lacks into ops that MIL has; knows no particular op."""

from __future__ import annotations

from collections import deque
from itertools import count

from ..errors import GraphError
from ..ir.graph import Graph, Node
from ..ir.op import Decompose
from ..ir.rewrite import Copy
from ..ir.tensor import Tensor
from ..ir.types import TensorType

_DEEPEST = 64  # decompositions inside one another; more means that they never end


def decompose(graph: Graph) -> Graph:
    """The graph with only such ops as lower to one MIL op each; `graph` itself when it is so already.

    What came from one op carries the scope `<op>#<n>`, n counting such ops in the graph, unless the op
    had a scope already.
    """
    if not any(isinstance(node.op.lower, Decompose) for node in graph.nodes):
        return graph
    numbers = count(_first_free_number(graph))

    def rule(node: Node, operands: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        if not isinstance(node.op.lower, Decompose):
            return None
        if not operands:
            raise GraphError(node.op.name, "an op that decomposes needs an operand")
        return _expand(node, operands, node.scope or f"{node.op.name}#{next(numbers)}")

    return Copy(graph, rule).graph


def _first_free_number(graph: Graph) -> int:
    numbers = [node.scope.rpartition("#")[2] for node in graph.nodes if node.scope]
    return 1 + max((int(n) for n in numbers if n.isdecimal()), default=-1)


def _expand(source: Node, operands: tuple[Tensor, ...], scope: str) -> tuple[Tensor, ...]:
    """What stands for the results of `source`, with its nodes appended to the operands' graph."""
    graph = operands[0].graph
    stands: dict[int, Tensor] = {}
    replaced: list[Node] = []  # keeps the tensors alive whose ids `stands` holds

    def final(tensor: Tensor) -> Tensor:
        while (other := stands.get(id(tensor))) is not None:
            tensor = other
        return tensor

    results, made = _build(graph, source, operands)
    pending = deque((node, 1) for node in made)
    while pending:
        node, depth = pending.popleft()
        node.inputs = tuple([final(x) for x in node.inputs])
        if not isinstance(node.op.lower, Decompose):
            node.scope = scope
            graph.nodes.append(node)
            continue
        if depth > _DEEPEST:
            raise GraphError(source.op.name, f"its decomposition into {node.op.name} and others never ends")
        inner, made = _build(graph, node, node.inputs)
        stands.update(zip(map(id, node.outputs), inner, strict=True))
        replaced.append(node)
        pending.extendleft((below, depth + 1) for below in reversed(made))
    return tuple([final(t) for t in results])


def _build(graph: Graph, node: Node, operands: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], list[Node]]:
    """The results of one decomposition, and its nodes, taken off the graph again."""
    assert isinstance(node.op.lower, Decompose)
    mark = len(graph.nodes)
    results = node.op.lower.build(operands, node.attrs)
    if isinstance(results, Tensor):
        results = (results,)
    expected, got = [t.type for t in node.outputs], [t.type for t in results]
    if got != expected:
        raise GraphError(node.op.name, f"its decomposition gives {_types(got)}, expected {_types(expected)}")
    made = graph.nodes[mark:]
    del graph.nodes[mark:]
    return results, made


def _types(types: list[TensorType]) -> str:
    return ", ".join(map(str, types))
