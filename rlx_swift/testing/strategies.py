"""Hypothesis strategies for graphs and feeds, drawn from the op registry; the only module that needs hypothesis.

A graph grows by applying sample cases of ops to tensors that are there already. `fitted` brings any tensor to
the type and domain that a case asks for, so that an op is drawn by being declared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .. import ops
from ..dtypes import DType, bool_, f16, f32, i32
from ..ir.graph import Graph
from ..ir.op import Case, Domain, Op, registry
from ..ir.tensor import Tensor
from ..ir.types import Shape, TensorType
from .operands import sample_array
from .training_strategies import clips, configs, optimizers, schedules

__all__ = [
    "broadcastable", "clips", "configs", "drawable", "feeds", "fitted", "graphs", "optimizers", "schedules", "shapes",
]

FREE = Domain()
_MARGIN = 0.02  # a squashed value stays this share of the domain away from its ends


def shapes(max_rank: int = 3, max_side: int = 4, min_side: int = 1) -> st.SearchStrategy[Shape]:
    """Small shapes; `min_side=0` allows empty ones."""
    return st.lists(st.integers(min_side, max_side), max_size=max_rank).map(tuple)


@st.composite
def broadcastable(draw: st.DrawFn, count: int = 2, max_rank: int = 3) -> tuple[Shape, ...]:
    """Shapes that broadcast together."""
    full = draw(shapes(max_rank))

    def one() -> Shape:
        start = draw(st.integers(0, len(full)))
        return tuple(1 if draw(st.booleans()) else size for size in full[start:])

    return tuple(one() for _ in range(count))


def drawable(op: Op[Any], case: Case, differentiable: bool) -> bool:
    """Whether `graphs` may apply the case: its operands need no preparation, and derivatives exist if asked for."""
    types = (*case.types(), *op.infer(case.types(), case.attrs))
    if case.prepare or case.held or any(t.dtype is f16 for t in types):
        return False
    return callable(op.vjp) or not (differentiable and any(t.dtype.is_float for t in types))


@st.composite
def graphs(
    draw: st.DrawFn, max_nodes: int = 6, differentiable: bool = False, params: bool = True,
    only: Callable[[Op[Any]], bool] | None = None,
) -> Graph:
    """Graphs of up to `max_nodes` applied cases, with one to three outputs of which one is of f32.

    Every op in them has a derivative if `differentiable`; leaves are inputs and (unless `params=False`) params
    of f32; `only` chooses ops.
    """
    graph = Graph("drawn")
    choices = [
        (op, case) for op in registry().values() for case in op.cases
        if drawable(op, case, differentiable) and (only is None or only(op))
    ]
    pool = [graph.input("x0", draw(shapes()))]
    if params:
        pool.append(graph.param("p0", draw(shapes()), None))
    names = sorted({op.name for op, _ in choices})
    for _ in range(draw(st.integers(1, max_nodes))):
        name = draw(st.sampled_from(names))
        op, case = draw(st.sampled_from([c for c in choices if c[0].name == name]))
        domains = case.domains or (op.domain,) * len(case.shapes)
        operands = tuple([
            fitted(draw(st.sampled_from(pool)), type, domain)
            for type, domain in zip(case.types(), domains, strict=True)
        ])
        pool += graph.apply(op, operands, case.attrs)
    floats = [t for t in pool[1:] if t.dtype is f32] or pool[:1]
    wanted = [floats[-1], *draw(st.lists(st.sampled_from(pool), max_size=2))]
    outputs = {f"y{i}": t for i, t in enumerate(wanted)}
    graph.set_outputs(outputs)
    return graph


@st.composite
def feeds(draw: st.DrawFn, graph: Graph) -> dict[str, np.ndarray]:
    """A value for every leaf: floats from -2 to 2, integers from 0 to 3."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ids = Domain(0, 3)
    return {
        name: sample_array(t.type, FREE if t.dtype.is_float else ids, rng) for name, t in graph.leaves().items()
    }


def fitted(x: Tensor, type: TensorType, domain: Domain = FREE) -> Tensor:
    """x made into a tensor of that type, its elements repeated or cut and squashed into the domain."""
    return ops.reshape(_resized(_bounded(_converted(x, type.dtype), domain), type.size), type.shape)


def _converted(x: Tensor, dtype: DType) -> Tensor:
    if x.dtype is dtype:
        return x
    if dtype is bool_:
        return ops.greater(x, 0.5 if x.dtype.is_float else 0)
    return ops.cast(x, dtype)


def _bounded(x: Tensor, domain: Domain) -> Tensor:
    if x.dtype is bool_:
        return x
    if x.dtype is i32:
        low, high = math.ceil(domain.low), math.floor(domain.high)
        return ops.minimum(ops.maximum(x, low), high)
    width = domain.high - domain.low
    squashed = ops.sigmoid(ops.maximum(ops.minimum(x, 20.0), -20.0))
    return squashed * (width * (1 - 2 * _MARGIN)) + (domain.low + width * _MARGIN)


def _resized(x: Tensor, size: int) -> Tensor:
    flat = ops.reshape(x, (x.size,))
    if flat.size < size:
        flat = ops.tile(flat, (-(-size // flat.size),))
    return ops.slice_axis(flat, 0, 0, size)
