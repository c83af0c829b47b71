"""Reverse mode: one walk over the nodes, which alone accumulates, un-broadcasts and checks cotangents.

The walk knows ops only through their records; see Griewank & Walther, Evaluating Derivatives, ch. 3.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from .. import ops
from ..errors import GraphError, NotDifferentiableError, ShapeError
from ..ir.graph import Graph, Node
from ..ir.op import NotDifferentiable, OpKind, Stopped
from ..ir.printer import Namer, print_node
from ..ir.rewrite import Copy, drop_unused_leaves
from ..ir.symbolic import per_size
from ..ir.tensor import Tensor
from ..ir.types import Shape
from .remat import Recomputed

Wrt = str | Sequence[str] | None


@per_size
def grad_with_loss(graph: Graph, wrt: Wrt = None, loss: str | None = None) -> Graph:
    """A graph with the loss under its name and `grad_<name>` for each name of `wrt` (all params by default).

    It gains a rank-0 input `d_output`, the cotangent of the loss: 1.0 for plain gradients. Without `loss`
    the output called "loss" is taken, or the only one. Raises GraphError for a loss that is not of rank 0.
    """
    return _gradient(graph, wrt, loss, keep_loss=True)


@per_size
def grad(graph: Graph, wrt: Wrt = None, loss: str | None = None) -> Graph:
    """As `grad_with_loss`, without the loss among the outputs."""
    return _gradient(graph, wrt, loss, keep_loss=False)


def _gradient(graph: Graph, wrt: Wrt, loss: str | None, keep_loss: bool) -> Graph:
    name = loss_name(graph, loss)
    new = Copy(graph).graph
    value = new.outputs[name]
    if value.shape != () or not value.dtype.is_float:
        raise GraphError(f"loss {name!r}", f"expected a float of rank 0, got {value.type}", "reduce it first")
    targets = differentiable_leaves(new, wrt)
    seed = new.input(new.fresh_name("d_output"), (), value.dtype)
    gradients = backward(new, {value: seed}, list(targets.values()))
    new.outputs = {name: value} if keep_loss else {}
    for leaf, gradient in zip(targets, gradients, strict=True):
        new.outputs[new.fresh_name(f"grad_{leaf}")] = gradient
    drop_unused_leaves(new, keep={"d_output": seed, **new.inputs, **new.params, **new.buffers})
    return new


@per_size
def vjp(graph: Graph, wrt: Wrt = None) -> Graph:
    """A graph with `grad_<name>` for each name of `wrt`, given cotangents `d_<output>` of every float output."""
    new = Copy(graph).graph
    targets = differentiable_leaves(new, wrt)
    seeds: dict[Tensor, Tensor] = {}
    for name, tensor in new.outputs.items():
        if tensor.dtype.is_float:
            seed = new.input(new.fresh_name(f"d_{name}"), tensor.shape, tensor.dtype)
            seeds[tensor] = ops.add(seeds[tensor], seed) if tensor in seeds else seed
    gradients = backward(new, seeds, list(targets.values()))
    new.outputs = {}
    new.outputs = {new.fresh_name(f"grad_{leaf}"): g for leaf, g in zip(targets, gradients, strict=True)}
    drop_unused_leaves(new, keep=new.leaves())
    return new


def loss_name(graph: Graph, loss: str | None) -> str:
    """The name of the output to differentiate; raises GraphError when it is not clear which."""
    if loss is None:
        loss = "loss" if "loss" in graph.outputs or len(graph.outputs) != 1 else next(iter(graph.outputs))
    if loss not in graph.outputs:
        raise GraphError(
            f"loss {loss!r}", f"graph {graph.name!r} has no output of that name",
            f"it has {', '.join(graph.outputs) or 'none'}",
        )
    return loss


def differentiable_leaves(graph: Graph, wrt: Wrt) -> dict[str, Tensor]:
    """The leaves named by `wrt`; raises NameNotFoundError, or NotDifferentiableError for integers and bools."""
    names = list(graph.params) if wrt is None else [wrt] if isinstance(wrt, str) else list(wrt)
    if not names:
        problem = f"graph {graph.name!r} has no params" if wrt is None else "expected at least one name"
        raise GraphError("wrt", problem, "name the inputs or params to differentiate by")
    leaves = {name: graph.leaf(name) for name in names}
    for name, tensor in leaves.items():
        if not tensor.dtype.is_float:
            raise NotDifferentiableError(f"wrt {name!r}", f"{tensor.type} is not of floats")
    return leaves


def backward(graph: Graph, seeds: Mapping[Tensor, Tensor], wrt: Sequence[Tensor]) -> list[Tensor]:
    """Appends to `graph` the nodes that compute the cotangents of `wrt` from those of the tensors in `seeds`.

    A tensor that nothing in `seeds` depends on gets zeros.
    """
    cotangents: dict[int, list[Tensor]] = {}
    for tensor, seed in seeds.items():
        cotangents.setdefault(id(tensor), []).append(seed)
    again, unchosen = Recomputed(graph), _Unchosen()
    for node in reversed(_active_nodes(graph, wrt)):
        arrived = [_collect(cotangents, out) for out in node.outputs]
        if all(g is None for g in arrived):
            continue
        lively = again.of(node)
        results = unchosen.kept_zero(lively, arrived, _apply_rule(graph, lively, arrived))
        for operand, cotangent in zip(node.inputs, results, strict=True):
            if cotangent is not None:
                cotangents.setdefault(id(operand), []).append(cotangent)
    collected = [_collect(cotangents, x) for x in wrt]
    return [ops.full_like(x, 0.0) if g is None else g for g, x in zip(collected, wrt, strict=True)]


class _Unchosen:
    """Keeps cotangents zero where a selection did not choose the side that they belong to.

    Further back on that side a slope may be infinite or NaN, and times zero it would be NaN.
    """

    def __init__(self) -> None:
        self._chosen: dict[int, tuple[Tensor, bool]] = {}  # for a cotangent where, and by which answer, it counts

    def kept_zero(
        self, node: Node, arrived: Sequence[Tensor | None], results: Sequence[Tensor | None]
    ) -> list[Tensor | None]:
        """The cotangents of a node's operands, zero where the one that arrived was so for that reason."""
        g = arrived[0]
        before = None if g is None else self._chosen.get(id(g))
        if node.op.selects:
            for result, answer in zip(results[1:], (True, False), strict=True):
                if result is not None:
                    self._chosen[id(result)] = _both((node.inputs[0], answer), before)
            return list(results)
        if g is None or before is None or node.op.kind is not OpKind.ELEMENTWISE:
            return list(results)
        return [r if r is None or r is g or r.shape != g.shape else self._masked(r, *before) for r in results]

    def _masked(self, cotangent: Tensor, condition: Tensor, answer: bool) -> Tensor:
        zero = ops.full_like(cotangent, 0.0)
        masked = ops.where(condition, cotangent, zero) if answer else ops.where(condition, zero, cotangent)
        self._chosen[id(masked)] = (condition, answer)
        return masked


