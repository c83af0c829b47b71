"""Bundles: what they hold and refuse, reproducible bytes, and Swift going on with a run bit for bit."""

from __future__ import annotations

import hashlib
import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.errors import ConfigError, PackageError, SessionError, ShapeError
from rlx_swift.optim import formula
from rlx_swift.session.snapshot import capture
from tests.session.bundle_driver import SwiftError, SwiftSession, driver
from tests.training_cases import linreg_session, mlp, mlp_data

S = rlx.optim.schedules
ROWS = 12


def dropout_net():
    """Dropout, batch norm, an embedding and a flag: noise, buffers, index ranges and bools at the boundary."""

    def model(x, ids, flag, y, table, w1, b1, w2):
        g = x.graph
        mean = g.buffer("running", (6,), np.zeros(6, np.float32))
        h = ops.tanh(x @ w1 + b1 + ops.gather(table, ids, axis=0))
        g.assign(mean, mean * 0.9 + h.mean(axis=0) * 0.1)
        h = ops.dropout(h, 0.25)
        h = ops.where(flag, h, h * 0.5)
        logits = h @ w2
        hits = ops.cast(ops.argmax(logits, axis=-1) == y, rlx.i32).sum()
        return {"loss": ops.softmax_cross_entropy_with_logits(logits, y).mean(), "logits": logits, "hits": hits}

    rng = np.random.default_rng(3)
    return rlx.trace(
        model, x=rlx.spec((ROWS, 4)), ids=rlx.spec((ROWS,), rlx.i32), flag=rlx.spec((ROWS, 6), rlx.bool_),
        y=rlx.spec((ROWS,), rlx.i32), table=rlx.param_spec((5, 6), init=rng.normal(0, 1, (5, 6))),
        w1=rlx.param_spec((4, 6), init=rng.normal(0, 1, (4, 6))), b1=rlx.param_spec((6,), init=0.0),
        w2=rlx.param_spec((6, 3), init=rng.normal(0, 1, (6, 3))),
    )


def dropout_data(n):
    rng = np.random.default_rng(n)
    return {
        "x": rng.normal(size=(ROWS, 4)).astype(np.float32), "ids": rng.integers(0, 5, ROWS).astype(np.int32),
        "flag": rng.random((ROWS, 6)) < 0.5, "y": rng.integers(0, 3, ROWS).astype(np.int32),
    }


def mlp_batch(n):
    return mlp_data(ROWS, n)


RUNS = {
    "sgd": (mlp, mlp_batch, {"optimizer": rlx.SGD(momentum=0.9, dampening=0.1), "lr": S.Step(0.1, 2)}, None),
    "adam": (mlp, mlp_batch, {"optimizer": rlx.Adam(amsgrad=True), "lr": S.Exponential(0.01, 0.9), "ema": 0.9}, None),
    "groups": (mlp, mlp_batch, {
        "optimizer": rlx.ParamGroups(
            [rlx.Group(lambda p: p.ndim == 1, rlx.NAdamW(), lr_scale=0.5), rlx.Group("*", rlx.Muon())]
        ), "lr": S.Cosine(0.1, 8, 3), "clip": rlx.optim.clip_by_global_norm(1.0)}, None),
    "sophia": (mlp, mlp_batch, {"optimizer": rlx.SophiaH(every=2), "lr": S.OneCycle(0.01, 7), "seed": 7}, None),
    "gnb": (mlp, mlp_batch, {"optimizer": rlx.SophiaH(every=3, estimator="gnb"), "lr": 0.01, "seed": 2**40 + 5}, None),
    "mars": (mlp, mlp_batch, {"optimizer": rlx.MARS(exact=True), "lr": 0.01}, None),
    "radam": (mlp, mlp_batch, {"optimizer": rlx.RAdam(beta2=0.9), "lr": S.Plateau(0.01)}, None),
    "adafactor": (mlp, mlp_batch, {"optimizer": rlx.Adafactor(lr=S.Cosine(0.1, 6)), "loss_scale": "dynamic"}, None),
    "dropout": (dropout_net, dropout_data, {"optimizer": rlx.AdamW(), "lr": 0.02, "seed": 11}, None),
    "mixed": (dropout_net, dropout_data, {"optimizer": rlx.Lion(), "lr": 0.01}, "auto_mixed"),
}


