"""A loss put on an output: its value by formula, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import ConfigError, GraphError, NameNotFoundError, ShapeError
from tests.helpers import same

X = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
LABELS = np.array([2, 0, 1, 2], np.int32)
TARGET = np.random.default_rng(2).uniform(size=(4, 3)).astype(np.float32)


def graph(last=lambda x: x, dtype=rlx.f32):
    g = rlx.Graph()
    g.set_outputs({"logits": last(g.input("x", (4, 3), dtype))})
    return g


def log_softmax(x, axis=-1):
    x = x.astype(np.float64)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


CROSS_ENTROPY = -log_softmax(X)[np.arange(4), LABELS].mean()
P = 1 / (1 + np.exp(-X.astype(np.float64)))
FORMULAS = {
    "softmax_cross_entropy": (LABELS, CROSS_ENTROPY),
    "sigmoid_cross_entropy": (TARGET, -(TARGET * np.log(P) + (1 - TARGET) * np.log(1 - P)).mean()),
    "mse": (TARGET, ((X - TARGET) ** 2).mean()),
    "l1": (TARGET, np.abs(X - TARGET).mean()),
    "huber": (TARGET, np.where(np.abs(X - TARGET) < 1, (X - TARGET) ** 2 / 2, np.abs(X - TARGET) - 0.5).mean()),
}


@pytest.mark.parametrize("kind", FORMULAS)
def test_values(kind):
    labels, expected = FORMULAS[kind]
    g = graph().with_loss(kind)
    g.verify()
    results = rlx.evaluate(g, {"x": X, "labels": labels})
    assert results["loss"].shape == () and results["loss"].dtype == np.float32
    same(results["loss"], expected, rtol=1e-6)
    same(results["logits"], X)


def test_the_graph_itself_is_as_it_was():
    g = graph()
    text = str(g)
    g.with_loss("mse")
    assert str(g) == text


@pytest.mark.parametrize("last", [rlx.ops.softmax, lambda x: rlx.ops.cast(rlx.ops.softmax(x), rlx.f32)])
@pytest.mark.parametrize("dtype", [rlx.f32, rlx.f16], ids=str)
def test_probabilities_are_not_squashed_twice(last, dtype):
    g = graph(last, dtype).with_loss("softmax_cross_entropy", logits="logits")
    same(rlx.evaluate(g, {"x": X, "labels": LABELS})["loss"], CROSS_ENTROPY, rtol=2e-3 if dtype is rlx.f16 else 1e-6)
    squared = graph(last, dtype).with_loss("mse")
    p = np.exp(log_softmax(X))
    same(rlx.evaluate(squared, {"x": X, "labels": TARGET})["loss"], ((p - TARGET) ** 2).mean(), rtol=3e-3)


def test_sigmoid_is_not_taken_twice():
    g = graph(rlx.ops.sigmoid).with_loss("sigmoid_cross_entropy")
    same(rlx.evaluate(g, {"x": X, "labels": TARGET})["loss"], FORMULAS["sigmoid_cross_entropy"][1], rtol=1e-6)


def test_names_and_axis():
    g = rlx.Graph()
    x = g.input("x", (2, 3, 4))
    g.set_outputs({"scores": x, "other": x + 1.0})
    g = g.with_loss("softmax_cross_entropy", "scores", labels="classes", loss="total", axis=1)
    x, classes = np.random.default_rng(0).normal(size=(2, 3, 4)), np.array([[0, 1, 2, 0], [2, 2, 1, 1]])
    assert g.inputs["classes"].type == rlx.ir.types.TensorType((2, 4), rlx.i32)
    expected = -np.take_along_axis(log_softmax(x, 1), classes[:, None], 1).mean()
    same(rlx.evaluate(g, {"x": x, "classes": classes})["total"], expected, rtol=1e-6)


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda g: g.with_loss("hinge"), ConfigError, "softmax_cross_entropy, .*'hinge'"),
    (lambda g: g.with_loss("mse", "other"), NameNotFoundError, "output 'other'.*the graph has logits"),
    (lambda g: g.with_loss("mse", labels="x"), GraphError, "input 'x': the name is taken"),
    (lambda g: g.with_loss("mse").with_loss("mse", "logits", "more"), GraphError, "an output 'loss' already"),
    (lambda g: g.with_loss("mse").with_loss("l1", None, "more", "l1"), GraphError, 'logits, loss; .*logits="..."'),
    (lambda g: g.with_loss("softmax_cross_entropy", axis=2), ShapeError, "axis"),
    (lambda g: graph(lambda x: x > 0.0).with_loss("mse"), GraphError, "expected floats"),
    (lambda g: graph(rlx.ops.sum).with_loss("softmax_cross_entropy"), ShapeError, "axis"),
], ids=["kind", "output", "labels", "loss", "several", "axis", "bools", "rank 0"])
def test_what_is_refused(make, error, text):
    with pytest.raises(error, match=text):
        make(graph())
