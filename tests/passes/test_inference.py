"""The inference form of graphs of derivatives: refused where it would mix two models."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.errors import GraphError
from tests.helpers import same


def normalised() -> rlx.Graph:
    g = rlx.Graph()
    mean, variance = g.buffer("mean", (2,), 0.0), g.buffer("variance", (2,), 3.0)
    g.set_outputs({"loss": ops.sum(ops.batch_norm(g.input("x", (4, 2)), mean, variance, eps=1.0) * 5.0)})
    return g


def dropped() -> rlx.Graph:
    g = rlx.Graph()
    g.set_outputs({"loss": ops.sum(ops.square(ops.dropout(g.input("x", (4, 2)), 0.5)))})
    return g


@pytest.mark.parametrize(("network", "slope"), [(normalised, 2.5), (dropped, 2.0)])
def test_the_form_comes_before_the_derivative(network, slope):
    for derivative in (rlx.grad, rlx.grad_with_loss, lambda g, wrt: rlx.jvp(g, "x")):
        with pytest.raises(GraphError, match="inference form first"):
            rlx.inference(derivative(network(), ["x"]))
    gradient = rlx.grad(rlx.inference(network()), ["x"])
    feeds = {name: np.ones(t.shape, np.float32) for name, t in gradient.inputs.items()}
    same(rlx.evaluate(gradient, feeds)["grad_x"], np.full((4, 2), slope))


def test_derivatives_of_what_predicts_as_it_trains_stay():
    g = rlx.Graph()
    g.set_outputs({"loss": ops.sum(ops.square(g.input("x", (2,))))})
    gradient = rlx.grad(g, ["x"])
    feeds = {name: np.ones(t.shape, np.float32) for name, t in gradient.inputs.items()}
    same(rlx.evaluate(rlx.inference(gradient), feeds)["grad_x"], [2, 2])