def session(name):
    """A run that is some steps old, on the cpu device, with the optimizer in the program."""
    graph, data, config, policy = RUNS[name]
    graph = graph("B") if graph is mlp else graph()
    ts = rlx.TrainingSession(graph, config=rlx.TrainConfig(**config), device="cpu")
    ts = ts.with_precision_policy(policy) if policy else ts
    ts = ts.with_fused_optimizer()
    assert ts.fused_active, ts.fused_reason
    for n in range(2):
        ts.step(data(n))
    return ts, data, {} if policy or name == "dropout" else {"sizes": {"B": ROWS}}


def same(a, b):
    """Every value and every counter."""
    (arrays, data), (others, more) = capture(a), capture(b)
    assert data == more
    assert {n: v.tobytes() for n, v in arrays.items()} == {n: v.tobytes() for n, v in others.items()}
    assert (a.lr, a.schedule) == (b.lr, b.schedule)


def equal(some, others):
    return {n: v.tobytes() for n, v in some.items()} == {n: v.tobytes() for n, v in others.items()}


def files(bundle: Path):
    return {f.relative_to(bundle).as_posix(): f.read_bytes() for f in bundle.rglob("*") if f.is_file()}


# Swift


@pytest.fixture(scope="module")
def executable():
    return driver()


@pytest.mark.native
@pytest.mark.parametrize("name", RUNS)
def test_swift_goes_on_bit_for_bit(name, executable, tmp_path):
    """Steps, a window, evaluation, prediction, export; then each side goes on from the other's checkpoint."""
    ts, data, sizes = session(name)
    bundle = tmp_path / "run.rlxbundle"
    ts.export_bundle(bundle, **sizes)
    graph = ts.graph if sizes else None
    with SwiftSession(executable, bundle, tmp_path) as swift:
        for n in range(2, 7):
            report, got = ts.step(data(n)), swift.call("step", data(n))
            assert got == {"loss": report.loss, "skipped": float(report.skipped), **report.outputs}, n
        for n in range(7, 9):
            assert swift.call("accumulate", data(n), weight=n / 3)["loss"] == ts.accumulate(data(n), weight=n / 3)
        swift.call("save", path=tmp_path / "window.ckpt")
        same(ts, rlx.TrainingSession.load(tmp_path / "window.ckpt", graph=graph, device="cpu"))
        assert ts.step_accumulated() == 2
        assert swift.call("step_accumulated") == {"count": 2.0, "loss": ts.last_report.loss}
        loss, gradients = ts.gradients(data(9))
        assert equal(swift.arrays("gradients", data(9)), gradients)
        assert swift.call("gradients", data(9), to=tmp_path / "gradients")["loss"] == loss
        doubled = {n: 2 * g for n, g in gradients.items()}
        assert swift.call("apply_gradients", doubled)["applied"] == ts.apply_gradients(doubled)
        assert swift.call("evaluate", data(9))["loss"] == ts.evaluate(data(9))
        assert equal(swift.arrays("predict", data(9)), ts.predict(data(9)))
        numbers = swift.call("lr")
        assert numbers == {"lr": ts.lr, "steps": float(ts.steps), "scale": ts.loss_scale}
        swift.call("export", path=tmp_path / "swift.mlpackage")
        ts.export(tmp_path / "python.mlpackage", **sizes)
        assert files(tmp_path / "swift.mlpackage") == files(tmp_path / "python.mlpackage")
        swift.call("save", path=tmp_path / "swift.ckpt")
        other = rlx.TrainingSession.load(tmp_path / "swift.ckpt", graph=graph, device="cpu")
        same(ts, other)
        other.step(data(10))
        other.save(tmp_path / "python.ckpt")
        swift.call("restore", path=tmp_path / "python.ckpt")
        assert swift.call("step", data(11))["loss"] == other.step(data(11)).loss
        swift.call("save", path=tmp_path / "again.ckpt")
        same(other, rlx.TrainingSession.load(tmp_path / "again.ckpt", graph=graph, device="cpu"))


