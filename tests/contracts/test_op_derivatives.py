"""What every op of the registry keeps of its derivatives. An op is covered by being declared."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import dtypes
from rlx_swift.errors import NotDifferentiableError
from rlx_swift.ir.op import Forward, NotDifferentiable, Stopped
from rlx_swift.testing import Sample, assert_close, sample
from tests.contracts.cases import WITHIN_F64, every_op, every_smooth_case

F64 = np.float64


@every_smooth_case
def test_vjp_agrees_with_finite_differences_to_second_order(op, case):
    s = sample(op, case)
    rlx.check_grads(s.graph, s.feeds, s.wrt, order=2)


def pulled(s: Sample, cotangents: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    graph = rlx.vjp(s.graph, s.wrt)
    graph.verify()
    return rlx.evaluate(graph, {**s.feeds, **{f"d_{n}": v for n, v in cotangents.items()}}, F64)


def random_like(s: Sample, rng) -> dict[str, np.ndarray]:
    return {n: rng.standard_normal(t.shape) for n, t in s.graph.outputs.items() if t.dtype.is_float}


@every_smooth_case
def test_vjp_is_linear_in_the_cotangent(op, case):
    s, rng = sample(op, case), np.random.default_rng(1)
    u, v = random_like(s, rng), random_like(s, rng)
    both = pulled(s, {n: 2 * u[n] - 3 * v[n] for n in u})
    of_u, of_v = pulled(s, u), pulled(s, v)
    for name, value in both.items():
        assert_close(value, 2 * of_u[name] - 3 * of_v[name], WITHIN_F64, name)


@every_smooth_case
def test_jvp_and_vjp_are_transposes(op, case):
    s, rng = sample(op, case), np.random.default_rng(2)
    u = random_like(s, rng)
    tangents = {name: rng.standard_normal(s.graph.inputs[name].shape) for name in s.wrt}
    forward = rlx.jvp(s.graph, s.wrt)
    forward.verify()
    pushed = rlx.evaluate(forward, {**s.feeds, **{f"d_{n}": t for n, t in tangents.items()}}, F64)
    back = pulled(s, u)
    left = sum(np.vdot(u[n], pushed[f"jvp_{n}"]) for n in u)
    right = sum(np.vdot(back[f"grad_{n}"], t) for n, t in tangents.items())
    assert_close(np.float64(left), np.float64(right), WITHIN_F64)


@every_smooth_case
def test_one_tangent_alone_is_pushed(op, case):
    s, rng = sample(op, case), np.random.default_rng(3)
    for name in s.wrt:
        tangent = rng.standard_normal(s.graph.inputs[name].shape)
        alone = rlx.evaluate(rlx.jvp(s.graph, name), {**s.feeds, f"d_{name}": tangent}, F64)
        others = {f"d_{n}": np.zeros(s.graph.inputs[n].shape) for n in s.wrt}
        padded = rlx.evaluate(rlx.jvp(s.graph, s.wrt), {**s.feeds, **others, f"d_{name}": tangent}, F64)
        for output in random_like(s, rng):
            assert_close(alone[f"jvp_{output}"], padded[f"jvp_{output}"], WITHIN_F64)


@every_smooth_case
def test_f16_gradients_have_the_operands_types(op, case):
    half = dataclasses.replace(
        case, dtypes=tuple(dtypes.f16 if t.dtype.is_float else t.dtype for t in case.types()), prepare=None
    )
    s = sample(op, half)
    graph = rlx.vjp(s.graph, s.wrt)
    graph.verify()
    for name in s.wrt:
        assert graph.outputs[f"grad_{name}"].type == s.graph.inputs[name].type


@every_op
def test_an_op_without_derivatives_says_why(op):
    if not isinstance(op.vjp, NotDifferentiable):
        assert isinstance(op.vjp, Stopped) or callable(op.vjp)
        assert isinstance(op.jvp, (Stopped, Forward)) or callable(op.jvp)
        return
    assert op.vjp.reason and isinstance(op.jvp, NotDifferentiable)
    for case in op.cases:
        s = sample(op, case)
        if s.wrt and any(t.dtype.is_float for t in s.results):
            for derive in (rlx.vjp, rlx.jvp):
                with pytest.raises(NotDifferentiableError, match=op.vjp.reason):
                    derive(s.graph, s.wrt)
