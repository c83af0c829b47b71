"""What lowered programs mean: coremltools folds those of constants, and gets what the interpreter gets."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import dtypes
from rlx_swift.interop.validate import load_with_coremltools
from rlx_swift.ir.graph import Graph
from rlx_swift.ir.op import Case, Mil, Op, registry
from rlx_swift.lower.mil import lower
from rlx_swift.lower.package import opened, to_bytes
from rlx_swift.passes.decompose import decompose

NOT_FOLDED = {"conv", "conv_transpose", "max_pool", "avg_pool", "scatter", "silu", "one_hot"}
CASES = [pytest.param(op, case, id=f"{op.name}-{i}") for op in registry().values() for i, case in enumerate(op.cases)]


def sampled(op: Op, case: Case) -> Graph:
    """The op applied to constants, beside an input that a program needs."""
    g, rng = Graph(op.name), np.random.default_rng(5)
    operands = []
    for i, type in enumerate(case.types()):
        domain = case.domains[i] if case.domains else op.domain
        value = rng.uniform(domain.low, domain.high, type.shape)
        value = value > 0.5 if type.dtype is dtypes.bool_ else np.round(value) if type.dtype is dtypes.i32 else value
        operands.append(g.constant(np.asarray(value).astype(type.dtype.numpy), type.dtype))
    results = g.apply(op, tuple(operands), case.attrs)
    g.set_outputs({"other": g.input("x", (1,)) + 1.0, **{f"y{i}": y for i, y in enumerate(results)}})
    return g


@pytest.mark.parametrize(("op", "case"), CASES)
def test_coremltools_folds_to_what_the_interpreter_computes(op: Op, case: Case) -> None:
    g = sampled(op, case)
    mil = {node.op.lower.op for node in decompose(g).live_nodes() if isinstance(node.op.lower, Mil)}
    if "select" in mil and () in case.shapes:
        pytest.skip("coremltools stops with an error where it folds a select of rank 0")
    if "scatter_along_axis" in mil and getattr(case.attrs, "mode", "") != "update":
        pytest.skip("coremltools folds scatter_along_axis as if its mode were update")
    lowered = lower(g)
    program = load_with_coremltools(opened(to_bytes(lowered.model)))
    folded = {var.name: var.val for var in program.functions["main"].outputs}
    expected = rlx.evaluate(g, {"x": [0.0]})
    for name, tensor in g.outputs.items():
        value = folded[lowered.outputs[name]]
        if name == "other" or mil & NOT_FOLDED:
            assert value is None
            continue
        assert value is not None
        tolerance = 4e-3 if tensor.dtype is dtypes.f16 else 2e-6
        got = np.asarray(value, np.float64).reshape(tensor.shape)
        np.testing.assert_allclose(got, expected[name].astype(np.float64), rtol=tolerance, atol=tolerance)
