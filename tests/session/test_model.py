"""Loaded models: predictions on every device, shapes and dtypes, bad feeds, bad files."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import (
    ConfigError,
    DeviceError,
    DTypeError,
    FeedError,
    NameNotFoundError,
    PackageError,
    TimeLimitError,
    UnsupportedError,
)
from rlx_swift.ir.types import TensorType
from rlx_swift.lower.package import read_package, write_package
from rlx_swift.lower.program import OPSETS, Array, Block, Feature, Function, Interface, Model, Operation
from tests.helpers import same
from tests.training_cases import DEVICES

TESTS = Path(__file__).resolve().parents[1]
GOLDENS = TESTS / "lift/goldens"
FIXTURES = TESTS.parent / "Tests/MILFormatTests/Fixtures"
LINEAR = FIXTURES / "linear32.mlpackage"
every_device = pytest.mark.parametrize("device", DEVICES)


W = (np.arange(24, dtype=np.float32).reshape(4, 6) - 7.5) / 4  # as make_fixtures.py has it


@every_device
def test_predictions_keep_their_types(device):
    for name, within in (("linear32", 1e-6), ("linear16", 2e-3)):
        model = rlx.load_model(FIXTURES / f"{name}.mlpackage", device=device)
        dtype = rlx.f16 if name == "linear16" else rlx.f32
        assert (model.device, model.lifted) == (device, device == "numpy")
        assert model.inputs == {"x": TensorType((2, 4), dtype)} and model.outputs == {"y": TensorType((2, 6), dtype)}
        x = np.arange(8).reshape(2, 4)
        y = model.predict({"x": x})["y"]
        assert y.dtype == dtype.numpy
        same(y, x @ W + (0.5 if name == "linear32" else 0), rtol=within, atol=within)
        assert f"y: {dtype}[2, 6]" in repr(model)


def test_the_best_device_is_the_default():
    best = next(status.name for status in rlx.devices() if status.available)
    assert rlx.load_model(LINEAR).device == best


@every_device
@pytest.mark.parametrize("name", ["perceptron_oldest_half", "images_oldest_single", "language_recent_half"])
def test_converted_networks(name, device):
    saved = np.load(GOLDENS / f"{name}.npz")
    model = rlx.load_model(GOLDENS / f"{name}.mlpackage", device=device)
    (y,) = model.predict({n: saved[n] for n in model.inputs}).values()
    atol = 1e-5 if name.endswith("single") else 2e-3 * np.abs(saved["y"]).max()
    same(y, saved["y"], rtol=1e-4 if name.endswith("single") else 2e-2, atol=atol)


@pytest.mark.parametrize("device", [*DEVICES, pytest.param("coreml", marks=pytest.mark.native)])
def test_an_input_of_several_shapes(device, monkeypatch):
    monkeypatch.setenv("RLX_COREML_ON_LINUX", "1")
    model = rlx.load_model(GOLDENS / "flexible_recent_single.mlpackage", device=device)
    saved = np.load(GOLDENS / "flexible_recent_single.npz")
    assert model.lifted == (device != "cpu") and model.inputs["x"].shape == (2, 3, 4)
    for _ in range(2):
        for size in (2, 6, 1):
            x = np.concatenate([saved["x"]] * 3)[:size]
            y = model.predict({"x": x})["y"]
            same(y, np.concatenate([saved["y"]] * 3)[:size], rtol=1e-4, atol=1e-5)
    for wrong in (np.zeros((2, 3, 5)), np.zeros(3), 1.0):
        with pytest.raises(FeedError, match="'x'"):
            model.predict({"x": wrong})


@every_device
def test_compressed_weights_and_functions(device):
    path = FIXTURES / "functions.mlpackage"
    for function, shape in ((None, (1, 8)), ("first", (2, 4))):
        model = rlx.load_model(path, function, device)
        assert model.inputs["x"].shape == shape
        x = np.ones(shape)
        graph = rlx.lift(path, function)
        same(model.predict({"x": x})["y"], rlx.evaluate(graph, {"x": x})["y"], rtol=4e-3, atol=4e-3)
    with pytest.raises(NameNotFoundError, match="third"):
        rlx.load_model(path, "third", device)


@every_device
def test_what_a_session_exported(device, tmp_path):
    """Rank 0 and bool travel as Core ML's features do."""
    g = rlx.Graph()
    x, k = g.input("x", (3, 4)), g.input("k", ())
    g.set_outputs({"total": (x @ g.param("w", (4, 2), 0.5)).sum() * k, "signs": x > 0.0})
    rlx.Session(device="numpy").compile(g).save(tmp_path / "m.mlpackage")
    model = rlx.load_model(tmp_path / "m.mlpackage", device=device)
    assert model.inputs["k"].shape == (1,) and model.outputs["signs"].dtype is rlx.i32
    x = np.arange(-6, 6).reshape(3, 4)
    results = model.predict({"x": x, "k": [2]})
    assert results["total"].shape == (1,) and results["total"].item() == x.sum() * 2 * 0.5 * 2
    assert np.array_equal(results["signs"], (x > 0).astype(np.int32))


@every_device
def test_bad_feeds_change_nothing(device):
    model = rlx.load_model(LINEAR, device=device)
    good = np.ones((2, 4))
    for feeds, error, text in (
        ({}, FeedError, "input 'x': no value was given"), ({"x": good, "z": 1}, FeedError, "feed 'z'.*no input"),
        ({"x": good[:1]}, FeedError, r"input 'x': expected shape \(2, 4\), got \(1, 4\)"),
        ({"x": good.astype(complex)}, DTypeError, "input 'x'"), ({"x": "text"}, DTypeError, "input 'x'"),
        ([good], FeedError, "expected a dict"), (None, FeedError, "expected a dict"),
    ):
        with pytest.raises(error, match=text):
            model.predict(feeds)
    same(model.predict({"x": good})["y"], good @ W + 0.5, rtol=1e-6)


