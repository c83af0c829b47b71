"""What changes during a run: the average of the weights, and which params are trained."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import ConfigError, NameNotFoundError, SessionError
from tests.training_cases import DEVICES, UPDATES, fed, fed_session, mlp, mlp_data, snapshot

pytestmark = [pytest.mark.parametrize("device", DEVICES), pytest.mark.parametrize("fused", UPDATES)]


def test_the_average_follows_the_weights(device, fused):
    ts = fed_session({"a": [1.0, 2.0], "b": 3.0}, device, fused, lr=1.0, ema=0.9)
    average = {"a": np.array([1.0, 2.0]), "b": np.array(3.0)}
    for n in range(3):
        ts.step(fed({"a": [0.5, n], "b": -1.0}))
        average = {name: 0.9 * value + 0.1 * ts.param(name) for name, value in average.items()}
    ts.accumulate(fed({"a": [0.5, 0.5], "b": -1.0}))
    ts.accumulate(fed({"a": [0.5, 0.5], "b": -1.0}))
    ts.step_accumulated()
    for name, value in ts.ema_params().items():
        np.testing.assert_allclose(value, 0.9 * average[name] + 0.1 * ts.param(name), rtol=1e-6)
    with pytest.raises(ConfigError, match=r"ema=0\.999"):
        fed_session({"a": [1.0]}, device, fused).ema_params()


def test_freezing_keeps_the_others_state(device, fused):
    config = rlx.TrainConfig(lr=0.01, optimizer=rlx.Adam(), ema=0.5)
    ts = rlx.TrainingSession(mlp(16), device=device, config=config)
    ts = ts.with_fused_optimizer() if fused else ts
    for n in range(3):
        ts.step(mlp_data(16, n))
    states = {name: ts.state(name) for name in ts.trainable}
    ts.set_trainable(["w2", "b*"])
    assert ts.trainable == ("b1", "w2", "b2") and ts.fused_active is fused
    for name in ts.trainable:
        for slot, value in states[name].items():
            np.testing.assert_array_equal(ts.state(name)[slot], value)
    with pytest.raises(NameNotFoundError, match="no trained param"):
        ts.state("w1")
    before = ts.param("w1")
    ts.step(mlp_data(16, 3))
    np.testing.assert_array_equal(ts.param("w1"), before)
    assert ts.compile_count == 2 and ts.steps == 4
    ts.set_trainable(None)
    for slot, value in states["w1"].items():
        np.testing.assert_array_equal(ts.state("w1")[slot], value)
    ts.step(mlp_data(16, 4))
    assert not np.array_equal(ts.param("w1"), before)
    assert ts.compile_count == 3


def test_a_param_that_joins_starts_its_own_count(device, fused):
    """Adam's first step is lr whatever the gradient, also for a param that joins at update 5."""
    ts = rlx.TrainingSession(
        mlp(16), trainable=["w1", "b1"], device=device, config=rlx.TrainConfig(lr=0.01, optimizer=rlx.Adam())
    )
    ts = ts.with_fused_optimizer() if fused else ts
    for n in range(5):
        ts.step(mlp_data(16, n))
    ts.set_trainable(None)
    before = ts.params()
    ts.step(mlp_data(16, 5))
    np.testing.assert_allclose(np.abs(ts.param("b2") - before["b2"]), 0.01, rtol=1e-4)
    assert np.abs(ts.param("b1") - before["b1"]).max() < 0.01


def test_what_cannot_be_trained_changes_nothing(device, fused):
    groups = rlx.ParamGroups([rlx.Group("w*", rlx.Adam()), rlx.Group("b1", rlx.SGD())])
    ts = rlx.TrainingSession(
        mlp(16), trainable=["w1", "b1"], device=device, config=rlx.TrainConfig(lr=0.01, optimizer=groups)
    )
    ts = ts.with_fused_optimizer() if fused else ts
    ts.step(mlp_data(16))
    before = snapshot(ts)
    for patterns, error in ((["x*"], NameNotFoundError), ([], ConfigError), ([3], ConfigError), (["b2"], ConfigError)):
        with pytest.raises(error):
            ts.set_trainable(patterns)
    ts.accumulate(mlp_data(16))
    with pytest.raises(SessionError, match="pending"):
        ts.set_trainable(["w2"])
    ts.discard_accumulated()
    assert snapshot(ts) == before and ts.trainable == ("w1", "b1")
    ts.step(mlp_data(16))


def test_joining_an_optimizer_of_the_host_ends_the_fusion(device, fused):
    groups = rlx.ParamGroups([rlx.Group("w*", rlx.SOAP()), rlx.Group("*", rlx.Adam())])
    ts = rlx.TrainingSession(
        mlp(16), trainable="b*", device=device, config=rlx.TrainConfig(lr=0.01, optimizer=groups)
    )
    ts = ts.with_fused_optimizer() if fused else ts
    ts.step(mlp_data(16))
    state = ts.state("b1")
    ts.set_trainable(None)
    assert not ts.fused_active and (not fused or "SOAP" in ts.fused_reason)
    np.testing.assert_array_equal(ts.state("b1")["v"], state["v"])
    ts.step(mlp_data(16))
    assert ts.steps == 2
