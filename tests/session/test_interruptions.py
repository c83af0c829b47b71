"""What comes between updates leaves the run as if it had not: loading, freezing, joining, discarding, other rules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import ConfigError
from rlx_swift.optim import previous_gradient
from tests.training_cases import DEVICES, UPDATES

pytestmark = [pytest.mark.parametrize("device", DEVICES), pytest.mark.parametrize("fused", UPDATES)]


def session(graph, device, fused, **options):
    trainable = options.pop("trainable", None)
    ts = rlx.TrainingSession(graph, trainable, config=rlx.TrainConfig(**options), device=device)
    return ts.with_fused_optimizer() if fused else ts


def squares():
    g = rlx.Graph("squares")
    w = g.param("W", (3, 2), np.ones((3, 2)))
    g.set_outputs({"loss": ((g.input("x", (4, 3)) @ w) ** 2).mean()})
    return g


def test_a_loaded_run_scales_and_skips(device, fused, tmp_path):
    ts = session(squares(), device, fused).with_precision_policy("auto_mixed")
    ts.step({"x": np.full((4, 3), 0.1)})
    ts.save(tmp_path / "run.ckpt")
    loaded = rlx.TrainingSession.load(tmp_path / "run.ckpt")
    tiny = {"x": np.full((4, 3), 1e-4)}
    np.testing.assert_array_equal(loaded.gradients(tiny)[1]["W"], ts.gradients(tiny)[1]["W"])
    before = loaded.param("W")
    assert loaded.step({"x": np.full((4, 3), np.inf)}).skipped
    np.testing.assert_array_equal(loaded.param("W"), before)
    assert loaded.loss_scale == 2.0**11


def test_given_gradients_draw_as_steps_do(device, fused):
    g = rlx.Graph("dropped")
    h = g.input("x", (8, 16)) @ g.param("W", (16, 4), np.full((16, 4), 0.1))
    g.set_outputs({"loss": (rlx.ops.dropout(h, 0.5) ** 2).mean()})
    batch = {"x": np.ones((8, 16), np.float32)}
    stepped = session(g, device, fused, lr=0.0)
    by_steps = [stepped.step(batch).loss for _ in range(4)]
    given, by_gradients = session(g, device, fused, lr=0.0), []
    for _ in range(4):
        loss, gradients = given.gradients(batch)
        given.apply_gradients(gradients)
        by_gradients.append(loss)
    np.testing.assert_allclose(by_gradients, by_steps, rtol=1e-6)
    assert len(set(by_steps)) > 1


def line():
    g = rlx.Graph("line")
    g.set_outputs({"loss": g.param("p", (), 0.0) + g.param("q", (), 0.0)})
    return g


@pytest.mark.parametrize("loaded", [False, True])
def test_a_frozen_param_does_not_age(device, fused, loaded, tmp_path):
    """By a constant gradient Adam moves by lr, if the correction counts the updates that its averages had."""
    ts = session(line(), device, fused, lr=0.1, optimizer=rlx.Adam())
    ts.step({})
    ts.set_trainable(["q"])
    for _ in range(50):
        ts.step({})
    if loaded:
        ts.save(tmp_path / "run.ckpt")
        ts = rlx.TrainingSession.load(tmp_path / "run.ckpt")
    ts.set_trainable(None)
    before = ts.param("p")
    ts.step({})
    assert ts.param("p") - before == pytest.approx(-0.1, rel=1e-5)


@pytest.mark.parametrize("joins", [False, True])
def test_one_that_joins_makes_no_estimate_for_the_others(device, fused, joins):
    g = rlx.Graph("quartic")
    g.set_outputs({"loss": g.param("p", (), 1.0) ** 4 + g.param("q", (), 1.0) ** 4})
    ts = session(g, device, fused, lr=0.01, optimizer=rlx.SophiaH(every=10), trainable=["p"])
    for number in range(8):
        if joins and number == 3:
            ts.set_trainable(None)
        ts.step({})
    assert ts.state("p")["h"] == pytest.approx((1 - 0.99) * 12, rel=1e-5)  # of the second derivative at 1


def averaging():
    g = squares()
    average = g.buffer("average", (3,), np.zeros(3))
    g.assign(average, average * 0.5 + 0.5 * g.inputs["x"].mean(axis=0))
    return g


@pytest.mark.parametrize("loss_scale", ["auto", "dynamic"])
def test_discarded_batches_leave_no_trace(device, fused, loss_scale):
    ts = session(averaging(), device, fused, loss_scale=loss_scale)
    bad = {"x": np.full((4, 3), np.nan)}
    ts.accumulate({"x": np.ones((4, 3))})
    ts.accumulate(bad)
    ts.discard_accumulated()
    np.testing.assert_array_equal(ts.param("average"), np.zeros(3))

    def broken():
        yield bad
        raise OSError("the disk")

    with pytest.raises(OSError, match="the disk"):
        ts.fit(broken(), accumulate=2, progress=False)
    np.testing.assert_array_equal(ts.param("average"), np.zeros(3))


@dataclass(frozen=True)
class Changing(rlx.Optimizer):
    """Its numbers have other names from the fourth update on."""

    def scalars(self, step, lr):
        return {"lr": lr, "late": 1.0} if step > 3 else {"lr": lr}

    def update(self, xp, grad, state, param, lr, late=0.0):
        return param - lr * grad * (1.0 - late), {}


def test_numbers_that_change_their_names_are_refused(device, fused):
    ts = session(line(), device, fused, optimizer=Changing())
    for _ in range(3):
        ts.step({})
    with pytest.raises(ConfigError, match=r"Changing scalars: expected the numbers \['lr'\] at every update"):
        ts.step({})
    assert ts.steps == 3


@dataclass(frozen=True)
class Recording(rlx.Optimizer):
    """Keeps the gradient at the weights of before."""

    requires = previous_gradient

    def init(self, xp, param):
        return {"previous": xp.zeros_like(param)}

    def update(self, xp, grad, state, param, lr, previous_gradient):
        return param - lr * grad, {"previous": previous_gradient}


def test_the_weights_of_before_are_those_of_all_params(device, fused):
    g = rlx.Graph("product")
    w, b = g.param("W", (), 1.0), g.param("b", (), 1.0)
    g.set_outputs({"loss": w * b * b * 0.1})
    groups = rlx.ParamGroups([rlx.Group("W", Recording()), rlx.Group("b", rlx.SGD())])
    ts = session(g, device, fused, lr=1.0, optimizer=groups)
    ts.step({})
    ts.step({})
    assert ts.state("W")["previous"] == pytest.approx(0.1, rel=1e-6)  # 0.1 b^2 at b = 1, not at the present 0.8


def test_an_average_starts_from_what_the_param_starts_from(device, fused):
    g = rlx.Graph("stiefel")
    w = g.param("W", (4, 2), np.arange(8.0).reshape(4, 2) ** 1.5)
    g.set_outputs({"loss": (g.param("p", (3,), np.ones(3)) ** 4).sum() + (w**4).sum()})
    ts = session(g, device, fused, ema=0.9, optimizer=rlx.Stiefel(), trainable=["p"])
    ts.set_trainable(None)
    np.testing.assert_array_equal(ts.ema_params()["W"], ts.param("W"))
