"""Identities that keep every bit: of NaN, infinities and the signs of zeros too.

x + 0 is none (it makes -0 into 0), nor are x * 0 and x - x (they hide NaN).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import ops
from ..dtypes import bool_
from ..ir.graph import Graph, Leaf, LeafKind, Node
from ..ir.rewrite import Copy
from ..ir.tensor import Tensor

Identity = Callable[[Node, "tuple[Tensor, ...]"], "Tensor | None"]


def algebraic(graph: Graph) -> Graph:
    """The graph after the identities of this module; nodes with a scope, which spell a composite, stay.

        x * 1, x / 1, x - 0, x ** 1           ->    x
        -(-x), reverse(reverse(x)), not not x ->    x
        x - (-y), x + (-y)                    ->    x + y, x - y
        transpose(transpose(x, p), q)         ->    transpose(x, q after p)
        reshape(reshape(x)), squeeze(...)     ->    reshape(x)
        cast(cast(x, f32), f16) of f16 x      ->    x
    """

    def rule(node: Node, operands: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        identity = None if node.scope else _IDENTITIES.get(node.op.name)
        found = identity(node, operands) if identity else None
        return None if found is None or found.type != node.outputs[0].type else (found,)

    return Copy(graph, rule).graph


def _is(x: Tensor, value: float) -> bool:
    """Whether x is a constant that has one value everywhere; -0 is not 0."""
    leaf = x.producer
    if x.dtype is bool_:
        return False
    if isinstance(leaf, Leaf):
        return leaf.kind is LeafKind.CONSTANT and _same(leaf.value, value)
    return leaf.op.name == "full" and _same(np.asarray(leaf.attrs.value), value)  # type: ignore[attr-defined]


def _same(array: np.ndarray, value: float) -> bool:
    signs = np.signbit(array) == np.signbit(value)
    return bool(np.all((array == value) & signs))


def _from(x: Tensor, *names: str) -> Node | None:
    """The node that made x, if it is of one of these ops."""
    return x.producer if isinstance(x.producer, Node) and x.producer.op.name in names else None


def _neutral(value: float, both: bool) -> Identity:
    """op(x, value) = x, and op(value, x) = x if `both`."""

    def identity(node: Node, operands: tuple[Tensor, ...]) -> Tensor | None:
        x, y = operands
        if _is(y, value):
            return x
        return y if both and _is(x, value) else None

    return identity


def _involution(node: Node, operands: tuple[Tensor, ...]) -> Tensor | None:
    """op(op(x)) = x."""
    inner = _from(operands[0], node.op.name)
    return inner.inputs[0] if inner is not None and inner.attrs == node.attrs else None


def _sub(node: Node, operands: tuple[Tensor, ...]) -> Tensor | None:
    x, y = operands
    if _is(y, 0.0):
        return x
    negated = _from(y, "neg")
    return ops.add(x, negated.inputs[0]) if negated is not None else None


def _add(node: Node, operands: tuple[Tensor, ...]) -> Tensor | None:
    x, y = operands
    negated = _from(y, "neg")
    if negated is not None:
        return ops.sub(x, negated.inputs[0])
    negated = _from(x, "neg")
    return ops.sub(y, negated.inputs[0]) if negated is not None else None


def _transpose(node: Node, operands: tuple[Tensor, ...]) -> Tensor | None:
    inner = _from(operands[0], "transpose")
    if inner is None:
        return None
    outer = node.attrs.perm  # type: ignore[attr-defined]
    return ops.transpose(inner.inputs[0], [inner.attrs.perm[axis] for axis in outer])  # type: ignore[attr-defined]


def _reshape(node: Node, operands: tuple[Tensor, ...]) -> Tensor | None:
    shape, source = node.outputs[0].shape, operands[0]
    while source.shape != shape:
        inner = _from(source, "reshape", "expand_dims", "squeeze")
        if inner is None:
            return ops.reshape(source, shape) if source is not operands[0] else None
        source = inner.inputs[0]
    return source


def _cast(node: Node, operands: tuple[Tensor, ...]) -> Tensor | None:
    inner = _from(operands[0], "cast")
    if inner is None:
        return None
    source, between, after = inner.inputs[0], operands[0].dtype, node.outputs[0].dtype
    widened = source.dtype.is_float and between.is_float and between.numpy.itemsize > source.dtype.numpy.itemsize
    return source if widened and after is source.dtype else None


_IDENTITIES: dict[str, Identity] = {
    "mul": _neutral(1.0, both=True), "div": _neutral(1.0, both=False), "pow": _neutral(1.0, both=False),
    "sub": _sub, "add": _add, "neg": _involution, "flip": _involution, "logical_not": _involution,
    "transpose": _transpose, "reshape": _reshape, "expand_dims": _reshape, "squeeze": _reshape, "cast": _cast,
    "identity": lambda node, operands: operands[0],
}
