"""A program whose halves are made floats, to see what precision costs. Knows nothing of running."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ..errors import PackageError
from ..lift.constants import array_of
from ..lower.blobs import HEADER, chunks, next_offset
from ..lower.encode import encode
from ..lower.package import Opened
from ..lower.program import (
    Array,
    Binding,
    Block,
    DictOf,
    Function,
    Interface,
    ListOf,
    Literal,
    Model,
    Operation,
    StateOf,
    Stored,
    TupleOf,
    Value,
    ValueType,
)

_FILE = "@model_path/weights/widened.bin"


def write_widened(package: Opened, folder: Path) -> Path:
    """Writes the program with f32 in the place of f16, constants too; returns the path of the model file.

    Constants of other dtypes stay in the weight files of the package. Raises PackageError.
    """
    widening = _Widening(package)
    model = package.model
    functions = {name: widening.function(function) for name, function in model.functions.items()}
    described = {name: Interface([], []) for name in model.functions}
    made = Model(model.specification, functions, described, model.default_function)
    (folder / "weights").mkdir()
    for name in sorted(widening.kept):
        inside = name.removeprefix("@model_path/weights/")
        if package.weights_directory is None or inside == name or os.sep in inside:
            raise PackageError(name, "this weight file lies where it cannot be kept")
        (folder / "weights" / inside).symlink_to((package.weights_directory / inside).resolve())
    if widening.weights:
        with open(folder / "weights/widened.bin", "wb") as file:
            file.writelines(chunks(widening.weights))
    path = folder / "model.mlmodel"
    path.write_bytes(encode(made))
    return path


class _Widening:
    """`weights` are the arrays of the new weight file, `kept` the old files that are still read."""

    def __init__(self, package: Opened) -> None:
        self._package = package
        self._offset = HEADER
        self._places: dict[tuple[str, int], int] = {}
        self.weights: list[np.ndarray] = []
        self.kept: set[str] = set()

    def function(self, function: Function) -> Function:
        bodies = {opset: self._block(block) for opset, block in function.bodies.items()}
        return Function([(name, _wide(type)) for name, type in function.inputs], function.opset, bodies)

    def _block(self, block: Block) -> Block:
        operations = [self._operation(operation) for operation in block.operations]
        return Block([(name, _wide(type)) for name, type in block.inputs], operations, block.outputs)

    def _operation(self, operation: Operation) -> Operation:
        return Operation(
            operation.type,
            {name: [self._binding(binding) for binding in bound] for name, bound in operation.inputs.items()},
            [(name, _wide(type)) for name, type in operation.outputs],
            {name: self._value(value) for name, value in operation.attributes.items()},
            [self._block(block) for block in operation.blocks],
        )

    def _binding(self, binding: Binding) -> Binding:
        return binding if isinstance(binding, str) else self._value(binding)

    def _value(self, value: Value) -> Value:
        if isinstance(value, Literal) and value.data == ("fp16",):
            return Literal(value.type, ("fp32",))
        if not isinstance(value.type, Array) or value.type.dtype != "fp16":
            if isinstance(value, Stored):
                self.kept.add(value.file)
            return value
        if isinstance(value, Stored):
            return Stored(_wide(value.type), self._stored(value), _FILE)
        assert isinstance(value.data, bytes)  # as for every array of numbers
        return Literal(_wide(value.type), np.frombuffer(value.data, np.float16).astype(np.float32).tobytes())

    def _stored(self, value: Stored) -> int:
        """Where the constant lies in the new file."""
        key = (value.file, value.offset)
        if key not in self._places:
            array = array_of(value, self._package.weight_file, "weights").astype(np.float32)
            self._places[key] = self._offset
            self.weights.append(array)
            self._offset = next_offset(self._offset, array.nbytes)
        return self._places[key]


def _wide(type: ValueType) -> ValueType:
    match type:
        case Array("fp16", shape):
            return Array("fp32", shape)
        case ListOf(element, length):
            return ListOf(_wide(element), length)
        case TupleOf(elements):
            return TupleOf(tuple(map(_wide, elements)))
        case DictOf(key, value):
            return DictOf(_wide(key), _wide(value))
        case StateOf(Array("fp16", shape)):
            return StateOf(Array("fp32", shape))
        case _:
            return type
