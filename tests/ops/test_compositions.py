"""Public functions that are made of several ops: their values are NumPy's, their gradients are right."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from tests.helpers import gradients, same, traced, value

pytestmark = pytest.mark.usefixtures("each_device")

M, V, T, Q = (2, 3), (3,), (2, 3, 4), (2, 3, 4, 5)
I = np.int32  # noqa: E741


def cut(x, start, sizes):
    return x[tuple(slice(s, s + n) for s, n in zip(start, sizes, strict=True))]


def put(x, ids, values, axis):
    out = x.copy()
    np.put_along_axis(out, ids, values, axis)
    return out


def add_at(x, at, values):
    out = x.copy()
    np.add.at(out, at, values)
    return out


IDS = I([[2, 0], [1, 1]])

# (name, ours, NumPy's, shapes of the float operands)
ROWS = [
    ("stack-0", lambda *x: ops.stack(x), lambda *x: np.stack(x), (M, M, M)),
    ("stack-1", lambda *x: ops.stack(x, -1), lambda *x: np.stack(x, -1), (M, M)),
    ("stack-scalars", lambda *x: ops.stack(x), lambda *x: np.stack(x), ((), ())),
    ("split", lambda x: ops.split(x, 2, 2)[1], lambda x: np.split(x, 2, 2)[1], (T,)),
    ("split-at", lambda x: ops.concat(ops.split(x, [1, 1, 3], 2)[::-1], 2),
     lambda x: np.concatenate(np.split(x, [1, 1, 3], 2)[::-1], 2), (T,)),
    ("roll", lambda x: ops.roll(x, 5), lambda x: np.roll(x, 5), (T,)),
    ("roll-axes", lambda x: ops.roll(x, (1, -2), (0, 2)), lambda x: np.roll(x, (1, -2), (0, 2)), (T,)),
    ("tile", lambda x: ops.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3)), (M,)),
    ("tile-last", lambda x: ops.tile(x, 2), lambda x: np.tile(x, 2), (M,)),
    ("tril", ops.tril, np.tril, (T,)), ("tril-1", lambda x: ops.tril(x, -1), lambda x: np.tril(x, -1), (T,)),
    ("triu", ops.triu, np.triu, (M,)), ("triu+1", lambda x: ops.triu(x, 1), lambda x: np.triu(x, 1), (T,)),
    *[
        (f"pad-{mode}", lambda x, m=mode: ops.pad(x, ((1, 0), (2, 1), (0, 3)), mode=m),
         lambda x, m=mode: np.pad(x, ((1, 0), (2, 1), (0, 3)), mode=m), (T,))
        for mode in ("constant", "reflect", "edge", "wrap")
    ],
    ("pad-number", lambda x: ops.pad(x, 2), lambda x: np.pad(x, 2), (M,)),
    ("pad-pair", lambda x: ops.pad(x, (1, 2), mode="edge"), lambda x: np.pad(x, (1, 2), mode="edge"), (T,)),
    ("pad-one-pair", lambda x: ops.pad(x, ((0, 1),)), lambda x: np.pad(x, ((0, 1),)), (T,)),
    ("gather-from-the-end", lambda x: ops.gather(x, I([-1, 0, -3]), 1), lambda x: x[:, [-1, 0, -3]], (T,)),
    ("take_along-from-the-end", lambda x: ops.take_along_axis(x, IDS - 3, 1),
     lambda x: np.take_along_axis(x, IDS - 3, 1), (M,)),
    ("put_along-from-the-end", lambda x, v: ops.put_along_axis(x, IDS - 3, v, 1),
     lambda x, v: put(x, IDS - 3, v, 1), (M, (2, 2))),
    ("gather_nd-from-the-end", lambda x: ops.gather_nd(x, I([[-1, 2], [0, -3]])), lambda x: x[[1, 0], [2, 0]], (T,)),
    ("take", lambda x: ops.take(x, I([[5, 0], [3, 3]])), lambda x: np.take(x, [[5, 0], [3, 3]]), (M,)),
    ("index_select", lambda x: ops.index_select(x, 1, I([2, 0])), lambda x: x[:, [2, 0]], (T,)),
    ("take_along", lambda x: ops.take_along_axis(x, IDS, 1), lambda x: np.take_along_axis(x, IDS, 1), (M,)),
    ("take_along-broadcast", lambda x: ops.take_along_axis(x, IDS[:1], 1), lambda x: x[:, IDS[0]], (M,)),
    ("put_along", lambda x, v: ops.put_along_axis(x, IDS, v, 1), lambda x, v: put(x, IDS, v, 1), (M, (2, 2))),
    ("gather_nd", lambda x: ops.gather_nd(x, I([[1, 2], [0, 0]])), lambda x: x[[1, 0], [2, 0]], (T,)),
    ("gather_nd-batch", lambda x: ops.gather_nd(x, I([[[1], [0]]])), lambda x: x[[[1, 0]]], (T,)),
    ("scatter_nd", lambda x, v: ops.scatter_nd(x, I([[1, 2], [0, 0], [1, 2]]), v),
     lambda x, v: add_at(x, ([1, 0, 1], [2, 0, 2]), v), (T, (3, 4))),
    ("dynamic_slice", lambda x: ops.dynamic_slice(x, (I(0), I(1), I(9)), (2, 2, 3)),
     lambda x: cut(x, (0, 1, 1), (2, 2, 3)), (T,)),
    ("dynamic_slice-vector", lambda x: ops.dynamic_slice(x, I([1, 0]), (1, 3)), lambda x: x[1:, :], (M,)),
    ("sort", ops.sort, np.sort, (T,)), ("sort-0", lambda x: ops.sort(x, 0, True), lambda x: -np.sort(-x, 0), (T,)),
    ("topk", lambda x: ops.topk(x, 2, 1)[0], lambda x: -np.sort(-x, 1)[:, :2], (T,)),
    ("dot-1", ops.dot, np.dot, (V, V)), ("dot-2", ops.dot, np.dot, (M, (3, 2))),
    ("dot-3", ops.dot, np.dot, (T, (2, 4, 3))),
    ("dot-0", ops.dot, np.dot, ((), M)), ("outer", ops.outer, np.outer, (M, V)),
    ("var", lambda x: ops.var(x, 1, correction=1), lambda x: np.var(x, 1, ddof=1), (T,)),
    ("std", lambda x: ops.std(x, (0, 2), True), lambda x: np.std(x, (0, 2), keepdims=True), (T,)),
    *[
        (f"norm-{o}", lambda x, o=o: ops.norm(x, o, -1), lambda x, o=o: np.linalg.norm(x, o, -1), (T,))
        for o in (1, 2, np.inf)
    ],
    ("norm", ops.norm, lambda x: np.linalg.norm(x.ravel()), (T,)),
    ("cumprod", lambda x: ops.cumprod(x, 1), lambda x: np.cumprod(x, 1), (Q,)),
    ("prelu", ops.prelu, lambda x, a: np.where(x > 0, x, x * a[:, None]), (T, V)),
    ("clip-tensors", ops.clip, np.clip, (M, (), V)),
    ("swapaxes", lambda x: ops.swapaxes(x, 0, -1), lambda x: np.swapaxes(x, 0, -1), (T,)),
    ("flip", lambda x: ops.flip(x, 1), lambda x: np.flip(x, 1), (T,)),
    ("getitem", lambda x: x[1, None, ..., ::-2], lambda x: x[1, None, ..., ::-2], (T,)),
    ("matmul-1", ops.matmul, np.matmul, (V, (3, 4))), ("matmul-4", ops.matmul, np.matmul, (Q, (5, 2))),
    ("matmul-batch", ops.matmul, np.matmul, ((2, 1, 3, 4), (3, 4, 2))), ("matmul-v", ops.matmul, np.matmul, (T, (4,))),
]
EQUATIONS = [
    ("ij,jk->ik", M, (3, 4)), ("ij,jk", M, (3, 4)), ("bij,bjk->bik", T, (2, 4, 5)), ("ij->ji", M), ("ij->", M),
    ("ij->i", M), ("ii->i", (3, 3)), ("ii", (3, 3)), ("iji->j", (3, 2, 3)), ("iii->i", (2, 2, 2)), ("i,i->", V, V),
    ("i,j->ij", V, (4,)),    ("ij,ij->ij", M, M), ("bhqd,bhkd->bhqk", Q, (2, 3, 2, 5)), ("...ij,...jk->...ik", T,
    (4, 2)),
    ("...i,...i", T, (4,)),
    ("ij,jk,kl->il", M, (3, 4), (4, 2)), ("ij,ik,il->jkl", M, (2, 4), (2, 2)), ("i,ij,j->", (2,), M, V), ("ba", M),
    ("...->...", T), ("i...->...", T), ("a b, b -> a", M, V), ("ij,k->k", M, V), (",ij->ij", (), M),
    ("...a,...b->...ab", (2, 1, 3), (4, 2)),
]
ROWS += [
    (f"einsum {e}", lambda *x, e=e: ops.einsum(e, *x), lambda *x, e=e: np.einsum(e, *x), shapes)
    for e, *shapes in EQUATIONS
]
every_row = pytest.mark.parametrize(("ours", "numpys", "shapes"), [pytest.param(*r[1:], id=r[0]) for r in ROWS])


def drawn(shapes) -> list[np.ndarray]:
    """Values without ties, none near 0."""
    rng = np.random.default_rng(0)
    total = sum(int(np.prod(s)) for s in shapes)
    pool = rng.permutation(np.linspace(-2, 2.1, 2 * total + 1)[1::2] if total > 1 else np.array([1.5]))
    parts = np.split(pool[:total], np.cumsum([int(np.prod(s)) for s in shapes])[:-1])
    return [part.reshape(shape).astype(np.float32) for part, shape in zip(parts, shapes, strict=True)]


@every_row
def test_values_are_numpys(ours, numpys, shapes):
    arrays = drawn(shapes)
    same(value(ours, *arrays), numpys(*[a.astype(np.float64) for a in arrays]), 2e-5, 1e-5)


@every_row
def test_gradients_are_right(ours, numpys, shapes):
    graph, feeds = traced(ours, *drawn(shapes))
    rlx.check_grads(graph, feeds, list(feeds), order=2)


@every_row
def test_f16_in_f16_out(ours, numpys, shapes):
    arrays = [a.astype(np.float16) for a in drawn(shapes)]
    result = value(ours, *arrays)
    assert result.dtype == np.float16
    same(result, numpys(*[a.astype(np.float64) for a in arrays]), 2e-2, 2e-2)


INTEGERS = [
    "stack-0", "split", "roll-axes", "tile", "tril", "pad-constant", "pad-reflect", "pad-edge", "pad-wrap", "take",
    "take_along", "put_along", "gather_nd", "scatter_nd", "dynamic_slice", "sort", "topk", "getitem", "flip",
]


@pytest.mark.parametrize("row", [r for r in ROWS if r[0] in INTEGERS], ids=lambda r: r[0])
def test_movement_takes_integers(row):
    arrays = [np.arange(int(np.prod(s)), dtype=np.int32).reshape(s) for s in row[3]]
    result = value(row[1], *arrays)
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, row[2](*arrays))


def test_sorting_keeps_the_order_of_equal_elements():
    x = [3.0, 1, 3, 1, 2]
    assert value(ops.argsort, x).tolist() == [1, 3, 4, 0, 2]
    assert value(lambda x: ops.argsort(x, descending=True), x).tolist() == [0, 2, 4, 1, 3]
    assert [v.tolist() for v in value(lambda x: ops.topk(x, 3), x)] == [[3, 3, 2], [0, 2, 4]]
    assert [v.tolist() for v in value(lambda x: ops.topk(x, 2, largest=False), x)] == [[1, 1], [1, 3]]


def test_sorting_puts_nan_and_infinities_in_their_places():
    x = [np.nan, 1.0, np.inf, -np.inf]
    same(value(ops.sort, x), [-np.inf, 1, np.inf, np.nan])
    same(value(lambda x: ops.sort(x, descending=True), x), [np.nan, np.inf, 1, -np.inf])


def test_the_last_of_several_values_for_one_place_stays_and_gets_the_gradient():
    def write(x, v):
        return ops.put_along_axis(x, I([1, 1, 0]), v)

    same(value(write, [0.0, 0, 5], [1.0, 2, 3]), [3, 2, 5])
    same(gradients(write, [0.0, 0, 5], [1.0, 2, 3], g=[1, 10, 100])[0], [0, 0, 100])
    same(gradients(write, [0.0, 0, 5], [1.0, 2, 3], g=[1, 10, 100])[1], [0, 10, 1])


def test_tied_extremes_of_a_scatter_share_the_gradient():
    def best(x, v):
        return ops.put_along_axis(x, I([0, 0, 1]), v, mode="max")

    x, v = gradients(best, [2.0, 9.0], [2.0, 2.0, 1.0], g=[3, 1])
    same(x, [1, 1])
    same(v, [1, 1, 0])


@pytest.mark.parametrize("start", [-3, 0, 1, 2, 7])
def test_a_dynamic_update_writes_one_block(start):
    x, block = np.arange(12.0).reshape(3, 4), np.full((3, 2), -1.0)
    expected = x.copy()
    at = min(max(start, 0), 2)
    expected[:, at : at + 2] = -1

    def update(x, block, at):
        return ops.dynamic_update_slice(x, block, (0, at))

    same(value(update, x, block, I(start)), expected)
    dx, dblock = gradients(update, x, block, I(start), g=x)
    same(dx, np.where(expected == -1, 0, x))
    same(dblock, x[:, at : at + 2])


def test_a_dynamic_update_in_two_axes():
    x, block = np.zeros((3, 4)), np.ones((2, 2))
    expected = x.copy()
    expected[1:3, 1:3] = 1
    same(value(ops.dynamic_update_slice, x, block, I([1, 1])), expected)


@pytest.mark.parametrize("cuts", [[-1], [9], [2, 1], [-9, 2], [1, 1], [3, -2, 9]])
def test_splitting_at_any_indices_is_numpys(cuts):
    x = np.arange(8.0, dtype=np.float32).reshape(2, 4)
    parts = value(lambda x: ops.split(x, cuts, 1), x)
    for part, expected in zip(parts, np.split(x, cuts, 1), strict=True):
        np.testing.assert_array_equal(part, expected)


def test_sorting_nothing():
    x = np.zeros((0, 3), np.float32)
    assert value(lambda x: ops.sort(x, 0), x).shape == value(lambda x: ops.argsort(x, 0), x).shape == (0, 3)
    assert value(lambda x: ops.argsort(x, 0), x).dtype == np.int32


def test_floor_division_of_floats_is_numpys():
    x = np.float32([1, 6, -8, 8, -6, 7, -7, 7, -7, 0, 1, -1, 0, 5, np.inf, 3e7, -1])
    y = np.float32([0.1, 0.1, np.inf, np.inf, 0.1, 2, 2, -2, -2, 3, 0, 0, 0, np.nan, 2, 3, 1e-3])
    with np.errstate(all="ignore"):
        expected = x // y
    np.testing.assert_array_equal(value(ops.floor_div, x, y), expected)
    np.testing.assert_array_equal(value(ops.floor_div, x[:9].astype(np.float16), y[:9].astype(np.float16)),
                                  x[:9].astype(np.float16) // y[:9].astype(np.float16))
    same(gradients(ops.mod, x[:9], y[:9])[1], -expected[:9])


def test_splitting_bools_and_moving_them():
    bools = np.array([[True, False, True], [False, False, True]])
    np.testing.assert_array_equal(value(lambda x: ops.gather(x, I([2, 0]), 1), bools), bools[:, [2, 0]])
    np.testing.assert_array_equal(value(lambda x: ops.roll(x, 1, 1), bools), np.roll(bools, 1, 1))
    around = ((1, 0), (0, 1))
    np.testing.assert_array_equal(value(lambda x: ops.pad(x, around), bools), np.pad(bools, around))
    np.testing.assert_array_equal(value(ops.triu, bools), np.triu(bools))
