"""Checkpoints: a run goes on bit for bit, whole files only, foreign graphs refused with the difference named."""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import CheckpointError, ConfigError
from rlx_swift.optim.base import registry
from rlx_swift.session import safetensors
from rlx_swift.session.device import DeviceStatus
from rlx_swift.session.snapshot import capture
from tests.training_cases import DEVICES, LINREG_BATCH, UPDATES, linreg, linreg_session, mlp, mlp_data

CONFIGS = {
    "adam": {"optimizer": rlx.Adam(), "lr": 0.01},
    "groups": {
        "optimizer": rlx.ParamGroups(
            [rlx.Group(lambda p: p.ndim == 1, rlx.SGD(momentum=0.9)), rlx.Group("*", rlx.Muon())]
        ),
        "lr": rlx.optim.schedules.Cosine(0.1, 50, 5), "clip": rlx.optim.clip_by_global_norm(1.0), "ema": 0.9,
    },
    "curvature": {"optimizer": rlx.SophiaH(every=2), "lr": 0.01, "seed": 7},
    "mars": {"optimizer": rlx.MARS(exact=True), "lr": 0.01},
    "scaled": {"optimizer": rlx.Adafactor(), "loss_scale": "dynamic"},
    "soap": {"optimizer": rlx.SOAP(every=2), "lr": rlx.optim.schedules.Plateau(0.01)},
}
CONFIGS |= {
    kind.__name__: {"optimizer": kind(), "lr": 0.01} for name, kind in registry().items()
    if name.startswith("rlx_swift.") and kind not in (rlx.Adam, rlx.SophiaH, rlx.Adafactor, rlx.SOAP)
}


def same(a: rlx.TrainingSession, b: rlx.TrainingSession) -> None:
    """Every value on the device and every counter."""
    (arrays, data), (others, more) = capture(a), capture(b)
    assert data == more
    assert {n: v.tobytes() for n, v in arrays.items()} == {n: v.tobytes() for n, v in others.items()}
    assert a.lr == b.lr


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
@pytest.mark.parametrize("name", CONFIGS)
def test_a_resumed_run_is_the_same_run(name, fused, device, tmp_path):
    """Saved after a few steps, in the middle of a window, and after it."""
    ts = rlx.TrainingSession(mlp("B"), device=device, config=rlx.TrainConfig(**CONFIGS[name]))
    ts = ts.with_fused_optimizer() if fused else ts
    for n in range(3):
        ts.step(mlp_data(12, n))
    ts.accumulate(mlp_data(12, 3), weight=2.0)
    ts.save(tmp_path / "run.ckpt")
    other = rlx.TrainingSession.load(tmp_path / "run.ckpt", graph=mlp("B"), device=device)
    same(ts, other)
    assert (other.fused_active, other.trainable, other.steps) == (ts.fused_active, ts.trainable, 3)
    for run in (ts, other):
        run.accumulate(mlp_data(5, 4))
        run.step_accumulated()
        run.step(mlp_data(12, 5))
    same(ts, other)
    other.save(tmp_path / "again.ckpt")
    ts.save(tmp_path / "run.ckpt")
    assert (tmp_path / "again.ckpt").read_bytes() == (tmp_path / "run.ckpt").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["again.ckpt", "run.ckpt"]


def test_the_format(tmp_path):
    """Keys, metadata and bytes as any reader of safetensors sees them."""
    ts = linreg_session("numpy", optimizer=rlx.Adam(), ema=0.5, lr=0.1)
    ts.step(LINREG_BATCH)
    ts.accumulate(LINREG_BATCH)
    ts.save(tmp_path / "run.ckpt")
    raw = (tmp_path / "run.ckpt").read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    assert set(header) == {"__metadata__", "param/W", "state/W/m", "state/W/v", "accum/W", "ema/W"}
    entry = header["param/W"]
    start, end = (8 + length + offset for offset in entry["data_offsets"])
    assert entry["dtype"] == "F32" and entry["shape"] == [3, 1]
    np.testing.assert_array_equal(np.frombuffer(raw[start:end], "<f4").reshape(3, 1), ts.param("W"))
    data = json.loads(header["__metadata__"]["rlx"])
    assert data["format"] == 1 and data["counters"]["steps"] == 1
    assert data["schedule"] == {"name": "Constant", "lr": 0.1}
    reader = pytest.importorskip("safetensors.numpy")
    np.testing.assert_array_equal(reader.load(raw)["state/W/m"], ts.state("W")["m"])


