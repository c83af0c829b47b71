"""Batch norm over a training run and after it: statistics, running averages, the inference form."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import interp, ops
from tests.helpers import same


def network(momentum: float = 0.1) -> rlx.Graph:
    g = rlx.Graph()
    x = g.input("x", (4, 3))
    mean, var = g.buffer("mean", (3,)), g.buffer("var", (3,), 1.0)
    y = ops.batch_norm(x, mean, var, g.param("gamma", (3,), 1.0), g.param("beta", (3,), 0.0), momentum=momentum)
    g.set_outputs({"loss": ops.mean(ops.square(y)), "y": y})
    return g


X = np.random.default_rng(0).normal(3.0, 2.0, (4, 3)).astype(np.float32)


def test_training_uses_the_batch_and_moves_the_averages_with_the_unbiased_variance():
    outputs, assigns = interp.run(network(), {"x": X})
    same(outputs["y"], (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-5), 1e-5, 1e-6)
    same(assigns["mean"], 0.1 * X.mean(0), 1e-5)
    same(assigns["var"], 0.9 + 0.1 * X.var(0, ddof=1), 1e-5)


def test_inference_uses_the_averages_and_assigns_nothing():
    g = rlx.inference(network())
    g.verify()
    assert not g.assigns
    assert "batch_norm" not in {node.op.name for node in g.nodes}
    mean, var = np.float32([1, 2, 3]), np.float32([4, 1, 9])
    y = rlx.evaluate(g, {"x": X, "mean": mean, "var": var})["y"]
    same(y, (X - mean) / np.sqrt(var + 1e-5), 1e-5)


def test_the_averages_reach_the_statistics():
    buffers = {"mean": np.zeros(3, np.float32), "var": np.ones(3, np.float32)}
    for _ in range(200):
        buffers = interp.run(network(), {"x": X, **buffers})[1]
    same(buffers["mean"], X.mean(0), 1e-5)
    same(buffers["var"], X.var(0, ddof=1), 1e-5)


def test_a_large_offset_loses_no_digits():
    shifted = np.float32([[10000, 1, 0], [10001, 2, 0], [10002, 3, 0], [10003, 4, 0]])
    y = interp.run(network(), {"x": shifted})[0]["y"]
    same(y[:, 0], y[:, 1], 1e-5)
    same(y[:, 2], np.zeros(4))


def test_gradients_do_not_depend_on_the_averages():
    g = rlx.grad(network(), ["x", "gamma"])
    feeds = {"x": X, "d_output": 1.0}
    first = rlx.evaluate(g, feeds)
    second = rlx.evaluate(g, {**feeds, "mean": np.full(3, 7.0), "var": np.full(3, 5.0)})
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name])


def shared(uses: int, dtype: rlx.DType = rlx.f32) -> rlx.Graph:
    """One pair of averages for x, x + 10, x + 20, ..."""
    g = rlx.Graph()
    x, mean, var = g.input("x", (4, 3), dtype), g.buffer("mean", (3,)), g.buffer("var", (3,), 1.0)
    parts = [ops.batch_norm(x * (i + 1.0) + 10.0 * i, mean, var) for i in range(uses)]
    g.set_outputs({f"y{i}": part for i, part in enumerate(parts)})
    return g


@pytest.mark.parametrize(("dtype", "near"), [(rlx.f32, 1e-5), (rlx.f16, 2e-3)])
def test_averages_used_more_than_once_move_once_for_each_use(dtype, near):
    x, mean, var = X.astype(dtype.numpy), np.zeros(3), np.ones(3)
    g = shared(3, dtype)
    assigns = interp.run(g, {"x": x})[1]
    for i in range(3):
        each = x.astype(np.float64) * (i + 1) + 10 * i
        mean, var = 0.9 * mean + 0.1 * each.mean(0), 0.9 * var + 0.1 * each.var(0, ddof=1)
    same(assigns["mean"], mean, near)
    same(assigns["var"], var, near)


def test_each_use_of_shared_averages_predicts_with_them_and_has_the_gradient_of_its_own():
    averages = {"mean": np.float32([1, 2, 3]), "var": np.float32([4, 1, 9])}
    predicted = rlx.evaluate(rlx.inference(shared(2)), {"x": X, **averages})
    for i in range(2):
        same(predicted[f"y{i}"], (X * (i + 1) + 10 * i - averages["mean"]) / np.sqrt(averages["var"] + 1e-5), 1e-5)
    both, one = rlx.vjp(shared(2), ["x"]), rlx.vjp(shared(1), ["x"])
    d, zero = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32), np.zeros((4, 3), np.float32)
    first, second = rlx.evaluate(one, {"x": X, "d_y0": d}), rlx.evaluate(both, {"x": X, "d_y0": d, "d_y1": zero})
    for name, value in first.items():
        same(second[name], value, 1e-5)


@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.native)])
def test_a_layer_applied_twice_trains_its_averages_as_torch_does(device):
    g, layer = rlx.Graph(), rlx.nn.BatchNorm()
    y = layer(layer(g.input("x", (2, 1))) + 10.0)
    g.set_outputs({"loss": ops.sum(y)})
    session = rlx.TrainingSession(g, device=device)
    session.step({"x": np.float32([[1], [3]])})
    params = session.params()
    same(params["batchnorm.mean"], [0.9 * 0.1 * 2 + 0.1 * 10], 1e-5)  # torch 2.13: 1.18
    same(params["batchnorm.var"], [0.9 * (0.9 + 0.1 * 2) + 0.1 * 2 * (1 / (1 + 1e-5))], 1e-5)
