"""The place of the largest or smallest element along an axis, the first among equal ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..dtypes import f16, f32, i32
from ..ir.op import Batch, Case, Decompose, Domain, NotDifferentiable, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import as_axis
from ._build import TensorLike, apply, as_tensors, public
from .primitives import MIL_ARGMAX, MIL_ARGMIN, ArgReduceAttrs, arg_infer
from .select import cast
from .shape import reshape


@public
def argmax(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index (i32) of the largest element along an axis; without an axis, in the flattened tensor."""
    return _arg(ARGMAX, x, axis, keepdims)


@public
def argmin(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index (i32) of the smallest element along an axis; without an axis, in the flattened tensor."""
    return _arg(ARGMIN, x, axis, keepdims)


def _arg(op: Op[ArgReduceAttrs], x: TensorLike, axis: int | None, keepdims: bool) -> Tensor:
    (tensor,) = as_tensors(op.name, x)
    if axis is None:
        flat = apply(op, reshape(tensor, (tensor.size,)), attrs=ArgReduceAttrs(0, False))
        return reshape(flat, (1,) * tensor.ndim) if keepdims else flat
    return apply(op, tensor, attrs=ArgReduceAttrs(as_axis(axis, tensor.ndim, op.name), bool(keepdims)))


def _arg_extreme(
    name: str, summary: str, function: Callable[..., np.ndarray], mil: Op[ArgReduceAttrs]
) -> Op[ArgReduceAttrs]:
    def lower(ins: tuple[Tensor, ...], attrs: ArgReduceAttrs) -> Tensor:
        # The Neural Engine gets the argmax of f16 over many elements wrong.
        return apply(mil, cast(ins[0], f32) if ins[0].dtype is f16 else ins[0], attrs=attrs)

    reason = NotDifferentiable("its result is an index")
    return Op(
        name=name, summary=summary, attrs=ArgReduceAttrs, infer=arg_infer,
        eval=lambda arrays, attrs: function(arrays[0], axis=attrs.axis, keepdims=attrs.keepdims),
        vjp=reason, jvp=reason, lower=Decompose(lower), kind=OpKind.REDUCTION, domain=Domain(distinct=True),
        batch=Batch.SHIFT,
        cases=(
            Case(((5,),), ArgReduceAttrs(0, False)), Case(((2, 3, 4),), ArgReduceAttrs(1, True)),
            Case(((2, 6),), ArgReduceAttrs(1, False), (i32,), (Domain(-9, 9),)),
            Case(((2, 6),), ArgReduceAttrs(1, False), (f16,)),
        ),
    )


ARGMAX = _arg_extreme("argmax", "place of the largest element along an axis", np.argmax, MIL_ARGMAX)
ARGMIN = _arg_extreme("argmin", "place of the smallest element along an axis", np.argmin, MIL_ARGMIN)
