"""What tests of lowered programs share: lowering with every judge asked, and views of the result."""

from __future__ import annotations

from rlx_swift.interop.validate import validate
from rlx_swift.ir.graph import Graph
from rlx_swift.lower.mil import Lowered, lower
from rlx_swift.lower.program import Array, Operation


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
