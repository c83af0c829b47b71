"""Building graphs: names, operands, scalars, outputs, buffers, and the errors of each."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import interp, ops
from rlx_swift.errors import DTypeError, FeedError, GraphError, NameNotFoundError, ShapeError
from rlx_swift.ir.rewrite import Copy


@pytest.fixture
def g() -> rlx.Graph:
    return rlx.Graph("g")


# Leaves


@pytest.mark.parametrize("name", ["", None, 3, b"x"])
def test_a_name_is_a_non_empty_string(g, name):
    for make in (g.input, g.param, g.buffer):
        with pytest.raises(GraphError, match="non-empty string"):
            make(name, (1,))


def test_a_name_is_taken_once_for_all_leaves(g):
    g.input("a", ())
    for make in (g.input, g.param, g.buffer):
        with pytest.raises(GraphError, match=r"'a'.*taken"):
            make("a", (1,))


@pytest.mark.parametrize("shape", [(-1,), (2.0,), "ab", None, (None,), ((2,),), (True,), np.array([1.5])])
def test_a_shape_is_of_integers_not_below_zero(g, shape):
    with pytest.raises(ShapeError, match="input 'x'"):
        g.input("x", shape)


@pytest.mark.parametrize("shape", [3, (3,), [3], np.array([3]), np.int64(3), (np.int32(3),)])
def test_a_shape_may_be_spelled_in_numpys_ways(g, shape):
    assert g.input("x", shape).shape == (3,)


@pytest.mark.parametrize("dtype", ["f32", np.float32, None])
def test_a_dtype_is_one_of_ours(g, dtype):
    with pytest.raises(DTypeError, match=r"rlx\.f32"):
        g.input("x", (1,), dtype)


def test_initial_values_are_checked_and_spread(g):
    assert g.buffer("one", (2, 2), 1.0).producer.value.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(ShapeError, match=r"param 'w'.*\(2,\).*\(3,\)"):
        g.param("w", (2,), np.ones(3))
    with pytest.raises(DTypeError, match="param 'v'"):
        g.param("v", (2,), "abc")
    with pytest.raises(DTypeError, match="param 'u'"):
        g.param("u", (2,), [[1.0], [1.0, 2.0]])


def test_looking_up_a_leaf_that_is_not_there(g):
    g.input("here", ())
    with pytest.raises(NameNotFoundError, match="here"):
        g.leaf("there")


# Operands

MIXING = [
    ops.add, ops.sub, ops.mul, ops.div, ops.pow, ops.maximum, ops.minimum, ops.greater, ops.equal, ops.matmul,
    lambda a, b: ops.concat([a, b]), lambda a, b: ops.where(a > 0.0, a, b),
]


@pytest.mark.parametrize("call", MIXING)
def test_tensors_of_two_graphs_do_not_mix(g, call):
    a, b = g.input("a", (2, 2)), rlx.Graph("h").input("b", (2, 2))
    with pytest.raises(GraphError, match="another graph, 'h'"):
        call(a, b)
    with pytest.raises(GraphError, match="another graph"):
        g.set_outputs(b)


@pytest.mark.parametrize("call", MIXING)
@pytest.mark.parametrize("other", [rlx.f16, rlx.i32, rlx.bool_])
def test_tensors_of_two_dtypes_do_not_mix(g, call, other):
    with pytest.raises(DTypeError):
        call(g.input("a", (2, 2)), g.input("b", (2, 2), other))


def test_integers_do_not_divide_but_floor_divide(g):
    a = g.input("a", (2,), rlx.i32)
    with pytest.raises(DTypeError, match="div"):
        a / a
    assert (a // a).dtype is rlx.i32 and (a // 2).dtype is rlx.i32 and (7 % a).dtype is rlx.i32


@pytest.mark.parametrize("dtype", [rlx.f32, rlx.f16])
def test_python_scalars_take_the_tensors_dtype(g, dtype):
    x = g.input("x", (2,), dtype)
    for y in (x + 1, 1 - x, x * 2.5, 1.0 / x, x**2, 2**x, x // 2, x % 3, -x, abs(x), x + True):
        assert y.type == x.type
    assert (x * np.float64(2)).type == (x + np.int64(1)).type == x.type
    assert (x > 0).dtype is rlx.bool_


def test_scalars_that_do_not_fit_are_refused(g):
    i, b = g.input("i", (2,), rlx.i32), g.input("b", (2,), rlx.bool_)
    for tensor, scalar in ((i, 1.5), (i, np.float32(2)), (i, 2**40), (i, "a"), (i, None), (i, 1j), (i, [[1], [1, 2]])):
        with pytest.raises(DTypeError):
            tensor + scalar
    with pytest.raises(DTypeError):
        b == 2  # noqa: B015


def test_arrays_become_constants_of_their_own_dtype(g):
    x = g.input("x", (2,))
    assert (x + np.array([1.0, 2.0])).dtype is rlx.f32  # float64 is f32
    assert (np.array([1.0, 2.0]) + x).dtype is rlx.f32  # NumPy leaves it to us
    assert ([1.0, 2.0] + x).dtype is rlx.f32
    with pytest.raises(DTypeError):
        x + np.array([1, 2])


def test_nobody_can_change_what_a_graph_was_given(g):
    """Not by a view from before the array was made read-only, nor by making it writable again."""
    value = np.ones((2, 2), np.float32)
    view = value[:]
    value.flags.writeable = False
    kept = [g.param("w", (2, 2), value), g.buffer("b", (2, 2), value), g.constant(value)]
    view[:] = 5
    value.flags.writeable = True
    value[:] = 7
    kept.append(g.buffer("one", (2, 2), 1.0))
    for tensor in kept:
        assert (tensor.producer.value == 1).all()
        with pytest.raises(ValueError, match="WRITEABLE"):
            tensor.producer.value.flags.writeable = True
    again = Copy(g).graph
    assert np.shares_memory(again.params["w"].producer.value, kept[0].producer.value)


def test_equal_scalars_share_a_constant_and_zeros_keep_their_sign(g):
    x = g.input("x", ())
    (x + 1.0) * 1.0 + 0.0 - (-0.0)
    assert len(g.constants) == 3


def test_equal_arrays_share_a_constant(g):
    x = g.input("x", (100,))
    for array in (np.arange(100.0), np.arange(100.0), np.arange(100.0, dtype=np.float32)):
        x = x + array
    assert len(g.constants) == 1
    x + np.arange(100.0)[::-1]
    x * np.arange(100.0).reshape(1, 100)
    assert len(g.constants) == 3


@pytest.mark.parametrize("use", [bool, list, np.asarray, float, lambda x: x and x, lambda x: 0 < x < 1, len])
def test_a_tensor_has_no_value_while_building(g, use):
    with pytest.raises((GraphError, TypeError)):
        use(g.input("x", ()))


def test_a_tensor_unpacks_along_its_first_axis(g):
    a, b = g.input("x", (2, 3))
    assert a.shape == b.shape == (3,)


@pytest.mark.parametrize("key", [2, -3, (0, 0, 0), 1.0, "a", True, (slice(None, None, 0),), [0], (..., ...)])
def test_indices_that_do_not_fit(g, key):
    with pytest.raises(ShapeError):
        g.input("x", (2, 3))[key]


# Outputs, assigns


def test_outputs_are_named_by_dict_or_by_tensor(g):
    x = g.input("x", ())
    g.set_outputs([x, x + 1.0])
    assert list(g.outputs) == ["x", "output_1"]
    g.set_outputs(x * 2.0)
    assert list(g.outputs) == ["output_0"]


def test_outputs_that_are_refused(g):
    x = g.input("x", ())
    for outputs in ([], {}, [x, x], {"": x}, {"y": 1.0}, {1: x}, [1.0]):
        with pytest.raises(GraphError):
            g.set_outputs(outputs)


def test_assigning_needs_a_buffer_of_this_graph_and_its_type(g):
    b = g.buffer("b", (2,))
    x = g.input("x", (3,))
    for target in ("x", "none", x, rlx.Graph("h").buffer("b", (2,))):
        with pytest.raises(GraphError, match="buffer of graph 'g'"):
            g.assign(target, b)
    with pytest.raises(ShapeError, match="assign to 'b'"):
        g.assign(b, x)
    g.assign(b, b + 1.0)
    g.set_outputs(x)
    assert interp.run(g, {"x": np.ones(3)})[1]["b"].tolist() == [1, 1]


# Feeds


@pytest.fixture
def fed(g):
    g.set_outputs({"y": g.input("x", (2,)) * g.param("w", (2,)) + ops.cast(g.input("i", (), rlx.i32), rlx.f32)})
    return g


GOOD = {"x": [1.0, 2.0], "w": [1.0, 1.0], "i": 1}


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"x": None}, FeedError, "input 'x'.*no value"), ({"w": None}, FeedError, "param 'w'.*no value"),
        ({"z": 1.0}, FeedError, "'z'.*no input"), ({"x": [1.0]}, FeedError, r"\(2,\).*\(1,\)"),
        ({"x": ["a", "b"]}, DTypeError, "input 'x'"), ({"x": [1j, 2]}, DTypeError, "input 'x'"),
        ({"i": 1.0}, DTypeError, "input 'i'"), ({"i": 2**40}, DTypeError, "fit i32"),
        ({"x": [object(), 1]}, DTypeError, "input 'x'"), ({"x": [2**24 + 1, 0]}, DTypeError, "exactly"),
        ({"x": [[1.0], [1.0, 2.0]]}, DTypeError, "input 'x'"),
    ],
)
def test_feeds_that_are_refused(fed, change, error, words):
    feeds = {k: v for k, v in {**GOOD, **change}.items() if v is not None}
    with pytest.raises(error, match=words):
        rlx.evaluate(fed, feeds)


@pytest.mark.parametrize("x", [[1, 2], (1.0, 2.0), np.uint8([1, 2]), np.arange(4)[::2], np.array([True, False])])
def test_feeds_in_any_form_that_keeps_the_values(fed, x):
    assert rlx.evaluate(fed, {**GOOD, "x": x})["y"].dtype == np.float32


def test_evaluating_in_float64_keeps_fed_doubles_whole(fed):
    third = np.array([1 / 3, 1 / 3])
    assert rlx.evaluate(fed, {**GOOD, "x": third}, np.float64)["y"].tolist() == (third + 1).tolist()
    with pytest.raises(DTypeError):
        rlx.evaluate(fed, GOOD, np.int32)
