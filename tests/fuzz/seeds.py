"""Whole packages that mutants are made from: stored ones, one of each operation, and programs that go by values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from rlx_swift.lower.encode import encode
from rlx_swift.lower.program import (
    OPSETS,
    Array,
    Binding,
    Block,
    Feature,
    Function,
    Interface,
    ListOf,
    Literal,
    Model,
    Named,
    Operation,
    StateOf,
)
from tests.operation_cases import cases, model

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("Tests/MILFormatTests/Fixtures", "tests/lift/goldens", "tests/networks/stored")
_MODEL = "Data/com.apple.CoreML/model.mlmodel"
_WEIGHTS = "Data/com.apple.CoreML/weights/weight.bin"
_LARGEST = 60_000  # bytes of a stored package: larger ones only take longer
_LARGEST_CASE = 4_000
_OF_ONE_OPERATION = 3
MANIFEST = """{
 "fileFormatVersion": "1.0.0", "rootModelIdentifier": "A",
 "itemInfoEntries": {
  "A": {"path": "com.apple.CoreML/model.mlmodel", "name": "model.mlmodel", "author": "com.apple.CoreML"},
  "B": {"path": "com.apple.CoreML/weights", "name": "weights", "author": "com.apple.CoreML"}
 }
}"""


@dataclass(frozen=True)
class Files:
    """A package: its manifest, model and weights."""

    manifest: bytes
    model: bytes
    weights: bytes

    def write(self, folder: Path) -> None:
        for name, data in (("Manifest.json", self.manifest), (_MODEL, self.model), (_WEIGHTS, self.weights)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)


@cache
def seeds() -> tuple[tuple[Files, ...], ...]:
    """The packages by kind; each kind is as good as the others."""
    return tuple(_stored()), tuple(_of_operations()), tuple(map(_files, (_loop(), _branch(), _list(), _states())))


def _stored() -> Iterator[Files]:
    for folder in FOLDERS:
        for package in sorted((ROOT / folder).glob("*.mlpackage")):
            parts = [package / name for name in ("Manifest.json", _MODEL, _WEIGHTS)]
            files = Files(*(part.read_bytes() if part.is_file() else b"" for part in parts))
            if files.model and len(files.model) + len(files.weights) <= _LARGEST:
                yield files


def _of_operations() -> Iterator[Files]:
    taken: Counter[str] = Counter()
    for _, case in cases():
        files = _files(model(case, case["opset"])[0]) if taken[case["op"]] < _OF_ONE_OPERATION else None
        if files and len(files.model) <= _LARGEST_CASE:
            taken[case["op"]] += 1
            yield files


def _files(program: Model) -> Files:
    return Files(MANIFEST.encode(), encode(program), b"")


# Programs that go by values

_X = Array("fp32", (3,))
_FLAG = Array("bool", ())


def _operation(kind: str, outputs: list[Named], blocks: tuple[Block, ...] = (), /, **inputs: Binding) -> Operation:
    return Operation(kind, {name: [value] for name, value in inputs.items()}, outputs, {}, list(blocks))


def _number(value: float) -> Literal:
    return Literal(Array("fp32", ()), np.float32(value).tobytes())


def _integers(*values: int) -> Literal:
    return Literal(Array("int32", (len(values),)), np.int32(values).tobytes())


def _program(body: Block, inputs: tuple[Named, ...] = (("x", _X),), opset: str = "CoreML8") -> Model:
    described = [Feature(name, "array", "fp32", (3,)) for name, type in inputs if type == _X]
    outputs = [Feature(name, "array", "fp32", (3,)) for name in body.outputs]
    held = [Feature(name, "state", "fp16", (3,)) for name, type in inputs if isinstance(type, StateOf)]
    function = Function(list(inputs), opset, {opset: body})
    return Model(OPSETS[opset], {"main": function}, {"main": Interface(described, outputs, held)})


def _loop() -> Model:
    condition = Block([("v", _X)], [
        _operation("reduce_sum", [("s", Array("fp32", ()))], x="v"),
        _operation("less", [("c", _FLAG)], x="s", y=_number(40)),
    ], ["c"])
    body = Block([("v", _X)], [_operation("mul", [("w", _X)], x="v", y=_number(2))], ["w"])
    return _program(Block([], [_operation("while_loop", [("y", _X)], (condition, body), loop_vars="x")], ["y"]))


def _branch() -> Model:
    one = Block([], [_operation("add", [("p", _X)], x="x", y=_number(1))], ["p"])
    other = Block([], [_operation("mul", [("q", _X)], x="x", y=_number(2))], ["q"])
    return _program(Block([], [
        _operation("reduce_sum", [("s", Array("fp32", ()))], x="x"),
        _operation("greater", [("c", _FLAG)], x="s", y=_number(0)),
        _operation("cond", [("y", _X)], (one, other), pred="c"),
    ], ["y"]))


def _list() -> Model:
    held = ListOf(_X, None)
    return _program(Block([], [
        _operation("make_list", [("a", held)], init_length=_integers(1), elem_shape=_integers(3),
                   dtype=Literal(Array("string", ()), ("fp32",))),
        _operation("list_write", [("b", held)], ls="a", index=_integers(2), value="x"),
        _operation("list_length", [("n", Array("int32", (1,)))], ls="b"),
        _operation("expand_dims", [("e", Array("fp32", (1, 3)))], x="x", axes=_integers(0)),
        _operation("list_scatter", [("d", held)], ls="b", indices=_integers(0), value="e"),
        _operation("list_gather", [("g", Array("fp32", (3, 3)))], ls="d", indices=_integers(0, 1, 2)),
        _operation("list_read", [("r", _X)], ls="d", index=_integers(2)),
        _operation("add", [("y", Array("fp32", (3, 3)))], x="g", y="r"),
    ], ["y"]))


def _states() -> Model:
    half = Array("fp16", (3,))
    return _program(Block([], [
        _operation("read_state", [("old", half)], input="s"),
        _operation("cast", [("h", half)], x="x", dtype=Literal(Array("string", ()), ("fp16",))),
        _operation("add", [("sum", half)], x="old", y="h"),
        _operation("write_state", [], input="s", data="sum"),
        _operation("read_state", [("new", half)], input="s"),
        _operation("cast", [("y", _X)], x="new", dtype=Literal(Array("string", ()), ("fp32",))),
    ], ["y"]), (("x", _X), ("s", StateOf(half))))