@pytest.mark.native
def test_skipped_steps_move_the_scale_alone(executable, tmp_path):
    """Gradients that are not finite, in a step and in a window; the buffers of the window go back."""
    graph, data, _, _ = RUNS["dropout"]
    config = rlx.TrainConfig(optimizer=rlx.Adam(), lr=0.01, loss_scale="dynamic")
    ts = rlx.TrainingSession(graph(), config=config, device="cpu").with_fused_optimizer()
    ts.export_bundle(tmp_path / "run.rlxbundle")
    bad = {**data(1), "x": np.full((ROWS, 4), np.inf, np.float32)}
    with SwiftSession(executable, tmp_path / "run.rlxbundle", tmp_path) as swift:
        for batch in (data(0), bad, data(2)):
            report = ts.step(batch)
            assert swift.call("step", batch)["skipped"] == float(report.skipped)
        for batch in (data(3), bad):
            ts.accumulate(batch)
            swift.call("accumulate", batch)
        swift.call("save", path=tmp_path / "window.ckpt")
        assert np.isnan(ts._trainer.window.loss)
        rlx.TrainingSession.load(tmp_path / "window.ckpt", device="cpu")
        swift.call("restore", path=tmp_path / "window.ckpt")
        ts.step_accumulated()
        swift.call("step_accumulated")
        assert ts.last_report.skipped and ts.loss_scale == 1024.0
        swift.call("save", path=tmp_path / "swift.ckpt")
        same(ts, rlx.TrainingSession.load(tmp_path / "swift.ckpt", device="cpu"))


@pytest.mark.native
def test_fit_is_the_same_fit(executable, tmp_path):
    ts, data, sizes = session("radam")
    ts.export_bundle(tmp_path / "run.rlxbundle", **sizes)
    batches = [data(n) for n in range(5)]
    history = ts.fit(batches, epochs=3, accumulate=2, progress=False)
    with SwiftSession(executable, tmp_path / "run.rlxbundle", tmp_path) as swift:
        joined = {f"{n}/{name}": value for n, batch in enumerate(batches) for name, value in batch.items()}
        got = swift.call("fit", joined, epochs=3, accumulate=2)
        assert got["last"] == history.losses[-1]
        assert got["mean"] == pytest.approx(history.epochs[-1]["loss"], rel=1e-12)
        swift.call("save", path=tmp_path / "swift.ckpt")
        other = rlx.TrainingSession.load(tmp_path / "swift.ckpt", graph=ts.graph, device="cpu")
        assert ts.params().keys() == other.params().keys()
        assert all(np.array_equal(value, other.params()[name]) for name, value in ts.params().items())


