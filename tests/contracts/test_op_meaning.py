"""What every op of the registry keeps of its forward meaning. An op is covered by being declared."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import dtypes
from rlx_swift.errors import RlxError
from rlx_swift.ir.op import OpKind
from rlx_swift.passes.decompose import decompose
from rlx_swift.testing import assert_close, sample, tolerance
from tests.contracts.cases import WITHIN_F64, decomposed_case, every_case, every_op, mil_case, single_case, spoilt
from tests.oracles import ORACLES

F64 = np.float64


@every_case
def test_infer_equals_eval(op, case):
    s = sample(op, case)
    for name, value in rlx.evaluate(s.graph, s.feeds).items():
        expected = s.graph.outputs[name]
        assert (value.shape, value.dtype) == (expected.shape, expected.dtype.numpy)
    for name, value in rlx.evaluate(s.graph, s.feeds, F64).items():
        if s.graph.outputs[name].dtype.is_float:
            assert value.dtype == F64


@every_case
def test_eval_changes_no_operand_and_shares_no_memory_with_the_caller(op, case):
    s = sample(op, case)
    before = {name: value.copy() for name, value in s.feeds.items()}
    results = rlx.evaluate(s.graph, s.feeds)
    for name, value in s.feeds.items():
        assert_close(value, before[name])
        assert not any(np.shares_memory(value, result) for result in results.values())


@every_op
def test_every_op_has_an_independent_oracle(op):
    assert op.name in ORACLES, "add a formula for it to tests/oracles.py"


@every_case
def test_eval_equals_an_independent_oracle(op, case):
    s = sample(op, case)
    wide = {name: a.astype(F64) if a.dtype.kind == "f" else a for name, a in s.feeds.items()}
    actual = rlx.evaluate(s.graph, wide, F64)
    expected = ORACLES[op.name](*wide.values(), attrs=case.attrs)
    for i, value in enumerate(expected if isinstance(expected, tuple) else (expected,)):
        result = actual[f"y{i}"]
        assert_close(result, np.asarray(value).astype(result.dtype), WITHIN_F64)
    single = rlx.evaluate(s.graph, s.feeds)
    for name, value in actual.items():
        kind = max(op.kind, OpKind.ELEMENTWISE, key=lambda k: tolerance(k, dtypes.f32).rtol)
        dtype = s.graph.outputs[name].dtype
        assert_close(single[name], value.astype(dtype.numpy), tolerance(kind, dtype))


@single_case
def test_f16_is_f32_computed_and_rounded(op, case):
    half = dataclasses.replace(case, dtypes=tuple(dtypes.f16 if t.dtype.is_float else t.dtype for t in case.types()))
    s = sample(op, half)
    actual = rlx.evaluate(s.graph, s.feeds)
    wide = tuple(a.astype(np.float32) if a.dtype.kind == "f" else a for a in s.feeds.values())
    expected = op.eval(wide, case.attrs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for t, result, value in zip(s.results, actual.values(), expected, strict=True):
        assert_close(result, np.asarray(value).astype(t.dtype.numpy))


@decomposed_case
def test_decomposition_equals_eval(op, case):
    s = sample(op, case)
    lowered = op.lower.build(s.operands, case.attrs)
    lowered = lowered if isinstance(lowered, tuple) else (lowered,)
    assert [t.type for t in lowered] == [t.type for t in s.results]
    direct = rlx.evaluate(s.graph, s.feeds)
    s.graph.set_outputs({f"y{i}": t for i, t in enumerate(lowered)})
    s.graph.verify()
    for name, value in rlx.evaluate(s.graph, s.feeds).items():
        kind = op.kind if op.kind is not OpKind.DATA_MOVEMENT else OpKind.REDUCTION
        assert_close(value, direct[name], tolerance(kind, s.graph.outputs[name].dtype))


@mil_case
def test_lowering_names_parameters_of_plain_types(op, case):
    s = sample(op, case)
    assert op.lower.variadic or len(op.lower.inputs) == len(s.operands)
    params = op.lower.params
    if params:
        for name, value in params(case.attrs, case.types(), tuple(t.type for t in s.results)).items():
            assert name not in op.lower.inputs
            for item in np.ravel(np.asarray(value, dtype=object)):
                assert isinstance(item, (bool, int, float, str, np.generic, dtypes.DType)), (name, item)


# Refusals


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@every_case
def test_infer_refuses_other_operands_with_our_errors_or_eval_takes_them(op, case):
    for types in spoilt(case.types()):
        try:
            inferred = op.result_types(types, case.attrs)
        except RlxError:
            continue
        arrays = [np.zeros(t.shape, np.float32 if t.dtype is dtypes.f16 else t.dtype.numpy) for t in types]
        with np.errstate(all="ignore"):
            results = op.eval(tuple(arrays), case.attrs)
        for type, value in zip(inferred, results if isinstance(results, tuple) else (results,), strict=True):
            assert np.shape(value) == type.shape, (types, type, np.shape(value))


@every_case
def test_what_infer_takes_can_be_lowered_and_differentiated(op, case):
    for types in spoilt(case.types()):
        try:
            op.result_types(types, case.attrs)
        except RlxError:
            continue
        graph = rlx.Graph()
        operands = tuple(graph.input(f"x{i}", t.shape, t.dtype) for i, t in enumerate(types))
        results = graph.apply(op, operands, case.attrs)
        graph.set_outputs({f"y{i}": t for i, t in enumerate(results)})
        decompose(graph).verify() if operands else None
        wrt = [f"x{i}" for i, t in enumerate(types) if t.dtype.is_float and i not in case.held]
        if wrt and callable(op.vjp) and any(t.dtype.is_float for t in results):
            for derive in (rlx.vjp, rlx.jvp):
                derivative = derive(graph, wrt)
                decompose(derivative).verify()
                feeds = {n: np.zeros(t.shape, t.dtype.numpy) for n, t in derivative.inputs.items()}
                rlx.evaluate(derivative, feeds)
