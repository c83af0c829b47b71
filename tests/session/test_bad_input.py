"""Bad input: a typed error that names the thing, and the session goes on with nothing changed."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import DTypeError, FeedError
from tests.training_cases import DEVICES, LINREG_BATCH, UPDATES, linreg_session, mlp, mlp_data, snapshot

X, T = LINREG_BATCH["x"], LINREG_BATCH["target"]

# (batch, error, what its text names)
BATCHES = {
    "missing": ({"x": X}, FeedError, "input 'target': no value was given"),
    "unknown": ({"x": X, "target": T, "y": T}, FeedError, "feed 'y': there is no input of that name"),
    "param as feed": ({"x": X, "target": T, "W": T}, FeedError, "feed 'W'"),
    "wrong shape": ({"x": X[:, :2], "target": T}, FeedError, r"input 'x': expected shape \(8, 3\), got \(8, 2\)"),
    "wrong rank": ({"x": X[0], "target": T}, FeedError, r"input 'x': expected shape \(8, 3\), got \(3,\)"),
    "empty": ({"x": X[:0], "target": T[:0]}, FeedError, "input 'x'.*the batch is empty"),
    "other size": ({"x": X[:4], "target": T[:4]}, FeedError, "input 'x'.*named leading dimension"),
    "complex": ({"x": X.astype(complex), "target": T}, DTypeError, "input 'x'.*complex"),
    "text": ({"x": np.full((8, 3), "a"), "target": T}, DTypeError, "input 'x'"),
    "objects": ({"x": np.full((8, 3), None), "target": T}, DTypeError, "input 'x'"),
    "ragged": ({"x": [[1.0], [2.0, 3.0]], "target": T}, DTypeError, "input 'x'"),
    "no mapping": ([X, T], FeedError, "expected a dict of arrays by input name, got list"),
    "none": (None, FeedError, "expected a dict"),
    "value none": ({"x": None, "target": T}, DTypeError, "input 'x'"),
    "name no text": ({"x": X, "target": T, 3: T}, FeedError, "feed 3"),
}


def calls(ts):
    return {"step": ts.step, "accumulate": ts.accumulate, "gradients": ts.gradients, "evaluate": ts.evaluate}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
@pytest.mark.parametrize("call", ["step", "accumulate", "gradients", "evaluate"])
def test_bad_batches(call, fused, device):
    ts = linreg_session(device, fused, lr=0.1, optimizer=rlx.Adam())
    ts.step(LINREG_BATCH)
    before = snapshot(ts)
    for batch, error, text in BATCHES.values():
        with pytest.raises(error, match=text):
            calls(ts)[call](batch)
    assert snapshot(ts) == before
    ts.step(LINREG_BATCH)
    assert ts.steps == 2


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
@pytest.mark.parametrize("bad", [-1, 3, 2**31 - 1])
def test_a_label_outside_its_range(bad, fused, device):
    for graph in (mlp(16), mlp("B")):
        ts = rlx.TrainingSession(graph, device=device, config=rlx.TrainConfig(optimizer=rlx.Adam()))
        ts = ts.with_fused_optimizer() if fused else ts
        batch = mlp_data(16)
        ts.step(batch)
        before = snapshot(ts)
        wrong = {**batch, "y": np.array([*batch["y"][:5], bad, *batch["y"][6:]])}
        for call in calls(ts).values():
            with pytest.raises(FeedError, match=rf"'y'.*{bad}"):
                call(wrong)
        assert snapshot(ts) == before
        ts.step(batch)
        assert ts.steps == 2


LOSSES = {"cross_entropy": rlx.ops.cross_entropy, "nll_loss": rlx.ops.nll_loss}


def ignoring(loss, ignored):
    g = rlx.Graph()
    scores = g.input("x", (4, 2)) @ g.param("w", (2, 3), np.ones((2, 3), np.float32))
    g.set_outputs({"loss": LOSSES[loss](scores, g.input("y", (4,), rlx.i32), ignore_index=ignored)})
    return g


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("ignored", [-100, -1, 1, 7])
def test_a_label_outside_its_range_that_is_not_the_ignored_one(ignored, loss, fused, device):
    ts = rlx.TrainingSession(ignoring(loss, ignored), device=device)
    ts = ts.with_fused_optimizer() if fused else ts
    good = {"x": np.ones((4, 2), np.float32), "y": np.int32([0, ignored, 2, ignored])}
    ts.step(good)
    before = snapshot(ts)
    for bad in (-2, 3, 2**31 - 1):
        for call in calls(ts).values():
            with pytest.raises(FeedError, match=rf"'y': expected indices from 0 to 2.*{bad} at \(2,\)"):
                call({**good, "y": np.int32([0, ignored, bad, 1])})
    assert snapshot(ts) == before
    ts.step(good)
    assert ts.steps == 2


@pytest.mark.parametrize("device", DEVICES)
def test_labels_are_checked_in_a_graph_of_gradients_alone(device):
    g = rlx.Graph()
    g.set_outputs({"loss": rlx.ops.cross_entropy(g.input("x", (2, 3)), g.input("y", (2,), rlx.i32))})
    for graph in (rlx.grad(g, ["x"]), rlx.simplify(rlx.grad(g, ["x"]))):
        compiled = rlx.Session(device=device).compile(graph)
        feeds = {"x": np.zeros((2, 3), np.float32), "y": np.int32([0, 2]), "d_output": np.float32(1)}
        feeds = {name: feeds[name] for name in graph.inputs}
        third = 1 / 3
        expected = np.array([[third - 1, third, third], [third, third, third - 1]]) / 2
        np.testing.assert_allclose(compiled.run(feeds)["grad_x"], expected, rtol=1e-5)
        with pytest.raises(FeedError, match=r"'y'.*3"):
            compiled.run({**feeds, "y": np.int32([0, 3])})


@pytest.mark.parametrize("device", DEVICES)
def test_an_index_that_two_uses_replace_apart(device):
    """Each use admits its own value besides its range; the input takes what both admit."""
    g = rlx.Graph()
    at = g.input("at", (2,), rlx.i32)
    table, (low, high) = g.input("x", (6,)), (rlx.ops.where(at != k, at, 1) for k in (-1, 5))
    g.set_outputs({"a": rlx.ops.gather(table, low), "b": rlx.ops.gather(table[:4], high)})
    compiled = rlx.Session(device=device).compile(g)
    x = np.arange(6, dtype=np.float32)
    out = compiled.run({"x": x, "at": np.int32([5, 3])})
    np.testing.assert_array_equal([out["a"], out["b"]], [[5, 3], [1, 3]])
    for bad in (-1, 4, 6):
        with pytest.raises(FeedError, match=rf"'at': expected indices from 0 to 3 or 5, got {bad} at \(1,\)"):
            compiled.run({"x": x, "at": np.int32([5, bad])})


def test_labels_that_are_no_integers():
    ts = rlx.TrainingSession(mlp(16), device="numpy")
    batch = mlp_data(16)
    ts.step({**batch, "y": batch["y"].astype(np.uint8)})
    ts.step({**batch, "y": batch["y"].tolist()})
    with pytest.raises(DTypeError, match="input 'y': expected i32, got float32"):
        ts.step({**batch, "y": batch["y"].astype(np.float32)})
    with pytest.raises(DTypeError, match=r"input 'y'.*fit i32"):
        ts.step({**batch, "y": batch["y"].astype(np.int64) + 2**40})
    assert ts.steps == 2


def test_named_dimensions_that_disagree_or_lack():
    ts = rlx.TrainingSession(mlp("B"), device="numpy")
    batch = mlp_data(6)
    for wrong, text in (({**batch, "y": batch["y"][:5]}, "disagrees"), ({"x": batch["x"]}, "input 'y'"),
                        ({**batch, "x": np.float32(1)}, "input 'x'"), ({n: v[:0] for n, v in batch.items()}, "empty")):
        with pytest.raises(FeedError, match=text):
            ts.step(wrong)
    for wrong in ({}, {"y": batch["y"]}, {"x": np.float32(1)}, {"x": batch["x"][:, :2]}, {"z": batch["x"]}):
        with pytest.raises(FeedError):
            ts.predict(wrong)
    ts.step(batch)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("values", [
    {"W": np.ones(3)}, {"W": np.ones((3, 1)), "V": 1.0}, {"W": "a"}, {"W": np.full((3, 1), 1j)}, {"W": None},
], ids=str)
def test_params_are_set_all_or_none(values, device):
    ts = linreg_session(device)
    before = snapshot(ts)
    with pytest.raises(rlx.RlxError, match=r"'[VW]'"):
        ts.set_params(values)
    assert snapshot(ts) == before


def test_arrays_of_any_layout_are_taken():
    """Not contiguous, reversed, big-endian, f64, f16, lists, read-only."""
    base = linreg_session("numpy", lr=0.1)
    base.step(LINREG_BATCH)
    wide = np.repeat(X, 2, axis=1)[::-1]
    for x in (np.asfortranarray(X), wide[::-1, ::2], X.astype(">f4"), X.astype(np.float64), X.tolist(), memoryview(X)):
        ts = linreg_session("numpy", lr=0.1)
        ts.step({"x": x, "target": T})
        np.testing.assert_allclose(ts.param("W"), base.param("W"), rtol=1e-5)


class Broken(rlx.Optimizer):
    """Fails at the second param: the first must not have moved."""

    kind = "raise"

    def update(self, xp, grad, state, param, **scalars):
        if param.shape == (2,):
            if self.kind == "raise":
                raise RuntimeError("no")
            if self.kind == "shape":
                return param.reshape((1, 2)), {}
            if self.kind == "slots":
                return param, {"extra": param}
            return xp.sum(param), {}
        return param - scalars["lr"] * grad, {}


@pytest.mark.parametrize("kind", ["raise", "shape", "slots", "rank"])
def test_a_rule_that_fails_in_the_middle_changes_nothing(kind, monkeypatch):
    monkeypatch.setattr(Broken, "kind", kind)
    g = rlx.Graph()
    a, b = g.param("a", (3,), init=1.0), g.param("b", (2,), init=1.0)
    g.set_outputs({"loss": a.sum() + b.sum()})
    ts = rlx.TrainingSession(g, config=rlx.TrainConfig(optimizer=Broken()), device="numpy")
    before = snapshot(ts)
    with pytest.raises(RuntimeError if kind == "raise" else rlx.errors.ConfigError):
        ts.step({})
    ts.accumulate({})
    with pytest.raises(RuntimeError if kind == "raise" else rlx.errors.ConfigError):
        ts.step_accumulated()
    ts.discard_accumulated()
    assert snapshot(ts) == before
    assert not ts.with_fused_optimizer().fused_active
    assert ts.fused_reason.startswith("Broken cannot be part of the program")


@pytest.mark.parametrize("settings", [
    {"optimizer": rlx.SGD}, {"optimizer": "sgd"}, {"clip": 1.0}, {"seed": -1}, {"seed": "0"},
    {"lr": -0.1}, {"lr": None},
], ids=str)
def test_settings_are_checked_when_they_are_made(settings):
    with pytest.raises(rlx.errors.ConfigError, match=next(iter(settings))):
        rlx.TrainConfig(**settings)


@pytest.mark.parametrize("make", [
    lambda: rlx.SGD(momentum=-0.1), lambda: rlx.SGD(nesterov=True), lambda: rlx.SGD(weight_decay=np.nan),
    lambda: rlx.SGD(momentum=0.9, dampening=0.1, nesterov=True), lambda: rlx.Adam(beta1=1.0),
    lambda: rlx.Adam(beta2=-0.1), lambda: rlx.Adam(eps=-1e-8), lambda: rlx.AdamW(weight_decay=np.inf),
    lambda: rlx.Adam(beta1="0.9"), lambda: rlx.Adam(beta1=None),
])
def test_hyperparameters_are_checked_when_they_are_made(make):
    with pytest.raises(rlx.errors.ConfigError, match="expected"):
        make()
