"""Zeros of both signs, infinities, NaN, denormals, ties, empty and rank-0 shapes, for every op that takes them."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.dtypes import bool_, f32, i32
from rlx_swift.errors import ShapeError
from rlx_swift.ir.graph import Graph
from rlx_swift.ir.op import OpKind, registry
from rlx_swift.ops.reduce import ReduceAttrs
from rlx_swift.testing import assert_close, tolerance
from tests.helpers import gradients, run, same, value
from tests.oracles import ORACLES

pytestmark = pytest.mark.usefixtures("each_device")

INF, NAN = np.inf, np.nan
SPECIAL = np.float32([
    0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e-40, -1e-40, 1.2e-38, 3e38, -3e38, 88.8, -104.0, 1e4, INF, -INF, NAN,
])
ops = rlx.ops


def evaluated(op, arrays, attrs):
    graph = Graph(op.name)
    types = {"f": f32, "i": i32, "b": bool_}
    operands = tuple(graph.input(f"x{i}", a.shape, types[a.dtype.kind]) for i, a in enumerate(arrays))
    graph.set_outputs({"y": graph.apply(op, operands, attrs)[0]})
    return run(graph, {f"x{i}": a for i, a in enumerate(arrays)})["y"]


def is_elementwise(op) -> bool:
    case = op.cases[0]
    return op.kind is OpKind.ELEMENTWISE and all(t.dtype is f32 for t in case.types()) and bool(case.shapes)


ELEMENTWISE = [
    pytest.param(op, attrs, id=f"{op.name}-{i}")
    for op in registry().values() if is_elementwise(op) for i, attrs in enumerate({case.attrs for case in op.cases})
]


FREE_SIGNS = ("relu", "relu6", "round")  # of the zeros that they make; MIL says nothing of them


@pytest.mark.parametrize(("op", "attrs"), ELEMENTWISE)
def test_elementwise_ops_at_special_values(op, attrs, each_device):
    pairs = np.meshgrid(*[SPECIAL] * op.arity, indexing="ij")
    actual = evaluated(op, pairs, attrs)
    with np.errstate(all="ignore"):
        exact = ORACLES[op.name](*[p.astype(np.float64) for p in pairs], attrs=attrs)
        expected = np.asarray(exact).astype(actual.dtype)
    assert_close(actual, expected, tolerance(OpKind.ELEMENTWISE, f32), op.name, allow_nonfinite=True)
    if actual.dtype.kind == "f" and not (each_device == "cpu" and op.name in FREE_SIGNS):
        zero = (actual == 0) & (expected == 0)
        assert_close(np.signbit(actual[zero]), np.signbit(expected[zero]), what=f"signs of zeros of {op.name}")


@pytest.mark.parametrize(("op", "attrs"), ELEMENTWISE)
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 0, 2)])
def test_elementwise_ops_of_rank_zero_and_empty_shapes(op, attrs, shape):
    actual = evaluated(op, [np.ones(shape, np.float32)] * op.arity, attrs)
    assert actual.shape == shape


EXTREMES = np.float32([
    [1, 1, 0.5], [-INF, 0, -INF], [INF, 0, 1], [NAN, 1, 2], [1, NAN, INF], [0.0, -0.0, 0.0], [-INF, -INF, -INF],
])
REDUCTIONS = [op for op in registry().values() if op.attrs is ReduceAttrs]


@pytest.mark.parametrize("op", REDUCTIONS, ids=lambda op: op.name)
def test_reductions_of_special_values(op):
    for axes, x in (((1,), EXTREMES), ((0,), EXTREMES.T), ((0, 1), np.float32([[NAN]])), ((0, 1), EXTREMES[:1])):
        for keepdims in (True, False):
            attrs = ReduceAttrs(axes, keepdims)
            actual = evaluated(op, [x], attrs)
            with np.errstate(all="ignore"):
                expected = np.asarray(ORACLES[op.name](x.astype(np.float64), attrs=attrs)).astype(np.float32)
            assert_close(actual, expected, tolerance(OpKind.REDUCTION, f32), op.name, allow_nonfinite=True)


@pytest.mark.parametrize("op", REDUCTIONS, ids=lambda op: op.name)
def test_reductions_of_empty_shapes(op):
    empty = np.ones((3, 0), np.float32)
    assert evaluated(op, [empty], ReduceAttrs((0,), False)).shape == (0,)
    if op.name in ("sum", "prod"):
        same(evaluated(op, [empty], ReduceAttrs((1,), True)), np.full((3, 1), float(op.name == "prod")))
    else:
        with pytest.raises(ShapeError, match="elements"):
            evaluated(op, [empty], ReduceAttrs((1,), True))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "logsumexp"])
def test_reducing_rank_zero_changes_nothing(name):
    assert value(getattr(ops, name), 3.5) == 3.5
    assert value(lambda x: getattr(ops, name)(x, None, True), 3.5) == 3.5


MOVED = [
    lambda x: ops.reshape(x, (-1,)), ops.transpose, lambda x: ops.broadcast_to(x, (2, *x.shape)),
    lambda x: ops.tile(x, (2, 1)), lambda x: x[1:, ::-2], lambda x: ops.pad(x, ((1, 0), (0, 2)), NAN),
    lambda x: ops.concat([x, x], 1), ops.flip, lambda x: ops.gather(x, np.array([1, 1], np.int32)),
    lambda x: ops.where(np.ones((2, 9), bool), x, 0.0), ops.identity, ops.stop_gradient,
]


@pytest.mark.parametrize("move", MOVED)
def test_moved_values_keep_their_bits(move):
    x = SPECIAL.reshape(2, 9)
    moved = value(move, x)
    known = set(x.view(np.int32).ravel().tolist()) | {np.float32(NAN).view(np.int32).item()}
    assert set(moved.view(np.int32).ravel().tolist()) <= known


def test_products_with_nothing_to_sum():
    same(value(ops.matmul, np.ones((2, 0)), np.ones((0, 3))), np.zeros((2, 3)))
    assert value(ops.matmul, np.ones((0, 2)), np.ones((2, 3))).shape == (0, 3)
    assert value(ops.matmul, np.ones((4, 0, 2)), np.ones((2, 3))).shape == (4, 0, 3)
    assert value(ops.matmul, np.ones((0, 4, 2)), np.ones((0, 2, 3))).shape == (0, 4, 3)


def test_products_carry_nan_and_infinities():
    same(value(ops.matmul, [[0.0, 1]], [[INF, 1], [1, 2]]), [[NAN, 2]])
    same(value(ops.matmul, [[INF, 1]], [[1.0, -INF], [1, 1]]), [[INF, -INF]])


@pytest.mark.parametrize("of", [np.float32, np.float16])
def test_casting_special_floats_to_integers_saturates(of):
    x = np.array([NAN, INF, -INF, -4.9, -0.5, 0.9, 3.99, -0.0], of)
    low, high = -(2**31), 2**31 - 1
    np.testing.assert_array_equal(value(lambda x: ops.cast(x, i32), x), [0, high, low, -4, 0, 0, 3, 0])
    np.testing.assert_array_equal(value(lambda x: ops.cast(x, bool_), x), [True] * 7 + [False])
    edges = np.float32([2**31, -(2**31), 2.0**40])
    np.testing.assert_array_equal(value(lambda x: ops.cast(x, i32), edges), [high, low, high])


def test_integer_division_rounds_down_and_the_remainder_has_the_divisors_sign():
    x, y = np.int32([10, -10, 7, -7]), np.int32([3, 3, 2, 2])
    np.testing.assert_array_equal(value(ops.floor_div, x, y), [3, -4, 3, -4])
    np.testing.assert_array_equal(value(ops.mod, x, y), [1, 2, 1, 1])
    np.testing.assert_array_equal(value(ops.mod, x, -y), [-2, -1, -1, -1])
    same(value(ops.floor_div, [1.5, -0.5, 2.9, -2.1], 1.0), [1, -1, 2, -3])
    same(value(ops.mod, [-7.0, 7.0], [3.0, -3.0]), [2, -2])


def test_average_pooling_counts_padding_or_not():
    ones = np.ones((1, 1, 2, 2))
    same(value(lambda x: ops.avg_pool2d(x, 2, 2, 1), ones), np.full((1, 1, 2, 2), 0.25))
    same(value(lambda x: ops.avg_pool2d(x, 2, 2, 1, count_padding=False), ones), np.ones((1, 1, 2, 2)))
    same(value(lambda x: ops.avg_pool2d(x, 7, 4, 3), np.ones((1, 1, 8, 8))), [[[[16 / 49, 28 / 49], [28 / 49, 1]]]])


def test_max_pooling_ignores_padding_and_keeps_nan():
    low = np.full((1, 1, 2, 2), -5.0)
    same(value(lambda x: ops.max_pool2d(x, 3, 1, 1), low), low)
    low[0, 0, 0, 0] = NAN
    assert np.isnan(value(lambda x: ops.max_pool2d(x, 2), low)).all()


def test_pooling_and_convolving_an_empty_batch():
    images, kernel = np.ones((0, 2, 4, 4)), np.ones((3, 2, 2, 2))
    for pool in (ops.max_pool2d, ops.avg_pool2d):
        assert value(lambda x, p=pool: p(x, 2), images).shape == (0, 2, 2, 2)
        assert gradients(lambda x, p=pool: p(x, 2), images).shape == images.shape
    dx, dw = gradients(ops.conv2d, images, kernel)
    assert dx.shape == images.shape
    same(dw, np.zeros(kernel.shape))


def test_computed_indices_outside_their_range_are_clamped():
    ids = np.int32([-6, -1, 6])  # fed as they are they would be refused
    same(value(lambda x, i: ops.gather(x, i + 1), [1.0, 2, 3], ids), [1, 1, 3])
    same(value(lambda g, i: ops.scatter_add(g, i + 1, 3), [1.0, 2, 4], ids), [3, 0, 4])
    same(value(lambda i: ops.one_hot(i + 1, 3), ids), [[0, 0, 0], [1, 0, 0], [0, 0, 0]])
    losses = value(lambda x, i: ops.softmax_cross_entropy_with_logits(x, i + 1), np.log([[1.0, 2, 5]] * 3), ids)
    same(losses, -np.log([1 / 8, 1 / 8, 5 / 8]))


@pytest.mark.parametrize("of", [np.float32, np.float16])
def test_rounding_goes_to_the_even_integer(of):
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49, 2.51, INF, -INF, NAN], of)
    same(value(ops.round, x), [0, 2, 2, 0, -2, -2, 0, 3, INF, -INF, NAN])


def test_decompositions_at_special_values():
    for name in ("round", "log1p", "expm1", "softplus", "hardsigmoid", "clip"):
        op = registry()[name]
        for attrs in {case.attrs for case in op.cases}:
            graph = Graph(name)
            x = graph.input("x", SPECIAL.shape)
            graph.set_outputs({"direct": graph.apply(op, (x,), attrs)[0], "lowered": op.lower.build((x,), attrs)})
            both = rlx.evaluate(graph, {"x": SPECIAL})
            assert_close(both["lowered"], both["direct"], tolerance(op.kind, f32), name, allow_nonfinite=True)


def test_tests_for_nan_and_infinity():
    x = np.float32([0, -1, INF, -INF, NAN])
    np.testing.assert_array_equal(value(ops.isfinite, x), np.isfinite(x))
    np.testing.assert_array_equal(value(ops.isinf, x), np.isinf(x))
    np.testing.assert_array_equal(value(ops.isnan, x), np.isnan(x))
    logic = value(lambda x: ~(x > 0.0) & (x < 0.0) | ((x == 0.0) ^ True), x)
    np.testing.assert_array_equal(logic, [False, True, True, True, True])
