"""What is kept between processes gives the same bits as what is made, and is never an error."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace

import pytest

import rlx_swift as rlx
from rlx_swift.session import cache
from rlx_swift.session.artifact import packed, unpacked
from rlx_swift.session.snapshot import capture
from tests.training_cases import mlp, mlp_data

pytestmark = pytest.mark.native


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RLX_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture
def made(monkeypatch):
    """The graphs that were lowered."""
    from rlx_swift.session import native_device

    graphs, real = [], native_device.artifact
    monkeypatch.setattr(native_device, "artifact", lambda graph, **how: graphs.append(graph) or real(graph, **how))
    return graphs


def begun(graph=None, policy="always_f32", trainable=None, **config):
    config = {"optimizer": rlx.Adam(), **config}
    ts = rlx.TrainingSession(graph or mlp("B"), trainable, config=rlx.TrainConfig(**config), device="cpu")
    return ts.with_fused_optimizer().with_precision_policy(policy)


def trained(**settings):
    """A run of a few steps, with a window, and what it is."""
    ts = begun(**settings)
    for rows in (8, 5):
        ts.step(mlp_data(rows))
    ts.accumulate(mlp_data(8))
    ts.step_accumulated()
    arrays, data = capture(ts)
    return {name: value.tobytes() for name, value in arrays.items()}, data


def test_the_second_run_makes_no_training_program(folder, made):
    first = trained()
    entries = sorted(folder.iterdir())
    assert len(entries) == 3  # two sizes of a step, one of a window's
    count = len(made)
    assert trained() == first
    assert len(made) == count + 1  # what applies a window, of which nothing is kept
    assert sorted(folder.iterdir()) == entries


def test_an_artifact_survives_packing(folder, made):
    trained()
    for entry in folder.iterdir():
        artifact = unpacked(entry.read_bytes()[36:])
        assert unpacked(packed(artifact)) == artifact


def tripled():
    def model(x, y, w1, b1, w2, b2):
        logits = rlx.ops.tanh(x @ w1 + b1) @ w2 + b2
        return {"loss": rlx.ops.softmax_cross_entropy_with_logits(logits, y).mean() * 3.0}

    shapes = {"w1": (4, 8), "b1": (8,), "w2": (8, 3), "b2": (3,)}
    params = {name: rlx.param_spec(shape, init=0.1) for name, shape in shapes.items()}
    return rlx.trace(model, x=rlx.spec(("B", 4)), y=rlx.spec(("B",), rlx.i32), **params)


def test_what_differs_has_another_key(folder):
    groups = rlx.ParamGroups([rlx.Group("w*", rlx.Adam()), rlx.Group("*", rlx.Adam())])
    changes = [
        {}, {"optimizer": rlx.Adam(beta1=0.8)}, {"optimizer": rlx.AdamW(weight_decay=0.0)}, {"ema": 0.5}, {"ema": 0.6},
        {"clip": rlx.optim.clip_by_norm(0.1)}, {"clip": rlx.optim.clip_by_value(0.1)}, {"loss_scale": 8.0},
        {"policy": "always_f16"}, {"policy": "auto_mixed"}, {"trainable": ["w1", "b1"]}, {"graph": tripled()},
        {"optimizer": groups},
    ]
    sessions = [begun(**change) for change in changes]
    keys = [ts._trainer._families[kind]._source(ts._batches.check(mlp_data(rows))[0])
            for ts in sessions for kind in ("train", "accumulate", "gradient") for rows in (8, 5)]
    assert len(set(keys)) == 6 * len(changes) and all(keys)
    again = begun()
    assert again._trainer._families["train"]._source(again._batches.check(mlp_data(8))[0]) == keys[0]


@dataclass(frozen=True)
class Mine(rlx.Optimizer):
    def update(self, xp, grad, state, param, lr):
        return param - lr * grad, {}


def test_what_no_hash_tells_is_not_kept(folder):
    trained(optimizer=Mine())
    schedule = rlx.Adafactor(lr=lambda n: 0.1)
    trained(optimizer=schedule)
    assert not folder.exists()


def test_what_is_replaced_is_not_kept(folder, monkeypatch):
    """An optimizer's method, an op under the name of another, and files that are not what was imported."""
    with monkeypatch.context() as patch:
        patch.setattr(rlx.Adam, "update", lambda self, xp, grad, state, param, **scalars: (param, state))
        trained()
    g = rlx.Graph("other")
    relu = replace(rlx.ir.op.find_op("relu"), listed=False)
    (h,) = g.apply(relu, (g.input("x", (2, 4)) @ g.param("w", (4, 3), 0.1),), rlx.ir.op.NoAttrs())
    g.set_outputs({"loss": h.sum()})
    begun(g).step({"x": mlp_data(2)["x"]})
    monkeypatch.setattr(cache, "_IMPORTED", 0)
    cache._fingerprint.cache_clear()
    trained()
    cache._fingerprint.cache_clear()
    assert not folder.exists()


@pytest.mark.parametrize("damage", [
    lambda b: b"", lambda b: b[:-9] + bytes([b[-9] ^ 1]) + b[-8:], lambda b: b"rlx0" + b[4:],
    lambda b: b[:4] + hashlib.sha256(bytes(8) + b"x").digest() + bytes(8) + b"x",
], ids=["empty", "changed", "old", "short"])
def test_a_damaged_entry_is_no_entry(damage, folder):
    expected = trained()
    good = {entry: entry.read_bytes() for entry in folder.iterdir()}
    for entry, data in good.items():
        entry.write_bytes(damage(data))
    assert trained() == expected
    assert {entry: entry.read_bytes() for entry in folder.iterdir()} == good


def test_without_a_folder_everything_is_made(tmp_path, monkeypatch, made):
    monkeypatch.setenv("RLX_CACHE", "")
    expected = trained()
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("RLX_CACHE", str(tmp_path / "file"))
    assert trained() == expected
    assert len(made) == 8


def test_whoever_has_no_home_has_no_cache(monkeypatch, made):
    monkeypatch.delenv("RLX_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does for a user whom nobody knows
    trained()
    assert len(made) == 4 and cache._folder() is None


def test_a_folder_that_is_only_to_be_read_is_read(folder, monkeypatch, made):
    def refuse(path):
        raise PermissionError(path)

    expected = trained()
    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(cache, "_write", lambda path, data: refuse(path))
    made.clear()
    assert trained() == expected and len(made) == 1
    assert folder.stat().st_mode & 0o777 == 0o700


def test_the_oldest_go_first(folder, monkeypatch):
    trained()
    sizes = [entry.stat().st_size for entry in folder.iterdir()]
    monkeypatch.setattr(cache, "LARGEST", sum(sizes))
    foreign = folder / "thesis.txt"
    foreign.write_bytes(bytes(10**6))
    os.utime(foreign, (0, 0))
    trained(ema=0.5)
    foreign.unlink()  # what the cache did not write it does not take away
    assert len(list(folder.iterdir())) < 6
    assert sum(entry.stat().st_size for entry in folder.iterdir()) <= sum(sizes)
