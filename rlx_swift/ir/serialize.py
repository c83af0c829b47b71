"""Graphs as JSON and back; keeps structure and constants, never the values of params."""

from __future__ import annotations

import base64
import dataclasses
import json
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import DType
from ..errors import GraphError, RlxError
from .graph import Graph
from .op import Attrs, find_op
from .tensor import Tensor
from .types import TensorType

FORMAT = 1


def to_json(graph: Graph) -> str:
    """The graph as one JSON object. The same graph gives the same text."""
    numbers: dict[int, int] = {}

    def number(tensors: Any) -> None:
        for tensor in tensors:
            numbers[id(tensor)] = len(numbers)

    leaves = []
    for kind, table in (("input", graph.inputs), ("param", graph.params), ("buffer", graph.buffers)):
        leaves += [{"kind": kind, "name": name, **_type(tensor.type)} for name, tensor in table.items()]
        number(table.values())
    number(graph.constants)
    nodes = []
    for node in graph.nodes:
        nodes.append({
            "op": node.op.name,
            "inputs": [numbers[id(x)] for x in node.inputs],
            "attrs": {f.name: _encode(getattr(node.attrs, f.name)) for f in dataclasses.fields(node.attrs)},  # type: ignore[arg-type]
            **({"scope": node.scope} if node.scope else {}),
        })
        number(node.outputs)
    return json.dumps({
        "format": FORMAT,
        "name": graph.name,
        "leaves": leaves,
        "constants": [_constant(t) for t in graph.constants],
        "nodes": nodes,
        "outputs": {name: numbers[id(t)] for name, t in graph.outputs.items()},
        "assigns": {name: numbers[id(t)] for name, t in graph.assigns.items()},
        "generated": graph.generated,
    })


def from_json(text: str) -> Graph:
    """The graph that `to_json` wrote, verified; raises GraphError otherwise."""
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise GraphError("graph JSON", f"expected format {FORMAT}, got {data['format']}")
        graph = _build(data)
    except RlxError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise GraphError("graph JSON", f"not a graph that to_json wrote ({type(error).__name__}: {error})") from error
    graph.verify()
    return graph


def _build(data: Any) -> Graph:
    graph = Graph(data["name"])
    tensors: list[Tensor] = []
    for leaf in data["leaves"]:
        shape, dtype = tuple(leaf["shape"]), dtypes.parse(leaf["dtype"])
        if leaf["kind"] == "input":
            tensors.append(graph.input(leaf["name"], shape, dtype))
        elif leaf["kind"] == "param":
            tensors.append(graph.param(leaf["name"], shape))
        else:
            tensors.append(graph.buffer(leaf["name"], shape))
    for constant in data["constants"]:
        dtype = dtypes.parse(constant["dtype"])
        raw = base64.b64decode(constant["data"], validate=True)
        array = np.frombuffer(raw, dtype.numpy.newbyteorder("<")).reshape(constant["shape"])
        tensors.append(graph.constant(array, dtype))
    for node in data["nodes"]:
        op = find_op(node["op"])
        attrs = op.attrs(**{name: _decode(value) for name, value in node["attrs"].items()})
        inputs = tuple(tensors[i] for i in node["inputs"])
        types = op.infer(tuple(x.type for x in inputs), attrs)
        tensors += graph.append(op, inputs, attrs, types, node.get("scope", ""))
    graph.outputs = {name: tensors[i] for name, i in data["outputs"].items()}
    graph.assigns = {name: tensors[i] for name, i in data["assigns"].items()}
    graph.generated = dict(data["generated"])
    return graph


def _type(type: TensorType) -> dict[str, Any]:
    return {"shape": list(type.shape), "dtype": type.dtype.name}


def _constant(tensor: Tensor) -> dict[str, Any]:
    value = tensor.producer.value  # type: ignore[union-attr]
    raw = value.astype(value.dtype.newbyteorder("<")).tobytes()
    return {**_type(tensor.type), "data": base64.b64encode(raw).decode("ascii")}


def _encode(value: object) -> object:
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, tuple):
        return [_encode(v) for v in value]
    if isinstance(value, Attrs):
        raise GraphError("graph JSON", f"nested attributes {value!r} cannot be written")
    return value


def _decode(value: object) -> object:
    if isinstance(value, dict):
        return dtypes.parse(value["dtype"])
    if isinstance(value, list):
        return tuple(_decode(v) for v in value)
    return value
