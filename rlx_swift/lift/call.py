"""One operation as its rule sees it: operands as tensors, parameters as Python values. Knows no rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..dtypes import DType
from ..errors import PackageError, UnsupportedError
from ..ir.graph import Graph, LeafKind
from ..ir.tensor import Tensor
from ..ir.types import Shape
from ..lower.opset import signatures
from ..lower.program import Array
from ..ops import cast
from .constants import ir_dtype
from .weights import Constant

Operand = Tensor | Constant


class TensorOf(Protocol):
    """How a constant becomes a tensor of the graph that a rule builds in."""

    def __call__(
        self, constant: Constant, dtype: DType | None = None, role: LeafKind = LeafKind.CONSTANT
    ) -> Tensor: ...


class Call:
    """An operation with its operands looked up.

    Attributes:
        graph: where the rule builds.
        operation: what MIL calls it.
        opset: n of CoreML<n>.
        outputs: the types that the file declares for the results.
        place: which operation it is, for errors.
    """

    def __init__(
        self, graph: Graph, operation: str, opset: int, operands: Mapping[str, Sequence[Operand]],
        outputs: Sequence[Array], place: str, tensor_of: TensorOf,
    ) -> None:
        self.graph, self.operation, self.opset, self.outputs, self.place = graph, operation, opset, outputs, place
        self._operands, self._tensor_of = operands, tensor_of
        signature = signatures(opset).get(operation)
        self._defaults = dict(signature.defaults) if signature else {}

    @property
    def dtype(self) -> DType:
        """The dtype of the first result."""
        return ir_dtype(self.outputs[0].dtype, self.place)

    def has(self, name: str) -> bool:
        """Whether the operation binds the parameter."""
        return name in self._operands

    # Operands

    def tensor(self, name: str, dtype: DType | None = None) -> Tensor:
        """The operand as a tensor, as a float of another dtype if asked for; raises PackageError when it is missing."""
        return self._as_tensor(self._one(name), dtype)

    def tensors(self, name: str) -> list[Tensor]:
        """All operands of a variadic parameter."""
        return [self._as_tensor(operand, None) for operand in self._bound(name)]

    def weight(self, name: str, dtype: DType) -> Tensor:
        """An operand that is a param, of whatever size, where it is a constant; raises PackageError when missing."""
        return self._as_tensor(self._one(name), dtype, LeafKind.PARAM)

    def optional_weight(self, name: str, dtype: DType) -> Tensor | None:
        """As `weight`; None where the operation does not bind it."""
        return self.weight(name, dtype) if self.has(name) else None

    def average(self, name: str, dtype: DType) -> Tensor:
        """An operand that is a buffer where it is a constant: measured, not trained."""
        return self._as_tensor(self._one(name), dtype, LeafKind.BUFFER)

    def _as_tensor(self, operand: Operand, dtype: DType | None, role: LeafKind = LeafKind.CONSTANT) -> Tensor:
        if isinstance(operand, Constant):
            return self._tensor_of(operand, dtype, role)
        return cast(operand, dtype) if dtype is not None and operand.dtype.is_float else operand

    # Parameters

    def known(self, name: str) -> np.ndarray | None:
        """The parameter's value where it is known before a run; None where it is computed or missing."""
        operand = self._one(name) if self.has(name) else None
        return operand.array if isinstance(operand, Constant) else None

    def array(self, name: str) -> np.ndarray:
        """The parameter's value; raises UnsupportedError when it is computed at run time."""
        operand = self._one(name)
        if isinstance(operand, Constant):
            return operand.array
        raise self.unsupported(f"its parameter {name} is computed at run time")

    def integer(self, name: str, default: int | None = None) -> int:
        return int(self._scalar(name, default, np.integer))

    def number(self, name: str, default: float | None = None) -> float:
        return float(self._scalar(name, default, np.number))

    def flag(self, name: str, default: bool | None = None) -> bool:
        return bool(self._scalar(name, default, np.bool_))

    def text(self, name: str, default: str | None = None) -> str:
        return str(self._scalar(name, default, np.str_))

    def integers(self, name: str, default: Sequence[int] | None = None) -> Shape:
        """A list of integers; the default where the operation does not bind it."""
        if default is not None and not self.has(name):
            return tuple(default)
        value = self.array(name)
        if value.size and not np.issubdtype(value.dtype, np.integer):
            raise self.malformed(f"expected integers as its parameter {name}, got {value.dtype}")
        return tuple([int(n) for n in value.reshape(-1)])

    def flags(self, name: str, count: int) -> tuple[bool, ...]:
        """A list of bools; all False where the operation does not bind it."""
        return tuple([bool(n) for n in self.array(name).reshape(-1)]) if self.has(name) else (False,) * count

    def _scalar(self, name: str, default: object, kind: type[Any]) -> Any:
        if not self.has(name):
            value = self._defaults.get(name) if default is None else default
            if value is None:
                raise self._missing(name)
            return value
        array = self.array(name)
        if array.size != 1 or not np.issubdtype(array.dtype, kind):
            raise self.malformed(f"its parameter {name} is {array.dtype} of shape {array.shape}")
        return array.item()

    def _bound(self, name: str) -> Sequence[Operand]:
        if name not in self._operands:
            raise self._missing(name)
        return self._operands[name]

    def _one(self, name: str) -> Operand:
        operands = self._bound(name)
        if len(operands) != 1:
            raise self.malformed(f"its parameter {name} has {len(operands)} values, expected one")
        return operands[0]

    # Errors

    def unsupported(self, problem: str) -> UnsupportedError:
        return UnsupportedError(self.place, problem)

    def malformed(self, problem: str) -> PackageError:
        return PackageError(self.place, problem)

    def _missing(self, name: str) -> PackageError:
        return self.malformed(f"its parameter {name} is missing")
