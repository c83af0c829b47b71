"""Models as the bytes of model.mlmodel: the messages of Model.proto and MIL.proto. The same model, the same bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar, cast

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
from .wire import integer, message, packed, text

T = TypeVar("T")
_BYTES_DTYPES = frozenset(DTYPES) - {"bool", "string", "fp32", "fp64", "int16", "int32", "int64", "uint16", "uint64"}


def encode(model: Model) -> bytes:
    """The serialized Model message."""
    program = integer(1, 1) + _map(2, model.functions, _function)
    return integer(1, model.specification) + message(2, _description(model)) + message(502, program)


# Description


def _description(model: Model) -> bytes:
    if list(model.interfaces) == ["main"]:
        features = _interface(model.interfaces["main"], (1, 10, 13))
    else:
        functions = [text(1, name) + _interface(each, (2, 3, 6)) for name, each in model.interfaces.items()]
        features = b"".join([message(20, function) for function in functions]) + text(21, model.default_function)
    metadata = _metadata(model.metadata)
    return features + (message(100, metadata) if metadata else b"")


def _interface(interface: Interface, numbers: tuple[int, int, int]) -> bytes:
    tables = zip(numbers, (interface.inputs, interface.outputs, interface.states), strict=True)
    return b"".join(message(number, _feature(feature)) for number, table in tables for feature in table)


def _feature(feature: Feature) -> bytes:
    if feature.kind not in ("array", "state") or feature.flexible:
        raise ValueError(f"feature {feature.name!r}: only arrays and states of fixed shape are written")
    array = _nonempty(packed(feature.shape)) + integer(2, FEATURE_DTYPES[feature.dtype])
    kind = message(5, array) if feature.kind == "array" else message(8, message(1, array))
    return text(1, feature.name) + message(3, kind)


def _metadata(metadata: Metadata) -> bytes:
    plain = text(1, metadata.description) + text(2, metadata.version) + text(3, metadata.author)
    pairs = _map(100, metadata.user_defined, str.encode)
    return plain + text(4, metadata.license) + pairs


# Programs


def _map(field: int, table: Mapping[str, T], encoded: Callable[[T], bytes]) -> bytes:
    return b"".join([message(field, text(1, name) + message(2, encoded(table[name]))) for name in sorted(table)])


def _function(function: Function) -> bytes:
    return _named(1, function.inputs) + text(2, function.opset) + _map(3, function.bodies, _block)


def _named(field: int, values: Sequence[Named]) -> bytes:
    return b"".join([message(field, text(1, name) + _typed(type)) for name, type in values])


@lru_cache(maxsize=4096)
def _typed(type: ValueType) -> bytes:
    return message(2, _type(type))


def _block(block: Block) -> bytes:
    outputs = b"".join([text(2, name) for name in block.outputs])
    return _named(1, block.inputs) + outputs + b"".join([message(3, _operation(op)) for op in block.operations])


def _operation(op: Operation) -> bytes:
    parts = [text(1, op.type)]
    for name in sorted(op.inputs):
        bindings = op.inputs[name]
        if len(bindings) == 1 and isinstance(bindings[0], Literal):
            parts.append(_literal_input(name, bindings[0]))
        else:
            parts.append(_input(name, b"".join([_binding(b) for b in bindings])))
    parts.append(_named(3, op.outputs))
    parts.extend([message(4, _block(block)) for block in op.blocks])
    if op.attributes:
        parts.append(_map(5, op.attributes, _value))
    return b"".join(parts)


def _input(name: str, argument: bytes) -> bytes:
    return message(2, text(1, name) + message(2, argument))


@lru_cache(maxsize=4096)
def _literal_input(name: str, literal: Literal) -> bytes:
    return _input(name, _binding(literal))


def _binding(binding: Binding) -> bytes:
    return message(1, text(1, binding) if isinstance(binding, str) else message(2, _value(binding)))


# Types and values


@lru_cache(maxsize=4096)
def _type(type: ValueType) -> bytes:
    if isinstance(type, Array):
        return message(1, _array(type))
    if isinstance(type, ListOf):
        return message(2, message(1, _type(type.element)) + message(2, _dimension(type.length)))
    if isinstance(type, TupleOf):
        return message(3, b"".join(message(1, _type(element)) for element in type.elements))
    if isinstance(type, DictOf):
        return message(4, message(1, _type(type.key)) + message(2, _type(type.value)))
    assert isinstance(type, StateOf)
    return message(5, message(1, _type(type.array)))


def _array(type: Array) -> bytes:
    sizes = b"".join(message(3, _dimension(size)) for size in type.shape)
    return integer(1, DTYPES[type.dtype]) + integer(2, len(type.shape)) + sizes


def _dimension(size: int | None) -> bytes:
    return message(2, b"") if size is None else message(1, integer(1, size))


def _value(value: Value) -> bytes:
    if isinstance(value, Stored):
        return message(2, _type(value.type)) + message(5, text(1, value.file) + integer(2, value.offset))
    return message(2, _type(value.type)) + message(3, _immediate(value))


def _immediate(literal: Literal) -> bytes:
    data = literal.data
    if isinstance(literal.type, Array):
        return message(1, _tensor(literal.type.dtype, data))
    if isinstance(literal.type, DictOf):
        pairs = cast("tuple[tuple[Value, Value], ...]", data)
        return message(4, b"".join(message(1, message(1, _value(k)) + message(2, _value(v))) for k, v in pairs))
    values = cast("tuple[Value, ...]", data)
    return message(2 if isinstance(literal.type, TupleOf) else 3, b"".join(message(1, _value(v)) for v in values))


def _tensor(dtype: str, data: object) -> bytes:
    """The TensorValue message: which of its forms holds a dtype is coremltools' choice."""
    if dtype == "string":
        assert isinstance(data, tuple)
        return message(4, b"".join(message(1, s.encode()) for s in data))
    assert isinstance(data, bytes)
    if dtype == "fp32":
        return message(1, _nonempty(data))
    if dtype == "bool":  # a varint of 0 or 1 is that byte
        return message(3, _nonempty(data))
    if dtype == "fp64":
        return message(6, _nonempty(data))
    if dtype in _BYTES_DTYPES:
        return message(7, _nonempty(data))
    code = {"int16": "h", "uint16": "H", "int32": "i", "int64": "q", "uint64": "Q"}[dtype]
    numbers = struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)
    return message(5 if dtype in ("int64", "uint64") else 2, _nonempty(packed(numbers)))


def _nonempty(payload: bytes) -> bytes:
    return message(1, payload) if payload else b""
