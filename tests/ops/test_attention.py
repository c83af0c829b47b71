"""Attention and rotary positions: masks, heads, rows that see nothing, and the formula of the rotation."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.errors import ConfigError, DTypeError, ShapeError
from tests.helpers import gradients, same, traced, value

pytestmark = pytest.mark.usefixtures("each_device")

RNG = np.random.default_rng(0)
Q, K, V = (RNG.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 6)))


def attend(q, k, v, **options):
    return ops.scaled_dot_product_attention(q, k, v, **options)


def test_a_query_that_sees_nothing_gets_zeros_and_gives_no_gradient():
    mask = np.ones((3, 5), bool)
    mask[1] = False
    out = value(lambda q, k, v: attend(q, k, v, mask=mask), Q, K, V)
    same(out[:, 1], np.zeros((2, 6)))
    for of in (np.float32, np.float16):
        grads = gradients(lambda q, k, v: attend(q, k, v, mask=mask), *(x.astype(of) for x in (Q, K, V)))
        assert all(np.isfinite(g).all() for g in grads)
        same(grads[0][:, 1], np.zeros((2, 4)))


def test_hidden_keys_do_not_matter_even_when_infinite():
    mask = np.array([True, True, True, False, False])
    spoilt = K.copy()
    spoilt[:, 3:] = 1e30
    whole = value(lambda q, k, v: attend(q, k, v, mask=mask), Q, K, V)
    same(value(lambda q, k, v: attend(q, k, v, mask=mask), Q, spoilt, V), whole)
    same(whole, value(attend, Q, K[:, :3], V[:, :3]), 1e-5, 1e-6)


def test_causal_and_masked_together():
    mask = np.array([[True, False, True]] * 3)
    both = value(lambda q, k, v: attend(q, k, v, mask=mask, causal=True), Q, K[:, :3], V[:, :3])
    same(both, value(lambda q, k, v: attend(q, k, v, mask=np.tril(mask)), Q, K[:, :3], V[:, :3]))


def test_heads_are_attended_one_by_one():
    x = RNG.standard_normal((2, 3, 8)).astype(np.float32)
    whole = value(lambda x: ops.multi_head_attention(x, x, x, 2, causal=True), x)
    parts = [value(lambda p: attend(p, p, p, causal=True), x[..., i : i + 4]) for i in (0, 4)]
    same(whole, np.concatenate(parts, -1), 1e-5, 1e-6)
    same(value(lambda x: ops.merge_heads(ops.split_heads(x, 4)), x), x)


def test_shared_key_and_value_heads():
    q, kv = RNG.standard_normal((2, 3, 8)).astype(np.float32), RNG.standard_normal((2, 5, 4)).astype(np.float32)
    shared = value(lambda q, k: ops.multi_head_attention(q, k, k, 4, kv_heads=2), q, kv)
    repeated = np.repeat(kv.reshape(2, 5, 2, 2), 2, 2).reshape(2, 5, 8)
    same(shared, value(lambda q, k: ops.multi_head_attention(q, k, k, 4), q, repeated), 1e-5, 1e-6)


def rotated(x, positions, interleaved, base=10000.0):
    half = x.shape[-1] // 2
    pairs = [(2 * i, 2 * i + 1) if interleaved else (i, i + half) for i in range(half)]
    out = np.empty(x.shape)
    for row, position in enumerate(positions):
        for i, (a, b) in enumerate(pairs):
            turn = position * base ** (-2 * i / x.shape[-1])
            out[..., row, a] = x[..., row, a] * np.cos(turn) - x[..., row, b] * np.sin(turn)
            out[..., row, b] = x[..., row, b] * np.cos(turn) + x[..., row, a] * np.sin(turn)
    return out


@pytest.mark.parametrize("interleaved", [True, False])
def test_rotary_positions(interleaved):
    x = RNG.standard_normal((2, 3, 5, 6)).astype(np.float32)
    plain = value(lambda x: ops.rotary_embedding(x, interleaved=interleaved), x)
    same(plain, rotated(x, range(5), interleaved), 1e-5, 1e-6)
    at = np.int32([7, 0, 3, 2, 11])
    turned = value(lambda x, p: ops.rotary_embedding(x, p, interleaved=interleaved), x, at)
    same(turned, rotated(x, at, interleaved), 1e-5, 1e-6)
    same(np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1), 1e-5)
    graph, feeds = traced(lambda x: ops.rotary_embedding(x, interleaved=interleaved), x)
    rlx.check_grads(graph, feeds, "x0")


def test_rotary_positions_along_another_axis_and_for_each_row():
    x = RNG.standard_normal((2, 5, 3, 4)).astype(np.float32)  # [N, L, heads, E]
    along = value(lambda x: ops.rotary_embedding(x, axis=1), x)
    same(along, np.swapaxes(rotated(np.swapaxes(x, 1, 2), range(5), False), 1, 2), 1e-5, 1e-6)
    each = np.int32([[0, 1, 2], [5, 6, 7]])
    y = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    turned = value(ops.rotary_embedding, y, each)
    same(turned, [rotated(y[i], each[i], False) for i in range(2)], 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda q: attend(q[0, 0], q, q), ShapeError), (lambda q: attend(q, q, q[:, :2]), ShapeError),
        (lambda q: attend(q, q, q, scale=float("nan")), ConfigError),
        (lambda q: attend(q, q, q, mask=np.ones((3, 2), bool)), ShapeError),
        (lambda q: attend(q, q, q, mask=np.ones((4, 2, 3, 3), bool)), ShapeError),
        (lambda q: attend(q, q, q, mask=np.ones((3, 3), np.int32)), DTypeError),
        (lambda q: ops.split_heads(q, 3), ShapeError), (ops.merge_heads, ShapeError),
        (lambda q: ops.multi_head_attention(q, q, q, 4, kv_heads=3), ConfigError),
        (lambda q: ops.rotary_embedding(q[..., :3]), ShapeError), (lambda q: ops.rotary_embedding(q[0, 0]), ShapeError),
        (lambda q: ops.rotary_embedding(q, q), DTypeError),
    ],
)
def test_refused(call, error):
    with pytest.raises(error):
        value(call, Q)


def test_minus_infinity_in_an_added_mask_hides_a_key():
    shown = np.array([[True] * 5, [False] * 5, [True, False, True, False, True]])
    added = np.where(shown, np.float32([0.5, 0, -1, 2, 0]), -np.inf).astype(np.float32)

    def by_sum(q, k, v, mask=added, **options):
        return ops.scaled_dot_product_attention(q, k, v, mask, **options)

    def by_both(q, k, v, causal=False):
        return ops.scaled_dot_product_attention(
            q, k, v, np.where(shown, added, -1e9).astype(np.float32), causal=causal
        ) * np.float32(shown.any(1))[:, None]

    for causal in (False, True):
        constant = value(lambda *x, c=causal: by_sum(*x, causal=c), Q, K, V)
        same(constant, value(lambda *x, c=causal: by_both(*x, causal=c), Q, K, V), 1e-5, 1e-6)
        assert (constant[:, 1] == 0).all()
        fed = [lambda q, k, v, m, c=causal: by_sum(q, k, v, m, causal=c), Q, K, V, added]
        same(value(*fed), constant, 1e-6, 1e-6)
        assert all(np.isfinite(g).all() for g in gradients(*fed))


def reference(q, k, v, added=None, seen=None, scale=None):
    """In float64, with the weights of each query over the keys that it sees."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = scores if added is None else scores + np.asarray(added, np.float64)
    seen = np.broadcast_to(True if seen is None else seen, scores.shape)
    top = np.max(np.where(seen, scores, -np.inf), -1, keepdims=True, initial=-np.finfo(np.float64).max)
    weights = np.where(seen, np.exp(np.where(seen, scores - top, 0)), 0)
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total, total, 1) @ v


