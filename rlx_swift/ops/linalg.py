"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..dtypes import f16
from ..errors import ShapeError
from ..ir.op import Attrs, Case, Domain, Mil, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import TensorType, broadcast
from ._batch import aligned
from ._build import TensorLike, apply, as_tensors, public, require_float, same_dtype
from .arithmetic import add
from .shape import expand_dims, reshape, squeeze


@dataclass(frozen=True)
class MatmulAttrs(Attrs):
    """Whether the last two axes of an operand are exchanged before the product."""

    transpose_x: bool = False
    transpose_y: bool = False


@public
def matmul(x: TensorLike, y: TensorLike, transpose_x: bool = False, transpose_y: bool = False) -> Tensor:
    """The matrix product over the last two axes; leading axes broadcast, rank-1 operands as in NumPy.

    The flags exchange the last two axes of an operand of rank 2 or more first.
    """
    a, b = as_tensors("matmul", x, y)
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError("matmul", f"expected operands of rank 1 or more, got {a.type} and {b.type}", "use mul")
    if a.ndim == 1:
        row = matmul(expand_dims(a, 0), b, False, transpose_y)
        return squeeze(row, -2 if b.ndim > 1 else 0)
    if b.ndim == 1:
        return squeeze(matmul(a, expand_dims(b, 1), transpose_x, False), -1)
    attrs = MatmulAttrs(bool(transpose_x), bool(transpose_y))
    if a.ndim > 2 and b.ndim == 2 and not transpose_x:
        # One large product instead of a batch of small ones, and so is the gradient of y.
        _matmul_infer((a.type, b.type), attrs)
        flat = apply(MATMUL, reshape(a, (-1, a.shape[-1])) if a.size else _flat(a), b, attrs=attrs)
        return reshape(flat, (*a.shape[:-1], flat.shape[-1]))
    return apply(MATMUL, a, b, attrs=attrs)


def _flat(x: Tensor) -> Tensor:
    return reshape(x, (int(np.prod(x.shape[:-1])), x.shape[-1]))


def _matmul_infer(types: tuple[TensorType, ...], attrs: MatmulAttrs) -> tuple[TensorType, ...]:
    require_float("matmul", *types)
    dtype = same_dtype("matmul", *types)
    x, y = types
    if x.rank < 2 or y.rank < 2:
        raise ShapeError("matmul", f"expected operands of rank 2 or more, got {x} and {y}")
    rows, inner = x.shape[-2:][::-1] if attrs.transpose_x else x.shape[-2:]
    other, columns = y.shape[-2:][::-1] if attrs.transpose_y else y.shape[-2:]
    if inner != other:
        raise ShapeError("matmul", f"expected equal inner sizes, got {x} and {y}: {inner} and {other}")
    return (TensorType((*broadcast("matmul", (x.shape[:-2], y.shape[:-2])), rows, columns), dtype),)


def _matmul_eval(arrays: tuple[np.ndarray, ...], attrs: MatmulAttrs) -> np.ndarray:
    x, y = arrays
    return np.matmul(
        np.swapaxes(x, -1, -2) if attrs.transpose_x else x, np.swapaxes(y, -1, -2) if attrs.transpose_y else y
    )


def _product(x: Tensor, y: Tensor, transpose_x: bool, transpose_y: bool) -> Tensor:
    return apply(MATMUL, x, y, attrs=MatmulAttrs(transpose_x, transpose_y))


def _matmul_vjp(g: Tensor, out: Tensor, ins: tuple[Tensor, ...], attrs: MatmulAttrs) -> tuple[Tensor, ...]:
    # With X, Y the operands after their flags: dX = g Y', dY = X' g; a flagged operand gets the transpose.
    x, y = ins
    tx, ty = attrs.transpose_x, attrs.transpose_y
    dx = _product(y, g, ty, True) if tx else _product(g, y, False, not ty)
    dy = _product(g, x, True, tx) if ty else _product(x, g, not tx, False)
    return dx, dy


def _matmul_jvp(ts: Sequence[Tensor | None], out: Tensor, ins: tuple[Tensor, ...], attrs: MatmulAttrs) -> Tensor:
    terms = []
    if ts[0] is not None:
        terms.append(apply(MATMUL, ts[0], ins[1], attrs=attrs))
    if ts[1] is not None:
        terms.append(apply(MATMUL, ins[0], ts[1], attrs=attrs))
    return terms[0] if len(terms) == 1 else add(*terms)


def _matmul_batch(ins: tuple[Tensor, ...], many: tuple[bool, ...], attrs: MatmulAttrs, size: int) -> Tensor:
    rank = max(x.ndim - m for x, m in zip(ins, many, strict=True))
    x, y = [aligned(x, rank) if m else x for x, m in zip(ins, many, strict=True)]
    return matmul(x, y, attrs.transpose_x, attrs.transpose_y)


MATMUL = Op(
    name="matmul", summary="matrix product over the last two axes", attrs=MatmulAttrs, infer=_matmul_infer,
    eval=_matmul_eval, vjp=_matmul_vjp, jvp=_matmul_jvp,
    lower=Mil(
        "matmul", ("x", "y"),
        lambda attrs, ins, outs: {"transpose_x": attrs.transpose_x, "transpose_y": attrs.transpose_y},
    ),
    kind=OpKind.COMPUTE, domain=Domain(), batch=_matmul_batch,
    cases=(
        Case(((2, 3), (3, 4)), MatmulAttrs()), Case(((3, 2), (3, 4)), MatmulAttrs(transpose_x=True)),
        Case(((2, 3), (4, 3)), MatmulAttrs(transpose_y=True)), Case(((3, 2), (4, 3)), MatmulAttrs(True, True)),
        Case(((5, 2, 3), (5, 3, 4)), MatmulAttrs()), Case(((5, 1, 3, 2), (2, 4, 3)), MatmulAttrs(True, True)),
        Case(((2, 3), (5, 3, 4)), MatmulAttrs()), Case(((2, 3), (3, 4)), MatmulAttrs(), (f16, f16)),
    ),
)
