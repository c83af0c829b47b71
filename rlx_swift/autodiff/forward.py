"""Forward mode: tangents pushed along the nodes, and Hessian-vector products by forward over reverse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import ops
from ..errors import NotDifferentiableError, ShapeError
from ..ir.graph import Graph, Node
from ..ir.op import Forward, NotDifferentiable, Stopped
from ..ir.printer import Namer, print_node
from ..ir.rewrite import Copy, drop_unused_leaves
from ..ir.symbolic import per_size
from ..ir.tensor import Tensor
from .reverse import Wrt, _gradient, backward, differentiable_leaves, loss_name


@per_size
def jvp(graph: Graph, wrt: Wrt = None) -> Graph:
    """The outputs, and beside each float output its derivative `jvp_<output>` along the tangents `d_<name>`."""
    new = Copy(graph).graph
    targets = differentiable_leaves(new, wrt)
    tangents = {x: new.input(new.fresh_name(f"d_{name}"), x.shape, x.dtype) for name, x in targets.items()}
    outputs = {name: t for name, t in new.outputs.items() if t.dtype.is_float}
    for (name, tensor), slope in zip(outputs.items(), push(new, tangents, list(outputs.values())), strict=True):
        new.outputs[new.fresh_name(f"jvp_{name}")] = ops.full_like(tensor, 0.0) if slope is None else slope
    drop_unused_leaves(new, keep=new.leaves())
    return new


@per_size
def hvp(graph: Graph, wrt: Wrt = None, loss: str | None = None) -> Graph:
    """`hvp_<name>`: the loss's Hessian over the leaves of `wrt` applied to the vectors `v_<name>`.

    Forward mode over the gradient: Pearlmutter 1994, Fast exact multiplication by the Hessian.
    """
    gradients = _gradient(graph, wrt, loss_name(graph, loss), keep_loss=False)
    new = Copy(gradients).graph
    seed = new.inputs.pop(new.generated.pop("d_output"))
    new = _with_constant(new, seed, 1.0)
    targets = differentiable_leaves(new, wrt)
    vectors = {x: new.input(new.fresh_name(f"v_{name}"), x.shape, x.dtype) for name, x in targets.items()}
    slopes = push(new, vectors, list(new.outputs.values()))
    new.outputs, new.generated = {}, {k: v for k, v in new.generated.items() if not k.startswith("grad_")}
    for (name, x), slope in zip(targets.items(), slopes, strict=True):
        new.outputs[new.fresh_name(f"hvp_{name}")] = ops.full_like(x, 0.0) if slope is None else slope
    drop_unused_leaves(new, keep=new.leaves())
    return new


def _with_constant(graph: Graph, leaf: Tensor, value: float) -> Graph:
    """The graph with a constant in place of an input."""
    for node in graph.nodes:
        if any(x is leaf for x in node.inputs):
            constant = graph.constant(value, leaf.dtype)
            node.inputs = tuple(constant if x is leaf else x for x in node.inputs)
    return graph


def push(graph: Graph, tangents: Mapping[Tensor, Tensor], of: list[Tensor]) -> list[Tensor | None]:
    """Appends the nodes that compute the tangents of `of` from those of the leaves; None where there is none."""
    known: dict[int, Tensor] = {id(x): t for x, t in tangents.items()}
    for node in graph.live_nodes():
        incoming = [known.get(id(x)) for x in node.inputs]
        if isinstance(node.op.jvp, Stopped):
            continue
        if any(t is not None for t in incoming) and any(t.dtype.is_float for t in node.outputs):
            results = _apply_rule(graph, node, incoming)
            for tensor, result in zip(node.outputs, results, strict=True):
                if result is not None:
                    if result.type != tensor.type:
                        subject = f"jvp of {node.op.name!r}"
                        raise ShapeError(subject, f"expected a tangent {tensor.type}, got {result.type}")
                    known[id(tensor)] = result
    return [known.get(id(x)) for x in of]


def _apply_rule(graph: Graph, node: Node, tangents: list[Tensor | None]) -> tuple[Tensor | None, ...]:
    rule = node.op.jvp
    if isinstance(rule, NotDifferentiable):
        raise NotDifferentiableError(print_node(node, Namer(graph)), f"no derivative: {rule.reason}")
    if rule is Forward.LINEAR:
        dense = tuple(ops.full_like(x, 0.0) if t is None else t for t, x in zip(tangents, node.inputs, strict=True))
        return graph.apply(node.op, dense, node.attrs)
    if rule is Forward.TRANSPOSE:
        return _transposed(node, tangents)
    assert not isinstance(rule, Stopped)
    out: Any = node.outputs[0] if len(node.outputs) == 1 else node.outputs
    result = rule(tangents, out, node.inputs, node.attrs)
    results = result if isinstance(result, tuple) else (result,)
    return tuple(_broadcast(r, t) for r, t in zip(results, node.outputs, strict=True))


def _broadcast(tangent: Tensor | None, like: Tensor) -> Tensor | None:
    """An elementwise rule may give a tangent that is smaller by broadcasting."""
    return None if tangent is None else ops.broadcast_to(tangent, like.shape)


def _transposed(node: Node, tangents: list[Tensor | None]) -> tuple[Tensor, ...]:
    """J t as the transpose of u -> J'u, which is linear in u, so that u's value does not matter."""
    probes = [ops.identity(ops.full_like(t, 0.0)) for t in node.outputs]
    g: Any = probes[0] if len(probes) == 1 else tuple(probes)
    out: Any = node.outputs[0] if len(probes) == 1 else node.outputs
    pulled = node.op.vjp(g, out, node.inputs, node.attrs)  # type: ignore[operator]
    seeds = {p: t for p, t in zip(pulled, tangents, strict=True) if p is not None and t is not None}
    return tuple(backward(node.outputs[0].graph, seeds, probes))
