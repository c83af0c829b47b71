"""Noise in a graph: drawn by address for each micro-batch, the same on every device, in both passes, after a resume."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.philox import uniform
from tests.training_cases import DEVICES, UPDATES


def noisy() -> rlx.Graph:
    """loss = sum(w * [u < 0.5]), so that the gradient is the mask."""
    g = rlx.Graph()
    x, w = g.input("x", ()), g.param("w", (50,), init=0.0)
    mask = (g.uniform((50,)) < 0.5).astype(rlx.f32)
    g.set_outputs({"loss": (w * mask).sum() * x, "mask": mask.sum()})
    return g


def mask(micro_batch, seed=3):
    return (uniform(seed, micro_batch, "noise/0", (50,)) < 0.5).astype(np.float32)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
def test_each_micro_batch_has_its_own(fused, device, tmp_path):
    config = rlx.TrainConfig(lr=1.0, seed=3, loss_scale="dynamic")
    ts = rlx.TrainingSession(noisy(), device=device, config=config)
    ts = ts.with_fused_optimizer() if fused else ts
    batch, expected = {"x": 1.0}, np.zeros(50)
    np.testing.assert_array_equal(ts.gradients(batch)[1]["w"], mask(0))
    assert ts.step(batch).outputs["mask"] == mask(0).sum()
    ts.step(batch)
    expected = -(mask(0) + mask(1))
    np.testing.assert_array_equal(ts.param("w"), expected)
    ts.accumulate(batch)
    ts.accumulate(batch)
    ts.evaluate(batch)
    ts.predict(batch)
    ts.step_accumulated()
    expected -= (mask(2) + mask(3)) / 2
    np.testing.assert_array_equal(ts.param("w"), expected)
    assert ts.step({"x": np.nan}).skipped
    ts.save(tmp_path / "run.ckpt")
    for run in (ts, rlx.TrainingSession.load(tmp_path / "run.ckpt", device=device)):
        run.step(batch)
        np.testing.assert_array_equal(run.param("w"), expected - mask(4))


@pytest.mark.parametrize("device", DEVICES)
def test_other_runs_draw_or_are_fed(device):
    g = rlx.Graph()
    g.set_outputs({"y": g.input("x", (2,)) + g.uniform((2,))})
    feeds = {"x": [1.0, 2.0]}
    compiled = rlx.Session(device).compile(g)
    first, second = compiled.run(feeds)["y"], compiled.run(feeds)["y"]
    np.testing.assert_array_equal(first, np.float32([1, 2]) + uniform(0, 0, "noise/0", (2,)))
    np.testing.assert_array_equal(second, np.float32([1, 2]) + uniform(0, 1, "noise/0", (2,)))
    np.testing.assert_array_equal(compiled.run({**feeds, "noise/0": [0.0, 0.5]})["y"], [1.0, 2.5])
    np.testing.assert_array_equal(rlx.evaluate(g, feeds)["y"], first)
    assert not np.array_equal(rlx.evaluate(g, feeds, seed=1)["y"], first)
