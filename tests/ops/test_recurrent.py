"""Cells and scans: a scan is its cell step by step, backwards too; shapes that do not fit are refused."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.errors import ShapeError
from tests.helpers import same, traced, value

pytestmark = pytest.mark.usefixtures("each_device")

RNG = np.random.default_rng(0)


def drawn(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


X, H, C = drawn(2, 3, 4), drawn(2, 5), drawn(2, 5)


def test_an_lstm_is_its_cell_step_by_step():
    w, u, b = drawn(4, 20), drawn(5, 20), drawn(20)

    def whole(x, h, c, w, u, b):
        ys, (h, c) = ops.lstm(x, w, u, b, h, c)
        return ys, h, c

    def stepwise(x, h, c, w, u, b):
        results = []
        for t in range(3):
            h, c = ops.lstm_cell(x[:, t], h, c, w, u, b)
            results.append(h)
        return ops.stack(results, 1), h, c

    for a, e in zip(value(whole, X, H, C, w, u, b), value(stepwise, X, H, C, w, u, b), strict=True):
        same(a, e, 1e-5, 1e-6)


def test_a_gru_is_its_cell_step_by_step_backwards_too():
    w, u, b, d = drawn(4, 15), drawn(5, 15), drawn(15), drawn(15)

    def whole(x, h, w, u, b, d):
        return ops.gru(x, w, u, b, d, h, reverse=True)

    def stepwise(x, h, w, u, b, d):
        results = []
        for t in (2, 1, 0):
            h = ops.gru_cell(x[:, t], h, w, u, b, d)
            results.append(h)
        return ops.stack(results[::-1], 1), h

    for a, e in zip(value(whole, X, H, w, u, b, d), value(stepwise, X, H, w, u, b, d), strict=True):
        same(a, e, 1e-5, 1e-6)


def test_a_scan_of_sums_is_a_running_sum():
    def run(x):
        return ops.scan(lambda s, v: (s + v, s + v), x[0] * 0.0, x, axis=0)

    last, ys = value(run, X)
    same(ys, np.cumsum(X, 0), 1e-5, 1e-6)
    same(last, X.sum(0), 1e-5, 1e-6)


def test_gradients_through_time():
    graph, feeds = traced(lambda x, w, u: ops.lstm(x, w, u)[0], X, drawn(4, 20), drawn(5, 20))
    rlx.check_grads(graph, feeds, list(feeds), order=2)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ops.lstm(x[0], np.ones((4, 20)), np.ones((5, 20))),
        lambda x: ops.lstm(x, np.ones((4, 19)), np.ones((5, 20))),
        lambda x: ops.lstm(x, np.ones((3, 20)), np.ones((5, 20))),
        lambda x: ops.gru(x, np.ones((4, 15)), np.ones((5, 20))),
        lambda x: ops.lstm_cell(x, x[:, 0], x[:, 0], np.ones((4, 16)), np.ones((4, 16))),
        lambda x: ops.gru_cell(x[:, 0], x[:, 0], np.ones((4, 16)), np.ones((4, 16))),
        lambda x: ops.scan(lambda s, v: (s, v), x, x[:, :0]), lambda x: ops.scan(lambda s, v: (s, v), x, x, 3),
    ],
)
def test_refused(call):
    with pytest.raises(ShapeError):
        value(call, X)
