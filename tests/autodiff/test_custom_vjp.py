"""A user's own rule: used backward and forward, on every device, and refused with the reason where it does not fit."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.errors import GraphError, ShapeError
from rlx_swift.ir.graph import Graph
from rlx_swift.ir.op import registry
from tests.helpers import gradients, same, value


@rlx.custom_vjp
def cautious(x):
    """e^x with a gradient of at most 1."""
    return ops.exp(x)


@cautious.defvjp
def _cautious(g, out, x):
    return (ops.clip(g * out, -1.0, 1.0),)


@rlx.custom_vjp
def scaled_pair(x, y):
    return x * y, x + y


@scaled_pair.defvjp
def _scaled_pair(g, out, x, y):
    return 10.0 * (g[0] * y + g[1]), g[0] * x + g[1]


def test_the_value_is_the_functions_and_the_gradient_the_rules():
    same(value(cautious, [0.0, 2.0]), np.exp([0, 2]))
    same(gradients(cautious, [-1.0, 2.0]), [np.exp(-1), 1])
    same(gradients(cautious, [[-1.0], [2.0]], g=[[1], [-1]]), [[np.exp(-1)], [-1]])


def test_several_arguments_and_results():
    def loss(x, y):
        product, total = scaled_pair(x, y)
        return product + 2.0 * total

    same(gradients(loss, [3.0], [5.0]), [[70], [5]])


def test_forward_mode_is_the_rules_transpose():
    g = rlx.Graph()
    g.set_outputs({"y": cautious(g.input("x", (2,)))})
    out = rlx.evaluate(rlx.jvp(g, "x"), {"x": [-1.0, -2.0], "d_x": [1.0, 2.0]})
    same(out["jvp_y"], [np.exp(-1), 2 * np.exp(-2)])


def test_the_rule_has_a_derivative():
    g = rlx.Graph()
    g.set_outputs({"loss": ops.sum(cautious(g.input("x", (2,))))})
    same(rlx.evaluate(rlx.hvp(g, "x"), {"x": [-1.0, 2.0], "v_x": [1.0, 1.0]})["hvp_x"], [np.exp(-1), 0])


def test_f16_and_float64():
    assert value(cautious, np.float16([1.0])).dtype == np.float16
    g = rlx.Graph()
    g.set_outputs({"y": cautious(g.input("x", ()))})
    assert rlx.evaluate(g, {"x": 0.1}, np.float64)["y"] == np.exp(0.1)


@rlx.custom_vjp
def doubled(x):
    """A function that names a dtype."""
    return x * ops.full(x.graph, (2,), 2.0, x.dtype)


@doubled.defvjp
def _doubled(g, out, x):
    return (g * 3.0,)


@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.native)])
@pytest.mark.parametrize("dtype", [rlx.f32, rlx.f16])
def test_a_function_that_names_the_dtype_of_its_operands(dtype, device):
    g = rlx.Graph()
    g.set_outputs({"y": doubled(g.input("x", (2,), dtype))})
    for graph, name, expected in ((g, "y", [2, 4]), (rlx.vjp(g, ["x"]), "grad_x", [3, 6])):
        feeds = {n: np.array([1, 2], dtype.numpy) for n in graph.inputs}
        out = rlx.Session(device=device).compile(graph).run(feeds)[name]
        assert out.dtype == dtype.numpy
        same(out, expected)
        wide = rlx.evaluate(graph, feeds, np.float64)[name]
        assert wide.dtype == np.float64
        same(wide, expected)


def test_json_finds_the_function_that_is_defined():
    g = rlx.Graph()
    g.set_outputs({"y": cautious(g.input("x", (2,)))})
    same(rlx.evaluate(Graph.from_json(g.to_json()), {"x": [0.0, 1.0]})["y"], np.exp([0, 1]))
    with pytest.raises(GraphError, match="no op of that name"):
        Graph.from_json(g.to_json().replace("cautious", "gone"))


def test_it_is_no_op_of_the_registry():
    assert not [name for name in registry() if name.startswith("custom:")]


@pytest.mark.native
def test_it_trains_on_the_cpu_device():
    losses = {}
    for device in ("numpy", "cpu"):
        g = rlx.Graph()
        g.set_outputs({"loss": ops.mean(cautious(g.param("w", (3,), 1.0) * g.input("x", (3,))))})
        ts = rlx.TrainingSession(g, device=device, config=rlx.TrainConfig(lr=0.1)).with_fused_optimizer()
        losses[device] = [ts.step({"x": [1.0, 2.0, 3.0]}).loss for _ in range(3)]
    np.testing.assert_allclose(losses["cpu"], losses["numpy"], rtol=1e-5)


def test_faults_are_named():
    without = rlx.custom_vjp(lambda x: x * 2.0)
    x = rlx.Graph().input("x", (2,))
    with pytest.raises(GraphError, match="defvjp"):
        without(x)
    with pytest.raises(GraphError, match="expected tensors, got float"):
        cautious(1.0)
    with pytest.raises(GraphError, match="expected tensors, got nothing"):
        cautious()
    outside = rlx.custom_vjp(lambda y: y + x)
    outside.defvjp(lambda g, out, y: (g,))
    with pytest.raises(GraphError, match="another graph"):
        outside(x)
    wrong = rlx.custom_vjp(ops.exp)
    wrong.defvjp(lambda g, out, y: (ops.sum(g),))
    with pytest.raises(ShapeError, match="custom:"):
        gradients(wrong, [1.0, 2.0])
