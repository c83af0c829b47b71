"""Low-rank adapters on the weights of matrix products (Hu et al. 2021, arXiv:2106.09685). Knows no session.

A product with a weight W gets a path beside it, W x + alpha/rank B A x:

    y = x @ W              ->   y = x @ W + lora_scale * ((x @ lora_A') @ lora_B')

A [rank, in] starts at random and B [out, rank] at zero, so that a fresh adapter changes nothing. The buffer
`<weight>.lora_scale` holds alpha/rank; by it the paths are found again.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import dtypes, ops
from .errors import ConfigError, NameNotFoundError, ShapeError
from .ir.graph import Graph, Leaf, LeafKind, Node
from .ir.rewrite import Copy, drop_unused_leaves
from .ir.symbolic import SymbolicGraph, per_size, sample
from .ir.tensor import Tensor
from .nn.init import normal

_A, _B, _SCALE = ".lora_A", ".lora_B", ".lora_scale"
_SAME_VALUE = ("cast", "identity", "stop_gradient")


@dataclass(frozen=True)
class _Use:
    """A param that a matrix product reads as its operand 0 or 1, as it is stored or transposed."""

    param: str
    position: int
    transposed: bool

    @property
    def out_first(self) -> bool:
        """Whether the param is stored as [out, in]."""
        return self.transposed == (self.position == 1)


@per_size
def lora(graph: Graph, targets: Sequence[str] | str, rank: int = 8, alpha: float = 16.0) -> Graph:
    """The graph with an adapter on each param that `targets` select and only matrix products read.

    Args:
        targets: names or patterns ("*q_proj*") of params. Of what a pattern selects, params that are no weights
            of products, biases say, stay without an adapter; one that selects no weight at all is an error.
        rank: the inner size of an adapter.
        alpha: the adapter's path is multiplied by alpha/rank.

    Train it with `trainable=rlx.lora_params(graph)`: the base stays fixed.

    Raises:
        NameNotFoundError: a target selects no param.
        ConfigError: a target selects no weight of a product; a param has an adapter already; rank or alpha is wrong.
    """
    if not isinstance(rank, int) or isinstance(rank, bool) or rank < 1:
        raise ConfigError("lora rank", f"expected an integer of at least 1, got {rank!r}")
    if not isinstance(alpha, (int, float)) or not math.isfinite(alpha):
        raise ConfigError("lora alpha", f"expected a finite number, got {alpha!r}")
    uses = _uses(graph)
    chosen = _chosen(graph, [targets] if isinstance(targets, str) else targets, uses)
    adapters: dict[str, _Adapter] = {}

    def rule(node: Node, operands: tuple[Tensor, ...]) -> Sequence[Tensor] | None:
        use = next((use for use in _node_uses(node) if use.param in chosen), None)
        if use is None:
            return None
        into = operands[0].graph
        (y,) = into.append(node.op, operands, node.attrs, (node.outputs[0].type,), node.scope)
        if use.param not in adapters:
            adapters[use.param] = _Adapter(into, use, rank, float(alpha))
        return (ops.add(y, adapters[use.param].path(node, use, operands)),)

    return Copy(graph, rule).graph


def lora_params(graph: Graph | SymbolicGraph) -> list[str]:
    """The names of the adapters' params, for `trainable=`; raises ConfigError when there are none."""
    names = [name for name in sample(graph).params if name.endswith((_A, _B))]
    if not names:
        raise ConfigError("lora_params", "the graph has no adapters", "call rlx.lora first")
    return names


@per_size
def merge_lora(graph: Graph, params: Mapping[str, Any] | None = None) -> Graph:
    """The graph without adapters, and what they do added to the weights.

    `params` are values by name, such as `session.params()`; what it leaves out keeps its value in the graph.
    All of them become the values of the new graph.

    Raises NameNotFoundError, ShapeError or DTypeError for `params`, ConfigError when there is nothing to merge
    or a param has no value.
    """
    names = [name.removesuffix(_SCALE) for name in graph.buffers if name.endswith(_SCALE)]
    if not names:
        raise ConfigError("merge_lora", "the graph has no adapters")
    values = _values(graph, params or {})
    uses = _uses(graph)

    def rule(node: Node, operands: tuple[Tensor, ...]) -> Sequence[Tensor] | None:
        return (operands[0],) if _joins_a_path(node) else None

    merged = Copy(graph, rule).graph
    parts = {name + end for name in names for end in (_A, _B, _SCALE)}
    drop_unused_leaves(merged, keep={name: t for name, t in merged.leaves().items() if name not in parts})
    for name in names:
        values[name] = _merged(name, values, uses[name][0].out_first)
    for name, tensor in {**merged.params, **merged.buffers}.items():
        tensor.producer.value = values[name]  # type: ignore[union-attr]
    return merged


class _Adapter:
    """The leaves of one adapter in a graph that is being made."""

    def __init__(self, graph: Graph, use: _Use, rank: int, alpha: float) -> None:
        shape = graph.params[use.param].shape
        outs, ins = shape if use.out_first else shape[::-1]
        self._a = graph.param(use.param + _A, (rank, ins), normal(1 / math.sqrt(max(ins, 1))))
        self._b = graph.param(use.param + _B, (outs, rank), 0.0)
        self._scale = graph.buffer(use.param + _SCALE, (), alpha / rank)
        self._out_first = use.out_first

    def path(self, node: Node, use: _Use, operands: tuple[Tensor, ...]) -> Tensor:
        """What the adapter adds to a product: the other operand times the two factors, one after the other."""
        other, dtype = operands[1 - use.position], node.outputs[0].dtype
        flagged: bool = node.attrs.transpose_x if use.position == 1 else node.attrs.transpose_y  # type: ignore[attr-defined]
        a, b, scale = (ops.cast(t, dtype) for t in (self._a, self._b, self._scale))
        forward = use.out_first == self._out_first  # x goes through A and then B, not the other way round
        if use.position == 1:  # x @ A' @ B', or x @ B @ A
            if forward:
                path = ops.matmul(ops.matmul(other, a, flagged, True), b, False, True)
            else:
                path = ops.matmul(ops.matmul(other, b, flagged, False), a)
        elif forward:  # B @ (A @ x), or A' @ (B' @ x)
            path = ops.matmul(b, ops.matmul(a, other, False, flagged))
        else:
            path = ops.matmul(a, ops.matmul(b, other, True, flagged), True, False)
        return ops.mul(path, scale)


