"""Sample operands for an op's declared cases: in the domain, away from kinks and ties. Needs no hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.graph import Graph
from ..ir.op import Case, Domain, Op
from ..ir.tensor import Tensor
from ..ir.types import TensorType

_KINK_GAP = 0.15


@dataclass(frozen=True)
class Sample:
    """One application of an op as a graph with inputs x0, x1, ... and outputs y0, y1, ..., and feeds for it.

    `wrt` are the inputs that the op's derivative rules differentiate by.
    """

    op: Op[Any]
    case: Case
    graph: Graph
    operands: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    feeds: dict[str, np.ndarray]
    wrt: tuple[str, ...]


def sample(op: Op[Any], case: Case, seed: int = 0) -> Sample:
    """The case as a graph, with drawn operands."""
    graph = Graph(op.name)
    types = case.types()
    operands = tuple(graph.input(f"x{i}", type.shape, type.dtype) for i, type in enumerate(types))
    results = graph.apply(op, operands, case.attrs)
    graph.set_outputs({f"y{i}": t for i, t in enumerate(results)})
    arrays = sample_operands(op, case, np.random.default_rng(seed))
    wrt = tuple(f"x{i}" for i, type in enumerate(types) if type.dtype.is_float and i not in case.held)
    return Sample(op, case, graph, operands, results, {f"x{i}": a for i, a in enumerate(arrays)}, wrt)


def sample_operands(op: Op[Any], case: Case, rng: np.random.Generator) -> list[np.ndarray]:
    """An array of each operand's type, drawn from its domain."""
    types = case.types()
    domains = case.domains or (op.domain,) * len(types)
    spaced = _spaced([(t, d) for t, d in zip(types, domains, strict=True) if d.distinct], rng)
    arrays = [
        next(spaced) if domain.distinct else sample_array(type, domain, rng)
        for type, domain in zip(types, domains, strict=True)
    ]
    return case.prepare(arrays) if case.prepare else arrays


def sample_array(type: TensorType, domain: Domain, rng: np.random.Generator) -> np.ndarray:
    """One array of that type from the domain, a little away from its kinks."""
    kind = type.dtype.numpy.kind
    if kind == "i":
        low, high = int(np.ceil(domain.low)), int(np.floor(domain.high))
        return np.asarray(rng.integers(low, high, type.shape, endpoint=True)).astype(type.dtype.numpy)
    if kind == "b":
        return np.asarray(rng.random(type.shape) < 0.5)
    values: np.ndarray = np.asarray(rng.uniform(domain.low, domain.high, type.shape))
    for kink in domain.kinks:
        off = values - kink
        values = np.where(np.abs(off) < _KINK_GAP, kink + np.copysign(_KINK_GAP, off), values)
    return values.astype(type.dtype.numpy)


def _spaced(wanted: list[tuple[TensorType, Domain]], rng: np.random.Generator) -> Any:
    """Arrays without ties within or between them: evenly spaced values in a random order."""
    total = sum(type.size for type, _ in wanted)
    ranks = rng.permutation(total) / max(total, 1)
    start = 0
    for type, domain in wanted:
        part = ranks[start : start + type.size].reshape(type.shape)
        start += type.size
        yield (domain.low + (domain.high - domain.low) * part).astype(type.dtype.numpy)
