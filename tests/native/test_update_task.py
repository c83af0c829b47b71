"""The same batches by Core ML's own update task and by the session's gradients give the same weights."""

import signal
import threading
import time

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import nn, ops
from rlx_swift.errors import ConfigError, DeviceError, FeedError, SessionError

pytestmark = pytest.mark.native

RANDOM = np.random.default_rng(11)


@pytest.fixture
def core_ml(monkeypatch):
    monkeypatch.setenv("RLX_COREML_ON_LINUX", "1")


def mlp(rows=6):
    graph = rlx.Graph("mlp")
    x, y = graph.input("x", (rows, 4)), graph.input("y", (rows,), rlx.i32)
    logits = nn.Dense(3, name="out")(ops.tanh(nn.Dense(7, name="hidden")(x)))
    graph.set_outputs({"p": ops.softmax(logits), "loss": ops.cross_entropy(logits, y)})
    return graph


def convnet(rows=6):
    graph = rlx.Graph("convnet")
    x, y = graph.input("x", (rows, 1, 8, 8)), graph.input("y", (rows, 2))
    h = ops.relu(nn.Conv(4, 3, name="c")(x))
    h = ops.avg_pool2d(ops.max_pool2d(h, 2), 2)
    h = ops.sigmoid(nn.Dense(2, name="d")(ops.reshape(h, (rows, -1))))
    graph.set_outputs({"loss": ops.mse_loss(h, y)})
    return graph


def batches(graph, count):
    shape, rows = graph.inputs["x"].shape, graph.inputs["x"].shape[0]
    labels = graph.inputs["y"]
    for _ in range(count):
        x = RANDOM.standard_normal(shape).astype(np.float32)
        y = RANDOM.integers(0, 3, rows) if labels.dtype is rlx.i32 else RANDOM.random(labels.shape)
        yield {"x": x, "y": y.astype(labels.dtype.numpy)}


def both(build, optimizer, trainable=None, lr=0.1):
    plain = rlx.TrainingSession(build(), trainable, config=rlx.TrainConfig(lr=lr, optimizer=optimizer), device="cpu")
    config = rlx.TrainConfig(lr=lr, optimizer=optimizer, update_path="mlupdatetask")
    return plain, rlx.TrainingSession(build(), trainable, config=config, device="cpu")


def same(plain, task):
    for name, value in plain.params().items():
        np.testing.assert_allclose(task.param(name), value, rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("build", [mlp, convnet])
@pytest.mark.parametrize("optimizer", [rlx.SGD(), rlx.SGD(momentum=0.9), rlx.Adam()], ids=["sgd", "momentum", "adam"])
def test_fit_is_one_task_with_the_weights_of_the_gradient_path(core_ml, build, optimizer):
    plain, task = both(build, optimizer, lr=0.02)
    data = list(batches(plain.graph, 4))
    expected = plain.fit(data, epochs=3, progress=False)
    history = task.fit(data, epochs=3, progress=False)
    np.testing.assert_allclose(history.losses, expected.losses, atol=1e-5)
    np.testing.assert_allclose([e["loss"] for e in history.epochs], [e["loss"] for e in expected.epochs], atol=1e-5)
    assert task.steps == plain.steps == 12
    same(plain, task)


def test_steps_of_plain_sgd(core_ml):
    plain, task = both(mlp, rlx.SGD())
    for batch in batches(plain.graph, 5):
        expected, report = plain.step(batch), task.step(batch)
        assert report.path is rlx.UpdatePath.MLUPDATETASK and abs(report.loss - expected.loss) < 1e-5
    same(plain, task)
    batch = next(batches(plain.graph, 1))
    assert abs(plain.evaluate(batch) - task.evaluate(batch)) < 1e-5
    assert task.update_path is rlx.UpdatePath.MLUPDATETASK and task.last_report.loss == report.loss


def test_only_the_trainable_layers_move(core_ml):
    plain, task = both(mlp, rlx.SGD(), "out.*")
    before = task.param("hidden.weight")
    data = list(batches(plain.graph, 3))
    plain.fit(data, progress=False)
    task.fit(data, progress=False)
    np.testing.assert_array_equal(task.param("hidden.weight"), before)
    same(plain, task)


def test_what_a_task_does_not_do(core_ml):
    _, task = both(mlp, rlx.SGD(momentum=0.5))
    batch = next(batches(task.graph, 1))
    before = task.params()
    with pytest.raises(SessionError, match="keeps state between steps"):
        task.step(batch)
    for call in (
        lambda: task.accumulate(batch), task.with_fused_optimizer,
        lambda: task.with_precision_policy("auto_mixed"), lambda: task.set_trainable("out.*"),
        lambda: task.apply_gradients({}),
    ):
        with pytest.raises(SessionError, match="update task"):
            call()
    for options in ({"accumulate": 2}, {"validation": batch}, {"callbacks": [rlx.Callback()]}, {"epochs": 0}):
        with pytest.raises(ConfigError):
            task.fit([batch], progress=False, **options)
    with pytest.raises(FeedError):
        task.fit([], progress=False)
    task.lr = rlx.optim.schedules.Step(0.1, 5)
    with pytest.raises(ConfigError, match="one rate"):
        task.fit([batch], progress=False)
    for name, value in task.params().items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.parametrize(("options", "reason"), [
    ({"optimizer": rlx.AdamW()}, "AdamW"), ({"optimizer": rlx.SGD(weight_decay=0.1)}, "weight decay"),
    ({"clip": rlx.optim.clip_by_global_norm(1.0)}, "clip"), ({"ema": 0.9}, "average"),
    ({"loss_scale": 8.0}, "loss scale"),
], ids=str)
def test_settings_without_a_form(core_ml, options, reason):
    config = rlx.TrainConfig(**options)
    verdict = rlx.TrainingSession(mlp(), config=config, device="cpu").mlupdatetask_eligibility()
    assert not verdict and reason in verdict.reason
    with pytest.raises(ConfigError, match=reason):
        rlx.TrainingSession(mlp(), config=rlx.TrainConfig(**options, update_path="mlupdatetask"), device="cpu")


def test_eligibility_only_reports():
    ts = rlx.TrainingSession(mlp(), device="cpu")
    assert ts.mlupdatetask_eligibility() == rlx.Eligible()
    assert ts.update_path is rlx.UpdatePath.GRADIENT


def test_without_core_ml(monkeypatch):
    monkeypatch.delenv("RLX_COREML_ON_LINUX", raising=False)
    if any(status.available for status in rlx.devices() if status.name == "coreml"):
        pytest.skip("Core ML is here")
    with pytest.raises(DeviceError):
        rlx.TrainingSession(mlp(), config=rlx.TrainConfig(update_path="mlupdatetask"), device="cpu")


def test_ctrl_c_ends_a_task_between_mini_batches(core_ml):
    _, task = both(mlp, rlx.SGD())
    before, data = task.params(), list(batches(task.graph, 100))
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        task.fit(data, epochs=100_000, progress=False)
    assert time.perf_counter() - started < 5
    for name, value in task.params().items():
        np.testing.assert_array_equal(value, before[name])
    assert task.steps == 0
    task.step(data[0])


def test_a_run_can_be_saved_and_goes_on(core_ml, tmp_path):
    _, task = both(mlp, rlx.SGD())
    first, second = batches(task.graph, 2)
    task.step(first)
    task.save(tmp_path / "run")
    again = rlx.TrainingSession.load(tmp_path / "run", device="cpu")
    assert again.update_path is rlx.UpdatePath.MLUPDATETASK
    assert task.step(second).loss == again.step(second).loss
    same(task, again)