@every_device
def test_results_are_the_callers_own(device):
    model = rlx.load_model(LINEAR, device=device)
    first = model.predict({"x": np.ones((2, 4))})["y"]
    kept = first.copy()
    model.predict({"x": np.zeros((2, 4))})
    assert np.array_equal(first, kept)
    first[:] = 7
    same(model.predict({"x": np.ones((2, 4))})["y"], kept)


@pytest.mark.parametrize(("path", "text"), [
    (FIXTURES / "control.mlpackage", "while_loop"), (FIXTURES / "state.mlpackage", "state 'total'"),
    (FIXTURES / "classifier.mlpackage", "'classLabel'"),
], ids=lambda value: value.stem if isinstance(value, Path) else "")
def test_what_numpy_does_not_have_is_named(path, text):
    with pytest.raises(UnsupportedError, match=text):
        rlx.load_model(path, device="numpy")


def damaged(tmp_path: Path, change) -> Path:
    """A copy of a package whose model file was changed."""
    package = tmp_path / "damaged.mlpackage"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(LINEAR, package)
    file = package / "Data/com.apple.CoreML/model.mlmodel"
    file.write_bytes(change(file.read_bytes()))
    return package


@every_device
def test_files_that_are_no_programs(device, tmp_path):
    foreign = [FIXTURES / "gone.mlpackage", FIXTURES / "README.md", FIXTURES, tmp_path]
    size = len(read_package(LINEAR).data)
    cut = [damaged(tmp_path, lambda data, n=n: data[:n]) for n in (0,)]
    for path in foreign + cut:
        with pytest.raises(PackageError) as caught:
            rlx.load_model(path, device=device)
        assert str(path) in str(caught.value) and f"{path}: {path}:" not in str(caught.value)
    for count in range(1, size, max(1, size // 40)):
        with pytest.raises((PackageError, UnsupportedError)):
            rlx.load_model(damaged(tmp_path, lambda data, n=count: data[:n]), device=device)


@every_device
def test_a_neural_network_is_refused_with_the_reason(device):
    with pytest.raises((PackageError, UnsupportedError), match=r"(?i)neural ?network"):
        rlx.load_model(FIXTURES / "neural.mlmodel", device=device)


@every_device
def test_a_weight_file_that_is_cut(device, tmp_path):
    package = damaged(tmp_path, lambda data: data)
    weights = next(package.rglob("weight.bin"))
    weights.write_bytes(weights.read_bytes()[:-8])
    with pytest.raises(PackageError):
        rlx.load_model(package, device=device)
    weights.unlink()
    with pytest.raises(PackageError):
        rlx.load_model(package, device=device)


@pytest.mark.parametrize("field", [500, 403, 200, 3000])
@every_device
def test_models_of_other_kinds_are_refused_with_a_remedy(device, field, tmp_path):
    """Neural networks (a classifier too), pipelines, serialised models: a specification with that field alone."""
    file = tmp_path / "other.mlmodel"
    key = field << 3 | 2
    file.write_bytes(bytes([8, 8, key & 0x7F | 0x80, key >> 7 & 0x7F | (0x80 if key >> 14 else 0)])
                     + (bytes([key >> 14]) if key >> 14 else b"") + bytes([0]))
    with pytest.raises(UnsupportedError, match=r"other\.mlmodel|kind") as caught:
        rlx.load_model(file, device=device)
    assert "convert" in str(caught.value)
    with pytest.raises(UnsupportedError, match=r'other\.mlmodel: model: only ML Programs.*convert_to="mlprogram"'):
        rlx.lift(file)


def test_devices_that_are_not_there():
    with pytest.raises(DeviceError, match=r"'tpu'.*coreml, cpu, numpy"):
        rlx.load_model(LINEAR, device="tpu")


@pytest.mark.skipif("cpu" not in DEVICES, reason="no native library")
def test_a_time_limit_ends_an_endless_loop(tmp_path):
    """x is doubled as long as it is not larger than itself."""
    x, flag = Array("fp32", (3,)), Array("bool", ())
    condition = Block([("v", x)], [
        Operation("reduce_sum", {"x": ["v"]}, [("s", Array("fp32", ()))]),
        Operation("less_equal", {"x": ["s"], "y": ["s"]}, [("c", flag)]),
    ], ["c"])
    body = Block([("v", x)], [Operation("add", {"x": ["v"], "y": ["v"]}, [("w", x)])], ["w"])
    loop = Operation("while_loop", {"loop_vars": ["x"]}, [("y", x)], {}, [condition, body])
    function = Function([("x", x)], "CoreML7", {"CoreML7": Block([], [loop], ["y"])})
    described = Interface([Feature("x", "array", "fp32", (3,))], [Feature("y", "array", "fp32", (3,))])
    write_package(tmp_path / "endless.mlpackage", Model(OPSETS["CoreML7"], {"main": function}, {"main": described}))
    model = rlx.load_model(tmp_path / "endless.mlpackage", device="cpu", time_limit=0.05)
    for _ in range(2):
        start = time.monotonic()
        with pytest.raises(TimeLimitError, match=r"while_loop.*0\.05 seconds"):
            model.predict({"x": np.zeros(3)})
        assert time.monotonic() - start < 1
    with pytest.raises(ConfigError, match="time_limit"):
        rlx.load_model(LINEAR, device="cpu", time_limit=-1)
