"""A Core ML model as plain data: what its files say, and nothing they do not. Knows neither IR nor bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

DTYPES: Mapping[str, int] = {
    "bool": 1, "string": 2, "fp16": 10, "fp32": 11, "fp64": 12, "bf16": 13, "int8": 21, "int16": 22, "int32": 23,
    "int64": 24, "int4": 25, "uint8": 31, "uint16": 32, "uint32": 33, "uint64": 34, "uint4": 35, "uint2": 36,
    "uint1": 37, "uint6": 38, "uint3": 39, "fp8e4m3fn": 40, "fp8e5m2": 41,
}
FEATURE_DTYPES: Mapping[str, int] = {"fp32": 65568, "fp64": 65600, "fp16": 65552, "int32": 131104, "int8": 131080}
OPSETS: Mapping[str, int] = {"CoreML5": 6, "CoreML6": 7, "CoreML7": 8, "CoreML8": 9, "CoreML9": 10}
WEIGHT_FILE = "@model_path/weights/weight.bin"


# Types


@dataclass(frozen=True, slots=True)
class Array:
    """A tensor: `dtype` as MIL spells it, None for a size not known before a run."""

    dtype: str
    shape: tuple[int | None, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join('?' if n is None else str(n) for n in self.shape)}]"


@dataclass(frozen=True, slots=True)
class ListOf:
    element: ValueType
    length: int | None


@dataclass(frozen=True, slots=True)
class TupleOf:
    elements: tuple[ValueType, ...]


@dataclass(frozen=True, slots=True)
class DictOf:
    key: ValueType
    value: ValueType


@dataclass(frozen=True, slots=True)
class StateOf:
    array: Array


ValueType = Array | ListOf | TupleOf | DictOf | StateOf


# Values


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant inside the program.

    `data` is, for an Array, its elements as little-endian bytes (bool: a byte each; narrower than a byte:
    packed), or strings; for a list or tuple its values; for a dictionary its pairs.
    """

    type: ValueType
    data: bytes | tuple[str, ...] | tuple[Value, ...] | tuple[tuple[Value, Value], ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """A constant in a weight file; `offset` is that of its record."""

    type: ValueType
    offset: int
    file: str = WEIGHT_FILE


Value = Literal | Stored
Binding = str | Value  # the name of a value, or a constant
Named = tuple[str, ValueType]


# Programs


@dataclass(slots=True)
class Operation:
    """`inputs` has a list of bindings for each parameter: one, or several for a variadic parameter."""

    type: str
    inputs: dict[str, list[Binding]]
    outputs: list[Named]
    attributes: dict[str, Value] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class Block:
    inputs: list[Named]
    operations: list[Operation]
    outputs: list[str]


@dataclass(slots=True)
class Function:
    """`bodies` by opset; the one under the function's own opset runs."""

    inputs: list[Named]
    opset: str
    bodies: dict[str, Block]


# Models


@dataclass(frozen=True, slots=True)
class Feature:
    """A named input or output of a model.

    `kind` is "array" (then `dtype` and `shape` hold), "image", "dictionary", "int64", "double", "string",
    "sequence" or "state"; `flexible` says that other shapes than `shape` are allowed too.
    """

    name: str
    kind: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    flexible: bool = False


@dataclass(slots=True)
class Interface:
    """The features of one function, as the model's description declares them."""

    inputs: list[Feature]
    outputs: list[Feature]
    states: list[Feature] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Metadata:
    description: str = ""
    version: str = ""
    author: str = ""
    license: str = ""
    user_defined: Mapping[str, str] = field(default_factory=dict)

    def entries(self) -> dict[str, str]:
        """What is said, by name: the own fields that say something, then those of the user."""
        own = {
            "description": self.description, "version": self.version, "author": self.author, "license": self.license,
        }
        return {**{name: text for name, text in own.items() if text}, **self.user_defined}


@dataclass(slots=True)
class Model:
    """An ML Program with its description. `weights` are the arrays of the weight file, in order."""

    specification: int
    functions: dict[str, Function]
    interfaces: dict[str, Interface]
    default_function: str = "main"
    metadata: Metadata = field(default_factory=Metadata)
    weights: list[np.ndarray] = field(default_factory=list)
