"""Products of f16 whose parts leave its range where the results stay in it: forwards and in both derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from tests.helpers import gradients, run, same, traced, value

pytestmark = pytest.mark.usefixtures("each_device")

INF = np.inf
UP, DOWN = np.float16([1e4, 1e4, 1e-4, 1e-4]), np.float16([1e-4, 1e-4, 1e4, 1e4])


def exact(x) -> np.ndarray:
    return np.asarray(x, np.float64)


def test_running_products_of_f16():
    same(value(ops.cumprod, UP), [1e4, INF, 1e4, 1], 1e-3)
    small = np.float16(1e-4)
    same(value(ops.cumprod, DOWN), [small, 0, small, 1], 1e-3)
    rows = np.stack([UP, DOWN, np.ones(4, np.float16)])
    with np.errstate(over="ignore"):
        expected = np.cumprod(exact(rows), 1).astype(np.float16)
        along = np.cumprod(exact(rows), 0).astype(np.float16)
    same(value(lambda x: ops.cumprod(x, 1), rows), expected, 2e-3, 6e-8)
    same(value(lambda x: ops.cumprod(x, 0), rows), along, 2e-3)


def test_running_products_of_other_dtypes_stay_as_they_are():
    x = np.float32([[1e4, 1e4, 1e-4, 1e-4], [1, 2, 3, 4]])
    same(value(lambda x: ops.cumprod(x, -1), x), np.cumprod(exact(x), -1))
    assert value(ops.cumprod, np.int32([1, -2, 3, 4])).tolist() == [1, -2, -6, -24]
    graph, _ = traced(ops.cumprod, x[0])
    assert "cast" not in {node.op.name for node in graph.nodes}


def test_slopes_of_running_products_of_f16():
    slopes = gradients(ops.cumprod, UP, g=np.float16([0, 0, 0, 1]))
    same(slopes, [np.prod(exact(np.delete(UP, i))) for i in range(4)], 2e-3)


@pytest.mark.parametrize("x", [UP, DOWN])
def test_products_of_f16_and_their_slopes(x):
    rows = np.stack([x, x[::-1]])
    same(value(lambda x: ops.prod(x, 1), rows), np.ones(2), 2e-3)
    d = np.float16([1, 0.5])
    expected = [[g * np.prod(exact(np.delete(row, i))) for i in range(4)] for g, row in zip(d, rows, strict=True)]
    same(gradients(lambda x: ops.prod(x, 1), rows, g=d), expected, 2e-3)
    graph, feeds = traced(ops.prod, x)
    forward = rlx.jvp(graph, ["x0"])
    t = np.float16([1, 0, 0, 2])
    changes = run(forward, {**feeds, "d_x0": t})
    slope = exact([np.prod(exact(np.delete(x, i))) for i in range(4)])
    same(changes["jvp_y0"], slope @ t, 2e-3)


def test_slopes_of_products_with_a_zero_in_f16():
    x = np.float16([300, 300, 0, 1e-3])
    with_zero = [0, 0, 300 * 300 * float(x[3]), 0]
    same(gradients(ops.prod, x), with_zero, 2e-3)
    same(gradients(ops.prod, np.float16([300, 0, 300, 0])), np.zeros(4))
