"""The bytes of model.mlmodel as a Model: only what is well formed gets through. Judges nothing else."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import TypeVar

from ..errors import PackageError, UnsupportedError
from .program import (
    DTYPES,
    FEATURE_DTYPES,
    Array,
    Binding,
    Block,
    DictOf,
    Feature,
    Function,
    Interface,
    ListOf,
    Literal,
    Metadata,
    Model,
    Named,
    Operation,
    StateOf,
    Stored,
    TupleOf,
    Value,
    ValueType,
)
from .wire import Message

T = TypeVar("T")
_DTYPE_NAMES = {code: name for name, code in DTYPES.items()}
_FEATURE_DTYPE_NAMES = {code: name for name, code in FEATURE_DTYPES.items()}
_KINDS = {1: "int64", 2: "double", 3: "string", 4: "image", 5: "array", 6: "dictionary", 7: "sequence", 8: "state"}
_PROGRAM = 502
_OTHER_MODELS = {200: "pipeline", 201: "pipeline", 202: "pipeline", 303: "neural network", 403: "neural network",
                 500: "neural network", 556: "linked model", 3000: "serialized model"}
# How a TensorValue holds the elements of each dtype: field, and struct code of one element.
_FORMS = {"fp32": (1, "f"), "int32": (2, "i"), "int16": (2, "h"), "uint16": (2, "H"), "bool": (3, "?"),
          "int64": (5, "q"), "uint64": (5, "Q"), "fp64": (6, "d")}
_FIXED = ("fp32", "fp64")
BITS = {"bool": 8, "fp16": 16, "bf16": 16, "int4": 4, "uint4": 4, "uint2": 2, "uint1": 1, "uint6": 6, "uint3": 3,
        "fp8e4m3fn": 8, "fp8e5m2": 8}


def bits(dtype: str) -> int:
    """The width of an element in files; a bool takes a byte."""
    return BITS.get(dtype) or int(dtype.lstrip("uintfp"))


def decode(data: bytes | memoryview) -> Model:
    """The ML Program in a serialized Model message, without its weight file.

    Raises PackageError for bytes that are no such model, with the place.
    """
    try:
        return _model(Message(memoryview(data), "model"))
    except RecursionError:
        raise PackageError("model", "it is nested too deeply") from None


def _model(m: Message) -> Model:
    if _PROGRAM not in m:
        for number, name in _OTHER_MODELS.items():
            if number in m:
                hint = 'convert its source again with coremltools.convert(..., convert_to="mlprogram")'
                raise UnsupportedError("model", f"only ML Programs can be read, it is a {name}", hint)
        raise PackageError("model", "expected an ML Program, got no model")
    description, program = m.message(2, "description"), m.message(_PROGRAM, "program")
    if program.number(1) != 1:
        raise PackageError(program.subject, f"expected version 1, got {program.number(1)}")
    interfaces = {f.text(1): _interface(f, (2, 3, 6)) for f in description.messages(20, "function")}
    default = description.text(21)
    if not interfaces:
        interfaces, default = {"main": _interface(description, (1, 10, 13))}, "main"
    return Model(
        m.number(1), _map(program, 2, "function", _function), interfaces, default,
        _metadata(description.message(100, "metadata")),
    )


def _map(m: Message, field: int, what: str, decoded: Callable[[Message], T]) -> dict[str, T]:
    table: dict[str, T] = {}
    for entry in m.messages(field, what):
        key = entry.text(1)
        if key in table:
            raise PackageError(entry.subject, f"{key!r} stands twice")
        table[key] = decoded(entry.message(2, repr(key)))
    return table


# Description


def _interface(m: Message, fields: tuple[int, int, int]) -> Interface:
    inputs, outputs, states = ([_feature(f) for f in m.messages(field, "feature")] for field in fields)
    return Interface(inputs, outputs, states)


def _feature(m: Message) -> Feature:
    name, type = m.text(1), m.message(3, "type")
    field = next((number for number in _KINDS if number in type), None)
    if field is None:
        raise PackageError(m.subject, f"feature {name!r} has no type")
    if _KINDS[field] not in ("array", "state"):
        return Feature(name, _KINDS[field])
    array = type.message(field, "array")
    if _KINDS[field] == "state":
        array = array.message(1, "array")
    code = array.number(2)
    if code not in _FEATURE_DTYPE_NAMES:
        raise PackageError(m.subject, f"feature {name!r} has the unknown dtype {code}")
    return Feature(name, _KINDS[field], _FEATURE_DTYPE_NAMES[code], tuple(array.signed(1)), 21 in array or 31 in array)


def _metadata(m: Message) -> Metadata:
    user = {entry.text(1): entry.text(2) for entry in m.messages(100, "user defined")}
    return Metadata(m.text(1), m.text(2), m.text(3), m.text(4), user)


# Programs


def _function(m: Message) -> Function:
    return Function(_named(m, 1), m.text(2), _map(m, 3, "body", _block))


def _named(m: Message, field: int) -> list[Named]:
    return [(value.text(1), _type(value.message(2, "type"))) for value in m.messages(field, "value")]


def _block(m: Message) -> Block:
    return Block(_named(m, 1), [_operation(op) for op in m.messages(3, "operation")], m.texts(2))


def _operation(m: Message) -> Operation:
    m.subject = f"{m.subject} {m.text(1)}"
    inputs = _map(m, 2, "input", lambda argument: [_binding(b) for b in argument.messages(1, "binding")])
    blocks = [_block(b) for b in m.messages(4, "block")]
    return Operation(m.text(1), inputs, _named(m, 3), _map(m, 5, "attribute", _value), blocks)


def _binding(m: Message) -> Binding:
    return _value(m.message(2, "value")) if 2 in m else m.text(1)


# Types and values


def _type(m: Message) -> ValueType:
    if 1 in m:
        return _array(m.message(1, "tensor type"))
    if 2 in m:
        inner = m.message(2, "list type")
        return ListOf(_type(inner.message(1, "element")), _dimension(inner.message(2, "length")))
    if 3 in m:
        return TupleOf(tuple(_type(t) for t in m.message(3, "tuple type").messages(1, "element")))
    if 4 in m:
        inner = m.message(4, "dictionary type")
        return DictOf(_type(inner.message(1, "key")), _type(inner.message(2, "value")))
    if 5 in m:
        wrapped = _type(m.message(5, "state type").message(1, "wrapped type"))
        if isinstance(wrapped, Array):
            return StateOf(wrapped)
    raise PackageError(m.subject, "it is no type")


def _array(m: Message) -> Array:
    dtype = _DTYPE_NAMES.get(m.number(1))
    if dtype is None:
        raise PackageError(m.subject, f"unknown dtype {m.number(1)}")
    shape = tuple([_dimension(size) for size in m.messages(3, "dimension")])
    if m.number(2) != len(shape):
        raise PackageError(m.subject, f"rank {m.number(2)} with {len(shape)} dimensions")
    return Array(dtype, shape)


def _dimension(m: Message) -> int | None:
    return m.message(1, "constant").number(1) if 1 in m else None


def _value(m: Message) -> Value:
    type = _type(m.message(2, "type"))
    if 5 in m:
        reference = m.message(5, "weight file reference")
        return Stored(type, reference.number(2), reference.text(1))
    immediate = m.message(3, "immediate")
    if isinstance(type, Array):
        return Literal(type, _elements(immediate.message(1, "tensor"), type))
    if isinstance(type, DictOf):
        pairs = immediate.message(4, "dictionary").messages(1, "pair")
        return Literal(type, tuple((_value(p.message(1, "key")), _value(p.message(2, "value"))) for p in pairs))
    field = 2 if isinstance(type, TupleOf) else 3
    return Literal(type, tuple(_value(v) for v in immediate.message(field, "list").messages(1, "value")))


def _elements(m: Message, type: Array) -> bytes | tuple[str, ...]:
    """The elements of an immediate tensor, as many as its type says."""
    if None in type.shape:
        raise PackageError(m.subject, f"a constant of unknown shape, {type}")
    count = math.prod(size for size in type.shape if size is not None)
    if type.dtype == "string":
        texts = tuple(m.message(4, "strings").texts(1))
        return _counted(texts, len(texts), count, type, m)
    field, code = _FORMS.get(type.dtype, (7, ""))
    inner = m.message(field, "values")
    if code and type.dtype not in _FIXED:
        try:
            numbers = inner.signed(1)
            data = struct.pack(f"<{len(numbers)}{code}", *_wrapped(numbers, type.dtype))
        except struct.error as error:
            raise PackageError(m.subject, f"an element does not fit {type.dtype}") from error
    else:
        data = b"".join(inner.chunks(1))
    return _counted(data, len(data), -(-count * bits(type.dtype) // 8), type, m)


def _wrapped(numbers: list[int], dtype: str) -> list[int]:
    return [n & (1 << 64) - 1 for n in numbers] if dtype == "uint64" else numbers


def _counted(data: T, got: int, expected: int, type: Array, m: Message) -> T:
    if got != expected:
        raise PackageError(m.subject, f"a constant of type {type} takes {expected} strings or bytes, got {got}")
    return data
