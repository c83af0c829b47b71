"""Which values of two programs are the same: by what they are computed from, else by name. Knows no values."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..lower.program import Array, Binding, Block, Operation, ValueType

_Key = tuple[object, ...]
_ENDINGS = re.compile(r"(_(to_(fp16|fp32|u?int(8|16))|cast_fp(16|32)|cast_u?int(8|16)))+(_\d+)?$")
_WIDTHS = {"fp16": "float", "fp32": "float", **dict.fromkeys(("int8", "uint8", "int16", "uint16", "int32"), "integer")}


@dataclass(frozen=True)
class Value:
    """A tensor that an operation of the program's own block makes."""

    name: str
    operation: str
    type: Array


@dataclass(frozen=True)
class Matches:
    """Pairs of values in the order of the first program; `skipped` says for the other names why they have no pair."""

    pairs: tuple[tuple[Value, Value], ...]
    skipped: Mapping[str, str]


def match(a: Block, b: Block) -> Matches:
    """The values of two programs that should be equal, though their weights, precisions and names differ.

    Values correspond when the same operations make them from the same inputs; constants count by their shape only,
    and a conversion between floats or between integers not at all. Else they correspond when operation, shape and
    name agree, whose endings such as `_cast_fp16` do not count; what is computed from them may then correspond too.
    """
    first = dict(_values(a, {}))
    known: dict[str, _Key] = {}  # of values of the second program, the keys of those that they correspond to by name
    while True:
        second = dict(_values(b, known))
        found = _paired(first, second)
        named = _named(found, first, second)
        if not named:
            break
        known |= named
    taken = {value.name for value in found.values()}
    skipped = {value.name: "no value of the second model corresponds to it" for value in first if value not in found}
    skipped |= {
        value.name: "no value of the first model corresponds to it"
        for value in second if value.name not in taken and value.name not in skipped
    }
    for block in (a, b):
        skipped |= dict(_hidden(block))
    return Matches(tuple([(value, found[value]) for value in first if value in found]), skipped)


def _paired(first: Mapping[Value, _Key], second: Mapping[Value, _Key]) -> dict[Value, Value]:
    """Values of equal keys, in order where several have the same."""
    sides = []
    for side in (first, second):
        by_key: dict[_Key, list[Value]] = defaultdict(list)
        for value, key in side.items():
            by_key[key].append(value)
        sides.append(by_key)
    found: dict[Value, Value] = {}
    for key, own in sides[0].items():
        if len(own) == len(sides[1].get(key, ())):
            found.update(zip(own, sides[1][key], strict=True))
    return found


def _named(
    found: Mapping[Value, Value], first: Mapping[Value, _Key], second: Mapping[Value, _Key]
) -> dict[str, _Key]:
    """For the first value without a pair that has one by name, its key under the name in the second program."""
    taken = set(found.values())
    free = {(_stem(value.name), value.operation, value.type.shape): value for value in second if value not in taken}
    for value, key in first.items():
        other = free.get((_stem(value.name), value.operation, value.type.shape))
        if value not in found and other is not None and second[other] != key:
            return {other.name: key}
    return {}


def _stem(name: str) -> str:
    return _ENDINGS.sub("", name)


def _values(block: Block, known: Mapping[str, _Key]) -> Iterator[tuple[Value, _Key]]:
    """Each value with what it is computed from, or what is known of it."""
    keys: dict[str, _Key] = {name: ("input", name) for name, _ in block.inputs}
    states: dict[str, _Key] = {}
    types = dict(block.inputs)
    for operation in block.operations:
        if operation.type == "write_state":
            states[_only(operation, "input")] = _key(operation.inputs["data"][0], keys)
            continue
        own = _own_key(operation, keys, states, types)
        types.update(operation.outputs)
        for index, (name, type) in enumerate(operation.outputs):
            if own[0] == "same":
                keys[name] = own[1]  # type: ignore[assignment]
            elif own[0] == "weight":
                keys[name] = own
            else:
                shape = type.shape if isinstance(type, Array) else None
                keys[name] = known.get(name, (hash((own, index, shape)),))
                if isinstance(type, Array) and type.dtype != "string":
                    yield Value(name, operation.type, type), keys[name]


def _own_key(
    operation: Operation, keys: Mapping[str, _Key], states: Mapping[str, _Key], types: Mapping[str, ValueType]
) -> _Key:
    if operation.type == "const" or operation.type.startswith("constexpr_"):
        type = operation.outputs[0][1]
        return ("weight", type.shape if isinstance(type, Array) else None)
    if operation.type == "read_state":
        name = _only(operation, "input")
        return ("same", states.get(name, ("input", name)))
    if operation.type == "identity" or _only_converts(operation, types):
        return ("same", _key(operation.inputs["x"][0], keys))
    bound = [
        (parameter, tuple([_key(binding, keys) for binding in bindings]))
        for parameter, bindings in sorted(operation.inputs.items())
        if not all(_is_parameter(binding, keys) for binding in bindings)
    ]
    return (operation.type, tuple(bound), len(operation.blocks))


def _only_converts(operation: Operation, types: Mapping[str, ValueType]) -> bool:
    """Whether it makes floats of floats or integers of integers."""
    if operation.type != "cast" or "x" not in operation.inputs:
        return False
    source = operation.inputs["x"][0]
    kinds = [types.get(source) if isinstance(source, str) else source.type, operation.outputs[0][1]]
    widths = {_WIDTHS.get(kind.dtype, kind.dtype) if isinstance(kind, Array) else None for kind in kinds}
    return len(widths) == 1 and widths != {None}


def _is_parameter(binding: Binding, keys: Mapping[str, _Key]) -> bool:
    """Whether it is a small constant, which converters write or leave out as they like."""
    key = _key(binding, keys)
    shape = key[1] if key[0] == "weight" else None
    return key[0] == "weight" and (shape is None or (isinstance(shape, tuple) and len(shape) <= 1))


def _key(binding: Binding, keys: Mapping[str, _Key]) -> _Key:
    if isinstance(binding, str):
        return keys.get(binding, ("input", binding))
    return ("weight", binding.type.shape if isinstance(binding.type, Array) else None)


def _only(operation: Operation, parameter: str) -> str:
    bindings = operation.inputs.get(parameter, [])
    return bindings[0] if bindings and isinstance(bindings[0], str) else ""


def _hidden(block: Block) -> Iterator[tuple[str, str]]:
    """Values that no run gives: those of inner blocks."""
    for operation in block.operations:
        for inner in operation.blocks:
            for each in inner.operations:
                if each.type != "const":
                    yield from ((name, f"it is made inside a {operation.type}") for name, _ in each.outputs)
            yield from _hidden(inner)
