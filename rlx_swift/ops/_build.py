"""What public op functions share: operands into one graph, registration under a public name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ..dtypes import DType
from ..errors import DTypeError, GraphError
from ..ir.graph import Graph
from ..ir.op import Attrs, NoAttrs, Op
from ..ir.tensor import FUNCTIONS, Tensor
from ..ir.types import TensorType

TensorLike = Tensor | np.ndarray | np.generic | float | int | bool | Sequence[Any]
F = TypeVar("F", bound=Callable[..., Any])


def public(function: F) -> F:
    """Makes a function part of `rlx.ops` and reachable from Tensor's operators."""
    FUNCTIONS[function.__name__] = function
    return function


def graph_of(subject: str, *operands: object) -> Graph:
    """The graph of the first tensor among the operands; raises GraphError when there is none."""
    for operand in operands:
        if isinstance(operand, Tensor):
            return operand.graph
    raise GraphError(subject, "expected at least one tensor of a graph among the operands")


def as_tensors(subject: str, *operands: Any) -> tuple[Tensor, ...]:
    """The operands as tensors of one graph; scalars take the dtype of the first tensor."""
    for operand in operands:
        if isinstance(operand, Tensor):
            graph, dtype = operand.graph, operand.type.dtype
            return tuple([graph.as_tensor(x, dtype) for x in operands])
    raise GraphError(subject, "expected at least one tensor of a graph among the operands")


def apply(op: Op[Any], *operands: Any, attrs: Attrs | None = None) -> Tensor:
    """One application of an op with one result."""
    tensors = as_tensors(op.name, *operands)
    return tensors[0].graph.apply(op, tensors, attrs or NoAttrs())[0]


def require_float(subject: str, *types: TensorType) -> None:
    for type in types:
        if not type.dtype.is_float:
            raise DTypeError(subject, f"expected a tensor of f32 or f16, got {type}", "cast it first")


def require_numbers(subject: str, *types: TensorType) -> None:
    for type in types:
        if type.dtype.numpy.kind == "b":
            raise DTypeError(subject, f"expected a tensor of numbers, got {type}", "cast it first")


def require_integers(subject: str, *types: TensorType) -> None:
    for type in types:
        if type.dtype.numpy.kind != "i":
            raise DTypeError(subject, f"expected a tensor of i32, got {type}", "cast it first")


def require_bool(subject: str, *types: TensorType) -> None:
    for type in types:
        if type.dtype.numpy.kind != "b":
            raise DTypeError(subject, f"expected a tensor of bool, got {type}", "compare it with something")


def same_dtype(subject: str, *types: TensorType) -> DType:
    """The dtype that all types share; raises DTypeError otherwise."""
    first = types[0].dtype
    for type in types[1:]:
        if type.dtype is not first:
            raise DTypeError(
                subject, "expected operands of one dtype, got " + " and ".join(map(str, types)), "cast one of them"
            )
    return first