@pytest.mark.native
def test_batches_of_several_sizes(executable, tmp_path):
    """An epoch with a short end, a window over both sizes, one sample; averages in the model to deploy."""
    config = rlx.TrainConfig(optimizer=rlx.SophiaH(every=2), lr=0.01, ema=0.9)
    ts = rlx.TrainingSession(mlp("B"), config=config, device="cpu").with_fused_optimizer()
    ts.export_bundle(tmp_path / "run.rlxbundle", sizes={"B": [8, 5, 1]})
    batches = [mlp_data(8, 0), mlp_data(8, 1), mlp_data(5, 2)]
    with SwiftSession(executable, tmp_path / "run.rlxbundle", tmp_path) as swift:
        for batch in batches * 2:
            assert swift.call("step", batch)["loss"] == ts.step(batch).loss
        for batch in batches[1:]:
            assert swift.call("accumulate", batch, weight=len(batch["x"])) == {
                "loss": ts.accumulate(batch, len(batch["x"]))}
        ts.step_accumulated()
        swift.call("step_accumulated")
        one = mlp_data(1, 3)
        assert equal(swift.arrays("predict", {"x": one["x"]}), ts.predict({"x": one["x"]}))
        assert swift.call("evaluate", one)["loss"] == ts.evaluate(one)
        for bad, text in (
            ({**one, **mlp_data(7, 0)}, r"'x' has shape \(7, 4\); the bundle was exported for \(8, 4\), \(5, 4\)"),
            ({**one, "x": mlp_data(5, 0)["x"]}, "choice of sizes"),
        ):
            with pytest.raises(SwiftError, match=text):
                swift.call("step", bad)
        swift.call("export", path=tmp_path / "swift.mlpackage")
        ts.export(tmp_path / "python.mlpackage")
        assert files(tmp_path / "swift.mlpackage") == files(tmp_path / "python.mlpackage")
        swift.call("export", path=tmp_path / "swift.mlpackage", averages=True)
        ts.set_params(ts.ema_params())
        ts.export(tmp_path / "python.mlpackage")
        assert files(tmp_path / "swift.mlpackage") == files(tmp_path / "python.mlpackage")


@pytest.mark.native
def test_labels_that_are_ignored(executable, tmp_path):
    def model(x, y, w):
        return ops.cross_entropy(x @ w, y, ignore_index=-100)

    specs = {"x": rlx.spec((4, 3)), "y": rlx.spec((4,), rlx.i32), "w": rlx.param_spec((3, 3), init=np.eye(3))}
    ts = rlx.TrainingSession(rlx.trace(model, **specs), device="cpu").with_fused_optimizer()
    ts.export_bundle(tmp_path / "run.rlxbundle")
    batch = {"x": np.ones((4, 3), np.float32), "y": np.array([0, -100, 2, -100], np.int32)}
    with SwiftSession(executable, tmp_path / "run.rlxbundle", tmp_path) as swift:
        assert swift.call("step", batch)["loss"] == ts.step(batch).loss
        with pytest.raises(SwiftError, match="from 0 to 2 or -100, got -1 at element 1"):
            swift.call("step", {**batch, "y": np.array([0, -1, 2, 1], np.int32)})


@pytest.mark.native
def test_swift_says_what_does_not_fit(executable, tmp_path):
    ts, data, sizes = session("adam")
    ts.export_bundle(tmp_path / "run.rlxbundle", **sizes)
    linreg_session("cpu").save(tmp_path / "other.ckpt")
    with SwiftSession(executable, tmp_path / "run.rlxbundle", tmp_path) as swift:
        for call, batch, code in (
            ("step", {"x": data(0)["x"]}, "notFound"), ("step", {**data(0), "z": data(0)["x"]}, "notFound"),
            ("step", {**data(0), "x": data(0)["x"][:3]}, "badShape"),
            ("step", {**data(0), "x": data(0)["x"].astype(np.int32)}, "badDType"),
            ("step", {**data(0), "y": data(0)["y"] + 3}, "badFeed"),
            ("set_params", {"w1": np.zeros((2, 2), np.float32)}, "badShape"),
            ("set_params", {"w9": np.zeros((2, 2), np.float32)}, "notFound"),
        ):
            with pytest.raises(SwiftError) as caught:
                swift.call(call, batch)
            assert caught.value.code == code, caught.value
        with pytest.raises(SwiftError, match="another run: its 'graph'"):
            swift.call("restore", path=tmp_path / "other.ckpt")
        swift.call("save", path=tmp_path / "swift.ckpt")
    same(ts, rlx.TrainingSession.load(tmp_path / "swift.ckpt", graph=ts.graph, device="cpu"))


