"""Schedules: values, limits, and how a session follows them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.optim import schedules
from rlx_swift.optim.schedule import from_data, to_data
from tests.training_cases import LINREG_BATCH, UPDATES, linreg_session


def values(schedule, count):
    return [schedule(n) for n in range(count)]


def test_step_and_exponential():
    assert values(schedules.Step(1.0, every=2, factor=0.5), 6) == [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
    np.testing.assert_allclose(values(schedules.Exponential(2.0, 0.9), 3), [2.0, 1.8, 1.62])


def test_cosine_rises_and_falls():
    schedule = schedules.Cosine(1.0, total=14, warmup=4, final=0.1)
    assert values(schedule, 4) == [0.25, 0.5, 0.75, 1.0]
    assert schedule(4) == 1.0
    assert schedule(9) == pytest.approx(0.55)
    assert schedule(14) == schedule(10**9) == pytest.approx(0.1)
    assert all(a >= b for a, b in zip(values(schedule, 20)[3:], values(schedule, 20)[4:], strict=False))
    assert schedules.Cosine(1.0, total=10)(5) == pytest.approx(0.5)


def test_one_cycle_as_in_pytorch():
    """OneCycleLR(max_lr=1, total_steps=10): 0.04 at first, 1 after 2 steps, 4e-6 at last."""
    schedule = schedules.OneCycle(1.0, total=10)
    assert schedule(0) == pytest.approx(0.04)
    assert schedule(1) == pytest.approx(0.52)
    assert schedule(2) == pytest.approx(1.0)
    assert schedule(9) == schedule(100) == pytest.approx(4e-6)
    middle = 4e-6 + (1 - 4e-6) * (1 + math.cos(math.pi * 3 / 7)) / 2
    assert schedule(5) == pytest.approx(middle)


def test_plateau_waits_and_lowers():
    schedule = schedules.Plateau(1.0, factor=0.5, patience=1, lowest=0.3)
    rates = []
    for loss in (5.0, 4.0, 4.0, 4.1, 3.0, float("nan"), 3.0, 3.0, 3.0, 3.0):
        schedule.observe(loss)
        rates.append(schedule(0))
    assert rates == [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3, 0.3]


def test_plateau_never_raises_the_rate():
    schedule = schedules.Plateau(0.005, factor=0.5, patience=0, lowest=0.01)
    for _ in range(3):
        schedule.observe(1.0)
    assert schedule(0) == 0.005


def test_plateau_takes_infinities_for_no_progress(tmp_path):
    """They are waited for as NaN is, and the first finite number is the best."""
    schedule = schedules.Plateau(1.0, factor=0.5, patience=1)
    rates = []
    for loss in (math.inf, -math.inf, 3.0, math.inf, 2.0):
        schedule.observe(loss)
        rates.append(schedule(0))
    assert (rates, schedule.best, schedule.waited) == ([1.0, 0.5, 0.5, 0.5, 0.5], 2.0, 0)
    schedule.observe(np.float32(1.5))
    assert type(schedule.best) is float
    ts = linreg_session("numpy", lr=schedules.Plateau(0.1))
    far = {"x": LINREG_BATCH["x"], "target": np.full_like(LINREG_BATCH["target"], 1e25)}
    assert ts.fit([LINREG_BATCH], validation=far, progress=False).epochs[0]["val_loss"] == math.inf
    ts.save(tmp_path / "run.ckpt")
    loaded = rlx.TrainingSession.load(tmp_path / "run.ckpt", device="numpy")
    assert loaded.schedule == ts.schedule == schedules.Plateau(0.1, waited=1)


@pytest.mark.parametrize("make", [
    lambda: schedules.Plateau(1.0, best=math.inf), lambda: schedules.Plateau(1.0, waited=-1),
    lambda: schedules.Step(1.0, every=0), lambda: schedules.Step(1.0, 2, factor=1.5),
    lambda: schedules.Cosine(-1.0, 10), lambda: schedules.Cosine(1.0, total=5, warmup=5),
    lambda: schedules.Cosine(1.0, total=2.5), lambda: schedules.Cosine(1.0, True),
    lambda: schedules.OneCycle(1.0, total=1), lambda: schedules.Exponential(1.0, 0.0),
    lambda: schedules.Plateau(np.nan), lambda: schedules.Plateau(1.0, patience=-1), lambda: schedules.Constant("1"),
])
def test_settings_are_checked(make):
    with pytest.raises(rlx.errors.ConfigError, match="expected"):
        make()


@pytest.mark.parametrize("fused", UPDATES)
def test_a_session_asks_for_each_applied_update(fused):
    """The first update has schedule(0), a rejected batch asks for nothing, and no change compiles."""
    ts = linreg_session("numpy", fused, lr=schedules.Step(0.1, every=2, factor=0.5))
    rates = []
    for _ in range(5):
        before, gradient = ts.param("W"), ts.gradients(LINREG_BATCH)[1]["W"]
        rates.append(ts.lr)
        with pytest.raises(rlx.errors.FeedError):
            ts.step({})
        ts.step(LINREG_BATCH)
        np.testing.assert_allclose(ts.param("W"), before - rates[-1] * gradient, rtol=1e-5, atol=1e-7)
    assert rates == [0.1, 0.1, 0.05, 0.05, 0.025]
    assert ts.compile_count == 1


def test_fit_shows_plateau_the_validation_loss():
    config = schedules.Plateau(0.1, factor=0.5, patience=0)
    ts = linreg_session(lr=config)
    far = {"x": LINREG_BATCH["x"], "target": LINREG_BATCH["target"] + 100}
    history = ts.fit([LINREG_BATCH], epochs=6, validation=far, progress=False)
    losses = [log["val_loss"] for log in history.epochs]
    assert losses == sorted(losses)
    assert ts.lr == 0.1 * 0.5**5
    assert config.lr == 0.1  # a session works on a copy
    ts.fit([LINREG_BATCH], epochs=2, progress=False)


@pytest.mark.parametrize("schedule", [
    schedules.Constant(0.1), schedules.Step(0.1, 3), schedules.Exponential(0.1, 0.9), schedules.Cosine(0.1, 10, 2),
    schedules.OneCycle(0.1, 10), schedules.Plateau(0.1, best=2.0, waited=3),
])
def test_named_ones_are_data(schedule):
    assert from_data(to_data(schedule)) == schedule


def test_a_function_must_be_given_again():
    assert to_data(warm) == {"callable": "warm"}
    with pytest.raises(rlx.errors.ConfigError, match=r"schedule 'warm'.*schedule="):
        from_data(to_data(warm))


def warm(n):
    return 0.1


@pytest.mark.parametrize("fused", UPDATES)
def test_numbers_may_be_those_of_numpy(fused, tmp_path):
    """They are Python's from there on: in the rule, and in a checkpoint."""
    f, i = np.float32, np.int64
    configs = [
        {"lr": f(0.25), "ema": f(0.5), "seed": i(3), "loss_scale": f(8), "clip": rlx.optim.clip_by_norm(f(2))},
        {"lr": schedules.Cosine(f(0.25), i(10), i(2)), "optimizer": rlx.Adam(beta1=f(0.5), amsgrad=np.bool_(True))},
        {"optimizer": rlx.ParamGroups([rlx.Group("*", rlx.Muon(ns_steps=i(3), momentum=f(0.5)), lr_scale=f(2))])},
    ]
    for config in configs:
        ts = linreg_session("numpy", fused, **config)
        ts.accumulate(LINREG_BATCH, weight=f(2))
        ts.step_accumulated()
        ts.save(tmp_path / "run.ckpt")
        other = rlx.TrainingSession.load(tmp_path / "run.ckpt", device="numpy")
        assert (other.lr, other.config.optimizer, other.config.clip) == (ts.lr, ts.config.optimizer, ts.config.clip)
    assert [type(n) for n in (rlx.Adam(beta1=f(0.5)).beta1, rlx.SOAP(every=i(2)).every)] == [float, int]
    for make in (lambda: rlx.SOAP(every=True), lambda: rlx.Muon(ns_steps=0), lambda: rlx.SophiaH(every=2.0)):
        with pytest.raises(rlx.errors.ConfigError, match="expected an integer of at least 1"):
            make()
