"""Losses at their edges: large logits, ignored labels, tied distances, shapes that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from rlx_swift import ops
from rlx_swift.errors import ConfigError, DTypeError, ShapeError
from tests.helpers import gradients, same, value

pytestmark = pytest.mark.usefixtures("each_device")

INF = np.inf
LABELS = np.int32([0, 1])


@pytest.mark.parametrize("loss", [ops.cross_entropy, ops.nll_loss])
@pytest.mark.parametrize("weight", [None, np.float32([1, 2, 3])])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_ignoring_every_label_gives_zero_and_no_gradient(loss, weight, smoothing):
    options = {"weight": weight, "ignore_index": -100}
    if loss is ops.cross_entropy:
        options["label_smoothing"] = smoothing

    def ignored(x):
        return loss(x, np.int32([-100, -100]), **options)

    x = np.array([[1.0, 2, 3], [1, 0, INF]])
    assert value(ignored, x[:1].repeat(2, 0)) == 0
    same(gradients(ignored, x[:1].repeat(2, 0)), np.zeros((2, 3)))


def test_an_ignored_label_counts_for_nothing():
    x = np.array([[1.0, 2, 3], [9, 9, 9], [3, 1, 1]])
    some = value(lambda x: ops.cross_entropy(x, np.int32([0, -1, 2]), ignore_index=-1), x)
    same(some, value(lambda x: ops.cross_entropy(x, np.int32([0, 2])), x[[0, 2]]), 1e-6)


@pytest.mark.parametrize("loss", [ops.cross_entropy, ops.nll_loss])
@pytest.mark.parametrize("bad", [-1, 3])
def test_a_constant_label_that_is_no_class_is_refused(loss, bad):
    for ignored in (None, -100):
        with pytest.raises(ShapeError, match=f"labels from 0 to 2, got {bad}"):
            value(lambda x, k=ignored: loss(x, np.int32([0, bad]), ignore_index=k), np.ones((2, 3)))
    alone = value(lambda x: loss(x, np.int32([0])), np.ones((1, 3)))
    same(value(lambda x: loss(x, np.int32([0, bad]), ignore_index=bad), np.ones((2, 3))), alone)


def test_cross_entropy_of_large_logits_by_index_and_by_probability():
    x = np.array([[1e8, 1e8], [1000, 0]])
    for labels in (np.int32([1, 1]), np.float32([[0, 1], [0, 1]])):
        same(value(lambda x, t=labels: ops.cross_entropy(x, t, reduction="none"), x), [0.693147, 1000])
        same(gradients(lambda x, t=labels: ops.cross_entropy(x, t, reduction="none"), x)[1], [1, -1])


def test_hidden_classes_of_minus_infinity():
    x = np.array([[0.0, -INF, 0.0], [-INF, 0.0, 0.0]])
    same(value(lambda x: ops.cross_entropy(x, np.int32([0, 2])), x), np.log(2))
    assert np.isfinite(gradients(lambda x: ops.cross_entropy(x, np.int32([0, 2])), x)).all()


def test_binary_cross_entropy_does_not_overflow():
    x, t = np.array([1000.0, -1000, 0, 20]), np.array([0.0, 1, 0.5, 1])

    def loss(x, t):
        return ops.bce_with_logits(x, t, reduction="none")

    same(value(loss, x, t), [1000, 1000, 0.693147, 2.0611537e-9], 1e-6, 0)
    same(gradients(loss, x, t)[0], [1, -1, 0, -2.0611537e-9], 1e-6)
    weighted = value(lambda x, t: ops.bce_with_logits(x, t, np.float32(3), "none"), x, t)
    same(weighted, [1000, 3000, 2 * 0.693147, 6.183461e-9], 1e-6, 1e-12)


def test_distances_at_their_kinks():
    slopes = gradients(lambda x, t: ops.huber_loss(x, t, 1.0, "sum"), [0.0, 1.0, 5.0, -5.0, 0.5], np.zeros(5))[0]
    same(slopes, [0, 1, 1, -1, 0.5])
    same(gradients(lambda x, t: ops.l1_loss(x, t, "sum"), [0.0, 2.0], np.zeros(2))[0], [0, 1])
    assert value(ops.huber_loss, [1e30], [0.0]) == np.float32(1e30)


def test_means_of_f16_do_not_overflow():
    x = np.full((300,), 100, np.float16)
    assert value(lambda x: ops.mse_loss(x, x * 0.0), x) == 10000
    assert value(lambda x: ops.l1_loss(x, -x), x) == 200


def half(*values):
    return np.float16(values)


ZEROS = np.zeros(2, np.float16)


@pytest.mark.parametrize(
    ("loss", "x", "expected", "slopes"),
    [
        (lambda x: ops.huber_loss(x, ZEROS, 500.0), half(300, 1), 22500.25, [150, 0.5]),
        (lambda x: ops.huber_loss(x, ZEROS, 280.0, "none"), half(300, 1), [280 * 160, 0.5], [280, 1]),
        (lambda x: ops.mse_loss(x, ZEROS), half(300, 1), 45000.5, [300, 1]),
        (lambda x: ops.mse_loss(x, ZEROS, "none"), half(300, 200), [INF, 40000], [600, 400]),
        (lambda x: ops.l1_loss(x, -x, "mean"), half(40000, 1), 40001, [1, 1]),
        (
            lambda x: ops.kl_div(x, np.full((4, 1000), 0.5, np.float16), reduction="batchmean"),
            np.full((4, 1000), -100, np.float16), 1000 * 0.5 * (np.log(0.5) + 100), np.full((4, 1000), -0.125),
        ),
        (
            lambda x: ops.nll_loss(x, LABELS, half(300, 500)), half([-500, 0], [0, -200]),
            (300 * 500 + 500 * 200) / 800, [[-0.375, 0], [0, -0.625]],
        ),
        (
            lambda x: ops.cross_entropy(x, LABELS, half(300, 500)), half([-500, 0], [0, -200]),
            (300 * 500 + 500 * 200) / 800, [[-0.375, 0.375], [0.625, -0.625]],
        ),
        (
            lambda x: ops.bce_with_logits(x, half(1, 1), half(300, 1)), half(-300, -200),
            (300 * 300 + 200) / 2, [-150, -0.5],
        ),
        (
            lambda x: ops.triplet_loss(x, -x, x, margin=0.5), half([24000, 32000], [0, 1]), (80000 + 2 + 1) / 2,
            [[0.6, 0.8], [0, 1]],
        ),
    ],
    ids=["huber", "huber-none", "mse", "mse-none", "l1", "kl", "nll", "cross_entropy", "bce", "triplet"],
)
def test_losses_of_f16_that_fit_do_not_overflow_on_the_way(loss, x, expected, slopes):
    with np.errstate(over="ignore"):
        rounded = np.asarray(expected, np.float16)
    same(value(loss, x), rounded, 2e-3 if rounded.ndim else 1e-6)
    same(gradients(loss, x), slopes, 2e-3, 1e-6)


@pytest.mark.parametrize("labels", [LABELS, np.eye(2, 50000, dtype=np.float16)], ids=["index", "probability"])
def test_label_smoothing_over_many_classes_of_f16(labels):
    z = np.zeros((2, 50000), np.float16)
    for reduction, rows in (("mean", 1), ("none", 2)):
        def loss(x, t=labels, how=reduction):
            return ops.cross_entropy(x, t, label_smoothing=0.1, reduction=how)

        same(value(loss, z), np.full(rows, 10.8198, np.float16) if rows > 1 else np.float16(10.8198))
    slopes = gradients(lambda x: ops.cross_entropy(x, labels, label_smoothing=0.1), z)
    same(slopes[0, 0], -0.45, 1e-3)


def test_losses_keep_the_dtype_of_what_is_judged_and_refuse_another():
    x, y = np.float32([[3, 4], [1, 0]]), np.float32([[3, 4], [0, 1]])
    assert value(lambda a, b: ops.cosine_embedding_loss(a, b, half(1, -1)), x, y).dtype == np.float32
    h = [v.astype(np.float16) for v in (x, y)]
    out = value(lambda a, b: ops.cosine_embedding_loss(a, b, np.float32([-1, 1]), 0.25), *h)
    assert out.dtype == np.float16
    same(out, (0.75 + 1) / 2)
    for call in (
        lambda a: ops.mse_loss(a, x), lambda a: ops.cross_entropy(a, x), lambda a: ops.cross_entropy(a, LABELS, x[0]),
        lambda a: ops.kl_div(a, x), lambda a: ops.nll_loss(a, LABELS, x[0]),
    ):
        with pytest.raises(ShapeError):
            value(call, h[0])
    with pytest.raises(DTypeError):
        value(lambda a: ops.bce_with_logits(a, h[1], x), h[0])


def test_a_target_of_zero_adds_nothing_to_the_divergence():
    t = np.array([[0.0, 1.0], [0.5, 0.5]])
    logs = np.log(np.array([[0.5, 0.5], [0.25, 0.75]]))
    expected = (t * np.log(np.where(t, t, 1)) - t * logs).sum() / 2
    same(value(lambda x, t: ops.kl_div(x, t, reduction="batchmean"), logs, t), expected)
    assert np.isfinite(gradients(ops.kl_div, logs, t)).all()


def test_similarity_of_zero_vectors_is_finite():
    x = np.zeros((2, 3))
    assert value(ops.cosine_similarity, x, x).tolist() == [0, 0]
    assert np.isfinite(gradients(ops.cosine_similarity, x, x)).all()
    assert np.isfinite(gradients(lambda a: ops.triplet_loss(a, a, a, eps=0.0), x)).all()


def bad(function, *arguments, **options):
    return lambda x: function(x, *arguments, **options)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (bad(ops.mse_loss, np.ones(2)), ShapeError), (bad(ops.mse_loss, np.float32(0)), ShapeError),
        (bad(ops.l1_loss, np.ones((2, 1))), ShapeError), (bad(ops.huber_loss, np.ones((2, 2)), 0), ConfigError),
        (bad(ops.mse_loss, np.ones((2, 2)), "average"), ConfigError),
        (bad(ops.cross_entropy, LABELS, label_smoothing=1.5), ConfigError),
        (bad(ops.cross_entropy, LABELS, weight=np.ones(3)), ShapeError),
        (bad(ops.cross_entropy, np.ones(2)), ShapeError), (bad(ops.cross_entropy, np.int32([[0, 1]])), ShapeError),
        (bad(ops.cross_entropy, np.ones((2, 2)), ignore_index=0), ConfigError),
        (bad(ops.nll_loss, np.ones(2)), DTypeError),
        (bad(ops.nll_loss, np.int32([0])), ShapeError), (bad(ops.bce_with_logits, np.ones(2)), ShapeError),
        (bad(ops.kl_div, np.ones((2, 2)), reduction="all"), ConfigError),
        (bad(ops.cosine_similarity, np.ones(3)), ShapeError),
        (bad(ops.cosine_embedding_loss, np.ones(2), np.ones(3)), ShapeError),
        (bad(ops.triplet_loss, np.ones((2, 2)), np.ones((2, 3))), ShapeError),
    ],
)
def test_refused(call, error):
    with pytest.raises(error):
        value(call, np.ones((2, 2)))