@pytest.mark.native
def test_the_first_values_of_a_schedule(executable, tmp_path):
    """The same float64, for every schedule that has a name."""
    ts, _, sizes = session("sgd")
    ts.export_bundle(tmp_path / "run.rlxbundle", **sizes)
    made = (
        S.Constant(0.1), S.Step(0.3, 3, 0.7), S.Exponential(0.2, 0.93), S.Cosine(0.1, 11, 4, 0.003),
        S.OneCycle(0.1, 9), S.OneCycle(0.1, 3, 0.0), S.Plateau(0.05),
    )
    with SwiftSession(executable, tmp_path / "run.rlxbundle", tmp_path) as swift:
        for n in range(13):
            for schedule in made:
                ts._trainer.counters.steps = n
                ts.lr = schedule
                ts.save(tmp_path / "moved.ckpt")
                swift.call("restore", path=tmp_path / "moved.ckpt")
                assert swift.call("lr")["lr"] == ts.lr, (schedule, n)


# Python


def test_the_files(tmp_path):
    """Names, hashes, a checkpoint that Python loads, the same bytes again, in place of an older bundle."""
    ts = linreg_session("numpy", optimizer=rlx.Adam(), lr=0.1)
    bundle = tmp_path / "a.rlxbundle"
    ts.export_bundle(bundle)
    first = files(bundle)
    assert {"manifest.json", "initial.safetensors"} < set(first)
    manifest = json.loads(first["manifest.json"])
    assert manifest["format"] == 1 and manifest["schedules"]["lr"] == {"name": "Constant", "lr": 0.1}
    assert manifest["files"] == {
        name: hashlib.sha256(data).hexdigest() for name, data in first.items() if name != "manifest.json"
    }
    for name in ("train", "predict", "accumulate", "apply", "evaluate", "infer", "gradients", "given"):
        rlx.validate(bundle / f"{name}.mlpackage")
    other = rlx.TrainingSession.load(bundle / "initial.safetensors", device="numpy")
    assert other.fused_active and other.params()["W"].tobytes() == ts.params()["W"].tobytes()
    ts.export_bundle(bundle)
    assert files(bundle) == first and [p.name for p in tmp_path.iterdir()] == ["a.rlxbundle"]


@dataclass(frozen=True)
class Counting(rlx.Optimizer):
    """Its numbers come from a loop that no formula follows."""

    def scalars(self, step, lr):
        return {"lr": lr * sum(1 / k for k in range(1, step + 1))}

    def update(self, xp, grad, state, param, **scalars):
        return param - scalars["lr"] * grad, {}


class Outside(Counting):
    """Its numbers come from elsewhere."""

    now = 0.0

    def scalars(self, step, lr):
        type(self).now += 1
        return {"lr": lr * self.now}


@pytest.mark.parametrize(("config", "problem"), [
    ({"lr": lambda n: 0.1 / (n + 1)}, "a Python function"),
    ({"optimizer": rlx.SOAP()}, "QR decomposition"),
    ({"optimizer": Counting()}, "cannot be written as a formula"),
    ({"optimizer": Outside()}, "depends on more than its arguments"),
    ({"seed": 2**63}, "below 2.63"),
])
def test_what_a_bundle_cannot_hold(config, problem, tmp_path):
    ts = linreg_session("numpy", **config)
    with pytest.raises(ConfigError, match=problem):
        ts.export_bundle(tmp_path / "a.rlxbundle")
    assert not list(tmp_path.iterdir())


