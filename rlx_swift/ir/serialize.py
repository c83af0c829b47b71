"""Graphs as JSON and back; keeps structure and constants, never the values of params."""

from __future__ import annotations

import base64
import json
import math
import types
import typing
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
    """The graph as one JSON object. The same graph gives the same text. Raises GraphError for a broken graph."""
    graph.verify()
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
            "attrs": {field: _encode(getattr(node.attrs, field)) for field in _hints(node.op.attrs)},
            **({"scope": node.scope} if node.scope else {}),
            **({"region": node.region} if node.region else {}),
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
    }, allow_nan=False)


def from_json(text: str) -> Graph:
    """The graph that `to_json` wrote, verified; raises GraphError otherwise."""
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise GraphError("graph JSON", f"expected format {FORMAT}, got {data['format']}")
        graph = _build(data)
    except RlxError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise GraphError("graph JSON", f"not a graph that to_json wrote ({type(error).__name__}: {error})") from error
    graph.verify()
    return graph


def _build(data: Any) -> Graph:
    if not isinstance(data["name"], str):
        raise GraphError("graph JSON", f"expected a string as the graph's name, got {data['name']!r}")
    graph = Graph(data["name"])
    tensors: list[Tensor] = []
    for leaf in data["leaves"]:
        shape, dtype = tuple(leaf["shape"]), dtypes.parse(leaf["dtype"])
        if leaf["kind"] == "input":
            tensors.append(graph.input(leaf["name"], shape, dtype))
        elif leaf["kind"] == "param":
            tensors.append(graph.param(leaf["name"], shape))
        elif leaf["kind"] != "buffer":
            raise GraphError("graph JSON", f"expected a leaf of kind input, param or buffer, got {leaf['kind']!r}")
        else:
            tensors.append(graph.buffer(leaf["name"], shape, None))
    for constant in data["constants"]:
        dtype = dtypes.parse(constant["dtype"])
        raw = base64.b64decode(constant["data"], validate=True)
        array = np.frombuffer(raw, dtype.numpy.newbyteorder("<")).reshape(constant["shape"])
        tensors.append(graph.constant(array, dtype))
    for node in data["nodes"]:
        op = find_op(node["op"])
        attrs = _attrs(op.attrs, node["attrs"])
        inputs = tuple(_at(tensors, i) for i in node["inputs"])
        results = op.result_types(tuple(x.type for x in inputs), attrs)
        graph.region = str(node.get("region", ""))
        tensors += graph.append(op, inputs, attrs, results, str(node.get("scope", "")))
    graph.region = ""
    graph.outputs = {name: _at(tensors, i) for name, i in data["outputs"].items()}
    graph.assigns = {name: _at(tensors, i) for name, i in data["assigns"].items()}
    graph.generated = {str(wanted): str(name) for wanted, name in data["generated"].items()}
    return graph


def _at(tensors: list[Tensor], number: Any) -> Tensor:
    if type(number) is not int or number < 0:
        raise GraphError("graph JSON", f"expected the number of a tensor, got {number!r}")
    return tensors[number]


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
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}  # JSON has no such numbers
    return value


def _decode(value: object) -> object:
    if isinstance(value, dict):
        return float(value["float"]) if "float" in value else dtypes.parse(value["dtype"])
    if isinstance(value, list):
        return tuple([_decode(v) for v in value])
    return value


def _attrs(kind: type[Attrs], data: Any) -> Attrs:
    """Attributes with every field of the type that the class declares; raises GraphError or TypeError."""
    attrs = kind(**{name: _decode(value) for name, value in data.items()})
    for name, hint in _hints(kind).items():
        if not _is(getattr(attrs, name), hint):
            raise GraphError("graph JSON", f"expected {name} of {kind.__name__} to be {hint}, got {data.get(name)!r}")
    return attrs


_HINTS: dict[type[Attrs], dict[str, Any]] = {}


def _hints(kind: type[Attrs]) -> dict[str, Any]:
    """The declared types of an attribute class by field."""
    if kind not in _HINTS:
        _HINTS[kind] = typing.get_type_hints(kind)
    return _HINTS[kind]


def _is(value: object, hint: Any) -> bool:
    args = typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        return any(_is(value, option) for option in args)
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, tuple):
            return False
        each = args[:1] * len(value) if args[1:] == (...,) else args
        return len(each) == len(value) and all(map(_is, value, each))
    return type(value) is hint
