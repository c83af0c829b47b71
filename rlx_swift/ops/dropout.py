"""Dropout: elements left out at random, from numbers that each run makes anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import f16
from ..errors import ConfigError, ShapeError
from ..ir.op import Attrs, Batch, Case, Decompose, Domain, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import TensorType
from ._build import TensorLike, apply, as_tensors, public, require_float
from .arithmetic import mul
from .compare import greater_equal
from .select import cast, full_like, where


@dataclass(frozen=True)
class DropoutAttrs(Attrs):
    rate: float


@public
def dropout(x: TensorLike, rate: float = 0.5) -> Tensor:
    """x with each element left out with probability `rate`, the others divided by 1 - rate.

    Srivastava et al. 2014. The numbers come from `Graph.uniform`, so that a seed gives the same mask forward and
    backward and on every device. In the inference form it is x itself.
    """
    (tensor,) = as_tensors("dropout", x)
    require_float("dropout", tensor.type)
    if not isinstance(rate, (int, float)) or not 0 <= rate <= 1:
        raise ConfigError("dropout rate", f"expected a number from 0 to 1, got {rate!r}")
    if rate == 0:
        return tensor
    numbers = cast(tensor.graph.uniform(tensor.shape), tensor.dtype)
    return apply(DROPOUT, tensor, numbers, attrs=DropoutAttrs(float(rate)))


def _infer(types: tuple[TensorType, ...], attrs: DropoutAttrs) -> tuple[TensorType, ...]:
    x, numbers = types
    require_float("dropout", x, numbers)
    if x != numbers:
        raise ShapeError("dropout", f"expected one number for each element of {x}, got {numbers}")
    return (x,)


def _factor(attrs: DropoutAttrs) -> float:
    return 1 / (1 - attrs.rate) if attrs.rate < 1 else 0.0


def _eval(arrays: tuple[np.ndarray, ...], attrs: DropoutAttrs) -> np.ndarray:
    x, numbers = arrays
    return np.where(numbers >= attrs.rate, x * x.dtype.type(_factor(attrs)), x.dtype.type(0))


def _kept(x: Tensor, numbers: Tensor, attrs: DropoutAttrs) -> Tensor:
    return where(greater_equal(numbers, attrs.rate), mul(x, _factor(attrs)), 0.0)


def _jvp(ts: Sequence[Any], out: Tensor, ins: tuple[Tensor, ...], attrs: DropoutAttrs) -> Tensor:
    return full_like(out, 0.0) if ts[0] is None else _kept(ts[0], ins[1], attrs)


_NUMBERS = Domain(0.0, 1.0)
DROPOUT = Op(
    name="dropout", summary="elements left out where a number is below the rate", attrs=DropoutAttrs, infer=_infer,
    eval=_eval, vjp=lambda g, out, ins, attrs: (_kept(g, ins[1], attrs), None), jvp=_jvp,
    lower=Decompose(lambda ins, attrs: _kept(ins[0], ins[1], attrs)), predict=lambda ins, attrs: ins[0],
    kind=OpKind.ELEMENTWISE, domain=Domain(), batch=Batch.SHIFT,
    cases=tuple(
        Case((shape, shape), DropoutAttrs(rate), dtypes, (Domain(), _NUMBERS), held=(1,))
        for shape, rate, dtypes in (((4, 5), 0.5, ()), ((2, 3, 4), 0.1, ()), ((), 0.3, ()), ((3, 4), 0.5, (f16, f16)))
    ),
)
