"""Whole runs in mixed precision end within 1% of the f32 result: a convolutional network on digits, a transformer."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.nn import init
from tests.training_cases import DEVICES


def digits():
    datasets = pytest.importorskip("sklearn.datasets")
    images, labels = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    x = (images[order] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    y = labels[order].astype(np.int32)
    return {"x": x[360:], "y": y[360:]}, {"x": x[:360], "y": y[:360]}


def network(x, y, k1, c1, k2, c2, w, b):
    h = ops.max_pool2d(ops.relu(ops.conv2d(x, k1, c1, padding="same")), 2)
    h = ops.max_pool2d(ops.relu(ops.conv2d(h, k2, c2, padding="same")), 2)
    logits = h.reshape(x.shape[0], -1) @ w + b
    return {"loss": ops.softmax_cross_entropy_with_logits(logits, y).mean(), "logits": logits}


@pytest.mark.native
@pytest.mark.parametrize("policy", ["auto_mixed", "auto_mixed_conservative"])
def test_a_convolutional_network(policy):
    train, test = digits()
    he = init.he_normal()
    graph = rlx.trace(
        network, x=rlx.spec(("B", 1, 8, 8)), y=rlx.spec(("B",), rlx.i32),
        k1=rlx.param_spec((8, 1, 3, 3), init=he), c1=rlx.param_spec(8, init=0.0),
        k2=rlx.param_spec((16, 8, 3, 3), init=he), c2=rlx.param_spec(16, init=0.0),
        w=rlx.param_spec((64, 10), init=he), b=rlx.param_spec(10, init=0.0),
    )

    def accuracy(policy):
        ts = rlx.TrainingSession(graph, config=rlx.TrainConfig(lr=3e-3, optimizer=rlx.AdamW()), device="cpu")
        ts = ts.with_precision_policy(policy).with_fused_optimizer()
        ts.fit(rlx.batches(train, 64, seed=0), epochs=6, progress=False)
        assert ts.compile_count == 2
        return np.mean(ts.predict(test)["logits"].argmax(1) == test["y"])

    full, mixed = accuracy("always_f32"), accuracy(policy)
    assert full > 0.9 and abs(full - mixed) <= 0.01


VOCABULARY, WIDTH, LENGTH, ROWS = 12, 32, 16, 16


def transformer():
    """A decoder of one layer that learns to continue counting sequences."""
    g = rlx.Graph("transformer")
    ids, labels = g.input("ids", (ROWS, LENGTH), rlx.i32), g.input("labels", (ROWS, LENGTH), rlx.i32)
    rng = np.random.default_rng(0)

    def param(name, *shape, value=None):
        return g.param(name, shape, init=rng.normal(0, 0.1, shape) if value is None else value)

    def norm(h, name):
        return ops.layer_norm(h, param(f"{name}.scale", WIDTH, value=1.0), param(f"{name}.shift", WIDTH, value=0.0))

    h = ops.gather(param("table", VOCABULARY, WIDTH), ids, 0) + param("positions", LENGTH, WIDTH)
    a = norm(h, "norm1")
    q, k, v = (a @ param(name, WIDTH, WIDTH) for name in ("wq", "wk", "wv"))
    scores = ops.matmul(q, k, transpose_y=True) * WIDTH**-0.5
    mask = g.constant(np.triu(np.full((LENGTH, LENGTH), -1e9), 1))
    h = h + (ops.softmax(scores + mask) @ v) @ param("wo", WIDTH, WIDTH)
    h = h + ops.gelu(norm(h, "norm2") @ param("w1", WIDTH, 64) + param("b1", 64, value=0.0)) @ param("w2", 64, WIDTH)
    logits = norm(h, "norm3") @ param("head", WIDTH, VOCABULARY)
    g.set_outputs({"loss": ops.softmax_cross_entropy_with_logits(logits, labels).mean()})
    return g


def sequences(seed):
    rng = np.random.default_rng(seed)
    start, step = rng.integers(0, VOCABULARY, (ROWS, 1)), rng.integers(1, 4, (ROWS, 1))
    text = (start + step * np.arange(LENGTH + 1)) % VOCABULARY
    return {"ids": text[:, :-1], "labels": text[:, 1:]}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("policy", ["auto_mixed", "auto_mixed_conservative"])
def test_a_transformer(policy, device):
    steps = 40 if device == "numpy" else 150

    def curve(policy):
        ts = rlx.TrainingSession(transformer(), config=rlx.TrainConfig(lr=3e-3, optimizer=rlx.AdamW()), device=device)
        ts = ts.with_precision_policy(policy).with_fused_optimizer()
        reports = [ts.step(sequences(n)) for n in range(steps)]
        assert not any(report.skipped for report in reports)
        return [report.loss for report in reports]

    full, mixed = curve("always_f32"), curve(policy)
    assert full[-1] < 0.75 * full[0]
    assert np.mean(mixed[-10:]) == pytest.approx(np.mean(full[-10:]), rel=0.01)
