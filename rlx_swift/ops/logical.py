"""Elementwise logic of bools, and tests of floats for NaN and infinity; no derivative passes through them."""

from __future__ import annotations

import numpy as np

from ..ir.op import NotDifferentiable
from ..ir.tensor import Tensor
from ._build import TensorLike, apply, as_tensors, public, require_bool, require_float
from ._families import binary, unary
from .compare import equal, less, not_equal
from .elementwise import abs

_TRUTH = NotDifferentiable("its result is a truth value")


@public
def logical_and(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether both hold; bools that broadcast."""
    return apply(LOGICAL_AND, x, y)


LOGICAL_AND = binary("logical_and", "whether both hold", np.logical_and, _TRUTH, require=require_bool)


@public
def logical_or(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether one of them holds or both; bools that broadcast."""
    return apply(LOGICAL_OR, x, y)


LOGICAL_OR = binary("logical_or", "whether one holds or both", np.logical_or, _TRUTH, require=require_bool)


@public
def logical_xor(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether exactly one of them holds; bools that broadcast."""
    return apply(LOGICAL_XOR, x, y)


LOGICAL_XOR = binary("logical_xor", "whether exactly one holds", np.logical_xor, _TRUTH, require=require_bool)


@public
def logical_not(x: TensorLike) -> Tensor:
    """Whether it does not hold, of bools."""
    return apply(LOGICAL_NOT, x)


LOGICAL_NOT = unary("logical_not", "whether it does not hold", np.logical_not, _TRUTH, require=require_bool)


@public
def isnan(x: TensorLike) -> Tensor:
    """Whether a float is NaN."""
    tensor = _float(x, "isnan")
    return not_equal(tensor, tensor)


@public
def isinf(x: TensorLike) -> Tensor:
    """Whether a float is infinite."""
    return equal(abs(_float(x, "isinf")), float("inf"))


@public
def isfinite(x: TensorLike) -> Tensor:
    """Whether a float is neither infinite nor NaN."""
    return less(abs(_float(x, "isfinite")), float("inf"))


def _float(x: TensorLike, subject: str) -> Tensor:
    (tensor,) = as_tensors(subject, x)
    require_float(subject, tensor.type)
    return tensor