def test_files_of_other_writers_are_read(tmp_path):
    writer = pytest.importorskip("safetensors.numpy")
    arrays = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array(3, np.int64), "c": np.zeros((0, 2), bool)
    }
    writer.save_file(arrays, tmp_path / "x", metadata={"k": "v"})
    read, metadata = safetensors.read(tmp_path / "x")
    assert metadata == {"k": "v"}
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == array.dtype
    safetensors.write(tmp_path / "y", arrays, {"k": "v"})
    loaded = writer.load_file(tmp_path / "y")
    assert {name: a.tolist() for name, a in loaded.items()} == {name: a.tolist() for name, a in arrays.items()}


def changed_graphs():
    def build(name, change):
        g = rlx.Graph()
        x = g.input("x", (8, 3))
        w = g.param("W" if change != "renamed" else "V", (3, 1) if change != "shape" else (3, 2))
        t = g.input("target", (8, 1))
        z = x @ w if change != "op" else rlx.ops.relu(x @ w)
        out = {"loss": ((z - t) ** 2).sum(), "prediction": z}
        if change == "extra":
            out["loss"] = out["loss"] + g.param("b", (), init=0.0)
        if change == "output":
            del out["prediction"]
        if change == "constant":
            out["loss"] = ((z - t) ** 3).sum()
        g.set_outputs(out)
        return g

    return {change: build("linreg", change) for change in ("renamed", "shape", "op", "extra", "output", "constant")}


@pytest.mark.parametrize(("change", "text"), [
    ("renamed", "param 'W' is missing"), ("shape", r"param 'W' was f32\[3, 1\] and is f32\[3, 2\]"),
    ("op", "relu"), ("extra", "param 'b' is new"), ("output", "output 'prediction' is missing"), ("constant", "3.0"),
])
def test_a_foreign_graph_is_refused(change, text, tmp_path):
    linreg_session("numpy").save(tmp_path / "run.ckpt")
    assert rlx.TrainingSession.load(tmp_path / "run.ckpt", graph=linreg(), device="numpy").steps == 0
    with pytest.raises(CheckpointError, match=f"it is of another graph: .*{text}"):
        rlx.TrainingSession.load(tmp_path / "run.ckpt", graph=changed_graphs()[change], device="numpy")


def test_what_a_file_cannot_hold_must_be_given(tmp_path):
    path = tmp_path / "run.ckpt"
    rlx.TrainingSession(mlp("B"), device="numpy").save(path)
    with pytest.raises(ConfigError, match=r"named dimension.*give graph="):
        rlx.TrainingSession.load(path, device="numpy")
    linreg_session("numpy", lr=lambda n: 0.1).save(path)
    with pytest.raises(ConfigError, match="give schedule="):
        rlx.TrainingSession.load(path, device="numpy")
    assert rlx.TrainingSession.load(path, schedule=lambda n: 0.2, device="numpy").lr == 0.2


@pytest.mark.parametrize("device", DEVICES)
def test_a_run_goes_on_where_it_was(device, tmp_path):
    linreg_session(device).save(tmp_path / "run.ckpt")
    assert rlx.TrainingSession.load(tmp_path / "run.ckpt").device == device


def test_a_run_of_an_absent_device_goes_on_at_the_best(tmp_path, monkeypatch):
    linreg_session("numpy").save(tmp_path / "run.ckpt")
    here = [DeviceStatus(d.name, d.available and d.name != "numpy", d.reason) for d in rlx.devices()]
    monkeypatch.setattr("rlx_swift.session.checkpoint.devices", lambda: here)
    best = next(d.name for d in rlx.devices() if d.available)
    assert rlx.TrainingSession.load(tmp_path / "run.ckpt").device == best


class Own(rlx.SGD):
    """An optimizer of a user."""


class OwnClip(type(rlx.optim.clip_by_value(1.0))):
    """A clip of a user, from one of ours."""


