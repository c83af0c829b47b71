"""What a caller feeds, checked against the inputs of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import i32
from ..errors import FeedError
from ..ir.graph import Graph, is_noise
from ..ir.op import OpKind
from ..ir.symbolic import SymbolicGraph
from ..ir.symbolic import bound as bind
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


def _explain_names(inputs: Mapping[str, TensorType], feeds: Mapping[str, Any]) -> None:
    for name in feeds:
        if name not in inputs:
            raise FeedError(f"feed {name!r}", "there is no input of that name", f"it has {', '.join(inputs) or 'none'}")
    for name, type in inputs.items():
        if name not in feeds:
            raise FeedError(f"input {name!r}", "no value was given", f"it takes {type}")


def _size_hint(type: TensorType, value: np.ndarray) -> str:
    if value.ndim and value.shape[0] == 0:
        return "the batch is empty"
    if value.shape[1:] == type.shape[1:] and value.ndim == type.rank:
        return 'the graph has a fixed size; trace it with a named leading dimension, rlx.spec(("B", ...))'
    return ""


def index_ranges(graph: Graph) -> dict[str, int]:
    """For each i32 input that is used as an index, the size that its elements must stay below.

    Inputs are followed through ops that only move elements.
    """
    roots = {id(t): name for name, t in graph.inputs.items() if t.dtype is i32}
    ranges: dict[str, int] = {}
    for node in graph.live_nodes() if roots else ():
        if node.op.index_bounds is not None:
            bounds = node.op.index_bounds(tuple(x.type for x in node.inputs), node.attrs)
            for position, bound in bounds.items():
                name = roots.get(id(node.inputs[position]))
                if name is not None:
                    ranges[name] = min(bound, ranges.get(name, bound))
        if node.op.kind is OpKind.DATA_MOVEMENT and len(node.inputs) == 1 and node.outputs[0].dtype is i32:
            source = roots.get(id(node.inputs[0]))
            if source is not None:
                roots.update((id(t), source) for t in node.outputs)
    return ranges


def check_ranges(ranges: Mapping[str, int], arrays: Mapping[str, np.ndarray]) -> None:
    """Raises FeedError for the first element of an index input outside its range."""
    for name, bound in ranges.items():
        array = arrays[name]
        bad = (array < 0) | (array >= bound)
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            raise FeedError(f"input {name!r}", f"expected indices from 0 to {bound - 1}, got {array[at]} at {at}")
