"""The CPU runtime gives what the interpreter gives: for every op of the registry, in f32 and f16, and random graphs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.dtypes import f16
from rlx_swift.errors import RlxError
from rlx_swift.ir.op import OpKind
from rlx_swift.testing import Tolerance, assert_devices_agree, sample, strategies, tolerance
from tests.contracts.cases import every_case, every_smooth_case, single_case, spoilt

pytestmark = pytest.mark.native
LOOSE = Tolerance(2e-4, 1e-4)  # several ops after one another
LOOSE_F16 = Tolerance(1e-2, 1e-2)


def agree(op, case) -> None:
    s = sample(op, case)
    kind = OpKind.REDUCTION if op.kind is OpKind.DATA_MOVEMENT else op.kind
    assert_devices_agree(s.graph, s.feeds, within=tolerance(kind, s.results[0].dtype))


@every_case
def test_every_op(op, case):
    agree(op, case)


@single_case
def test_every_op_in_f16(op, case):
    agree(op, dataclasses.replace(case, dtypes=halved(case).dtypes))


@every_case
def test_operands_without_elements(op, case):
    for types in spoilt(case.types()):
        if all(t.size for t in types):
            continue
        try:
            op.result_types(types, case.attrs)
        except RlxError:
            continue
        graph = rlx.Graph()
        operands = tuple(graph.input(f"x{i}", t.shape, t.dtype) for i, t in enumerate(types))
        graph.set_outputs({f"y{i}": t for i, t in enumerate(graph.apply(op, operands, case.attrs))})
        wrt = [f"x{i}" for i, t in enumerate(types) if t.dtype.is_float and i not in case.held]
        differentiable = wrt and callable(op.vjp) and any(t.dtype.is_float for t in graph.outputs.values())
        for form in (graph, rlx.vjp(graph, wrt)) if differentiable else (graph,):
            feeds = {n: np.zeros(t.shape, t.dtype.numpy) for n, t in form.inputs.items()}
            assert_devices_agree(form, feeds, within=LOOSE, allow_nonfinite=True)


def halved(case):
    """The case with floats of f16; operands that belong together are not drawn so."""
    dtypes = tuple(f16 if t.dtype.is_float else t.dtype for t in case.types())
    return dataclasses.replace(case, dtypes=dtypes, prepare=None)


def agree_in_gradients(op, case, within: Tolerance) -> None:
    s = sample(op, case)
    graph = rlx.vjp(s.graph, s.wrt)
    rng = np.random.default_rng(1)
    cotangents = {f"d_{name}": rng.standard_normal(t.shape) for name, t in s.graph.outputs.items()}
    feeds = {name: value for name, value in {**s.feeds, **cotangents}.items() if name in graph.inputs}
    for name, t in graph.inputs.items():
        feeds[name] = np.asarray(feeds[name]).astype(t.dtype.numpy)
    assert_devices_agree(graph, feeds, within=within)


@every_smooth_case
def test_every_gradient(op, case):
    agree_in_gradients(op, case, LOOSE)


@every_smooth_case
def test_every_gradient_in_f16(op, case):
    agree_in_gradients(op, halved(case), LOOSE_F16)


TWICE = {
    "itself": lambda y: y + y, "half of both": lambda y: 0.5 * (y + y), "reshaped": lambda y: y + y.reshape(y.shape),
    "masked": lambda y: y * (y > 0.0).astype(rlx.f32), "larger": lambda y: ops.maximum(y, 0.5 * y),
    "turned": lambda y: y + ops.transpose(y, range(y.ndim)[::-1]) if y.shape == y.shape[::-1] else y + y,
}


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 4), (4, 1), (3, 3)])
@pytest.mark.parametrize("again", TWICE)
def test_a_product_that_one_op_meets_twice(again, rows, columns):
    """Also of one row or column, where the second meeting looks like a bias; and a convolution of one place."""
    g = rlx.Graph()
    weight = np.linspace(-1, 2, 5 * columns).reshape(5, columns)
    x, w = g.input("x", (rows, 5)), g.param("w", (5, columns), init=weight)
    convolved = ops.conv2d(x.reshape(1, 5, rows, 1), ops.transpose(w).reshape(columns, 5, 1, 1))
    g.set_outputs([TWICE[again](x @ w), TWICE[again](convolved)])
    assert_devices_agree(g, {"x": np.linspace(-1, 1, 5 * rows).reshape(rows, 5)}, within=LOOSE)


@settings(max_examples=30)
@given(st.data())
def test_random_graphs(data):
    graph = data.draw(strategies.graphs())
    assert_devices_agree(graph, data.draw(strategies.feeds(graph)), within=LOOSE)
