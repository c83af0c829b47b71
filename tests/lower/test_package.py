"""Packages on disk and in memory, against coremltools' readers."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import PackageError
from rlx_swift.interop.validate import validate
from rlx_swift.lower.blobs import chunks, next_offset, read_header, read_record
from rlx_swift.lower.mil import Lowered, lower
from rlx_swift.lower.package import Bytes, opened, read_package, to_bytes, write_package
from rlx_swift.lower.program import WEIGHT_FILE, Metadata


def lowered(scale: float = 1.0, stored: bool = True) -> Lowered:
    g = rlx.Graph()
    x = g.input("x", (4, 5))
    y = x * g.constant(np.arange(20, dtype=np.float32).reshape(4, 5) * np.float32(scale)) if stored else x * scale
    g.set_outputs({"y": y})
    return lower(g)


def files(directory: Path) -> dict[str, bytes]:
    return {str(f.relative_to(directory)): f.read_bytes() for f in sorted(directory.rglob("*")) if f.is_file()}


def test_the_layout_is_that_of_coremltools(tmp_path: Path) -> None:
    package = tmp_path / "deep" / "m.mlpackage"
    write_package(package, lowered().model)
    inside = files(package)
    assert set(inside) == {
        "Manifest.json", "Data/com.apple.CoreML/model.mlmodel", "Data/com.apple.CoreML/weights/weight.bin"
    }
    manifest = json.loads(inside["Manifest.json"])
    assert manifest["fileFormatVersion"] == "1.0.0"
    paths = {entry["path"] for entry in manifest["itemInfoEntries"].values()}
    assert paths == {"com.apple.CoreML/model.mlmodel", "com.apple.CoreML/weights"}
    for identifier in manifest["itemInfoEntries"]:
        assert re.fullmatch(r"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}", identifier)
    assert os.listdir(package.parent) == ["m.mlpackage"]


def test_coremltools_opens_the_package(tmp_path: Path) -> None:
    write_package(tmp_path / "m.mlpackage", lowered().model)
    validate(tmp_path / "m.mlpackage")
    import coremltools

    model = coremltools.models.MLModel(str(tmp_path / "m.mlpackage"), skip_model_load=True)
    assert [f.name for f in model.get_spec().description.input] == ["x"]
    assert list(model.get_spec().description.output[0].type.multiArrayType.shape) == [4, 5]


def test_the_same_graph_gives_the_same_files_and_another_gives_others(tmp_path: Path) -> None:
    for name, scale in (("a", 1.0), ("b", 1.0), ("c", 2.0)):
        write_package(tmp_path / name, lowered(scale).model)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert files(tmp_path / "a")["Manifest.json"] != files(tmp_path / "c")["Manifest.json"]


def test_a_package_in_memory_has_the_same_bytes_as_on_disk(tmp_path: Path) -> None:
    write_package(tmp_path / "m", lowered().model)
    contents, read = to_bytes(lowered().model), read_package(tmp_path / "m")
    assert read.data == contents.model
    assert bytes(read.weight_file(WEIGHT_FILE)[:]) == contents.weights
    assert read.model == opened(contents).model


def test_without_stored_constants_there_is_no_weight_file(tmp_path: Path) -> None:
    model = lowered(stored=False).model
    assert to_bytes(model).weights == b""
    write_package(tmp_path / "m", model)
    assert (tmp_path / "m/Data/com.apple.CoreML/weights").is_dir()
    with pytest.raises(PackageError):
        read_package(tmp_path / "m").weight_file(WEIGHT_FILE)
    validate(tmp_path / "m")


def test_metadata(tmp_path: Path) -> None:
    metadata = Metadata("what it does", "1.2", "who", "MIT", {"b": "2", "a": "1"})
    write_package(tmp_path / "m", lowered().model, metadata)
    assert read_package(tmp_path / "m").model.metadata == metadata
    from coremltools import proto

    spec = proto.Model_pb2.Model.FromString(read_package(tmp_path / "m").data)
    assert spec.description.metadata.shortDescription == "what it does"
    assert spec.description.metadata.versionString == "1.2"
    assert dict(spec.description.metadata.userDefined) == {"a": "1", "b": "2"}


def test_a_package_is_replaced_as_a_whole(tmp_path: Path) -> None:
    write_package(tmp_path / "m", lowered(1.0).model)
    (tmp_path / "m" / "extra").write_text("")
    write_package(tmp_path / "m", lowered(2.0).model)
    write_package(tmp_path / "n", lowered(2.0).model)
    assert files(tmp_path / "m") == files(tmp_path / "n")
    assert sorted(os.listdir(tmp_path)) == ["m", "n"]


def test_what_is_no_package_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "directory").mkdir()
    for name in ("file", "directory"):
        with pytest.raises(PackageError, match="no package"):
            write_package(tmp_path / name, lowered().model)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_failure_leaves_the_old_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_package(tmp_path / "m", lowered(1.0).model)
    before = files(tmp_path / "m")

    def full(*_: object) -> object:
        raise OSError("no space left")

    monkeypatch.setattr("rlx_swift.lower.package._manifest", full)
    with pytest.raises(OSError, match="no space"):
        write_package(tmp_path / "m", lowered(2.0).model)
    assert files(tmp_path / "m") == before
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize(("file", "text", "problem"), [
    ("Manifest.json", None, "cannot be read"),
    ("Manifest.json", "{", "names no model"),
    ("Manifest.json", '{"itemInfoEntries": {}, "rootModelIdentifier": "x"}', "names no model"),
    ("Manifest.json", '{"itemInfoEntries": {"x": {"path": "../../m"}}, "rootModelIdentifier": "x"}', "outside"),
    ("Manifest.json", '{"itemInfoEntries": {"x": {"path": "gone"}}, "rootModelIdentifier": "x"}', "cannot be read"),
    ("Data/com.apple.CoreML/model.mlmodel", "", "expected an ML Program"),
])
def test_broken_packages_are_errors(tmp_path: Path, file: str, text: str | None, problem: str) -> None:
    write_package(tmp_path / "m", lowered().model)
    if text is None:
        (tmp_path / "m" / file).unlink()
    else:
        (tmp_path / "m" / file).write_text(text)
    with pytest.raises(PackageError, match=problem):
        read_package(tmp_path / "m")


def test_weight_files_lie_beside_the_model(tmp_path: Path) -> None:
    write_package(tmp_path / "m", lowered().model)
    for name in ("weights/weight.bin", "@model_path/../model.mlmodel", "@model_path/gone", "@model_path"):
        with pytest.raises(PackageError):
            read_package(tmp_path / "m").weight_file(name)


@pytest.mark.parametrize("left", [0, 64, 100])
def test_a_weight_file_that_is_shortened_while_it_is_open(tmp_path: Path, left: int) -> None:
    write_package(tmp_path / "m", lowered().model)
    file = read_package(tmp_path / "m").weight_file(WEIGHT_FILE)
    record = read_record(file, 64)
    part = slice(record.start, record.start + record.size)
    whole = file[part]
    os.truncate(next(tmp_path.rglob("weight.bin")), left)
    with pytest.raises(PackageError, match=rf"weight\.bin.*shortened from {len(file)} bytes"):
        file[part]
    np.testing.assert_array_equal(np.frombuffer(whole, np.float32), np.arange(20))  # what was read stays


# The weight file


ARRAYS = [
    np.arange(3, dtype=np.float32), np.arange(16, dtype=np.float16),
    np.arange(64, dtype=np.int32).reshape(8, 8)[:, ::2], np.arange(5, dtype=np.uint8), np.arange(4, dtype=np.int8),
]


def test_coremltools_reads_the_weight_file(tmp_path: Path) -> None:
    from coremltools.libmilstoragepython import _BlobStorageReader

    (tmp_path / "weight.bin").write_bytes(b"".join(chunks(ARRAYS)))
    reader = _BlobStorageReader(str(tmp_path / "weight.bin"))
    reads = {"float32": reader.read_float_data, "float16": reader.read_fp16_data, "int32": reader.read_int32_data,
             "uint8": reader.read_uint8_data, "int8": reader.read_int8_data}
    offset = 64
    for array in ARRAYS:
        raw = np.asarray(reads[array.dtype.name](offset))
        got = raw.view(np.float16) if array.dtype == np.float16 else raw
        np.testing.assert_array_equal(got, array.reshape(-1))
        offset = next_offset(offset, array.nbytes)


def test_our_reader_reads_it_too() -> None:
    data = memoryview(b"".join(chunks(ARRAYS)))
    assert read_header(data) == len(ARRAYS)
    offset = 64
    for array in ARRAYS:
        record = read_record(data, offset)
        assert (record.start, record.size) == (offset + 64, array.nbytes)
        assert bytes(data[record.start : record.start + record.size]) == array.tobytes()
        offset = next_offset(offset, array.nbytes)


@pytest.mark.parametrize(("at", "value", "problem"), [
    (64, 0, "no record"), (68, 99, "unknown dtype"), (72, 1 << 40, "not inside"), (80, 100, "not inside"),
    (80, 64, "not inside"),
])
def test_broken_records_are_errors(at: int, value: int, problem: str) -> None:
    data = bytearray(b"".join(chunks(ARRAYS[:1])))
    size = 4 if at < 72 else 8
    data[at : at + size] = value.to_bytes(size, "little")
    with pytest.raises(PackageError, match=problem):
        read_record(memoryview(data), 64)


@pytest.mark.parametrize("offset", [0, 1, 63, 65, 128, 1 << 40])
def test_offsets_that_hold_no_record_are_errors(offset: int) -> None:
    with pytest.raises(PackageError):
        read_record(memoryview(b"".join(chunks(ARRAYS[:1]))), offset)


def test_a_weight_file_begins_with_its_header() -> None:
    with pytest.raises(PackageError, match="64 bytes"):
        read_header(memoryview(b"short"))
    with pytest.raises(PackageError, match="version"):
        read_header(memoryview(bytes(64)))


def test_an_opened_package_from_memory_has_only_its_weight_file() -> None:
    package = opened(to_bytes(lowered().model))
    with pytest.raises(PackageError, match="no such weight file"):
        package.weight_file("@model_path/weights/other.bin")
    with pytest.raises(PackageError, match="no such weight file"):
        opened(Bytes(to_bytes(lowered(stored=False).model).model, b"")).weight_file(WEIGHT_FILE)
