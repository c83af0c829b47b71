"""What a Core ML package holds and where it can run, as data and as text. Runs nothing."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..errors import RlxError
from ..lower.decode import bits
from ..lower.package import read_package
from ..lower.program import Array, Block, Feature, Function, Interface, Model, Operation, Stored, Value, ValueType
from .device import devices
from .model import load_model

_LISTED = 10  # weights that the text names, largest first
_NUMBERS = 9  # elements up to which a constant is no weight


@dataclass(frozen=True)
class WeightInfo:
    """One constant of ten or more elements: what the file calls it, its dtype, shape and size in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class FeatureInfo:
    """An input, output or state: a `kind` that is no array has neither dtype nor shape; None is a size left open."""

    name: str
    kind: str
    dtype: str
    shape: tuple[int | None, ...]
    flexible: bool

    def __str__(self) -> str:
        sizes = ", ".join("?" if size is None else str(size) for size in self.shape)
        type = f"{self.dtype}[{sizes}]" if self.kind in ("array", "state") else self.kind
        return f"{self.name}: {type}{', other shapes too' if self.flexible else ''}"


@dataclass(frozen=True)
class FunctionInfo:
    """One function of a model.

    Attributes:
        operations: how often each operation of MIL occurs, constants left out, most frequent first.
        runs: for each device, why the function cannot run there; empty where it can.
    """

    name: str
    opset: str
    inputs: tuple[FeatureInfo, ...]
    outputs: tuple[FeatureInfo, ...]
    states: tuple[FeatureInfo, ...]
    operations: Mapping[str, int]
    runs: Mapping[str, str]


@dataclass(frozen=True)
class Inspection:
    """A model: `weights` are largest first, and each record of a weight file is one."""

    path: str
    specification: int
    default_function: str
    metadata: Mapping[str, str]
    functions: tuple[FunctionInfo, ...]
    weights: tuple[WeightInfo, ...]

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def inspect_model(path: str | os.PathLike[str]) -> Inspection:
    """Reads a package and tries each of its functions on each device; raises PackageError when it is not readable."""
    model = read_package(path).model
    said = {name: text for name, text in model.metadata.entries().items() if text}
    functions = tuple([_function(path, name, model) for name in sorted(model.functions)])
    return Inspection(
        os.fspath(path), model.specification, model.default_function, said, functions,
        tuple(sorted(_weights(model), key=lambda weight: (-weight.bytes, weight.name))),
    )


def _function(path: str | os.PathLike[str], name: str, model: Model) -> FunctionInfo:
    function = model.functions[name]
    interface = model.interfaces.get(name, Interface([], []))
    counts = Counter(operation.type for operation in _operations(function) if operation.type != "const")
    types = {output: type for operation in _operations(function) for output, type in operation.outputs}
    runs = {status.name: status.reason if not status.available else "" for status in devices()}
    runs.update({device: _obstacle(path, name, device) for device, reason in runs.items() if not reason})
    inputs, outputs, states = (
        tuple([_feature(feature, types) for feature in side])
        for side in (interface.inputs, interface.outputs, interface.states)
    )
    return FunctionInfo(name, function.opset, inputs, outputs, states, dict(counts.most_common()), runs)


def _feature(feature: Feature, types: Mapping[str, ValueType]) -> FeatureInfo:
    """A feature; the shape of an output that depends on an input's is only where it is made."""
    made = types.get(feature.name)
    shape = made.shape if feature.kind == "array" and isinstance(made, Array) else feature.shape
    return FeatureInfo(feature.name, feature.kind, feature.dtype, shape, feature.flexible or None in shape)


def _obstacle(path: str | os.PathLike[str], function: str, device: str) -> str:
    try:
        load_model(path, function, device)
    except RlxError as error:
        return str(error)
    return ""


def _operations(function: Function) -> Iterator[Operation]:
    """All operations, also those inside others."""
    pending: list[Block] = [function.bodies[function.opset]] if function.opset in function.bodies else []
    while pending:
        for operation in pending.pop().operations:
            yield operation
            pending += operation.blocks


def _weights(model: Model) -> Iterator[WeightInfo]:
    seen: set[tuple[str, int]] = set()
    for function in model.functions.values():
        for operation in _operations(function):
            for label, value in _constants(operation):
                if not isinstance(value.type, Array) or None in value.type.shape or value.type.dtype == "string":
                    continue
                shape = tuple([size for size in value.type.shape if size is not None])
                record = (value.file, value.offset) if isinstance(value, Stored) else None
                if math.prod(shape) <= _NUMBERS or record in seen:
                    continue
                if record is not None:
                    seen.add(record)
                size = -(-math.prod(shape) * bits(value.type.dtype) // 8)
                yield WeightInfo(label, value.type.dtype, shape, size)


def _constants(operation: Operation) -> Iterator[tuple[str, Value]]:
    """The constants that an operation holds or binds, each with a name."""
    made = operation.outputs[0][0] if operation.outputs else operation.type
    for name, value in operation.attributes.items():
        yield (made if name == "val" else f"{made}_{name}"), value
    for name, bindings in operation.inputs.items():
        yield from ((f"{made}_{name}", binding) for binding in bindings if not isinstance(binding, str))


# Text


def _lines(found: Inspection) -> Iterator[str]:
    yield f"{found.path}: ML Program, specification version {found.specification}"
    yield from (f"  {name}: {value}" for name, value in found.metadata.items())
    for function in found.functions:
        default = ", the default" if len(found.functions) > 1 and function.name == found.default_function else ""
        yield f"function {function.name} ({function.opset}{default})"
        for side in ("inputs", "outputs", "states"):
            yield from (f"  {side.removesuffix('s'):9}{feature}" for feature in getattr(function, side))
        total = sum(function.operations.values())
        counts = ", ".join(f"{name} {count}" for name, count in function.operations.items())
        yield f"  {total} operations{': ' + counts if counts else ''}"
        for device, reason in function.runs.items():
            text = reason.replace("\n", "\n    ")
            yield f"  {device}: {'runs' if not text else 'does not run: ' + text}"
    yield from _weight_lines(found.weights)


def _weight_lines(weights: tuple[WeightInfo, ...]) -> Iterator[str]:
    by_dtype: dict[str, int] = {}
    for weight in weights:
        by_dtype[weight.dtype] = by_dtype.get(weight.dtype, 0) + weight.bytes
    total = ", ".join(f"{dtype} {_size(size)}" for dtype, size in by_dtype.items())
    yield f"{len(weights)} weights{': ' + total if total else ''}"
    yield from (f"  {_size(w.bytes):>9}  {w.name}: {w.dtype}{list(w.shape)}" for w in weights[:_LISTED])
    if len(weights) > _LISTED:
        yield f"  and {len(weights) - _LISTED} more"


def _size(count: int) -> str:
    power = min(3, max(count.bit_length() - 1, 0) // 10)
    return f"{count / 1024**power:.{1 if power else 0}f} {('B', 'KiB', 'MiB', 'GiB')[power]}"
