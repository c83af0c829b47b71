"""What a caller feeds, checked against the inputs of a graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes
from ..dtypes import i32
from ..errors import FeedError
from ..ir.graph import Graph, LeafKind, Node, is_noise
from ..ir.op import OpKind
from ..ir.symbolic import SymbolicGraph
from ..ir.symbolic import bound as bind
from ..ir.tensor import Tensor
from ..ir.types import TensorType


class BatchCheck:
    """Binds a graph to the size of each batch and checks the batch against it; noise is nothing that users feed."""

    def __init__(self, graph: Graph | SymbolicGraph) -> None:
        self._graph = graph
        self._forward: Graph | None = None
        self._types: dict[str, TensorType] = {}

    def check(self, feeds: Mapping[str, Any]) -> tuple[Graph, dict[str, np.ndarray]]:
        """The bound graph and the feeds as arrays of its inputs' types; raises FeedError or DTypeError."""
        forward = self._graph if isinstance(self._graph, Graph) else bind(self._graph, require_mapping(feeds))
        if forward is not self._forward:
            self._forward, self._types = forward, {n: t.type for n, t in forward.inputs.items() if not is_noise(n)}
        return forward, checked(self._types, feeds)


def require_mapping(feeds: Mapping[str, Any]) -> Mapping[str, Any]:
    """`feeds` itself; raises FeedError when it is not a mapping from names."""
    if type(feeds) is not dict and not isinstance(feeds, Mapping):
        raise FeedError("feeds", f"expected a dict of arrays by input name, got {type(feeds).__name__}")
    return feeds


def checked(inputs: Mapping[str, TensorType], feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The feeds as arrays of the inputs' types; raises FeedError (missing, unknown, shape) or DTypeError."""
    if require_mapping(feeds).keys() != inputs.keys():
        _explain_names(inputs, feeds)
    arrays = {}
    for name, wanted in inputs.items():
        value = feeds[name]
        if type(value) is not np.ndarray or value.dtype is not wanted.dtype.numpy:
            value = dtypes.to_host(value, wanted.dtype, f"input {name!r}")
        if value.shape != wanted.shape:
            hint = _size_hint(wanted, value)
            raise FeedError(f"input {name!r}", f"expected shape {wanted.shape}, got {value.shape}", hint)
        arrays[name] = value
    return arrays


def require_known(inputs: Collection[str], feeds: Mapping[str, Any]) -> None:
    """Raises FeedError for a name that is no input's."""
    for name in feeds:
        if name not in inputs:
            raise FeedError(f"feed {name!r}", "there is no input of that name", f"it has {', '.join(inputs) or 'none'}")


def _explain_names(inputs: Mapping[str, TensorType], feeds: Mapping[str, Any]) -> None:
    require_known(inputs, feeds)
    for name, type in inputs.items():
        if name not in feeds:
            raise FeedError(f"input {name!r}", "no value was given", f"it takes {type}")


def _size_hint(type: TensorType, value: np.ndarray) -> str:
    if value.ndim and value.shape[0] == 0:
        return "the batch is empty"
    if value.shape[1:] == type.shape[1:] and value.ndim == type.rank:
        return 'the graph has a fixed size; trace it with a named leading dimension, rlx.spec(("B", ...))'
    return ""


class IndexRange(NamedTuple):
    """What an index input may hold: 0 to `bound` - 1, and the values that the graph replaces before it reads."""

    bound: int
    replaced: frozenset[int] = frozenset()

    def admits(self, value: int) -> bool:
        return 0 <= value < self.bound or value in self.replaced

    def both(self, other: IndexRange) -> IndexRange:
        """What two uses of one input both admit."""
        replaced = {v for v in self.replaced | other.replaced if self.admits(v) and other.admits(v)}
        return IndexRange(min(self.bound, other.bound), frozenset(replaced))


def index_ranges(graph: Graph) -> dict[str, IndexRange]:
    """For each i32 input that is used as an index, what its elements may be.

    Inputs are followed through ops that only move elements, and through `where(x != k, x, constant)`.
    """
    roots = {id(t): (name, frozenset[int]()) for name, t in graph.inputs.items() if t.dtype is i32}
    ranges: dict[str, IndexRange] = {}
    for node in graph.live_nodes() if roots else ():
        if node.op.index_bounds is not None:
            bounds = node.op.index_bounds(tuple(x.type for x in node.inputs), node.attrs)
            for position, bound in bounds.items():
                if id(node.inputs[position]) in roots:
                    name, replaced = roots[id(node.inputs[position])]
                    found = IndexRange(bound, frozenset(k for k in replaced if not 0 <= k < bound))
                    ranges[name] = found.both(ranges[name]) if name in ranges else found
        if node.op.kind is OpKind.DATA_MOVEMENT and len(node.inputs) == 1 and node.outputs[0].dtype is i32:
            source = roots.get(id(node.inputs[0]))
            if source is not None:
                roots.update((id(t), source) for t in node.outputs)
        elif node.op.name == "where" and id(node.inputs[1]) in roots:
            value = _replaced(node)
            if value is not None:
                name, replaced = roots[id(node.inputs[1])]
                roots[id(node.outputs[0])] = name, replaced | {value}
    return ranges


def _replaced(where: Node) -> int | None:
    """The k of `where(x != k, x, constant)`, None for any other choice."""
    test, kept, other = where.inputs
    compared = test.producer
    if not isinstance(compared, Node) or compared.op.name != "not_equal" or compared.inputs[0] is not kept:
        return None
    return None if _constant(other) is None else _constant(compared.inputs[1])


def _constant(tensor: Tensor) -> int | None:
    """The one value that a tensor has at every element, if the graph says so."""
    producer = tensor.producer
    if isinstance(producer, Node):
        array = None if producer.inputs else producer.op.eval((), producer.attrs)
    else:
        array = producer.value if producer.kind is LeafKind.CONSTANT else None
    return int(array.flat[0]) if isinstance(array, np.ndarray) and array.size and np.ptp(array) == 0 else None


def check_ranges(ranges: Mapping[str, IndexRange], arrays: Mapping[str, np.ndarray]) -> None:
    """Raises FeedError for the first element of an index input outside its range."""
    for name, (bound, replaced) in ranges.items():
        array = arrays[name]
        if not array.size or (array.min() >= 0 and array.max() < bound):
            continue
        bad = (array < 0) | (array >= bound)
        for value in replaced:
            bad &= array != value
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            also = "".join(f" or {value}" for value in sorted(replaced))
            raise FeedError(f"input {name!r}", f"expected indices from 0 to {bound - 1}{also}, got {array[at]} at {at}")