LOWEST = {of: np.finfo(of).min for of in (np.float32, np.float16)}


@pytest.mark.parametrize("of", [np.float32, np.float16])
@pytest.mark.parametrize("fed", [False, True])
def test_the_lowest_number_in_a_mask_shows_no_later_key(of, fed):
    v = np.asarray([[1], [2], [3]], of)
    q, mask = np.zeros((3, 2), of), np.zeros((3, 3), of)
    mask[:, 0] = LOWEST[of]
    if fed:
        out = value(lambda q, m: attend(q, q, v, mask=m, causal=True), q, mask)
    else:
        out = value(lambda q: attend(q, q, v, mask=mask, causal=True), q)
    same(out, [[1], [2], [2.5]])


@pytest.mark.parametrize("of", [np.float32, np.float16])
def test_keys_hidden_in_every_way_have_no_weight_and_no_gradient_in_a_batch(of):
    rng, near = np.random.default_rng(3), 1e-5 if of is np.float32 else 4e-3
    q, k, v = (rng.standard_normal((2, 3, 4, 8)).astype(of) for _ in range(3))
    added = np.zeros((2, 1, 4, 4), of)
    added[0, :, :, :2] = LOWEST[of]
    added[1, :, 2, :3] = -np.inf
    added[1, :, 3] = -np.inf
    before, shown = np.tri(4, dtype=bool), ~np.isneginf(added)
    expected = reference(q, k, v, np.where(shown, added, 0), shown & before)
    same(value(lambda q, k, v, m: attend(q, k, v, mask=m, causal=True), q, k, v, added), expected, near, near)
    same(value(lambda q, k, v: attend(q, k, v, mask=added, causal=True), q, k, v), expected, near, near)
    cotangent = rng.standard_normal((2, 3, 4, 8)).astype(of)
    actual = gradients(lambda q, k, v, m: attend(q, k, v, mask=m, causal=True), q, k, v, added, g=cotangent)
    weights = reference(q, k, np.eye(4), np.where(shown, added, 0), shown & before)
    of_weights = cotangent.astype(np.float64) @ np.swapaxes(v, -1, -2).astype(np.float64)
    slopes = weights * (of_weights - (weights * of_weights).sum(-1, keepdims=True))
    scaled, across = slopes * 8**-0.5, (0, 1, 3, 2)
    of_values, of_mask = weights.transpose(across) @ cotangent, slopes.sum(1, keepdims=True)
    expected = scaled @ k, scaled.transpose(across) @ q, of_values, of_mask
    for one, right in zip(actual, expected, strict=True):
        same(one, right, 2 * near, 2 * near)
    same(actual[0][1, :, 3], np.zeros((3, 8)))
    assert not actual[3][~(shown & before)].any()


