"""What tests of lowered programs share: the judges, and views of what was lowered."""

from __future__ import annotations

from functools import wraps

import pytest

from rlx_swift.interop.validate import validate
from rlx_swift.ir.graph import Graph
from rlx_swift.lower import mil
from rlx_swift.lower.encode import encode
from rlx_swift.lower.mil import Lowered, lower
from rlx_swift.lower.program import Array, Operation

_judged: set[int] = set()  # hashes of model bytes


def judge_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has each program that is lowered from now on judged, but for those that only our own runtime takes."""
    original = mil._Lowering.result

    @wraps(original)
    def result(self: mil._Lowering) -> Lowered:
        lowered = original(self)
        if portable(lowered):
            digest = hash(encode(lowered.model))
            if digest not in _judged:
                validate(lowered)
                _judged.add(digest)
        return lowered

    monkeypatch.setattr(mil._Lowering, "result", result)


def portable(lowered: Lowered) -> bool:
    """Whether the program keeps to what Core ML takes at all: an input, ranks up to 5, no empty values."""
    types = [type for op in operations(lowered) for _, type in op.outputs]
    types += [type for function in lowered.model.functions.values() for _, type in function.inputs]
    fed = bool(features(lowered, "inputs")) or lowered.model.specification > 8
    return fed and all(len(type.shape) <= mil.MAX_RANK and 0 not in type.shape for type in types)


def judged(graph: Graph, **options: object) -> Lowered:
    """The lowered graph, once our rules and coremltools have accepted it."""
    lowered = lower(graph, **options)
    report = validate(lowered)
    assert all(judge.ran for judge in report.judges), report
    return lowered


def operations(lowered: Lowered) -> list[Operation]:
    (function,) = lowered.model.functions.values()
    return function.bodies[function.opset].operations


def features(lowered: Lowered, side: str) -> dict[str, Array]:
    (interface,) = lowered.model.interfaces.values()
    return {f.name: Array(f.dtype, f.shape) for f in getattr(interface, side)}


def makers(lowered: Lowered) -> dict[str, Operation]:
    """The operation that makes each value."""
    return {name: op for op in operations(lowered) for name, _ in op.outputs}
