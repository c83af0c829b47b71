"""grad, vjp, jvp and hvp as functions from graph to graph: names, outputs, zeros, errors."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.errors import GraphError, NameNotFoundError, NotDifferentiableError

F64 = np.float64


def quadratic() -> rlx.Graph:
    """loss = sum(a * w^2 + b), with an unused param and an i32 input."""
    g = rlx.Graph("quadratic")
    w, b = g.param("w", (3,)), g.param("b", ())
    a = g.input("a", (3,))
    g.param("unused", (2,))
    n = g.input("n", (), rlx.i32)
    g.set_outputs({"loss": ops.sum(a * w * w + b), "count": n + 1, "w_squared": w * w})
    return g


FEEDS = {"w": [1.0, 2.0, 3.0], "b": 4.0, "a": [1.0, 1.0, 2.0], "unused": [0.0, 0.0], "n": 1}


def test_grad_with_loss_keeps_the_loss_and_scales_by_the_cotangent():
    g = rlx.grad_with_loss(quadratic())
    g.verify()
    assert list(g.outputs) == ["loss", "grad_w", "grad_b", "grad_unused"]
    out = rlx.evaluate(g, {**FEEDS, "d_output": 10.0})
    assert out["loss"] == 1 + 4 + 18 + 12
    assert out["grad_w"].tolist() == [20, 40, 120] and out["grad_b"] == 30 and out["grad_unused"].tolist() == [0, 0]


def test_the_original_graph_is_left_alone():
    g = quadratic()
    before = g.to_json()
    for derive in (rlx.grad, rlx.grad_with_loss, rlx.jvp, rlx.hvp, rlx.vjp):
        derive(g)
    assert g.to_json() == before


def test_wrt_takes_one_name_or_several_and_inputs_too():
    assert list(rlx.grad(quadratic(), "a").outputs) == ["grad_a"]
    assert list(rlx.grad(quadratic(), ["b", "a"]).outputs) == ["grad_b", "grad_a"]


@pytest.mark.parametrize("derive", [rlx.grad, rlx.grad_with_loss, rlx.vjp, rlx.jvp, rlx.hvp])
def test_names_that_cannot_be_differentiated_by(derive):
    with pytest.raises(NameNotFoundError, match="nothing"):
        derive(quadratic(), "nothing")
    with pytest.raises(NotDifferentiableError, match="'n'"):
        derive(quadratic(), ["w", "n"])
    with pytest.raises(GraphError, match="wrt"):
        derive(quadratic(), [])


@pytest.mark.parametrize("derive", [rlx.grad, rlx.grad_with_loss, rlx.hvp])
def test_a_loss_is_one_float_of_rank_zero(derive):
    with pytest.raises(GraphError, match="rank 0"):
        derive(quadratic(), loss="w_squared")
    with pytest.raises(GraphError, match="rank 0"):
        derive(quadratic(), loss="count")
    with pytest.raises(GraphError, match="no output"):
        derive(quadratic(), loss="other")
    g = quadratic()
    g.set_outputs({"p": g.outputs["loss"], "q": g.outputs["loss"]})
    with pytest.raises(GraphError, match="'loss'"):
        derive(g)


def test_names_that_clash_get_a_number():
    g = rlx.Graph()
    x, d = g.input("x", ()), g.input("d_output", ())
    g.set_outputs({"loss": x * d, "grad_x": x})
    new = rlx.grad_with_loss(g, "x", "loss")
    assert new.generated["d_output"] == "d_output_1"
    out = rlx.evaluate(new, {"x": 2.0, "d_output": 3.0, "d_output_1": 1.0})
    assert out[new.generated["grad_x"]] == 3


def test_vjp_takes_a_cotangent_for_every_float_output():
    g = rlx.vjp(quadratic(), ["w", "b"])
    assert {"d_loss", "d_w_squared"} <= set(g.inputs) and "d_count" not in g.inputs
    out = rlx.evaluate(g, {**FEEDS, "d_loss": 1.0, "d_w_squared": [1.0, 0.0, 0.0]})
    assert out["grad_w"].tolist() == [4, 4, 12] and out["grad_b"] == 3


def test_one_tensor_under_two_names_adds_both_cotangents():
    g = rlx.Graph()
    x = g.input("x", (2,))
    y = x * 3.0
    g.set_outputs({"p": y, "q": y, "r": x})
    out = rlx.evaluate(rlx.vjp(g, "x"), {"x": [1, 1], "d_p": [1, 0], "d_q": [0, 2], "d_r": [10, 20]})
    assert out["grad_x"].tolist() == [13, 26]


def test_jvp_gives_outputs_and_their_tangents():
    g = rlx.jvp(quadratic(), "w")
    assert list(g.outputs) == ["loss", "count", "w_squared", "jvp_loss", "jvp_w_squared"]
    out = rlx.evaluate(g, {**FEEDS, "d_w": [1.0, 0.0, 1.0]})
    assert out["jvp_loss"] == 2 + 12 and out["jvp_w_squared"].tolist() == [2, 0, 6]


def test_hvp_is_the_hessian_times_a_vector():
    rng = np.random.default_rng(0)
    h = rng.standard_normal((4, 4))
    g = rlx.Graph()
    x, y = g.input("x", (4,)), g.input("y", (4,))
    g.set_outputs({"loss": ops.sum(x * (h.astype(np.float32) @ y)) + ops.sum(ops.exp(x))})
    feeds = {n: rng.standard_normal(4) for n in ("x", "y", "v_x", "v_y")}
    out = rlx.evaluate(rlx.hvp(g, ["x", "y"]), feeds, F64)
    exact = h.astype(np.float32).astype(F64)
    np.testing.assert_allclose(out["hvp_x"], np.exp(feeds["x"]) * feeds["v_x"] + exact @ feeds["v_y"])
    np.testing.assert_allclose(out["hvp_y"], exact.T @ feeds["v_x"])


def test_derivatives_of_derivatives():
    g = rlx.Graph()
    x = g.input("x", ())
    g.set_outputs({"loss": ops.sin(x) if hasattr(ops, "sin") else ops.exp(2.0 * x)})
    for order in range(1, 5):
        g = rlx.grad(g, "x")
        g.set_outputs({"loss": next(iter(g.outputs.values()))})
        feeds = dict.fromkeys(g.inputs, 1.0)
        expected = np.sin(1 + order * np.pi / 2) if hasattr(ops, "sin") else 2.0**order * np.exp(2)
        np.testing.assert_allclose(rlx.evaluate(g, feeds, F64)["loss"], expected)


def test_stop_gradient_stops_both_modes():
    g = rlx.Graph()
    x = g.input("x", ())
    g.set_outputs({"y": x * ops.stop_gradient(x * x)})
    assert rlx.evaluate(rlx.vjp(g, "x"), {"x": 3.0, "d_y": 1.0})["grad_x"] == 9
    assert rlx.evaluate(rlx.jvp(g, "x"), {"x": 3.0, "d_x": 1.0})["jvp_y"] == 9


@pytest.mark.parametrize("derive", [rlx.vjp, rlx.jvp])
def test_an_op_without_a_derivative_is_named_with_its_line(derive):
    g = rlx.Graph()
    g.set_outputs({"y": ops.floor(g.input("x", (2,)) * 2.0)})
    with pytest.raises(NotDifferentiableError, match=r"floor\(%0\).*piecewise constant"):
        derive(g, "x")


def test_an_op_without_a_derivative_does_not_matter_off_the_path():
    g = rlx.Graph()
    x, y = g.input("x", (2,)), g.input("y", (2,))
    g.set_outputs({"z": x * ops.floor(y)})
    assert rlx.evaluate(rlx.vjp(g, "x"), {"x": [1, 1], "y": [2.5, 3.5], "d_z": [1, 1]})["grad_x"].tolist() == [2, 3]


def test_assigns_stay_in_the_gradient_graph():
    g = rlx.Graph()
    w, b = g.param("w", ()), g.buffer("b", ())
    g.assign(b, b + w)
    g.set_outputs({"loss": w * b})
    new = rlx.grad_with_loss(g)
    new.verify()
    assert list(new.assigns) == ["b"]


def test_the_check_names_the_wrong_gradient():
    g = rlx.Graph()
    g.set_outputs({"y": ops.stop_gradient(g.input("x", (3,))) * 2.0})
    with pytest.raises(AssertionError, match=r"order 1.*central differences"):
        rlx.check_grads(g, {"x": np.ones(3)}, "x")


@pytest.mark.parametrize(
    ("windows", "joined"),
    [
        ([(0, 2), (2, 3), (3, 6)], True),  # a split
        ([(3, 6), (0, 3)], True),  # in any order
        ([(0, 2), (2, 6), (0, 6)], True),  # the whole beside its parts
        ([(0, 3), (2, 6)], False),  # an overlap
        ([(0, 2), (4, 6)], False),  # a gap
        ([(0, 6), (0, 6)], False),
    ],
)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_cotangents_of_slices_that_divide_an_axis_are_joined(windows, joined, axis):
    def build(x):
        parts = [ops.slice_axis(x, axis, *window) for window in windows]
        return sum((ops.square(part) * (n + 1.0)).sum() for n, part in enumerate(parts))

    shape = tuple(6 if n == axis else 3 for n in range(3))
    graph = rlx.trace(build, x=rlx.param_spec(shape))
    gradient = rlx.simplify(rlx.grad(graph))
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    expected = np.zeros(shape)
    for n, window in enumerate(windows):
        index = (slice(None),) * axis + (slice(*window),)
        expected[index] += 2.0 * (n + 1) * x[index]
    np.testing.assert_allclose(rlx.evaluate(gradient, {"x": x, "d_output": 1.0})["grad_x"], expected, rtol=1e-6)
    assert [node.op.name for node in gradient.nodes].count("concat") == joined