def _both(inner: tuple[Tensor, bool], outer: tuple[Tensor, bool] | None) -> tuple[Tensor, bool]:
    if outer is None:
        return inner
    holds = [condition if answer else ops.logical_not(condition) for condition, answer in (inner, outer)]
    return ops.logical_and(*holds), True


def _active_nodes(graph: Graph, wrt: Sequence[Tensor]) -> list[Node]:
    """The nodes through whose float results the leaves of `wrt` act, in order."""
    active = {id(x) for x in wrt}
    nodes = []
    for node in graph.nodes:
        if isinstance(node.op.vjp, Stopped):
            continue
        if any([id(x) in active for x in node.inputs]) and any([t.dtype.is_float for t in node.outputs]):
            nodes.append(node)
            active.update([id(t) for t in node.outputs if t.dtype.is_float])
    return nodes


def _collect(cotangents: dict[int, list[Tensor]], tensor: Tensor) -> Tensor | None:
    """The sum of what has arrived at a tensor."""
    parts = cotangents.get(id(tensor))
    if not parts:
        return None
    total = functools.reduce(ops.add, _with_slices_joined(parts) if len(parts) > 1 else parts)
    cotangents[id(tensor)] = [total]
    return total


def _with_slices_joined(parts: list[Tensor]) -> list[Tensor]:
    """The parts, those joined that came from slices which divide an axis among themselves (as of a split).

    Each is its slice's cotangent with zeros around it: one copy takes the place of as many sums over the whole.
    """
    for axis in range(parts[0].ndim):
        slices = sorted((found for part in parts if (found := _slice(part, axis))), key=lambda found: found[0])
        starts = [start for start, _, _ in slices]
        stops = [start + inner.shape[axis] for start, inner, _ in slices]
        if len(slices) > 1 and [0, *stops] == [*starts, parts[0].shape[axis]]:
            taken = {id(part) for _, _, part in slices}
            rest = [part for part in parts if id(part) not in taken]
            return [ops.concat([inner for _, inner, _ in slices], axis), *rest]
    return parts


