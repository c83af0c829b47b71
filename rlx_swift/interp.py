"""The NumPy interpreter: what every other way of running a graph is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import dtypes
from .dtypes import DType
from .errors import DTypeError, FeedError
from .ir.graph import Graph, Leaf, Node, is_noise
from .ir.symbolic import SymbolicGraph, bound
from .ir.tensor import Tensor
from .philox import uniform


def evaluate(
    graph: Graph | SymbolicGraph, feeds: Mapping[str, Any], dtype: Any = None, seed: int | None = None
) -> dict[str, np.ndarray]:
    """The outputs of `graph` by name.

    `feeds` has a value for every input, and for every param or buffer that has no initial value in the
    graph or shall have another. Shapes and dtypes are checked as by a session. With `dtype=numpy.float64`
    every float is computed and returned in float64. An f16 op is computed in float32 and rounded. `seed` is for
    the inputs that `Graph.uniform` made, where they are not fed.

    Raises FeedError (missing, unknown, wrong shape) and DTypeError.
    """
    form = bound(graph, feeds)
    return run(form, {**noise(form.inputs, seed or 0, 0), **feeds}, dtype)[0]


def noise(inputs: Mapping[str, Tensor], seed: int, number: int) -> dict[str, np.ndarray]:
    """The values of the inputs that `Graph.uniform` made, for one run by its number."""
    return {name: uniform(seed, number, name, x.shape) for name, x in inputs.items() if is_noise(name)}


def run(
    graph: Graph, feeds: Mapping[str, Any], dtype: Any = None
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The outputs, and the next values of what the graph assigns; arguments as for `evaluate`."""
    values = all_values(graph, feeds, dtype)
    outputs = {name: np.array(values[id(t)]) for name, t in graph.outputs.items()}
    return outputs, {name: np.array(values[id(t)]) for name, t in graph.assigns.items()}


def all_values(graph: Graph, feeds: Mapping[str, Any], dtype: Any = None) -> dict[int, np.ndarray]:
    """The value of every leaf and live node, by the tensor's identity; arguments as for `evaluate`."""
    mode = np.dtype(dtype) if dtype is not None else None
    if mode is not None and mode.kind != "f":
        raise DTypeError("evaluate", f"expected a float dtype such as numpy.float64, got {mode}")
    values: dict[int, np.ndarray] = {}
    leaves = graph.leaves()
    for name in feeds:
        if name not in leaves:
            raise FeedError(f"feed {name!r}", f"graph {graph.name!r} has no input, param or buffer of that name",
                            f"it has {', '.join(leaves) or 'none'}")
    for tensor in leaves.values():
        values[id(tensor)] = _as(leaf_value(tensor, feeds, mode), tensor.dtype, mode)
    for tensor in graph.constants:
        values[id(tensor)] = _as(tensor.producer.value, tensor.dtype, mode)  # type: ignore[union-attr]
    with np.errstate(all="ignore"):
        for node in graph.live_nodes():
            results = node_values(node, [values[id(x)] for x in node.inputs], mode)
            values.update(zip(map(id, node.outputs), results, strict=True))
    return values


def node_values(node: Node, operands: Sequence[np.ndarray], mode: np.dtype | None = None) -> list[np.ndarray]:
    """The results of one op, rounded to its result types."""
    if node.op.body is not None:
        graph = node.op.body(tuple([x.type for x in node.inputs]))
        return list(run(graph, dict(zip(graph.inputs, operands, strict=True)), mode)[0].values())
    results = node.op.eval(tuple([_widen(x) for x in operands]), node.attrs)
    if not isinstance(results, tuple):
        results = (results,)
    return [_as(np.asarray(result), t.dtype, mode) for t, result in zip(node.outputs, results, strict=True)]


def _widen(value: np.ndarray) -> np.ndarray:
    return value.astype(np.float32) if value.dtype == np.float16 else value


def _as(value: np.ndarray, dtype: DType, mode: np.dtype | None) -> np.ndarray:
    target = mode if mode is not None and dtype.is_float else dtype.numpy
    return value if value.dtype == target else value.astype(target)


def leaf_value(tensor: Tensor, feeds: Mapping[str, Any], mode: np.dtype | None = None) -> np.ndarray:
    """The fed value of a leaf, or its initial value, checked against its type; floats of `mode` stay whole."""
    leaf, name = tensor.producer, tensor.name
    assert isinstance(leaf, Leaf) and name is not None
    subject = f"{leaf.kind.value} {name!r}"
    if name in feeds:
        given = dtypes.as_array(feeds[name], subject)
        whole = given.dtype == mode and tensor.dtype.is_float
        value = given if whole else dtypes.to_host(given, tensor.dtype, subject)
    elif leaf.value is not None and not callable(leaf.value):
        value = leaf.value
    else:
        raise FeedError(subject, "no value was given")
    if value.shape != tensor.shape:
        raise FeedError(subject, f"expected shape {tensor.shape}, got {value.shape}")
    return value
