"""Precision policies: which kinds of op compute in half precision, and the pass that places the casts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from . import ops
from .dtypes import DType, f16, f32, parse
from .errors import ConfigError
from .interp import all_values, node_values, noise
from .ir.graph import Graph, Leaf, LeafKind, Node
from .ir.op import OpKind
from .ir.printer import Namer, print_node
from .ir.rewrite import Copy
from .ir.symbolic import SymbolicGraph, bound, per_size
from .ir.tensor import Tensor

# Elementwise ops that overflow or lose their argument in f16 for ordinary values; f32 under the mixed policies.
WIDE = frozenset({
    "cosh", "div", "exp", "exp2", "expm1", "log", "log1p", "pow", "reciprocal", "rsqrt", "sinh", "sqrt", "square",
    "tan",
})
_HALF = np.finfo(np.float16)


@dataclass(frozen=True)
class PrecisionPolicy:
    """The dtype in which each kind of op computes.

    Kinds without one follow their operands: f32 if any computed operand is f32, else f16; leaves and constants adapt.

    Weights, optimizer state, the loss, gradients and all inputs and outputs stay f32 under every policy.

    Attributes:
        dtypes: f16 or f32 by op kind.
        wide: elementwise ops that compute in f32 all the same.
    """

    name: str
    dtypes: Mapping[OpKind, DType] = field(default_factory=dict, hash=False)  # equal policies have equal names
    wide: frozenset[str] = frozenset()

    ALWAYS_F32: ClassVar[PrecisionPolicy]
    ALWAYS_F16: ClassVar[PrecisionPolicy]
    AUTO_MIXED: ClassVar[PrecisionPolicy]
    AUTO_MIXED_CONSERVATIVE: ClassVar[PrecisionPolicy]

    def __post_init__(self) -> None:
        for kind, dtype in self.dtypes.items():
            if not isinstance(kind, OpKind) or dtype not in (f16, f32):
                raise ConfigError("precision policy", f"expected f16 or f32 by rlx.OpKind, got {kind!r}: {dtype!r}")
        if self.dtypes.get(OpKind.BOUNDARY, f32) is not f32:
            raise ConfigError("precision policy", "the boundary stays f32")
        object.__setattr__(self, "dtypes", MappingProxyType(dict(self.dtypes)))

    def __reduce__(self) -> tuple[Any, ...]:
        return PrecisionPolicy, (self.name, dict(self.dtypes), self.wide)  # a view of a dict cannot be pickled

    @staticmethod
    def custom(dtypes: Mapping[OpKind, DType]) -> PrecisionPolicy:
        """A policy by op kind; kinds left out follow their operands."""
        return PrecisionPolicy("custom", dtypes)

    @property
    def half(self) -> bool:
        """Whether anything computes in f16."""
        return f16 in self.dtypes.values()

    def dtype(self, node: Node) -> DType | None:
        """The dtype that a node shall compute in, or None to follow its operands."""
        return f32 if node.op.name in self.wide else self.dtypes.get(node.op.kind)


_ALL = (OpKind.COMPUTE, OpKind.ELEMENTWISE, OpKind.REDUCTION)
PrecisionPolicy.ALWAYS_F32 = PrecisionPolicy("always_f32")
PrecisionPolicy.ALWAYS_F16 = PrecisionPolicy("always_f16", dict.fromkeys(_ALL, f16))
PrecisionPolicy.AUTO_MIXED = PrecisionPolicy(
    "auto_mixed", {OpKind.COMPUTE: f16, OpKind.REDUCTION: f32}, WIDE
)
PrecisionPolicy.AUTO_MIXED_CONSERVATIVE = PrecisionPolicy(
    "auto_mixed_conservative", {OpKind.COMPUTE: f16, OpKind.ELEMENTWISE: f32, OpKind.REDUCTION: f32}
)
_NAMED = {
    policy.name: policy
    for policy in (PrecisionPolicy.ALWAYS_F32, PrecisionPolicy.ALWAYS_F16, PrecisionPolicy.AUTO_MIXED,
                   PrecisionPolicy.AUTO_MIXED_CONSERVATIVE)
}


def as_policy(policy: PrecisionPolicy | str) -> PrecisionPolicy:
    """A policy, also by its lower-case name; raises ConfigError for any other name."""
    if isinstance(policy, PrecisionPolicy):
        return policy
    if policy not in _NAMED:
        raise ConfigError("precision policy", f"expected one of {', '.join(_NAMED)}, got {policy!r}")
    return _NAMED[policy]


def to_data(policy: PrecisionPolicy) -> dict[str, Any]:
    """A policy as data that JSON can hold."""
    return {
        "name": policy.name, "dtypes": {kind.value: dtype.name for kind, dtype in policy.dtypes.items()},
        "wide": sorted(policy.wide),
    }


def from_data(data: Mapping[str, Any]) -> PrecisionPolicy:
    """The policy that `to_data` described."""
    dtypes = {OpKind(kind): parse(name) for kind, name in data["dtypes"].items()}
    return PrecisionPolicy(data["name"], dtypes, frozenset(data["wide"]))


@per_size
def with_precision(graph: Graph, policy: PrecisionPolicy) -> Graph:
    """The graph with casts, so that its f32 ops compute as the policy says; f16 that is there already stays.

        z = matmul(x, w); loss = sum(z)    ->    z = matmul(cast(x, f16), cast(w, f16)); loss = sum(cast(z, f32))

    Leaves and outputs keep their types. Derivatives of the result go through the same casts backwards.
    """
    return place_casts(graph, policy).graph if policy.half else graph


def place_casts(graph: Graph, policy: PrecisionPolicy) -> Copy:
    """`with_precision`, with what stands for each tensor."""
    casts: dict[tuple[int, DType], Tensor] = {}

    def converted(x: Tensor, dtype: DType) -> Tensor:
        if x.dtype is dtype or not x.dtype.is_float:
            return x
        key = (id(x), dtype)
        if key not in casts:
            casts[key] = _constant(x, dtype) if _is_constant(x) else ops.cast(x, dtype)
        return casts[key]

    def rule(node: Node, operands: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        if not operands:
            return None
        if node.op.name == "cast":
            return (ops.cast(operands[0], node.outputs[0].dtype),)
        given = {x.dtype for x in node.inputs if x.dtype.is_float}
        made = {x.dtype for x in operands if x.dtype.is_float and isinstance(x.producer, Node)} or given
        wanted = f16 if f16 in given else policy.dtype(node) or (f32 if f32 in made else f16)
        return operands[0].graph.apply(node.op, tuple([converted(x, wanted) for x in operands]), node.attrs)

    copy = Copy(graph, rule)
    for table, given in ((copy.graph.outputs, graph.outputs), (copy.graph.assigns, graph.assigns)):
        table.update({name: converted(table[name], old.dtype) for name, old in given.items()})
    return copy


def _is_constant(x: Tensor) -> bool:
    return isinstance(x.producer, Leaf) and x.producer.kind is LeafKind.CONSTANT


def _constant(x: Tensor, dtype: DType) -> Tensor:
    """A constant in another dtype. Finite values stay finite, so that a mask of -1e9 does not become infinite."""
    value: np.ndarray = x.producer.value  # type: ignore[union-attr]
    if dtype is f16:
        value = np.where(np.isfinite(value), np.clip(value, _HALF.min, _HALF.max), value)
    return x.graph.constant(value.astype(dtype.numpy), dtype)


@dataclass(frozen=True)
class OpError:
    """One result of one op, computed in f32 and by a policy.

    Attributes:
        op: the op as the graph prints it.
        error: the largest distance of an element, over the largest magnitude in f32, after all ops before it.
        own: the same where the op gets its operands from the f32 run, so that the error is its own.
        finite: whether everything that is finite in f32 stayed finite.
    """

    op: str
    error: float
    own: float
    finite: bool

    def __str__(self) -> str:
        return f"{self.error:9.2e} {self.own:9.2e}  {'' if self.finite else 'NOT FINITE  '}{self.op}"


@dataclass(frozen=True)
class PrecisionReport:
    """Attributes:
    ops: worst first.
    first_nonfinite: the first op in the graph's order with a result that left the finite numbers, or None.
    """

    ops: tuple[OpError, ...]
    first_nonfinite: OpError | None

    def __str__(self) -> str:
        first = f"first op that is not finite: {self.first_nonfinite.op}\n" if self.first_nonfinite else ""
        return f"{first}    error       own  op\n" + "\n".join(map(str, self.ops))


def precision_report(
    graph: Graph | SymbolicGraph, feeds: Mapping[str, Any], policy: PrecisionPolicy | str = "always_f16"
) -> PrecisionReport:
    """How far each op by a policy is from f32, in the interpreter; feeds and errors as for `rlx.evaluate`."""
    bound_graph = bound(graph, feeds)
    copy = place_casts(bound_graph, as_policy(policy))
    feeds = {**noise(bound_graph.inputs, 0, 0), **feeds}
    wide, narrow = all_values(bound_graph, feeds), all_values(copy.graph, feeds)
    names = Namer(bound_graph)
    found = []
    for node in bound_graph.live_nodes():
        for old in node.outputs:
            if old.dtype.is_float:
                new, expected = copy[old], wide[id(old)]
                alone = _alone(new, [wide[id(x)] for x in node.inputs], expected)
                finite = bool(np.all(np.isfinite(narrow[id(new)]) | ~np.isfinite(expected)))
                error, own = _distance(narrow[id(new)], expected), _distance(alone, expected)
                found.append(OpError(print_node(node, names), error, own, finite))
    worst = sorted(found, key=lambda each: (each.finite, -each.error))
    return PrecisionReport(tuple(worst), next((each for each in found if not each.finite), None))


def _alone(result: Tensor, operands: list[np.ndarray], expected: np.ndarray) -> np.ndarray:
    """A result of the op by the policy, from operands of the f32 run."""
    node = result.producer
    if not isinstance(node, Node) or len(node.inputs) != len(operands):
        return expected.astype(result.dtype.numpy)
    with np.errstate(all="ignore"):
        rounded = [value.astype(x.dtype.numpy) for value, x in zip(operands, node.inputs, strict=True)]
        return node_values(node, rounded)[result.index]


def _distance(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest distance of an element over the largest magnitude; infinite where one side alone is finite."""
    a, b = got.astype(np.float64), expected.astype(np.float64)
    both = np.isfinite(a) & np.isfinite(b)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return math.inf
    scale = float(np.max(np.abs(b[both]), initial=0.0))
    return float(np.max(np.abs(a[both] - b[both]), initial=0.0)) / scale if scale else 0.0
