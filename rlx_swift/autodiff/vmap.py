"""Applying a graph to a batch of values at once; an op says itself how it takes a batch, or is applied one by one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from .. import ops
from ..errors import GraphError, NameNotFoundError, ShapeError
from ..ir.graph import Graph, Node, is_noise
from ..ir.op import Attrs, Batch
from ..ir.symbolic import per_size
from ..ir.tensor import Tensor
from ..ir.types import as_int
from ..ops._batch import aligned, merged, parted, repeated

Flags = tuple[bool, ...]

# What a batch on axis 0 does to each attribute of an op whose rule is Batch.SHIFT.
_SHIFTED: dict[str, Callable[[Any, int], Any]] = {
    "axis": lambda axis, size: axis + 1,
    "axes": lambda axes, size: tuple([axis + 1 for axis in axes]),
    "perm": lambda perm, size: (0, *[axis + 1 for axis in perm]),
    "shape": lambda shape, size: (size, *shape),
    "reps": lambda reps, size: (1, *reps),
    "widths": lambda widths, size: ((0, 0), *widths),
    "start": lambda start, size: (0, *start),
    "count": lambda count, size: (size, *count),
    "step": lambda step, size: (1, *step),
}


@per_size
def vmap(graph: Graph, inputs: str | Sequence[str], batch_size: int) -> Graph:
    """The graph for `batch_size` values of the named inputs at once: they and all outputs gain an axis 0.

    Other inputs, params and buffers are shared; noise is drawn for each value. Equal to one run for each value,
    and nests. Raises NameNotFoundError, ShapeError, and GraphError where a buffer's next value would be many.
    """
    names = [inputs] if isinstance(inputs, str) else list(inputs)
    size = as_int(batch_size, "vmap batch_size")
    if size < 1:
        raise ShapeError("vmap batch_size", f"expected at least 1, got {size}")
    for name in names:
        if name not in graph.inputs:
            known = ", ".join(graph.inputs) or "none"
            raise NameNotFoundError(f"{name!r}", f"graph {graph.name!r} has no input of that name", f"it has {known}")
    return _Batched(graph, set(names), size).graph


class _Batched:
    """One rewriting: what stands for each tensor, and which of them have the batch on axis 0."""

    def __init__(self, source: Graph, names: set[str], size: int) -> None:
        self.graph, self._size = Graph(source.name), size
        self._stands: dict[int, Tensor] = {}
        self._many: set[int] = set()
        self._leaves(source, names)
        for node in source.live_nodes():
            self.graph.region = node.region
            self._node(node)
        self.graph.region = ""
        self.graph.outputs = {name: self._spread(t) for name, t in source.outputs.items()}
        for name, tensor in source.assigns.items():
            if id(tensor) in self._many:
                raise GraphError(f"assign to {name!r}", "its next value depends on the batch, so there would be many")
            self.graph.assigns[name] = self._stand(tensor)
        self.graph.generated = dict(source.generated)

    def _leaves(self, source: Graph, names: set[str]) -> None:
        new = self.graph
        for name, x in source.inputs.items():
            many = name in names or is_noise(name)
            self._stands[id(x)] = new.input(name, (self._size, *x.shape) if many else x.shape, x.dtype)
            if many:
                self._many.add(id(x))
        for name, x in source.params.items():
            self._stands[id(x)] = new.param(name, x.shape, x.producer.value)  # type: ignore[union-attr]
        for name, x in source.buffers.items():
            self._stands[id(x)] = new.buffer(name, x.shape, x.producer.value)  # type: ignore[union-attr]

    def _stand(self, x: Tensor) -> Tensor:
        if id(x) not in self._stands:  # a constant
            self._stands[id(x)] = self.graph.constant(x.producer.value, x.dtype)  # type: ignore[union-attr]
        return self._stands[id(x)]

    def _spread(self, x: Tensor) -> Tensor:
        """What stands for x, repeated where it does not depend on the batch."""
        stand = self._stand(x)
        return stand if id(x) in self._many else repeated(stand, self._size)

    def _node(self, node: Node) -> None:
        operands = tuple([self._stand(x) for x in node.inputs])
        many = tuple([id(x) in self._many for x in node.inputs])
        if any(many):
            results = self._results(node, operands, many)
            self._many.update([id(t) for t in node.outputs])
        else:
            types = tuple([t.type for t in node.outputs])
            results = self.graph.append(node.op, operands, node.attrs, types, node.scope)
        self._stands.update(zip(map(id, node.outputs), results, strict=True))

    def _results(self, node: Node, operands: tuple[Tensor, ...], many: Flags) -> tuple[Tensor, ...]:
        rule = node.op.batch
        if isinstance(rule, Batch):
            results = _RULES[rule](node, operands, many, self._size)
        else:
            assert rule is not None
            made = rule(operands, many, node.attrs, self._size)
            results = (made,) if isinstance(made, Tensor) else made
        wanted = [t.type.with_shape((self._size, *t.shape)) for t in node.outputs]
        if [t.type for t in results] != wanted:
            given = ", ".join(str(t.type) for t in results)
            raise ShapeError(f"batch of {node.op.name!r}", f"expected {', '.join(map(str, wanted))}, got {given}")
        return results


def _elementwise(node: Node, operands: tuple[Tensor, ...], many: Flags, size: int) -> tuple[Tensor, ...]:
    rank = node.outputs[0].ndim
    whole = [aligned(x, rank) if m else x for x, m in zip(operands, many, strict=True)]
    return operands[0].graph.apply(node.op, tuple(whole), node.attrs)


def _whole(operands: tuple[Tensor, ...], many: Flags, size: int) -> list[Tensor]:
    return [x if m else repeated(x, size) for x, m in zip(operands, many, strict=True)]


def _shift(node: Node, operands: tuple[Tensor, ...], many: Flags, size: int) -> tuple[Tensor, ...]:
    return operands[0].graph.apply(node.op, tuple(_whole(operands, many, size)), shifted(node.attrs, size))


def _merge(node: Node, operands: tuple[Tensor, ...], many: Flags, size: int) -> tuple[Tensor, ...]:
    whole = tuple([merged(x) for x in _whole(operands, many, size)])
    return tuple([parted(t, size) for t in operands[0].graph.apply(node.op, whole, node.attrs)])


def _each(node: Node, operands: tuple[Tensor, ...], many: Flags, size: int) -> tuple[Tensor, ...]:
    graph = operands[0].graph
    rows = [
        graph.apply(node.op, tuple([x[i] if m else x for x, m in zip(operands, many, strict=True)]), node.attrs)
        for i in range(size)
    ]
    return tuple([ops.stack(column) for column in zip(*rows, strict=True)])


_RULES = {Batch.ELEMENTWISE: _elementwise, Batch.SHIFT: _shift, Batch.MERGE: _merge, Batch.EACH: _each}


def shifted(attrs: Attrs, size: int) -> Any:
    """The attributes for operands with a batch of that size on axis 0."""
    changes = {
        field.name: _SHIFTED[field.name](getattr(attrs, field.name), size)
        for field in dataclasses.fields(attrs) if field.name in _SHIFTED
    }
    return dataclasses.replace(attrs, **changes)
