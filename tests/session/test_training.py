"""Every method of a training session, on each device, host and fused."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import ConfigError, GraphError, NameNotFoundError, SessionError
from tests.training_cases import (
    DEVICES,
    LINREG_BATCH,
    UPDATES,
    W_TRUE,
    fed,
    fed_session,
    linreg_session,
    mlp,
    mlp_data,
    snapshot,
)

pytestmark = [pytest.mark.parametrize("device", DEVICES), pytest.mark.parametrize("fused", UPDATES)]


@pytest.fixture
def ts(device, fused):
    return linreg_session(device, fused, lr=0.1)


def test_linear_regression_reaches_the_truth(ts, fused):
    assert ts.fused_active is fused
    first = ts.step(LINREG_BATCH)
    assert first.loss == pytest.approx(19.15, abs=0.005)
    assert first.path is (rlx.UpdatePath.FUSED if fused else rlx.UpdatePath.GRADIENT)
    for _ in range(60):
        last = ts.step(LINREG_BATCH)
    assert last.loss < 1e-10
    np.testing.assert_allclose(ts.param("W"), W_TRUE, atol=1e-5)
    assert ts.steps == 61
    assert ts.compile_count == 1
    assert ts.programs == {"train" if fused else "gradient": 1}


def test_momentum_tracks_the_host(fused, device):
    host = linreg_session("numpy", False, lr=0.05, optimizer=rlx.SGD(momentum=0.9))
    other = linreg_session(device, fused, lr=0.05, optimizer=rlx.SGD(momentum=0.9))
    for _ in range(40):
        host.step(LINREG_BATCH)
        other.step(LINREG_BATCH)
        np.testing.assert_allclose(other.param("W"), host.param("W"), rtol=0, atol=1e-5)


def test_equal_micro_batches_accumulate_to_one_step(fused, device):
    whole, parts = (linreg_session(device, fused, lr=0.1, optimizer=rlx.Adam()) for _ in range(2))
    for n in range(3):
        whole.step(LINREG_BATCH)
        losses = [parts.accumulate(LINREG_BATCH) for _ in range(3)]
        assert parts.pending_accumulation == 3
        assert parts.step_accumulated() == 3
        np.testing.assert_allclose(parts.param("W"), whole.param("W"), rtol=0, atol=1e-6)
        assert parts.last_report.loss == pytest.approx(losses[0], rel=1e-6)
        assert parts.steps == n + 1
    assert parts.pending_accumulation == 0
    assert parts.step_accumulated() == 0
    assert parts.steps == 3


def test_accumulation_is_a_weighted_mean(fused, device):
    ts = fed_session({"a": [1.0, 2.0], "b": 3.0}, device, fused, lr=1.0)
    ts.accumulate(fed({"a": [1.0, 0.0], "b": 4.0}), weight=3.0)
    assert snapshot(ts)["param/a"] == np.float32([1, 2]).tobytes()
    ts.accumulate(fed({"a": [5.0, 8.0], "b": 0.0}), weight=1)
    ts.step_accumulated()
    np.testing.assert_allclose(ts.param("a"), [1 - 2.0, 2 - 2.0])
    np.testing.assert_allclose(ts.param("b"), 3 - 3.0)
    assert ts.last_report.loss == pytest.approx((3 * (1.0 + 12.0) + (5.0 + 16.0)) / 4)


def test_discarded_micro_batches_leave_no_trace(fused, device):
    ts = fed_session({"a": [1.0]}, device, fused, lr=1.0)
    ts.accumulate(fed({"a": [np.nan]}))
    ts.discard_accumulated()
    assert ts.pending_accumulation == 0
    ts.accumulate(fed({"a": [0.5]}))
    ts.step_accumulated()
    assert ts.param("a") == 0.5


def test_a_step_while_micro_batches_are_pending_is_an_error(ts):
    ts.accumulate(LINREG_BATCH)
    before = snapshot(ts)
    for call in (lambda: ts.step(LINREG_BATCH), lambda: ts.apply_gradients({"W": np.ones((3, 1))}),
                 lambda: ts.fit([LINREG_BATCH], progress=False), ts.with_fused_optimizer):
        with pytest.raises(SessionError):
            call()
    assert snapshot(ts) == before
    assert ts.step_accumulated() == 1


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf, "2", None])
def test_a_weight_that_is_none_is_an_error(ts, weight):
    with pytest.raises(ConfigError, match="accumulate weight"):
        ts.accumulate(LINREG_BATCH, weight=weight)
    assert ts.pending_accumulation == 0


def test_gradients_change_nothing_and_can_be_applied(ts, device, fused):
    before = snapshot(ts)
    loss, gradients = ts.gradients(LINREG_BATCH)
    x, t = LINREG_BATCH["x"].astype(float), LINREG_BATCH["target"].astype(float)
    np.testing.assert_allclose(gradients["W"], -2 * x.T @ t, rtol=1e-5)
    assert loss == pytest.approx(19.15, abs=0.005)
    assert snapshot(ts) == before
    ts.apply_gradients(gradients)
    stepped = linreg_session(device, fused, lr=0.1)
    stepped.step(LINREG_BATCH)
    np.testing.assert_allclose(ts.param("W"), stepped.param("W"), rtol=1e-6)
    assert ts.steps == 1


@pytest.mark.parametrize("gradients", [{}, {"W": 1.0, "V": 1.0}, {"V": 1.0}])
def test_gradients_for_other_params_are_an_error(ts, gradients):
    with pytest.raises(NameNotFoundError, match="expected one for each of W"):
        ts.apply_gradients(gradients)
    assert ts.steps == 0


def test_evaluate_and_predict_change_nothing(ts):
    ts.step(LINREG_BATCH)
    ts.accumulate(LINREG_BATCH)
    before, loss = snapshot(ts), ts.gradients(LINREG_BATCH)[0]
    assert ts.evaluate(LINREG_BATCH) == pytest.approx(loss)
    for feeds in (LINREG_BATCH, {"x": LINREG_BATCH["x"]}):
        outputs = ts.predict(feeds)
        assert list(outputs) == ["prediction"]
        np.testing.assert_allclose(outputs["prediction"], LINREG_BATCH["x"] @ ts.param("W"), rtol=1e-5, atol=1e-6)
    assert snapshot(ts) == before
    assert ts.step_accumulated() == 1


def test_values_are_copies_and_exact(ts):
    given = np.array([[0.1], [-0.0], [3e-40]], np.float32)
    ts.set_params({"W": given})
    given[0] = 9.0
    taken = ts.param("W")
    assert taken.tobytes() == np.array([[0.1], [-0.0], [3e-40]], np.float32).tobytes()
    taken[:] = 7.0
    ts.params()["W"][:] = 7.0
    assert ts.param("W")[0] == np.float32(0.1)
    ts.set_params({"W": [[1], [2], [3]]})
    np.testing.assert_array_equal(ts.param("W"), [[1], [2], [3]])


def test_state_can_be_read_and_set(device, fused):
    ts = fed_session({"a": [1.0, 2.0], "b": 3.0}, device, fused, lr=1.0, optimizer=rlx.SGD(momentum=0.5))
    ts.step(fed({"a": [1.0, 2.0], "b": 4.0}))
    np.testing.assert_array_equal(ts.state("a")["velocity"], [1.0, 2.0])
    assert ts.state("b")["velocity"].shape == ()
    given = np.array([10.0, 20.0], np.float32)
    ts.set_state("a", {"velocity": given})
    given[:] = 0
    ts.step(fed({"a": [0.0, 0.0], "b": 0.0}))
    np.testing.assert_array_equal(ts.state("a")["velocity"], [5.0, 10.0])
    np.testing.assert_array_equal(ts.param("a"), [1 - 1 - 5.0, 2 - 2 - 10.0])
    for call in (lambda: ts.state("c"), lambda: ts.set_state("a", {"m": given}), lambda: ts.set_state("c", {})):
        with pytest.raises(NameNotFoundError):
            call()
    with pytest.raises(rlx.errors.ShapeError):
        ts.set_state("a", {"velocity": [1.0]})
    np.testing.assert_array_equal(ts.state("a")["velocity"], [5.0, 10.0])


def test_the_rate_is_fed(ts):
    ts.step(LINREG_BATCH)
    assert ts.lr == 0.1
    ts.lr = 0.0
    before = ts.param("W")
    ts.step(LINREG_BATCH)
    np.testing.assert_array_equal(ts.param("W"), before)
    ts.lr = lambda n: 0.5 / (n + 1)
    assert ts.lr == pytest.approx(0.5 / 3)
    ts.step(LINREG_BATCH)
    ts.set_params({"W": np.ones((3, 1))})
    ts.step(LINREG_BATCH)
    assert ts.compile_count == 1


@pytest.mark.parametrize(
    "rate", [lambda n: np.nan, lambda n: -1.0, lambda n: np.inf, lambda n: "fast", lambda n: 1 / 0]
)
def test_a_bad_rate_stops_before_the_step(ts, rate):
    ts.step(LINREG_BATCH)
    ts.lr = rate
    before = snapshot(ts)
    with pytest.raises((ConfigError, ZeroDivisionError)):
        ts.step(LINREG_BATCH)
    assert snapshot(ts) == before
    ts.lr = 0.1
    ts.step(LINREG_BATCH)
    for wrong in (np.nan, -1.0, "fast", None, True):
        with pytest.raises(ConfigError):
            ts.lr = wrong
    assert ts.lr == 0.1


def test_settings_come_before_the_first_step(ts):
    ts.step(LINREG_BATCH)
    with pytest.raises(SessionError, match="before the first step"):
        ts.with_fused_optimizer()


def test_other_scalar_outputs_are_reported(device, fused):
    ts = rlx.TrainingSession(mlp(16), device=device)
    ts = ts.with_fused_optimizer() if fused else ts
    batch = mlp_data(16)
    logits = ts.predict(batch)["logits"]
    assert ts.step(batch).outputs == pytest.approx({"scale": float(np.mean(logits**2))}, rel=1e-5)


def test_sizes_of_a_named_dimension_share_weights_and_state(device, fused):
    ts = rlx.TrainingSession(mlp("B"), device=device, config=rlx.TrainConfig(lr=0.05, optimizer=rlx.Adam()))
    ts = ts.with_fused_optimizer() if fused else ts
    same = rlx.TrainingSession(mlp(24), device=device, config=rlx.TrainConfig(lr=0.05, optimizer=rlx.Adam()))
    for rows in (24, 5, 24, 5, 24):
        ts.step(mlp_data(rows))
    assert ts.compile_count == 2
    for rows in range(1, 9):
        ts.step(mlp_data(rows))
    assert ts.compile_count == 2 + 7
    ts.step(mlp_data(8))
    ts.step(mlp_data(24))  # no longer among the last 8 sizes
    assert ts.compile_count == 2 + 7 + 1
    assert ts.predict({"x": mlp_data(7)["x"]})["logits"].shape == (7, 3)
    same.step(mlp_data(24))
    with pytest.raises(rlx.errors.FeedError, match="named leading dimension"):
        same.step(mlp_data(5))


def test_other_sizes_for_evaluation_recompile_nothing_for_training(device, fused):
    ts = rlx.TrainingSession(mlp("B"), device=device)
    ts = ts.with_fused_optimizer() if fused else ts
    for _ in range(2):
        ts.step(mlp_data(3))
        for rows in range(10, 20):
            ts.evaluate(mlp_data(rows))
    assert ts.compile_count == 1


def test_params_that_are_not_trained_stay(device, fused):
    ts = rlx.TrainingSession(mlp(16), trainable=["b*", "w2"], device=device)
    ts = ts.with_fused_optimizer() if fused else ts
    assert ts.trainable == ("b1", "w2", "b2")
    before = ts.params()
    ts.step(mlp_data(16))
    changed = [name for name, value in ts.params().items() if not np.array_equal(value, before[name])]
    assert changed == ["b1", "w2", "b2"]


def test_buffers_take_their_next_values(device, fused):
    g = rlx.Graph()
    x, w, mean = g.input("x", (4,)), g.param("w", (4,), init=1.0), g.buffer("mean", (), init=0.0)
    g.assign(mean, 0.5 * mean + 0.5 * x.mean())
    g.set_outputs({"loss": (w * x).sum() - mean, "shifted": x - mean})
    ts = rlx.TrainingSession(g, device=device)
    ts = ts.with_fused_optimizer() if fused else ts
    feeds = {"x": np.full(4, 8.0)}
    ts.step(feeds)
    assert ts.param("mean") == 4.0
    ts.accumulate(feeds)
    assert ts.param("mean") == 6.0
    before = snapshot(ts)
    ts.evaluate(feeds)
    ts.gradients(feeds)
    np.testing.assert_array_equal(ts.predict(feeds)["shifted"], np.full(4, 2.0))
    assert snapshot(ts) == before


def test_a_session_can_go_on_the_other_way(device, fused):
    """Weights and optimizer state are the same things on the host path and inside the program."""
    one = linreg_session(device, fused, optimizer=rlx.Adam(), lr=0.1)
    other = linreg_session(device, False, optimizer=rlx.Adam(), lr=0.1)
    other.set_state("W", {"m": np.full((3, 1), 0.5), "v": np.full((3, 1), 0.25)})
    other = other if fused else other.with_fused_optimizer()
    assert other.state("W")["m"][0] == 0.5
    one.set_state("W", other.state("W"))
    one.step(LINREG_BATCH)
    other.step(LINREG_BATCH)
    np.testing.assert_allclose(other.param("W"), one.param("W"), rtol=1e-6)


def test_graphs_that_cannot_be_trained(device, fused):
    g = rlx.Graph()
    x, w = g.input("x", (3,)), g.param("W", (3,))
    g.set_outputs({"loss": x * w, "total": (x * w).sum()})
    ones = {"W": np.ones(3)}
    with pytest.raises(GraphError, match=r"loss 'loss'.*rank 0.*f32\[3\]"):
        rlx.TrainingSession(g, initial=ones, device=device)
    with pytest.raises(GraphError, match="no output of that name"):
        rlx.TrainingSession(g, initial=ones, device=device, loss="cost")
    with pytest.raises(ConfigError, match="param 'W': it has no value"):
        rlx.TrainingSession(g, device=device, loss="total")
    with pytest.raises(NameNotFoundError, match=r"trainable 'V'.*W"):
        rlx.TrainingSession(g, trainable=["V"], initial=ones, device=device, loss="total")
    with pytest.raises(NameNotFoundError, match="'V'"):
        rlx.TrainingSession(g, initial={"V": np.ones(3)}, device=device, loss="total")
    with pytest.raises(rlx.errors.ShapeError, match="param 'W'"):
        rlx.TrainingSession(g, initial={"W": np.ones(4)}, device=device, loss="total")
    with pytest.raises(ConfigError, match="no param to train"):
        rlx.TrainingSession(g, trainable=[], initial=ones, device=device, loss="total")
    reserved = rlx.Graph()
    reserved.set_outputs({"loss": (reserved.param("state/W/m", (2,), init=1.0)).sum()})
    with pytest.raises(GraphError, match="the session's own"):
        rlx.TrainingSession(reserved, device=device)


def test_export_bakes_the_trained_weights(ts, tmp_path):
    def files(path):
        return sorted((p.relative_to(path), p.read_bytes()) for p in path.rglob("*") if p.is_file())

    ts.step(LINREG_BATCH)
    ts.export(tmp_path / "a.mlpackage")
    ts.export(tmp_path / "b.mlpackage")
    assert files(tmp_path / "a.mlpackage") == files(tmp_path / "b.mlpackage") != []
    with pytest.raises(GraphError, match="output 'logits'"):
        ts.export(tmp_path / "c.mlpackage", outputs=["logits"])


def test_what_core_ml_could_train_itself(ts):
    verdict = ts.mlupdatetask_eligibility()
    assert not verdict and verdict.reason