# Which products read which params


def _node_uses(node: Node) -> list[_Use]:
    """The params of rank 2 that a node reads, if it is a matrix product."""
    if node.op.name != "matmul":
        return []
    flags = (node.attrs.transpose_x, node.attrs.transpose_y)  # type: ignore[attr-defined]
    found = []
    for position, (operand, flag) in enumerate(zip(node.inputs, flags, strict=True)):
        param, turned = _source(operand)
        if param is not None:
            found.append(_Use(param, position, flag != turned))
    return found


def _source(tensor: Tensor) -> tuple[str | None, bool]:
    """The param of rank 2 whose value a tensor has, and whether transposed; None for any other tensor."""
    turned = False
    while isinstance(tensor.producer, Node) and _passes(tensor.producer):
        turned ^= tensor.producer.op.name == "transpose"
        tensor = tensor.producer.inputs[0]
    leaf = tensor.producer
    is_weight = isinstance(leaf, Leaf) and leaf.kind is LeafKind.PARAM and tensor.ndim == 2
    return (tensor.name if is_weight else None), turned


def _passes(node: Node) -> bool:
    """Whether a node gives its operand's value, at most transposed, of rank 2."""
    return node.op.name in _SAME_VALUE or (node.op.name == "transpose" and node.inputs[0].ndim == 2)


def _uses(graph: Graph) -> dict[str, list[_Use]]:
    """By param, the products that read it; without those that anything else reads, or two operands of a product."""
    uses: dict[str, list[_Use]] = {}
    spoiled = {_source(t)[0] for t in (*graph.outputs.values(), *graph.assigns.values())}
    for node in graph.live_nodes():
        found = _node_uses(node)
        for use in found:
            uses.setdefault(use.param, []).append(use)
        if len(found) == 2 and found[0].param == found[1].param:
            spoiled.add(found[0].param)
        if not found and not _passes(node):
            spoiled.update(_source(x)[0] for x in node.inputs)
    return {name: several for name, several in uses.items() if name not in spoiled}


def _chosen(graph: Graph, targets: Sequence[str], uses: Mapping[str, list[_Use]]) -> set[str]:
    """The params that get an adapter."""
    chosen: set[str] = set()
    for target in targets:
        if not isinstance(target, str):
            raise ConfigError("lora targets", f"expected names or patterns, got {target!r}")
        matched = [name for name in graph.params if name == target or fnmatch.fnmatchcase(name, target)]
        weights = [name for name in matched if name in uses and not name.endswith((_A, _B))]
        if not matched:
            known = ", ".join(graph.params) or "none"
            raise NameNotFoundError(f"lora target {target!r}", "no param matches", f"the graph has {known}")
        if not weights:
            raise ConfigError(f"lora target {target!r}", f"{matched[0]!r} is not read by matrix products alone")
        chosen.update(weights)
    if not chosen:
        raise ConfigError("lora targets", "expected at least one name or pattern")
    for name in sorted(chosen):
        if name + _A in graph.params:
            raise ConfigError(f"param {name!r}", "it has an adapter already", "call rlx.merge_lora first")
    for node in graph.live_nodes():
        names = [use.param for use in _node_uses(node)]
        if len(names) == 2 and chosen.issuperset(names):
            raise ConfigError(f"param {names[0]!r}", f"it is multiplied by another target, {names[1]!r}", "choose one")
    return chosen


# Merging


def _joins_a_path(node: Node) -> bool:
    """Whether a node adds an adapter's path: y + path * scale."""
    if node.op.name != "add" or not isinstance(node.inputs[1].producer, Node):
        return False
    path = node.inputs[1].producer
    scale = path.inputs[1] if path.op.name == "mul" else None
    while scale is not None and isinstance(scale.producer, Node) and scale.producer.op.name in _SAME_VALUE:
        scale = scale.producer.inputs[0]
    return scale is not None and isinstance(scale.producer, Leaf) and (scale.producer.name or "").endswith(_SCALE)


def _values(graph: Graph, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """A value for every param and buffer, those given first."""
    leaves = {**graph.params, **graph.buffers}
    for name in given:
        if name not in leaves:
            raise NameNotFoundError(f"param {name!r}", f"graph {graph.name!r} has no param or buffer of that name")
    values = {}
    for name, tensor in leaves.items():
        value = given.get(name, tensor.producer.value)  # type: ignore[union-attr]
        if value is None or callable(value):
            raise ConfigError(f"param {name!r}", "it has no value", "give the session's params()")
        values[name] = dtypes.to_host(value, tensor.dtype, f"param {name!r}")
        if values[name].shape != tensor.shape:
            raise ShapeError(f"param {name!r}", f"expected shape {tensor.shape}, got {values[name].shape}")
    return values


def _merged(name: str, values: Mapping[str, np.ndarray], out_first: bool) -> np.ndarray:
    a, b = values[name + _A].astype(np.float64), values[name + _B].astype(np.float64)
    added = values[name + _SCALE] * (b @ a)
    return (values[name] + (added if out_first else added.T)).astype(np.float32)
