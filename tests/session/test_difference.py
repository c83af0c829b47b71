"""Two models compared value by value: what corresponds, what differs first, what is not compared."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import cli
from rlx_swift.errors import ConfigError, FeedError
from rlx_swift.lower.package import write_package
from rlx_swift.lower.program import OPSETS, Array, Block, Feature, Function, Interface, Literal, Model, Operation

TESTS = Path(__file__).resolve().parents[1]
STORED = TESTS / "networks/stored"
CONTROL = TESTS.parent / "Tests/MILFormatTests/Fixtures/control.mlpackage"
X = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)

pytestmark = pytest.mark.skipif(
    not next(status for status in rlx.devices() if status.name == "cpu").available, reason="no native library"
)


def number(value: float, dtype: str) -> Literal:
    return Literal(Array(dtype, ()), {"fp32": np.float32, "fp16": np.float16}[dtype](value).tobytes())


def chain(path: Path, names: str = "abcy", scale: float = 3.0, last: str = "exp", dtype: str = "fp32") -> Path:
    """y = last(tanh(x) * scale + 1), in four operations of these names."""
    type, (a, b, c, y) = Array(dtype, (2, 4)), names
    operations = [
        Operation("tanh", {"x": ["x"]}, [(a, type)]),
        Operation("mul", {"x": [a], "y": [number(scale, dtype)]}, [(b, type)]),
        Operation("add", {"x": [b], "y": [number(1, dtype)]}, [(c, type)]),
        Operation(last, {"x": [c]}, [(y, type)]),
    ]
    function = Function([("x", type)], "CoreML7", {"CoreML7": Block([], operations, [y])})
    features = [[Feature(name, "array", dtype, (2, 4))] for name in ("x", y)]
    write_package(path, Model(OPSETS["CoreML7"], {"main": function}, {"main": Interface(*features)}))
    return path


def test_the_first_that_differs(tmp_path: Path) -> None:
    one, other = chain(tmp_path / "a.mlpackage"), chain(tmp_path / "b.mlpackage", scale=4)
    found = rlx.diff_models(one, other, {"x": X})
    assert [value.name for value in found.compared] == list("abcy") and not found.skipped
    assert found.first is not None and found.first.name == "b" and not found.compared[0].differs
    largest = np.abs(np.tanh(X)).max()
    assert found.first.error == pytest.approx(largest, rel=1e-6) and found.first.relative == pytest.approx(0.25)
    assert found.first.place in ((0, 0), (1, 3))
    assert found.worst(1)[0].name == "y" and "first that differs: b, mul fp32[2, 4]" in str(found)
    assert rlx.diff_models(one, other, {"x": X}, rtol=100).first is None


def test_other_names_and_other_operations(tmp_path: Path) -> None:
    one, other = chain(tmp_path / "a.mlpackage"), chain(tmp_path / "b.mlpackage", names="pqry", last="softplus")
    found = rlx.diff_models(one, other, {"x": X})
    assert [(value.name, value.other) for value in found.compared] == [("a", "p"), ("b", "q"), ("c", "r")]
    assert found.first is None and list(found.skipped) == ["y"] and "1 values not compared" in str(found)


def test_precisions() -> None:
    saved = np.load(STORED / "bert_f16.npz")
    feeds = {name: saved[name] for name in ("ids", "kinds", "mask") if name in saved}
    half, full = STORED / "bert_f16.mlpackage", STORED / "bert_f32.mlpackage"
    for found in (rlx.diff_models(half, precision="f32", feeds=feeds), rlx.diff_models(half, full, feeds)):
        assert len(found.compared) > 60 and found.first is None and 1e-5 < found.worst(1)[0].relative < 1e-2
    assert rlx.diff_models(half, precision="f32", feeds=feeds, rtol=1e-6).first is not None
    found = rlx.diff_models(full, device="numpy", feeds=feeds)
    assert len(found.compared) > 60 and found.first is None and found.worst(1)[0].relative < 1e-5


def test_states_and_blocks() -> None:
    saved = np.load(STORED / "gpt2_f16.npz")
    found = rlx.diff_models(
        STORED / "gpt2_f16.mlpackage", precision="f32", feeds={"ids": saved["ids0"], "mask": saved["mask0"]}
    )
    assert found.first is None and len(found.compared) > 60
    feeds = {"x": np.ones(3), "n": np.int32([3])}
    found = rlx.diff_models(CONTROL, CONTROL, feeds)
    assert found.first is None and "it is made inside a while_loop" in found.skipped.values()


def test_one_that_is_no_number(tmp_path: Path) -> None:
    one = chain(tmp_path / "a.mlpackage", last="log")
    found = rlx.diff_models(one, chain(tmp_path / "b.mlpackage", last="log", scale=0.5), {"x": X})
    last = found.compared[-1]
    assert last.name == "y" and last.error == np.inf and last.differs
    assert not rlx.diff_models(one, one, {"x": X}).compared[-1].differs


def test_wrong_arguments(tmp_path: Path) -> None:
    one = chain(tmp_path / "a.mlpackage")
    for options in ({}, {"b": one, "device": "numpy"}, {"precision": "f16"}):
        with pytest.raises(ConfigError):
            rlx.diff_models(one, feeds={"x": X}, **options)  # type: ignore[arg-type]
    with pytest.raises(FeedError):
        rlx.diff_models(one, one)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = chain(tmp_path / "a.mlpackage"), chain(tmp_path / "b.mlpackage", scale=4)
    assert cli.main(["diff", str(one), str(one)]) == 0
    assert "4 values compared, 0 differ" in capsys.readouterr().out
    np.save(tmp_path / "x.npy", X)
    assert cli.main(["diff", str(one), str(other), "--input", f"x={tmp_path / 'x.npy'}", "--json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["first"]["name"] == "b" and "'b' is the first that differs" in printed.err
