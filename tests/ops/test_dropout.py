"""Dropout: its numbers, its mask forward and backward, its place in sessions, files and the inference form."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.errors import ConfigError
from rlx_swift.ir.graph import Graph
from rlx_swift.philox import uniform

X = np.random.default_rng(0).uniform(1, 2, (64, 50)).astype(np.float32)


def network(rate: float = 0.25) -> Graph:
    g = rlx.Graph()
    h = ops.dropout(g.input("x", (64, 50)) * g.param("w", (50,), 1.0), rate)
    g.set_outputs({"loss": ops.mean(ops.square(ops.dropout(h, rate))), "h": h})
    return g


def test_each_site_has_its_own_numbers():
    g = network()
    assert list(g.inputs) == ["x", "noise/0", "noise/1"]
    assert not np.array_equal(uniform(0, 0, "noise/0", (100,)), uniform(0, 0, "noise/1", (100,)))


def test_the_seed_alone_decides_the_mask():
    first, again, other = (rlx.evaluate(network(), {"x": X}, seed=s)["h"] for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    kept = uniform(1, 0, "noise/0", X.shape) >= 0.25
    np.testing.assert_allclose(first, np.where(kept, X / 0.75, 0), rtol=1e-6)
    assert abs(kept.mean() - 0.75) < 0.02


def test_numbers_may_be_fed():
    fed = rlx.evaluate(network(), {"x": X, "noise/0": np.full(X.shape, 0.1)})
    assert not fed["h"].any()


def test_the_backward_pass_has_the_mask_of_the_forward_pass():
    g = network()
    whole = rlx.grad_with_loss(g, "x")
    out = rlx.evaluate(whole, {"x": X, "d_output": 1.0}, seed=3)
    dropped = rlx.evaluate(g, {"x": X}, seed=3)["h"] == 0
    assert (out["grad_x"][dropped] == 0).all() and (out["grad_x"] != 0).any()
    numbers = {site: uniform(0, 0, site, X.shape) for site in ("noise/0", "noise/1")}
    rlx.check_grads(g, {"x": X, **numbers}, ["x", "w"])


def test_inference_leaves_everything_in():
    g = rlx.inference(network())
    assert list(g.inputs) == ["x"]
    np.testing.assert_array_equal(rlx.evaluate(g, {"x": X})["h"], X)


def test_json_keeps_random_inputs():
    g = network()
    back = Graph.from_json(g.to_json())
    assert str(back) == str(g)


@pytest.mark.parametrize("rate", [0, 1])
def test_the_ends_of_the_rate(rate):
    g = rlx.Graph()
    x = g.input("x", (3,))
    g.set_outputs({"y": ops.dropout(x, rate)})
    assert rlx.evaluate(g, {"x": [1, np.inf, 3]}, seed=0)["y"].tolist() == ([1, np.inf, 3] if rate == 0 else [0, 0, 0])


@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan"), "half", None])
def test_rates_that_are_refused(rate):
    with pytest.raises(ConfigError, match="rate"):
        ops.dropout(rlx.Graph().input("x", (2,)), rate)


DEVICES = ["numpy", pytest.param("cpu", marks=pytest.mark.native)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", [False, True])
def test_a_session_draws_by_seed_and_micro_batch(device, fused):
    def trained(steps: int, seed: int = 5) -> list[float]:
        ts = rlx.TrainingSession(network(), config=rlx.TrainConfig(lr=0.0, seed=seed), device=device)
        ts = ts.with_fused_optimizer() if fused else ts
        return [ts.step({"x": X}).loss for _ in range(steps)]

    losses = trained(3)
    assert losses == trained(3) and len(set(losses)) == 3
    assert losses != trained(3, seed=6)
    for number, loss in enumerate(losses):
        numbers = {site: uniform(5, number, site, X.shape) for site in ("noise/0", "noise/1")}
        np.testing.assert_allclose(loss, rlx.evaluate(network(), {"x": X, **numbers})["loss"], rtol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_evaluating_and_predicting_leave_everything_in_and_draw_nothing(device):
    ts = rlx.TrainingSession(network(), config=rlx.TrainConfig(lr=0.0), device=device)
    first = ts.step({"x": X}).loss
    np.testing.assert_allclose(ts.evaluate({"x": X}), np.square(X).mean(), rtol=1e-5)
    np.testing.assert_allclose(ts.predict({"x": X})["h"], X, rtol=1e-6)
    second = rlx.TrainingSession(network(), config=rlx.TrainConfig(lr=0.0), device=device)
    assert second.step({"x": X}).loss == first
    assert second.step({"x": X}).loss == ts.step({"x": X}).loss


def test_micro_batches_have_masks_of_their_own():
    ts = rlx.TrainingSession(network(), config=rlx.TrainConfig(lr=0.0), device="numpy")
    losses = [ts.accumulate({"x": X}) for _ in range(2)]
    ts.step_accumulated()
    losses.append(ts.step({"x": X}).loss)
    assert len(set(losses)) == 3


def test_a_checkpoint_resumes_the_masks(tmp_path):
    ts = rlx.TrainingSession(network(), config=rlx.TrainConfig(lr=0.1), device="numpy")
    ts.step({"x": X})
    ts.save(tmp_path / "run.ckpt")
    rest = [ts.step({"x": X}).loss for _ in range(2)]
    again = rlx.TrainingSession.load(tmp_path / "run.ckpt", device="numpy")
    assert [again.step({"x": X}).loss for _ in range(2)] == rest


@pytest.mark.parametrize("device", DEVICES)
def test_a_compiled_graph_draws_anew_each_run(device):
    compiled = rlx.Session(device=device).compile(network())
    runs = [compiled.run({"x": X})["h"] for _ in range(2)]
    assert not np.array_equal(*runs)
    np.testing.assert_array_equal(runs[0] == 0, rlx.evaluate(network(), {"x": X}, seed=0)["h"] == 0)


def test_a_named_leading_dimension_draws_numbers_of_each_size():
    def function(x):
        return {"y": ops.dropout(x)}

    g = rlx.trace(function, x=rlx.spec(("B", 4)))
    compiled = rlx.Session(device="numpy").compile(g)
    assert [compiled.run({"x": np.ones((n, 4))})["y"].shape for n in (2, 5)] == [(2, 4), (5, 4)]