def test_an_optimizer_of_the_users_own(tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"
    ts = linreg_session("numpy", optimizer=Own(momentum=0.5), lr=0.1, clip=OwnClip(2.0))
    ts.step(LINREG_BATCH)
    ts.save(path)
    other = rlx.TrainingSession.load(path, device="numpy")
    assert (other.config.optimizer, other.config.clip) == (Own(momentum=0.5), OwnClip(2.0))
    assert isinstance(other.config.clip, OwnClip)
    same(ts, other)
    from rlx_swift.optim import base

    monkeypatch.setattr(base, "_REGISTRY", {k: v for k, v in base._REGISTRY.items() if v is not Own})
    with pytest.raises(ConfigError, match=r"Own.*it is not defined"):
        rlx.TrainingSession.load(path, device="numpy")


@dataclass(frozen=True)
class Settings(rlx.Optimizer):
    """A user's optimizer with every kind of field that a file can hold."""

    table: dict = field(default_factory=lambda: {"a": 1.0, 2: (3, [4.0, {}])})
    cap: float = math.inf
    nothing: float = math.nan
    lowest: float = -math.inf
    inner: rlx.Optimizer = field(default_factory=lambda: rlx.Adafactor(lr=rlx.optim.schedules.Step(0.5, 2)))
    power: float = 2.0
    square: float = field(init=False, default=0.0)

    def __post_init__(self):
        object.__setattr__(self, "square", self.power**2)

    def update(self, xp, grad, state, param, lr):
        return param - lr * self.square * self.table["a"] * xp.minimum(grad, self.cap), {}


def test_every_kind_of_field_comes_back(tmp_path):
    optimizer = Settings({"a": 0.5, 1: (2, [3, {}]), "class": "none"}, power=3.0)
    ts = linreg_session("numpy", optimizer=optimizer, lr=0.001)
    ts.step(LINREG_BATCH)
    ts.save(tmp_path / "run.ckpt")
    other = rlx.TrainingSession.load(tmp_path / "run.ckpt", device="numpy")
    loaded = other.config.optimizer
    assert loaded.table == {"a": 0.5, 1: (2, [3, {}]), "class": "none"} and type(loaded.table) is dict
    assert (loaded.cap, loaded.lowest, loaded.power, loaded.square) == (math.inf, -math.inf, 3.0, 9.0)
    assert math.isnan(loaded.nothing) and loaded.inner == optimizer.inner
    for run in (ts, other):
        run.step(LINREG_BATCH)
    same(ts, other)


class Handmade(rlx.Optimizer):
    """No dataclass of its own: what it is made from is in no field."""

    def __init__(self, k=2.0):
        object.__setattr__(self, "k", k)

    def update(self, xp, grad, state, param, lr):
        return param - lr * self.k * grad, {}


class Demanding(Handmade):
    def __init__(self, k):
        super().__init__(k)


@dataclass(frozen=True)
class Doubling(rlx.SGD):
    k: object = 1.0

    def __post_init__(self):
        object.__setattr__(self, "k", self.k * 2)


@pytest.mark.parametrize(("optimizer", "text"), [
    (rlx.Adafactor(lr=lambda n: 0.1), "Adafactor lr: a file cannot hold the function .*schedules can be saved"),
    (rlx.ParamGroups([rlx.Group("*", rlx.Muon(fallback=rlx.Adafactor(lr=abs)))]), "Adafactor lr: .* function 'abs'"),
    (Handmade(5.0), "Handmade k: it is 5.0 and would be loaded as 2.0; make it a frozen dataclass"),
    (Demanding(5.0), "optimizer: a file cannot hold .*'k'.*make it a frozen dataclass"),
    (Doubling(), "Doubling k: it is 2.0 and would be loaded as 4.0"),
    (Settings({"a": {1, 2}}), r"Settings table: a file cannot hold \{1, 2\}"),
    (Settings({"a": np.ones(2)}), "Settings table: a file cannot hold array"),
], ids=["function", "nested", "handmade", "demanding", "doubling", "set", "array"])
def test_what_would_not_come_back_is_not_saved(optimizer, text, tmp_path):
    ts = linreg_session("numpy", optimizer=optimizer, lr=0.1)
    with pytest.raises(ConfigError, match=text):
        ts.save(tmp_path / "run.ckpt")
    assert os.listdir(tmp_path) == []


def two_params(first, second):
    g = rlx.Graph("two")
    a, b = (g.param(name, (2,), init=1.0) for name in (first, second))
    g.set_outputs({"loss": (a * a).sum() + (b * b).sum()})
    return g


def test_names_are_no_patterns_in_a_file(tmp_path):
    path = tmp_path / "run.ckpt"
    for names, chosen in ((("a*", "ab"), "a[*]"), (("l[0].w", "l0.w"), "l[[]0].w"), (("a?", "a!"), "a[?]")):
        ts = rlx.TrainingSession(two_params(*names), trainable=[chosen], device="numpy")
        ts.save(path)
        assert ts.trainable == rlx.TrainingSession.load(path, device="numpy").trainable == names[:1]


def test_names_that_a_function_selects_are_no_patterns_in_a_file(tmp_path):
    first = rlx.Group(lambda p: p.name == "l[0].w", rlx.SGD(), lr_scale=0.5)
    groups = rlx.ParamGroups([first, rlx.Group("*", rlx.SGD())])
    config = rlx.TrainConfig(lr=0.1, optimizer=groups)
    ts = rlx.TrainingSession(two_params("l[0].w", "l0.w"), device="numpy", config=config)
    ts.save(tmp_path / "run.ckpt")
    loaded = rlx.TrainingSession.load(tmp_path / "run.ckpt", device="numpy")
    loaded.step({})
    np.testing.assert_allclose(loaded.param("l[0].w"), 0.9, rtol=1e-6)
    np.testing.assert_allclose(loaded.param("l0.w"), 0.8, rtol=1e-6)


DAMAGE = [
    ("since", {"W": "abc"}), ("since", {"W": "0"}), ("since", {"W": -1}), ("since", {"W": 2}), ("since", []),
    ("since", {"W": 1e400}), ("policy", {"name": "x", "dtypes": {"a": 1}, "wide": []}), ("trainable", [3]),
    *[("counters", {name: value}) for name in ("steps", "micro_batches", "skips") for value in (None, "1", -1, 0.5)],
    ("counters", {"steps": 2**63}), ("counters", {"steps": True}),
    ("scale", {"scale": "1"}), ("scale", {"scale": 0}), ("scale", {"scale": math.inf}), ("scale", {"good": -1}),
    ("scale", {"active": None}),
    *[("window", {"weight": value}) for value in (None, "1", 0, -1.0, math.inf, math.nan)],
    ("window", {"count": -1}), ("window", {"count": "1"}), ("window", {"start": 3}), ("window", {"loss": None}),
    ("window", {"fresh": [{"every": 0, "estimator": "gnb"}]}), ("window", {"fresh": 1}),
]


@pytest.mark.parametrize(("key", "value"), DAMAGE)
def test_damaged_numbers(key, value, tmp_path):
    """They are refused when they are loaded, not at a later step."""
    path = tmp_path / "run.ckpt"
    ts = linreg_session("numpy", optimizer=rlx.Adam(), lr=0.1)
    ts.step(LINREG_BATCH)
    ts.accumulate(LINREG_BATCH)
    ts.save(path)
    arrays, metadata = safetensors.read(path)
    data = json.loads(metadata["rlx"])
    data[key] = {**data[key], **value} if key in ("counters", "scale", "window") else value
    safetensors.write(path, arrays, {"rlx": json.dumps(data)})
    with pytest.raises(CheckpointError):
        rlx.TrainingSession.load(path, device="numpy")


@pytest.mark.parametrize(("name", "value"), [("W", np.zeros((2, 1), np.float32)), ("V", np.zeros((), np.float32))])
def test_damaged_values_to_go_back_to(name, value, tmp_path):
    path = tmp_path / "run.ckpt"
    ts = linreg_session("numpy", lr=0.1)
    ts.accumulate(LINREG_BATCH)
    ts.save(path)
    arrays, metadata = safetensors.read(path)
    safetensors.write(path, {**arrays, f"window/{name}": value}, metadata)
    with pytest.raises(CheckpointError, match=f"window/{name}"):
        rlx.TrainingSession.load(path, device="numpy")


def test_a_param_that_was_frozen_comes_back_after_a_resume(tmp_path):
    def run(resume):
        ts = rlx.TrainingSession(mlp(16), device="numpy", config=rlx.TrainConfig(optimizer=rlx.Adam(), lr=0.01))
        ts.step(mlp_data(16))
        ts.set_trainable(["w1", "b1"])
        ts.step(mlp_data(16, 1))
        if resume:
            ts.save(tmp_path / "run.ckpt")
            ts = rlx.TrainingSession.load(tmp_path / "run.ckpt", device="numpy")
        ts.set_trainable(None)
        ts.step(mlp_data(16, 2))
        return ts

    same(run(False), run(True))


def test_damaged_files(tmp_path):
    """Cut at every place and changed in every byte of the header: an error of ours or the same run."""
    path = tmp_path / "run.ckpt"
    ts = linreg_session("numpy", optimizer=rlx.SGD(momentum=0.9))
    ts.save(path)
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    rng = np.random.default_rng(0)
    for size in {0, 1, 7, 8, 9, header - 1, header, len(whole) - 1, *rng.integers(0, len(whole), 40).tolist()}:
        path.write_bytes(whole[:size])
        with pytest.raises(CheckpointError):
            rlx.TrainingSession.load(path, device="numpy")
    for at in rng.integers(0, header, 150).tolist():
        damaged = bytearray(whole)
        damaged[at] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        with contextlib.suppress(rlx.RlxError):
            rlx.TrainingSession.load(path, device="numpy")
    path.write_bytes(whole + b"\0")
    with pytest.raises(CheckpointError, match="do not fill"):
        rlx.TrainingSession.load(path, device="numpy")


def header_of(entries):
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize("content", [
    header_of([]), header_of({"a": 3}), header_of({"a": {"dtype": "F9", "shape": [], "data_offsets": [0, 4]}}),
    header_of({"a": {"dtype": "F32", "shape": [10**30], "data_offsets": [0, 4]}}),
    header_of({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}) + b"\0" * 4,
    header_of({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}) + b"\0" * 4,
    header_of({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}) + b"\0" * 4,
    header_of({n: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for n in "ab"}) + b"\0" * 8,
    header_of({"__metadata__": {"rlx": 3}}), header_of({"__metadata__": {"rlx": "{"}}), header_of({}),
    header_of({"__metadata__": {"rlx": '{"format": 2}'}}), header_of({"__metadata__": {"rlx": '{"format": 1}'}}),
    header_of({"__metadata__": {"rlx": "[1]"}}), b"\xff" * 8, b"[" * 100_000,
    (99_999).to_bytes(8, "little") + b"[" * 99_999,
], ids=range(17))
def test_what_is_no_checkpoint(content, tmp_path):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(CheckpointError):
        rlx.TrainingSession.load(tmp_path / "x")


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"
    ts = linreg_session("numpy", lr=0.1)
    ts.save(path)
    old = path.read_bytes()
    ts.step(LINREG_BATCH)

    def full(handle):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        ts.save(path)
    assert path.read_bytes() == old and os.listdir(tmp_path) == ["run.ckpt"]
    with pytest.raises(FileNotFoundError):
        ts.save(tmp_path / "nowhere" / "run.ckpt")
    ts.step(LINREG_BATCH)


KILLED = """
import itertools, os, resource, signal, sys, tempfile
import numpy as np
import rlx_swift as rlx

path = sys.argv[1]

def session():
    g = rlx.Graph()
    x, w = g.input("x", (4,)), g.param("W", (100, 100), init=0.1)
    g.set_outputs({"loss": (w * x.sum()).sum()})
    ts = rlx.TrainingSession(g, device="numpy", config=rlx.TrainConfig(lr=0.1, optimizer=rlx.Adam()))
    ts.step({"x": np.ones(4)})
    return ts

def content():
    with open(path, "rb") as file:
        return file.read()

ts = session()
ts.save(path)
old = content()
ts.step({"x": np.ones(4)})
ts.save(path)
new = content()
assert old != new and len(old) == len(new)

def armed(stop):
    "From here on every step of a save counts, and the one with the number `stop` is not lived to see."
    left = [stop]

    def counted(function):
        def call(*arguments, **options):
            left[0] -= 1
            if left[0] == 0:
                os.write(1, f"{function.__name__} ".encode())
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)
        return call

    class File:
        def __init__(self, file):
            self.file, self.write, self.flush = file, counted(file.write), counted(file.flush)
            self.fileno = file.fileno
        def __enter__(self):
            return self
        def __exit__(self, *error):
            self.file.close()

    tempfile.mkstemp = counted(tempfile.mkstemp)
    for name in ("fsync", "chmod", "replace", "open", "close"):
        setattr(os, name, counted(getattr(os, name)))
    fdopen = counted(os.fdopen)
    os.fdopen = lambda *arguments: File(fdopen(*arguments))

def limited(size):
    "The kernel ends a process that writes past the limit."
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

def saved(how, number):
    "Whether a process that was prepared for its end survived a save over the old file; checks what it left."
    with open(path, "wb") as file:
        file.write(old)
    pid = os.fork()
    if not pid:
        how(number)
        ts.save(path)
        os._exit(0)
    ended = os.waitpid(pid, 0)[1]
    assert ended in (0, signal.SIGKILL, signal.SIGXFSZ), ended
    left = content()
    assert left in (old, new)
    assert rlx.TrainingSession.load(path, device="numpy").steps == (1 if left == old else 2)
    assert (left == new) or ended
    ts.save(path)
    assert content() == new
    return ended == 0

for number in itertools.count(1):
    if saved(armed, number):
        break
for size in (0, 1, 7, 8, 100, 4096, len(new) // 2, len(new) - 1):
    assert not saved(limited, size)
    os.write(1, b"limit ")
assert saved(limited, len(new))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_point_of_a_save(tmp_path):
    """A saving process is killed before each call that it makes and in the middle of writing: the file stays whole."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", KILLED, str(tmp_path / "run.ckpt")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "mkstemp", "open", "fdopen", *["write"] * 4, "flush", "fsync", "chmod", "replace", "open", "fsync", "close",
        *["limit"] * 8,
    ]