@pytest.mark.parametrize("of", [np.float32, np.float16])
def test_scores_far_below_zero_show_no_later_key(of):
    q, k, v = np.full((2, 2, 4), 150, of), np.full((2, 2, 4), -206, of), np.asarray([[[1], [2]], [[3], [5]]], of)
    same(value(lambda q, k, v: attend(q, k, v, causal=True, scale=0.5), q, k, v), [[[1], [1.5]], [[3], [4]]])
    mask = np.array([[True, False], [False, False]])
    same(value(lambda q, k, v: attend(q, k, v, mask=mask), q, k, v), [[[1], [0]], [[3], [0]]])
    if of is np.float32:
        same(value(lambda q, k, v: attend(q, k, v, causal=True), q * of(1e32), k, v), [[[1], [1.5]], [[3], [4]]])


def test_scores_that_leave_the_range_of_f16():
    q, v = np.full((2, 4), 300, np.float16), np.float16([[1, 2], [3, 4]])
    q[1] = 10
    same(value(lambda q: attend(q, q, v), q), [[1, 2], [1, 2]])
    batch = np.stack([q, q[::-1], np.full_like(q, 300)])
    same(value(lambda q: attend(q, q, v), batch), [[[1, 2]] * 2, [[3, 4]] * 2, [[2, 3]] * 2])
    slopes = gradients(lambda q, v: attend(q, q, v), batch, np.stack([v] * 3))
    same(slopes[0][:2], np.zeros((2, 2, 4)))
    same(slopes[1], [[[2, 2], [0, 0]], [[0, 0], [2, 2]], [[1, 1], [1, 1]]])
    assert value(lambda q: ops.multi_head_attention(q, q, q, 2, causal=True), batch).dtype == np.float16


def test_masks_of_one_number():
    whole = value(attend, Q, K, V)
    for mask in (True, 0.0, np.float32(-2)):
        same(value(lambda q, k, v, m=mask: attend(q, k, v, mask=m), Q, K, V), whole, 1e-5, 1e-6)
    for mask in (False, -np.inf):
        same(value(lambda q, k, v, m=mask: attend(q, k, v, mask=m), Q, K, V), np.zeros((2, 3, 6)))
    for mask in (np.array(False), np.float32(-np.inf)):
        same(value(lambda q, k, v, m: attend(q, k, v, mask=m), Q, K, V, mask), np.zeros((2, 3, 6)))


def test_dtypes_that_differ_are_refused():
    half = Q.astype(np.float16)
    for call in (
        lambda q: attend(q, K, V), lambda q: attend(q, half, V[:, :3]),
        lambda q: attend(q, half, half, mask=np.zeros((3, 3), np.float32)),
    ):
        with pytest.raises(DTypeError):
            value(call, half)