@pytest.mark.native
def test_a_run_by_update_tasks_is_no_program(tmp_path, monkeypatch):
    monkeypatch.setenv("RLX_COREML_ON_LINUX", "1")
    graph = rlx.Graph("classifier")
    x, y = graph.input("x", (8, 3)), graph.input("y", (8,), rlx.i32)
    logits = x @ graph.param("W", (3, 2), init=np.zeros((3, 2))) + graph.param("b", (2,), init=np.zeros(2))
    graph.set_outputs({"loss": ops.softmax_cross_entropy_with_logits(logits, y).mean(), "p": ops.softmax(logits)})
    ts = rlx.TrainingSession(graph, config=rlx.TrainConfig(lr=0.1, update_path="mlupdatetask"))
    with pytest.raises(SessionError, match="export_bundle"):
        ts.export_bundle(tmp_path / "a.rlxbundle")


def test_sizes_and_places(tmp_path):
    ts = rlx.TrainingSession(mlp("B"), device="numpy")
    with pytest.raises(ShapeError, match="'B' has no size"):
        ts.export_bundle(tmp_path / "a.rlxbundle")
    with pytest.raises(ShapeError, match="no named dimension"):
        rlx.TrainingSession(mlp(4), device="numpy").export_bundle(tmp_path / "a.rlxbundle", sizes={"B": 4})
    for sizes in ([], [4, 0], [True], ["4"]):
        with pytest.raises(ShapeError, match="'B': expected"):
            ts.export_bundle(tmp_path / "a.rlxbundle", sizes={"B": sizes})
    (tmp_path / "file").mkdir()
    with pytest.raises(PackageError, match="no bundle"):
        ts.export_bundle(tmp_path / "file", sizes={"B": 4})


@pytest.mark.parametrize("optimizer", [
    rlx.SGD(momentum=0.9, dampening=0.5), rlx.Adam(), rlx.AdamW(), rlx.NAdamW(), rlx.RAdam(), rlx.QHAdamW(), rlx.LAMB(),
    rlx.Adafactor(), rlx.Adafactor(lr=S.OneCycle(0.1, 50)), rlx.Adafactor(lr=S.Step(0.1, 7)), rlx.Lion(), rlx.MARS(),
    rlx.Muon(), rlx.SophiaH(), rlx.Stiefel(),
], ids=lambda o: type(o).__name__)
def test_formulas_give_the_numbers(optimizer):
    formulas = formula.trace(optimizer)
    json.dumps(formulas, allow_nan=False)
    for step in range(1, 200):
        expected = optimizer.scalars(step, 0.3)
        assert {name: formula.value(each, step, 0.3) for name, each in formulas.items()} == expected


def test_tracing_leaves_math_as_it_was():
    before = dict(vars(math))
    formula.trace(rlx.Adam())
    with pytest.raises(ConfigError):
        formula.trace(Counting())
    assert vars(math) == before


def test_tracing_in_many_threads():
    """Each traces; meanwhile others compute with the same functions."""
    before, alone = dict(vars(math)), {type(o): formula.trace(o) for o in (rlx.Adam(), rlx.RAdam(), rlx.NAdamW())}
    with ThreadPoolExecutor(8) as pool:
        traced = [(kind, pool.submit(formula.trace, kind())) for kind in list(alone) * 8]
        roots = [pool.submit(math.sqrt, n * n) for n in range(200)]
        assert all(found.result() == alone[kind] for kind, found in traced)
        assert [root.result() for root in roots] == list(range(200))
    assert vars(math) == before


@dataclass(frozen=True)
class Own(rlx.Optimizer):
    """A user's own numbers: every operator and a branch."""

    def scalars(self, step, lr):
        slow = lr * math.cos(step % 7) if step // 3 >= 2 and step != 8 else -lr / max(step, 3)
        return {"lr": slow, "other": abs(math.exp(-step) - 2**-step) + math.pow(step, 0.5), "first": float(step == 1)}


def test_an_optimizer_of_ones_own():
    formulas = formula.trace(Own())
    for step in range(1, 30):
        assert {n: formula.value(f, step, 0.5) for n, f in formulas.items()} == Own().scalars(step, 0.5)


