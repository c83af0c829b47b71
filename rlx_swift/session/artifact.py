"""A graph as the native library takes it: a program's bytes, and the names and types of what is bound. Plain data, so
that it can be kept; knows no handle."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

from ..dtypes import DType, bool_, f16, f32, i32
from ..ir.graph import Graph
from ..ir.types import TensorType
from ..lower.mil import lower
from ..lower.package import to_bytes
from .feeds import IndexRange, index_ranges

Features = dict[str, str]  # of the program, by names in the graph
Types = dict[str, TensorType]
_DTYPES: dict[str, DType] = {dtype.name: dtype for dtype in (bool_, f16, f32, i32)}


@dataclass(frozen=True)
class Artifact:
    """Attributes:
    model, weights: the files of a package.
    inputs, outputs: features of what is fed and of results; of inputs, those that results need.
    pairs: of params and buffers that are read and assigned, the output features with their next values.
    written: the same of those that are only written.
    input_types, output_types, written_types: as in the graph; of all its inputs.
    ranges: what index inputs may hold.
    """

    model: bytes
    weights: bytes
    inputs: Features
    outputs: Features
    pairs: Features
    written: Features
    input_types: Types
    output_types: Types
    written_types: Types
    ranges: dict[str, IndexRange]


def artifact(graph: Graph, portable: bool) -> Artifact:
    """The graph lowered; `portable` and errors as in `lower`."""
    lowered = lower(graph, portable=portable)
    model, weights = to_bytes(lowered.model)
    read = lowered.params.keys() | lowered.buffers.keys()
    written = {name: output for name, output in lowered.assigns.items() if name not in read}
    return Artifact(
        model, weights, dict(lowered.inputs), {name: lowered.outputs[name] for name in graph.outputs},
        {name: output for name, output in lowered.assigns.items() if name in read}, written,
        {name: t.type for name, t in graph.inputs.items()}, {name: t.type for name, t in graph.outputs.items()},
        {name: graph.leaf(name).type for name in written},
        {name: range for name, range in index_ranges(graph).items() if name in lowered.inputs},
    )


def packed(made: Artifact) -> bytes:
    """An artifact as bytes."""
    head = json.dumps({
        "model": len(made.model), "inputs": made.inputs, "outputs": made.outputs, "pairs": made.pairs,
        "written": made.written, "input_types": _plain(made.input_types), "output_types": _plain(made.output_types),
        "written_types": _plain(made.written_types),
        "ranges": {name: [bound, sorted(replaced)] for name, (bound, replaced) in made.ranges.items()},
    }).encode()
    return struct.pack("<Q", len(head)) + head + made.model + made.weights


def unpacked(data: bytes) -> Artifact:
    """The artifact that was packed; raises ValueError, LookupError, TypeError or struct.error for other bytes."""
    size = struct.unpack_from("<Q", data)[0]
    head, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    return Artifact(
        body[: head["model"]], body[head["model"] :], head["inputs"], head["outputs"], head["pairs"], head["written"],
        _types(head["input_types"]), _types(head["output_types"]), _types(head["written_types"]),
        {name: IndexRange(bound, frozenset(replaced)) for name, (bound, replaced) in head["ranges"].items()},
    )


def _plain(types: Types) -> dict[str, Any]:
    return {name: [list(type.shape), type.dtype.name] for name, type in types.items()}


def _types(plain: dict[str, Any]) -> Types:
    return {name: TensorType(tuple(shape), _DTYPES[dtype]) for name, (shape, dtype) in plain.items()}
