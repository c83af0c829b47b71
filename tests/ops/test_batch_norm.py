"""Batch norm over a training run and after it: statistics, running averages, the inference form."""

from __future__ import annotations

import numpy as np

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
