"""Gradients that frameworks are known to get wrong, each with its right value and its siblings."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.errors import ShapeError
from rlx_swift.testing import assert_close
from rlx_swift.testing.compare import ArrayMismatch
from tests.helpers import gradients, same, value

pytestmark = pytest.mark.usefixtures("each_device")

INF, NAN = np.inf, np.nan


# where


def test_where_with_a_guarded_operand_has_a_finite_gradient():
    def guarded(x):
        positive = x > 0.0
        return ops.where(positive, ops.sqrt(ops.where(positive, x, 1.0)), x)

    same(gradients(guarded, [-1.0, -4.0]), [1, 1])
    same(gradients(guarded, [[4.0, -4.0], [0.0, 1.0]]), [[0.25, 1], [1, 0.5]])


@pytest.mark.parametrize("function", [
    ops.sqrt, ops.log, ops.rsqrt, lambda x: 1.0 / x, lambda x: ops.sqrt(x) * 3.0, lambda x: ops.log(2.0 * x) + 1.0,
    lambda x: ops.sin(x) / x, lambda x: ops.sqrt(ops.log(x)), lambda x: ops.exp(1e3 * (1.0 - x)),
    lambda x: ops.where(x > 1.0, ops.sqrt(x - 1.0), ops.log(x)),
])
def test_where_needs_no_guard_before_elementwise_functions(function):
    def unguarded(x):
        return ops.where(x > 0.0, function(x), x)

    same(gradients(unguarded, [-1.0, -4.0, 0.0]), [1, 1, 1])
    same(gradients(lambda x: ops.where(x > 0.0, x, function(x)), [4.0, 5.0], g=[1, 2]), [1, 2])


@pytest.mark.parametrize("function", [ops.log, ops.sqrt, ops.rsqrt, lambda x: 1.0 / x])
def test_the_guard_works_for_every_function_with_a_pole(function):
    def guarded(x):
        good = x > 0.0
        return ops.where(good, function(ops.where(good, x, 1.0)), 0.0)

    slopes = gradients(guarded, [0.0, -1.0, 1.0])
    same(slopes[:2], [0, 0])
    assert np.isfinite(slopes).all()


# Kinks and ties


@pytest.mark.parametrize("reduce", [ops.max, ops.min])
def test_tied_extremes_share_the_gradient_evenly(reduce):
    x = np.array([1.0, 2, 2, 2]) if reduce is ops.max else np.array([1.0, 0, 0, 0])
    same(gradients(lambda t: reduce(t, 0), x), [0, 1 / 3, 1 / 3, 1 / 3])
    rows = np.stack([x, x[::-1]])
    same(gradients(lambda t: reduce(t, 1), rows, g=[1, 2]), [[0, 1 / 3, 1 / 3, 1 / 3], [2 / 3, 2 / 3, 2 / 3, 0]])
    same(gradients(reduce, np.zeros((2, 2))), np.full((2, 2), 0.25))


@pytest.mark.parametrize("pair", [ops.maximum, ops.minimum])
def test_equal_operands_get_half_each(pair):
    same(gradients(pair, 2.0, 2.0), [0.5, 0.5])
    same(gradients(lambda x: pair(x, x), [1.0, 3.0]), [1, 1])
    same(gradients(pair, [[0.0, -0.0]], [[-0.0, 0.0]]), np.full((2, 1, 2), 0.5))


def test_max_pool_gives_the_first_winner():
    pooled = gradients(lambda x: ops.max_pool2d(x, 2), np.ones((1, 1, 2, 2)))
    same(pooled, [[[[1, 0], [0, 0]]]])
    x = np.array([[0.0, 5, 5], [5, 1, 5], [2, 5, 5]])[None, None]
    same(gradients(lambda x: ops.max_pool2d(x, 2, 1), np.repeat(x, 2, 0), g=[[[[1, 2], [4, 8]]]]),
         np.repeat([[[[0, 3, 0], [4, 0, 8], [0, 0, 0]]]], 2, 0))
    corner = [[[[1, 0, 0], [0, 0, 0], [0, 0, 0]]]]
    for level in (0.0, -7.0):  # padding never wins
        same(gradients(lambda x: ops.max_pool2d(x, 3, 3, 1), np.full((1, 1, 3, 3), level)), corner)


@pytest.mark.parametrize(
    ("function", "at", "slope"),
    [
        (ops.relu, 0.0, 0), (ops.relu, -0.0, 0), (ops.abs, 0.0, 0), (ops.abs, -0.0, 0), (ops.abs, -3.0, -1),
        (ops.relu, INF, 1), (ops.tanh, INF, 0), (ops.sigmoid, -INF, 0), (ops.sigmoid, 1000.0, 0), (ops.exp, -INF, 0),
        (ops.sqrt, 0.0, INF), (ops.log, 0.0, INF), (ops.erf, INF, 0), (ops.gelu, 1e4, 1), (ops.gelu, -1e4, 0),
        (ops.silu, 1e4, 1), (ops.silu, -1e4, 0), (lambda x: ops.gelu(x, "tanh"), 1e4, 1),
        (lambda x: ops.gelu(x, "tanh"), -1e4, 0), (lambda x: ops.gelu(x, "tanh"), 1e25, 1),
        (ops.relu6, 0.0, 0), (ops.relu6, 6.0, 0), (ops.relu6, 3.0, 1), (ops.hardswish, 3.0, 1),
        (ops.hardswish, -3.0, 0), (ops.hardswish, 0.0, 0.5), (ops.hardsigmoid, 3.0, 0),
        (ops.hardsigmoid, -3.0, 0), (ops.hardsigmoid, 0.0, 1 / 6),
        (lambda x: ops.leaky_relu(x, 0.1), 0.0, 0.1), (ops.elu, 0.0, 1), (lambda x: ops.elu(x, 0.3), 0.0, 0.3),
        (ops.elu, 1000.0, 1), (ops.elu, -1000.0, 0), (lambda x: ops.prelu(x, np.float32(0.2)), 0.0, 0.2),
        (lambda x: ops.clip(x, 0, 6), 0.0, 1), (lambda x: ops.clip(x, 0, 6), 6.0, 1),
        (lambda x: ops.clip(x, 0, 6), 7.0, 0), (lambda x: ops.clip(x, 2, 2), 2.0, 1),
        (ops.softplus, 11.0, 0.99998), (ops.softplus, 100.0, 1),
        (ops.softplus, -200.0, 0), (ops.softplus, INF, 1), (ops.expm1, 0.0, 1), (ops.log1p, 0.0, 1),
        (ops.log1p, -1.0, INF),
        (ops.asin, 1.0, INF), (ops.acos, -1.0, -INF), (ops.atan, INF, 0), (ops.softsign, 0.0, 1),
    ],
)
def test_slopes_at_kinks_and_ends(function, at, slope):
    same(gradients(function, at), slope, 1e-5)
    same(gradients(function, np.full((2, 2), at)), np.full((2, 2), slope), 1e-5)


@pytest.mark.parametrize("at", [300.0, -300.0, 6e4])
def test_slopes_of_f16_do_not_overflow(at):
    for function in (ops.gelu, lambda x: ops.gelu(x, "tanh"), ops.silu, ops.sigmoid, ops.tanh, ops.erf):
        assert np.isfinite(gradients(function, np.full((2,), at, np.float16))).all()


def test_softplus_is_stable():
    points = [11.0, 100.0, -200.0, 0.0, -30.0]
    same(value(ops.softplus, points), [11.0000167, 100, 0, np.log(2), 9.3576e-14], 1e-5, 0)


def test_values_near_zero_keep_their_digits():
    tiny = [1e-8, -1e-8, 1e-20, 3e-4]
    same(value(ops.log1p, tiny), np.log1p(tiny), 1e-6, 0)
    same(value(ops.expm1, tiny), np.expm1(tiny), 1e-6, 0)


def test_the_remainder_has_a_slope_by_both_operands():
    same(gradients(ops.mod, [7.0, -7.0], [3.0, 3.0]), [[1, 1], [-2, 3]])


# Powers


@pytest.mark.parametrize(("k", "slope"), [(0, 0), (1, 1), (2, 0), (3, 0)])
def test_slope_of_a_power_at_zero(k, slope):
    same(gradients(lambda x: x**k, [0.0, 0.0]), [slope] * 2)
    by_base, _ = gradients(ops.pow, [0.0, 0.0], [float(k)] * 2)
    same(by_base, [slope] * 2)


def test_slopes_of_powers():
    assert gradients(ops.pow, 0.0, 1.0)[1] == 0
    same(gradients(ops.pow, -2.0, 2.0)[0], -4)
    same(gradients(lambda x: x**2, -2.0), -4)
    same(gradients(ops.pow, [2.0, 0.0], [3.0, 0.0]), [[12, 0], [8 * np.log(2), 0]])
    assert np.isnan(gradients(ops.pow, NAN, 2.0)[0])
    assert np.isnan(gradients(ops.pow, NAN, 2.0)[1])
    assert np.isnan(gradients(ops.pow, -2.0, 2.0)[1])  # no real logarithm there


def test_second_slope_of_a_power_at_zero():
    same(gradients(lambda x: ops.pow(x, 2.0), 0.0), 0)
    graph = rlx.Graph()
    x = graph.input("x", ())
    y = graph.input("y", ())
    graph.set_outputs({"loss": ops.pow(x, y)})
    second = rlx.hvp(graph, "x")
    same(rlx.evaluate(second, {"x": 0.0, "y": 2.0, "v_x": 1.0})["hvp_x"], 2)


# Softmax, its logarithms, cross-entropy


def test_logsumexp_of_infinities():
    def lse(x):
        return ops.logsumexp(x, -1)

    same(value(lse, [-INF, -INF]), -INF)
    same(gradients(lse, [-INF, -INF]), [0, 0])
    same(value(lse, [-INF, 0.0]), 0)
    same(gradients(lse, [-INF, 0.0]), [0, 1])
    same(gradients(lse, [[-INF, -INF], [0.0, 0.0]]), [[0, 0], [0.5, 0.5]])
    same(value(lse, [INF, 0.0]), INF)
    assert np.isnan(value(lse, [NAN, 0.0]))


def test_softmax_of_a_fully_masked_row_is_nan_and_a_finite_mask_is_uniform():
    assert np.isnan(value(lambda x: ops.softmax(x, -1), [-INF, -INF])).all()
    same(value(lambda x: ops.softmax(x, -1), [-1e9, -1e9]), [0.5, 0.5])
    same(gradients(lambda x: ops.softmax(x, -1), [-1e9, -1e9], g=[1, 0]), [0.25, -0.25])
    same(value(lambda x: ops.softmax(x, -1), [-INF, 0.0]), [0, 1])
    same(gradients(lambda x: ops.log_softmax(x, -1), [1000.0, 0.0], g=[0, 1]), [-1, 1])


def test_cross_entropy_of_large_logits():
    def loss(x, t):
        return ops.softmax_cross_entropy_with_logits(x, t)

    one = np.array([1, 1], np.int32)
    logits = np.array([[1e8, 1e8], [1000, 0]])
    same(value(loss, logits, one), [0.693147, 1000])
    same(gradients(loss, logits, one)[1], [1, -1])
    hot = np.array([[0.0, 1], [0, 1]])
    same(value(loss, logits, hot), [0.693147, 1000])
    same(gradients(loss, logits, hot)[0][1], [1, -1])


def test_cross_entropy_scales_each_sample_by_its_own_cotangent():
    slopes = gradients(
        ops.softmax_cross_entropy_with_logits, np.zeros((2, 3)), np.array([0, 1], np.int32), g=[1, 2]
    )
    same(slopes, [[-2 / 3, 1 / 3, 1 / 3], [2 / 3, -4 / 3, 2 / 3]])


# Normalisation


def test_layer_norm_slope_and_large_offset():
    same(gradients(ops.layer_norm, [1.0, 2, 3], g=[1, 0, 0]), [0.204132, -0.408245, 0.204113], 1e-4)
    same(value(ops.layer_norm, [10000.0, 10001, 10002]), [-1.22474, 0, 1.22474], 1e-4, 1e-6)


def test_layer_norm_gives_gamma_and_beta_their_gradients():
    x = np.array([[1.0, 2, 3], [3, 1, 2]])
    _, gamma, beta = gradients(ops.layer_norm, x, np.ones(3), np.zeros(3))
    same(gamma, value(ops.layer_norm, x).sum(0), 1e-5, 1e-6)
    same(beta, [2, 2, 2])


@pytest.mark.parametrize("row", [0.0, 300.0, 1e-4])
def test_normalising_a_constant_f16_row_gives_zeros(row):
    x = np.full((2, 4), row, np.float16)
    same(value(lambda x: ops.layer_norm(x, eps=1e-12), x), np.zeros((2, 4)))
    assert np.isfinite(gradients(lambda x: ops.layer_norm(x, eps=1e-12), x * 0, g=0)).all()


def test_rms_norm_slopes_of_x_and_gamma():
    def scaled(x, gamma):
        return ops.rms_norm(x, gamma, eps=0.0)

    dx, dgamma = gradients(scaled, [3.0, 4.0], [1.0, 1.0], g=[1, 0])
    same(dx, [0.181019, -0.135765], 1e-5)
    same(dgamma, [0.848528, 0], 1e-5)
    dx, dgamma = gradients(scaled, [[3.0, 4.0], [4.0, 3.0]], [1.0, 1.0], g=[[1, 0], [0, 1]])
    same(dx, [[0.181019, -0.135765], [-0.135765, 0.181019]], 1e-5)
    same(dgamma, [0.848528, 0.848528], 1e-5)


@pytest.mark.parametrize("eps", [1e-12, 1e-5])
@pytest.mark.parametrize("of", [np.float32, np.float16])
def test_norms_of_zeros_are_zeros_with_finite_slopes(of, eps):
    zeros = np.zeros((2, 4, 3), of)
    for function in (
        lambda x: ops.layer_norm(x, eps=eps), lambda x: ops.rms_norm(x, eps=eps),
        lambda x: ops.group_norm(x, 2, eps=eps), lambda x: ops.instance_norm(x, eps=eps),
        lambda x: ops.l2_normalize(x, eps=eps),
    ):
        same(value(function, zeros), zeros)
        assert np.isfinite(gradients(function, zeros, g=0)).all()


@pytest.mark.parametrize("name", ["gamma", "beta"])
@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm", "group_norm", "instance_norm", "batch_norm"])
def test_every_norm_gives_its_affine_part_a_gradient(norm, name):
    if norm == "rms_norm" and name == "beta":
        pytest.skip("has no beta")
    graph = rlx.Graph()
    x, w = graph.input("x", (2, 4, 3)), graph.param("w", (4, 1) if norm in ("layer_norm", "rms_norm") else (4,))
    arguments = {name: w}
    if norm == "group_norm":
        arguments["groups"] = 2
    if norm == "batch_norm":
        arguments |= {"running_mean": graph.buffer("m", (4,)), "running_var": graph.buffer("v", (4,), 1.0)}
    y = getattr(ops, norm)(x, **arguments)
    graph.set_outputs({"loss": ops.sum(y * x)})
    feeds = {"x": np.random.default_rng(0).standard_normal((2, 4, 3)), "w": np.ones(w.shape), "d_output": 1.0}
    assert np.abs(rlx.evaluate(rlx.grad(graph), feeds)["grad_w"]).min() > 1e-3


# Broadcasting


@pytest.mark.parametrize("function", [ops.add, ops.sub])
def test_broadcast_operands_get_summed_gradients(function):
    sign = 1 if function is ops.add else -1
    same(gradients(function, np.ones((2, 3)), np.ones(3))[1], np.full(3, 2 * sign))
    same(gradients(function, np.ones((2, 3, 4)), np.ones(1))[1], [24 * sign])
    same(gradients(function, np.ones(1), np.ones((2, 3, 4)))[0], [24])
    same(gradients(function, 1.0, np.ones((2, 3, 4)))[0], 24)


@pytest.mark.parametrize("function", [ops.mul, ops.div, ops.pow])
def test_a_broadcast_middle_axis(function):
    left = gradients(function, np.ones((2, 1, 3)), np.ones((2, 4, 3)))[0]
    same(left, np.full((2, 1, 3), 4))


# Embedding


def test_repeated_ids_add_up_in_every_batch():
    table = np.zeros((3, 1))
    same(gradients(ops.gather, table, np.array([0, 0, 1], np.int32), g=[[1], [2], [4]]), [[3], [4], [0]])
    ids = np.array([[0, 0, 1], [1, 2, 0]], np.int32)
    same(gradients(ops.gather, table, ids, g=np.array([[1, 2, 4], [8, 16, 32]])[..., None]), [[35], [12], [16]])
    twice = np.array([2, 2], np.int32)
    along = gradients(lambda x, i: ops.gather(x, i, 1), np.zeros((2, 3)), twice, g=[[1, 2], [4, 8]])
    same(along, [[0, 0, 3], [0, 0, 12]])


# Convolution


def test_strided_convolution_leaves_the_unread_tail_without_gradient():
    for conv, axes in ((ops.conv1d, ()), (ops.conv2d, (1,)), (ops.conv3d, (1, 1))):
        x, w = np.ones((2, 1, *axes, 6)), np.ones((1, 1, *axes, 3))
        dx, dw = gradients(lambda x, w, c=conv, a=axes: c(x, w, strides=(*a, 2)), x, w)
        same(dx, np.broadcast_to([1, 1, 2, 1, 1, 0], x.shape))
        same(dw, np.full(w.shape, 4))  # 2 for each of two images


# Networks


def test_every_weight_of_a_network_gets_a_gradient():
    rng = np.random.default_rng(0)
    graph = rlx.Graph("mlp")
    x = graph.input("x", (4, 3))
    h = ops.tanh(x @ graph.param("W1", (3, 5)) + graph.param("b1", (5,)))
    out = h @ graph.param("W2", (5, 2)) + graph.param("b2", (2,))
    graph.set_outputs({"loss": ops.mean(ops.square(out))})
    feeds = {name: rng.standard_normal(t.shape) for name, t in graph.leaves().items()}
    slopes = rlx.evaluate(rlx.grad(graph), {**feeds, "d_output": 1.0})
    assert sorted(slopes) == ["grad_W1", "grad_W2", "grad_b1", "grad_b2"]
    for name, slope in slopes.items():
        assert np.abs(slope).min() > 0, name


# Arguments that must not pass


@pytest.mark.parametrize("reduce", [ops.sum, ops.mean, ops.max, ops.min, ops.logsumexp, ops.layer_norm])
def test_an_empty_list_of_axes_is_refused(reduce):
    with pytest.raises(ShapeError, match="axes"):
        value(lambda x: reduce(x, axis=[]), np.ones((2, 3)))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ops.broadcast_to(x, (4, 3)), lambda x: ops.reshape(x, (2, 4)), lambda x: ops.reshape(x, (-1, 4)),
        lambda x: ops.reshape(x, (-1, -1)), lambda x: ops.broadcast_to(x, (3,)), lambda x: ops.squeeze(x, 0),
        lambda x: ops.tile(x, (2, -1)), lambda x: ops.transpose(x, (0, 0)), lambda x: ops.concat([x, x[:, :2]], 0),
    ],
)
def test_shapes_that_do_not_fit_are_refused_while_building(call):
    with pytest.raises(ShapeError):
        value(call, np.ones((2, 3)))


# Comparing


@pytest.mark.parametrize("actual", [[NAN], [INF], [-INF]])
def test_a_comparison_refuses_what_is_not_finite(actual):
    one = np.ones(1, np.float32)
    for a, b in ((np.float32(actual), one), (one, np.float32(actual)), (np.float32(actual), np.float32(actual))):
        with pytest.raises(ArrayMismatch, match="not finite"):
            assert_close(a, b)


def test_the_gradient_check_refuses_nan():
    graph = rlx.Graph()
    graph.set_outputs({"y": ops.sqrt(graph.input("x", (2,)))})
    with pytest.raises(AssertionError):
        rlx.check_grads(graph, {"x": np.array([-1.0, 1.0])}, "x")


# Products, variances, norms


@pytest.mark.parametrize(
    ("x", "slopes"),
    [([0.0, 2, 3], [6, 0, 0]), ([0.0, 0, 3], [0, 0, 0]), ([1.0, 2, 3], [6, 3, 2]), ([0.0], [1]), ([2.0, -0.0], [0, 2])],
)
def test_slopes_of_a_product_with_zeros(x, slopes):
    same(gradients(ops.prod, x), slopes)
    rows = np.array([x, x])
    same(gradients(lambda t: ops.prod(t, 1), rows, g=[1, 2]), [slopes, 2 * np.array(slopes)])
    same(gradients(lambda t: ops.prod(t, 0), rows.T, g=[1, 2]), np.transpose([slopes, 2 * np.array(slopes)]))


def test_second_slope_of_a_product_with_a_zero():
    g = rlx.Graph()
    g.set_outputs({"loss": ops.prod(g.input("x", (3,)))})
    out = rlx.evaluate(rlx.hvp(g, "x"), {"x": [0.0, 2, 3], "v_x": [1.0, 0, 0]})
    same(out["hvp_x"], [0, 3, 2])


def test_slopes_of_a_running_product_with_zeros():
    same(gradients(ops.cumprod, [0.0, 2, 3]), [9, 0, 0])
    same(gradients(lambda x: ops.cumprod(x, 1), [[0.0, 2, 3], [1, 2, 3]]), [[9, 0, 0], [9, 4, 2]])
    same(value(ops.cumprod, [2.0, 3, 4, 5, 6]), [2, 6, 24, 120, 720])


@pytest.mark.parametrize("correction", [0, 1])
def test_spread_of_equal_elements_has_no_slope(correction):
    for function in (ops.std, ops.var):
        same(gradients(lambda x, f=function: f(x, correction=correction), [1.0, 1.0]), [0, 0])
        pairs = gradients(lambda x, f=function: f(x, 1, correction=correction), [[1.0, 1.0], [0.0, 2.0]])
        assert np.isfinite(pairs).all() and (pairs[1] != 0).all()


def test_variance_and_deviation():
    x = np.random.default_rng(0).standard_normal((3, 4))
    same(value(lambda t: ops.var(t, 1, correction=1), x), x.var(1, ddof=1), 1e-5)
    same(value(lambda t: ops.std(t, (0, 1), keepdims=True), x), x.std(keepdims=True), 1e-5)
    assert value(ops.std, np.full((4,), 300.0, np.float16)) == 0
    same(value(ops.var, np.float16([300, 302])), 1)


@pytest.mark.parametrize("order", [1, 2, np.inf])
def test_norms_have_no_slope_at_zero(order):
    def function(x):
        return ops.norm(x, order, 1)

    x = np.array([[0.0, 0, 0], [3, -4, 0]])
    same(value(function, x), np.linalg.norm(x, order, 1))
    slopes = gradients(function, x)
    same(slopes, [[0, 0, 0], {1: [1, -1, 0], 2: [0.6, -0.8, 0], np.inf: [0, -1, 0]}[order]])
    same(value(lambda t: ops.norm(t, order), np.float16([300, 400])), {1: 700, 2: 500, np.inf: 400}[order])