def _slice(part: Tensor, axis: int) -> tuple[int, Tensor, Tensor] | None:
    """Where on an axis the elements of a tensor that was padded with zeros on that axis alone start, they, and it."""
    node = part.producer
    if not isinstance(node, Node) or node.op.name != "pad":
        return None
    attrs: Any = node.attrs
    alone = all(not any(pair) for other, pair in enumerate(attrs.widths) if other != axis)
    return (attrs.widths[axis][0], node.inputs[0], part) if alone and attrs.value == 0.0 else None


def _apply_rule(graph: Graph, node: Node, collected: list[Tensor | None]) -> list[Tensor | None]:
    op = node.op
    if isinstance(op.vjp, NotDifferentiable):
        raise NotDifferentiableError(print_node(node, Namer(graph)), f"no derivative: {op.vjp.reason}")
    g: Any
    out: Any
    if len(collected) == 1:
        g, out = collected[0], node.outputs[0]
    else:
        g = tuple(ops.full_like(t, 0.0) if c is None else c for c, t in zip(collected, node.outputs, strict=True))
        out = node.outputs
    assert not isinstance(op.vjp, Stopped)
    results = op.vjp(g, out, node.inputs, node.attrs)
    if len(results) != len(node.inputs):
        raise GraphError(f"vjp of {op.name!r}", f"expected {len(node.inputs)} cotangents, got {len(results)}")
    return [None if r is None else _fit(op.name, r, x) for r, x in zip(results, node.inputs, strict=True)]


def _fit(op: str, cotangent: Tensor, operand: Tensor) -> Tensor | None:
    """A rule's cotangent in the shape of its operand."""
    if not operand.dtype.is_float:
        return None
    if cotangent.dtype is not operand.dtype:
        raise GraphError(f"vjp of {op!r}", f"expected a cotangent of {operand.dtype}, got {cotangent.type}")
    return unbroadcast(cotangent, operand.shape, f"vjp of {op!r}")


def unbroadcast(x: Tensor, shape: Shape, subject: str) -> Tensor:
    """x summed over the axes along which `shape` was repeated to x's shape; raises ShapeError if it was not."""
    if x.shape == shape:
        return x
    lead = x.ndim - len(shape)
    axes = [*range(max(lead, 0))]
    for axis, size in enumerate(shape, lead):
        if lead < 0 or (size != 1 and size != x.shape[axis]):
            raise ShapeError(subject, f"a cotangent of {x.type} does not fit an operand of shape {shape}")
        if size == 1 and x.shape[axis] != 1:
            axes.append(axis)
    return ops.reshape(ops.sum(x, axes) if axes else x, shape)

