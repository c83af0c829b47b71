"""The training loop: batches, windows, validation, callbacks, history, progress."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import ConfigError, FeedError
from tests.training_cases import LINREG_BATCH, UPDATES, linreg_session, mlp, mlp_data, snapshot


def classifier(fused=False, **config):
    ts = rlx.TrainingSession(mlp("B"), device="numpy", config=rlx.TrainConfig(**{"lr": 0.1, **config}))
    return ts.with_fused_optimizer() if fused else ts


@pytest.mark.parametrize("fused", UPDATES)
def test_partial_batches_and_history(fused):
    ts = classifier(fused)
    data = mlp_data(50)
    history = ts.fit(rlx.batches(data, 16), epochs=3, validation=data, progress=False)
    assert ts.steps == len(history.losses) == 3 * 4
    assert ts.compile_count == 2
    assert [log["epoch"] for log in history.epochs] == [1, 2, 3]
    weights = np.array([16, 16, 16, 2])
    for n, log in enumerate(history.epochs):
        assert log["loss"] == pytest.approx(np.average(history.losses[4 * n : 4 * n + 4], weights=weights))
        assert log["seconds"] > 0
    assert history.epochs[-1]["val_loss"] == pytest.approx(ts.evaluate(data))
    assert history.epochs[-1]["val_loss"] < history.epochs[0]["val_loss"]
    assert history.stopped == ""


def test_drop_last_and_order():
    arrays = {"i": np.arange(10), "x": np.arange(20).reshape(10, 2)}
    assert [len(b["i"]) for b in rlx.batches(arrays, 4, drop_last=True)] == [4, 4]
    assert len(rlx.batches(arrays, 4)) == 3
    in_order = np.concatenate([b["i"] for b in rlx.batches(arrays, 3, shuffle=False)])
    np.testing.assert_array_equal(in_order, np.arange(10))
    shuffled = rlx.batches(arrays, 3, seed=5)
    first, second = ([tuple(b["i"]) for b in shuffled] for _ in range(2))
    assert first != second
    assert sorted(sum(first, ())) == sorted(sum(second, ())) == list(range(10))
    assert [tuple(b["i"]) for b in rlx.batches(arrays, 3, seed=5)] == first
    for batch in shuffled:
        np.testing.assert_array_equal(batch["x"][:, 0], 2 * batch["i"])


@pytest.mark.parametrize(("arrays", "size", "options"), [
    ({}, 4, {}), ({"x": np.zeros((0, 2))}, 4, {}), ({"x": np.zeros(3), "y": np.zeros(4)}, 2, {}), ({"x": 1.0}, 1, {}),
    ({"x": np.zeros(3)}, 0, {}), ({"x": np.zeros(3)}, 1.5, {}), ({"x": np.zeros(3)}, 4, {"drop_last": True}),
])
def test_batches_that_make_no_sense(arrays, size, options):
    with pytest.raises((ConfigError, FeedError)):
        rlx.batches(arrays, size, **options)


@pytest.mark.parametrize("fused", UPDATES)
def test_windows_end_with_the_epoch(fused):
    """Windows of 2 over 3 batches: the second window is one partial batch, weighted by samples."""
    data = mlp_data(40)
    ts, whole = classifier(fused), classifier(fused)
    history = ts.fit(rlx.batches(data, 16, shuffle=False), epochs=2, accumulate=2, progress=False)
    assert ts.steps == len(history.losses) == 4
    assert ts.pending_accumulation == 0
    for _ in range(2):
        whole.step({name: value[:32] for name, value in data.items()})
        whole.step({name: value[32:] for name, value in data.items()})
    for name, value in whole.params().items():
        np.testing.assert_allclose(ts.param(name), value, rtol=1e-4, atol=1e-6)


def test_samples_weigh_the_same_in_a_window():
    data = mlp_data(20)
    ts, whole = classifier(), classifier()
    ts.fit(rlx.batches(data, 12, shuffle=False), accumulate=2, progress=False)
    whole.step(data)
    for name, value in whole.params().items():
        np.testing.assert_allclose(ts.param(name), value, rtol=1e-5, atol=1e-7)


def test_a_generator_can_be_read_once():
    ts = linreg_session(lr=0.1)
    history = ts.fit((LINREG_BATCH for _ in range(3)), progress=False)
    assert len(history.losses) == 3
    with pytest.raises(ConfigError, match="a generator can be read once, not 2 times"):
        ts.fit((LINREG_BATCH for _ in range(3)), epochs=2, progress=False)
    with pytest.raises(ConfigError, match="fit validation: a generator"):
        ts.fit([LINREG_BATCH], epochs=2, validation=(LINREG_BATCH for _ in range(3)), progress=False)
    assert ts.steps == 3


@pytest.mark.parametrize(("arguments", "error"), [
    ({"batches": []}, FeedError), ({"batches": LINREG_BATCH}, ConfigError), ({"batches": None}, ConfigError),
    ({"batches": "ab"}, ConfigError), ({"epochs": 0}, ConfigError), ({"epochs": 1.5}, ConfigError),
    ({"accumulate": 0}, ConfigError), ({"validation": 3}, ConfigError), ({"validation": []}, FeedError),
    ({"schedule": -1.0}, ConfigError), ({"batches": [{"x": LINREG_BATCH["x"]}]}, FeedError),
])
def test_arguments_that_make_no_sense(arguments, error):
    ts = linreg_session(lr=0.1)
    with pytest.raises(error):
        ts.fit(**{"batches": [LINREG_BATCH], "progress": False, **arguments})
    ts.step(LINREG_BATCH)


class Watch(rlx.Callback):
    def __init__(self, stop_step=None, stop_epoch=None):
        self.steps, self.epochs, self._stop_step, self._stop_epoch = [], [], stop_step, stop_epoch

    def on_step(self, ts, report):
        self.steps.append((ts.steps, report.loss))
        return len(self.steps) == self._stop_step

    def on_epoch(self, ts, logs):
        self.epochs.append(dict(logs))
        return len(self.epochs) == self._stop_epoch


def test_callbacks_watch_and_stop():
    ts = linreg_session(lr=0.1)
    watch, other = Watch(stop_step=3), Watch()
    history = ts.fit([LINREG_BATCH] * 2, epochs=5, callbacks=[watch, other], progress=False)
    assert [n for n, _ in watch.steps] == [n for n, _ in other.steps] == [1, 2, 3]
    assert [loss for _, loss in watch.steps] == history.losses
    assert history.stopped == "a callback's on_step"
    assert len(history.epochs) == 2
    history = ts.fit([LINREG_BATCH], epochs=5, callbacks=[Watch(stop_epoch=2)], progress=False)
    assert history.stopped == "a callback's on_epoch"
    assert ts.steps == 5


@pytest.mark.parametrize("accumulate", [1, 3])
def test_an_error_in_the_middle_leaves_the_session_ready(accumulate):
    """Wherever it comes from: the data, a callback, a batch."""

    def failing():
        yield LINREG_BATCH
        yield LINREG_BATCH
        raise OSError("the disk is gone")

    class Failing(rlx.Callback):
        def on_step(self, ts, report):
            raise RuntimeError("no")

    ts = linreg_session(lr=0.01)
    for arguments, error in (({"batches": failing()}, OSError),
                             ({"batches": [LINREG_BATCH] * 4, "callbacks": [Failing()]}, RuntimeError),
                             ({"batches": [LINREG_BATCH, {}]}, FeedError)):
        with pytest.raises(error):
            ts.fit(accumulate=accumulate, progress=False, **arguments)
        ts.step(LINREG_BATCH)


def test_the_schedule_goes_on_over_fits():
    ts = linreg_session()
    seen = []
    ts.fit([LINREG_BATCH] * 2, schedule=lambda n: seen.append(n) or 0.01, progress=False)
    ts.fit([LINREG_BATCH] * 2, progress=False)
    assert sorted(set(seen)) == [0, 1, 2, 3]


def test_progress_goes_to_stderr(capsys):
    ts = linreg_session(lr=0.1)
    ts.fit([LINREG_BATCH] * 3, epochs=2, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "epoch 2/2" in captured.err and "6/6" in captured.err and "loss=" in captured.err
    ts.fit((LINREG_BATCH for _ in range(3)), progress=True)
    ts.fit([LINREG_BATCH], progress=False)
    assert "epoch 1/1" in capsys.readouterr().err


def test_validation_changes_nothing():
    ts = classifier()
    before = snapshot(ts)
    ts.fit([mlp_data(4)], schedule=0.0, validation=[mlp_data(5), mlp_data(3)], progress=False)
    after = snapshot(ts)
    assert {k: v for k, v in after.items() if k != "steps"} == {k: v for k, v in before.items() if k != "steps"}


def test_tokens_may_be_what_weighs():
    """By `weight`: here the sum of a mask, of which the loss is the mean."""
    g = rlx.trace(
        lambda x, mask, w: {"loss": ((x @ w).reshape(mask.shape) * mask).sum() / mask.sum()},
        x=rlx.spec(("B", 3)), mask=rlx.spec(("B",)), w=rlx.param_spec((3, 1), init=0.0),
    )
    rng = np.random.default_rng(0)
    x, mask = rng.normal(size=(12, 3)), np.array([1.0] * 7 + [0.0] * 4 + [1.0])
    parts, whole = (rlx.TrainingSession(g, device="numpy", config=rlx.TrainConfig(lr=1.0)) for _ in range(2))
    data = [{"x": x[:8], "mask": mask[:8]}, {"x": x[8:], "mask": mask[8:]}]
    parts.fit(data, accumulate=2, progress=False, weight=lambda batch: float(np.sum(batch["mask"])))
    whole.step({"x": x, "mask": mask})
    np.testing.assert_allclose(parts.param("w"), whole.param("w"), rtol=1e-5)
    steps = parts.steps
    for accumulate in (1, 2):
        for weight in (0.0, -1.0, np.nan, None):
            with pytest.raises(ConfigError, match="fit weight: expected a finite number above 0"):
                parts.fit(data, accumulate=accumulate, progress=False, weight=lambda batch, weight=weight: weight)
    assert parts.pending_accumulation == 0 and parts.steps == steps
