"""Writing and reading model bytes, against protobuf's own library and packages that coremltools made."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import PackageError, UnsupportedError
from rlx_swift.lower.decode import decode
from rlx_swift.lower.encode import encode
from rlx_swift.lower.mil import lower
from rlx_swift.lower.package import read_package
from rlx_swift.lower.program import (
    Array,
    Block,
    DictOf,
    Feature,
    Function,
    Interface,
    ListOf,
    Literal,
    Metadata,
    Model,
    Operation,
    StateOf,
    Stored,
    TupleOf,
)
from rlx_swift.lower.wire import Message, message, varint

FIXTURES = Path(__file__).resolve().parents[2] / "Tests/MILFormatTests/Fixtures"
PACKAGES = sorted(FIXTURES.glob("*.mlpackage"))
FIXED = [p for p in PACKAGES if p.stem not in ("flexible", "enumerated", "classifier")]


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, (1 << 31) - 1, 1 << 63, -1, -(1 << 31), -(1 << 63)])
def test_varints(number: int) -> None:
    from google.protobuf.internal import encoder

    assert varint(number) == encoder._VarintBytes(number & (1 << 64) - 1)
    read = Message(memoryview(b"\x08" + varint(number)), "").signed(1)
    assert read == [number - (1 << 64) if number == 1 << 63 else number]


def everything() -> Model:
    """A model with each kind of type, value, block and feature."""
    f32, text = Array("fp32", (2, None)), Array("string", ())
    values = {
        "floats": Literal(Array("fp32", (2,)), np.array([1, np.nan], np.float32).tobytes()),
        "doubles": Literal(Array("fp64", ()), np.float64(0.1).tobytes()),
        "halves": Literal(Array("fp16", (3,)), np.array([1, 2, 3], np.float16).tobytes()),
        "ints": Literal(Array("int32", (2, 1)), np.array([-1, 1 << 30], np.int32).tobytes()),
        "shorts": Literal(Array("int16", (2,)), np.array([-5, 7], np.int16).tobytes()),
        "longs": Literal(Array("int64", (1,)), np.int64(-(1 << 40)).tobytes()),
        "unsigned": Literal(Array("uint64", (1,)), np.uint64((1 << 64) - 1).tobytes()),
        "bools": Literal(Array("bool", (3,)), b"\1\0\1"),
        "bytes": Literal(Array("uint8", (2,)), b"\xff\0"),
        "nibbles": Literal(Array("int4", (3,)), b"\x21\x03"),
        "empty": Literal(Array("int32", (0,)), b""),
        "texts": Literal(Array("string", (2,)), ("a", "ö")),
        "list": Literal(ListOf(text, 1), (Literal(text, ("x",)),)),
        "tuple": Literal(TupleOf((text, text)), (Literal(text, ("x",)), Literal(text, ("",)))),
        "dictionary": Literal(DictOf(text, text), ((Literal(text, ("k",)), Literal(text, ("v",))),)),
        "stored": Stored(Array("fp32", (20,)), 64),
    }
    inner = Block([("i", f32)], [Operation("identity", {"x": ["i"]}, [("j", f32)])], ["j"])
    inputs, label = {name: [value] for name, value in values.items()}, {"name": Literal(text, ("n",))}
    op = Operation("many", inputs, [("y", f32)], label, [inner, inner])
    last = Operation("more", {"values": ["y", "y", values["floats"]]}, [("z", f32), ("w", ListOf(f32, None))])
    fed = [("x", f32), ("s", StateOf(Array("fp16", (2,))))]
    function = Function(fed, "CoreML8", {"CoreML8": Block([], [op, last], ["z"]), "CoreML9": inner})
    x, z, s = Feature("x", "array", "fp32", (2, 1)), Feature("z", "array", "int32"), Feature("s", "state", "fp16", (2,))
    interface = Interface([x], [z], [s])
    return Model(9, {"main": function, "b": function}, {"main": interface, "b": interface}, "b", Metadata("d", "", "a"))


def test_reading_gives_back_what_was_written() -> None:
    assert decode(encode(everything())) == everything()


def test_protobuf_reads_the_same_and_would_write_as_many_bytes() -> None:
    from coremltools import proto

    data = encode(everything())
    spec = proto.Model_pb2.Model.FromString(data)
    assert len(spec.SerializeToString()) == len(data)  # no unknown fields, no default values written
    assert spec.specificationVersion == 9
    assert spec.description.defaultFunctionName == "b"
    operation = spec.mlProgram.functions["main"].block_specializations["CoreML8"].operations[0]
    assert list(operation.inputs["ints"].arguments[0].value.immediateValue.tensor.ints.values) == [-1, 1 << 30]
    assert list(operation.inputs["bools"].arguments[0].value.immediateValue.tensor.bools.values) == [True, False, True]
    assert operation.inputs["stored"].arguments[0].value.blobFileValue.offset == 64


@pytest.mark.parametrize("path", FIXED, ids=lambda p: p.stem)
def test_packages_of_coremltools_are_written_as_they_were_read(path: Path) -> None:
    from coremltools import proto

    data = read_package(path).data
    model = decode(data)
    ours, theirs = (proto.Model_pb2.Model.FromString(d) for d in (encode(model), data))
    assert ours.mlProgram.functions == theirs.mlProgram.functions  # attributes of the program are not kept
    assert ours.description.input == theirs.description.input
    assert ours.description.output == theirs.description.output
    assert ours.description.functions == theirs.description.functions
    assert ours.specificationVersion == theirs.specificationVersion


@pytest.mark.parametrize("path", PACKAGES, ids=lambda p: p.stem)
def test_the_descriptions_of_coremltools_packages(path: Path) -> None:
    from coremltools import proto

    package = read_package(path)
    spec = proto.Model_pb2.Model.FromString(package.data)
    if "main" in package.model.interfaces:
        expected = [(f.name, f.type.WhichOneof("Type")) for f in spec.description.input]
        kinds = {"array": "multiArrayType", "image": "imageType", "state": "stateType"}
        assert [(f.name, kinds[f.kind]) for f in package.model.interfaces["main"].inputs] == expected
    flexible = {f.name for i in package.model.interfaces.values() for f in i.inputs if f.flexible}
    assert bool(flexible) == (path.stem in ("flexible", "enumerated"))


def sample() -> bytes:
    g = rlx.Graph()
    x = g.input("x", (3, 4))
    g.set_outputs({"y": rlx.ops.softmax(x) @ g.constant(np.ones((4, 3), np.float32)), "z": x.sum()})
    return encode(lower(g).model)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_bytes_are_read_or_refused(seed: int) -> None:
    rng, data = random.Random(seed), sample()
    for _ in range(60):
        broken = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        if rng.random() < 0.3:
            del broken[rng.randrange(len(broken)) :]
        with contextlib.suppress(PackageError):
            decode(bytes(broken))


def test_types_nested_without_end_are_refused() -> None:
    type = message(1, b"\x08\x0b")  # a tensor of fp32
    for _ in range(5000):
        type = message(2, message(1, type))  # a list of it
    function = message(1, b"\x0a\x01x" + message(2, type))
    program = b"\x08\x01" + message(2, b"\x0a\x04main" + message(2, function))
    with pytest.raises(PackageError, match="nested too deeply"):
        decode(message(502, program))


def test_other_models_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="it is a neural network"):
        decode((FIXTURES / "neural.mlmodel").read_bytes())


def test_features_that_cannot_be_written_are_refused() -> None:
    model = everything()
    model.interfaces["main"].inputs[0] = Feature("x", "image")
    with pytest.raises(ValueError, match="feature 'x'"):
        encode(model)
