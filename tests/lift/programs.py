"""Programs made by hand, as plain data, for tests of what they mean when they are lifted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rlx_swift.ir.graph import Graph
from rlx_swift.lift import Lifting
from rlx_swift.lower.package import Opened
from rlx_swift.lower.program import (
    OPSETS,
    Array,
    Binding,
    Block,
    Feature,
    Function,
    Interface,
    Literal,
    Model,
    Operation,
    Value,
)

SPELLED = {"float32": "fp32", "float16": "fp16", "bool": "bool"}


def type_of(array: np.ndarray) -> Array:
    return Array(SPELLED.get(array.dtype.name, array.dtype.name), array.shape)


def literal(value: object) -> Literal:
    """A constant: text, or an array; Python's floats are fp32 and ints int32."""
    if isinstance(value, str):
        return Literal(Array("string", ()), (value,))
    array = np.asarray(value)
    if not isinstance(value, (np.ndarray, np.generic)):
        array = array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype))
    return Literal(type_of(array), array.astype(array.dtype.newbyteorder("<")).tobytes())


def operation(
    type: str, outputs: Mapping[str, Array], attributes: Mapping[str, Value] | None = None, **inputs: object
) -> Operation:
    """An operation whose inputs are names (`"%x"`), constants, or lists of them."""

    def binding(value: object) -> Binding:
        return value[1:] if isinstance(value, str) and value.startswith("%") else literal(value)

    lists = {name: value if isinstance(value, list) else [value] for name, value in inputs.items()}
    bound = {name: [binding(value) for value in several] for name, several in lists.items()}
    return Operation(type, bound, list(outputs.items()), dict(attributes or {}))


def model(
    inputs: Mapping[str, Array], operations: Sequence[Operation], outputs: Sequence[str], opset: str = "CoreML7"
) -> Model:
    """A model with one function; its outputs are declared as the operations declare them."""
    types = {name: type for each in operations for name, type in each.outputs} | dict(inputs)
    describe = [[Feature(n, "array", types[n].dtype, types[n].shape) for n in names] for names in (inputs, outputs)]
    function = Function(list(inputs.items()), opset, {opset: Block([], list(operations), list(outputs))})
    return Model(OPSETS[opset], {"main": function}, {"main": Interface(*describe)})


def lifted(model: Model) -> Graph:
    """The model as a graph, without a way over bytes, which features of bool would not survive."""
    graph = Lifting(Opened(model, b"", lambda name: memoryview(b""))).graph()
    graph.verify()
    return graph
