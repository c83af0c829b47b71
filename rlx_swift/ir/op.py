"""The record that declares an op, and the registry of records; knows no particular op."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from ..dtypes import DType, f32
from ..errors import GraphError
from .types import Shape, TensorType

if TYPE_CHECKING:
    from .graph import Graph
    from .tensor import Tensor


@dataclass(frozen=True)
class Attrs:
    """Base of all attribute classes: frozen dataclasses of plain, hashable values."""


@dataclass(frozen=True)
class NoAttrs(Attrs):
    """For ops without attributes."""


A = TypeVar("A", bound=Attrs)


class OpKind(Enum):
    """What a precision policy may choose by; see `rlx_swift.precision`."""

    COMPUTE = "compute"
    REDUCTION = "reduction"
    ELEMENTWISE = "elementwise"
    DATA_MOVEMENT = "data_movement"
    BOUNDARY = "boundary"


@dataclass(frozen=True)
class NotDifferentiable:
    """Stands where a derivative rule would: `reason` is quoted when one is asked for."""

    reason: str


@dataclass(frozen=True)
class Stopped:
    """Stands where a derivative rule would: derivatives take the result for a constant."""


class Forward(Enum):
    """Ways to get a forward-mode rule without writing one."""

    LINEAR = "the op itself applied to the tangents (it is linear in all inputs together)"
    TRANSPOSE = "the transpose of the op's vjp, which is linear in the cotangent"


class Batch(Enum):
    """Ways in which an op takes a batch, on axis 0 of its operands, without a rule of its own."""

    ELEMENTWISE = "operands broadcast: those of lower rank get sizes of 1 after the batch"
    SHIFT = "every operand has the batch, and the axes and shapes among the attributes move by one"
    MERGE = "every operand has the batch, merged with the axis 0 that operands and results have"
    EACH = "the op is applied to each value on its own"


@dataclass(frozen=True)
class Mil:
    """The MIL op that an op becomes, with result types equal to the node's own.

    `inputs` names the MIL parameters in the order of the op's operands; a single name for an op of any
    arity collects all operands under it. `params(attrs, ins, outs)` gives the constant parameters:
    bool, int, str, float (in the first operand's dtype), tuples of int, or DType (spelled as MIL spells it).
    """

    op: str
    inputs: tuple[str, ...]
    params: Callable[[Any, tuple[TensorType, ...], tuple[TensorType, ...]], Mapping[str, object]] | None = None
    variadic: bool = False


@dataclass(frozen=True)
class Decompose:
    """Lowering by rewriting into other ops: `build(ins, attrs)` returns tensors of the node's own types."""

    build: Callable[[tuple[Tensor, ...], Any], Tensor | tuple[Tensor, ...]]


@dataclass(frozen=True)
class Domain:
    """Where sample operands are drawn from, and which points to stay away from.

    `kinks` are operand values at which the derivative is not defined (by convention it has a value there).
    `distinct` asks for operands without ties, since the op's derivative has kinks at equal elements.
    """

    low: float = -2.0
    high: float = 2.0
    kinks: tuple[float, ...] = ()
    distinct: bool = False


@dataclass(frozen=True)
class Case:
    """A sample call: operand shapes and dtypes (f32 if not given) and attributes; `domains` per operand.

    `held` are positions of operands that the derivative rules take for constants. `prepare` makes drawn
    operands consistent where an op expects more of them than types can say.
    """

    shapes: tuple[Shape, ...]
    attrs: Attrs = field(default_factory=NoAttrs)
    dtypes: tuple[DType, ...] = ()
    domains: tuple[Domain, ...] = ()
    held: tuple[int, ...] = ()
    prepare: Callable[[list[np.ndarray]], list[np.ndarray]] | None = None

    def types(self) -> tuple[TensorType, ...]:
        dtypes = self.dtypes or (f32,) * len(self.shapes)
        return tuple(TensorType(shape, dtype) for shape, dtype in zip(self.shapes, dtypes, strict=True))


Eval = Callable[[tuple[np.ndarray, ...], A], "np.ndarray | tuple[np.ndarray, ...]"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Op(Generic[A]):
    """Everything the package knows of one op. Leaving a field out is a TypeError at import.

    Fields:
        infer(types, attrs): result types, or raises ShapeError / DTypeError.
        eval(arrays, attrs): the NumPy reference, for float32 and float64 alike. f16 is computed in float32
            and rounded by the interpreter.
        vjp(g, out, ins, attrs): a cotangent (or None) for each operand, written with public ops. It may be
            larger than the operand by broadcasting: the reverse walk sums it. With several results, `g`
            and `out` are tuples.
        jvp(ts, out, ins, attrs): the result's tangent from the operands' (None where there is none), or a
            `Forward` member.
        lower: how it becomes MIL.
        kind: what precision policies choose by.
        batch(ins, batched, attrs, size): the results for operands of which those marked have `size` values on
            axis 0, with that axis too; or a `Batch` member. None is ELEMENTWISE for that kind, else EACH.
        listed: False for an op that a caller makes, which no contract test or strategy looks at.
        domain, cases: for contract tests, docs and hypothesis strategies.
        predict(ins, attrs): what stands for its results in the inference form, where that is not the op itself.
        index_bounds(types, attrs): for operands that are indices, the size that they must stay below.
        selects: whether each element of the result is that of operand 1 or 2, as operand 0 says.
        body(types): for operands of those types, the graph that is run in place of `eval`.
        arity: the number of operands, as the cases show it; None where they show several.
    """

    name: str
    summary: str
    attrs: type[A]
    infer: Callable[[tuple[TensorType, ...], A], tuple[TensorType, ...]]
    eval: Eval[A]
    vjp: Callable[[Any, Any, tuple[Tensor, ...], A], Sequence[Tensor | None]] | NotDifferentiable | Stopped
    jvp: Callable[[Any, Any, tuple[Tensor, ...], A], Any] | Forward | NotDifferentiable | Stopped
    lower: Mil | Decompose
    kind: OpKind
    domain: Domain
    cases: tuple[Case, ...]
    batch: Batch | Callable[[tuple[Tensor, ...], tuple[bool, ...], A, int], Tensor | tuple[Tensor, ...]] | None = None
    listed: bool = True
    predict: Callable[[tuple[Tensor, ...], A], Tensor | tuple[Tensor, ...]] | None = None
    index_bounds: Callable[[tuple[TensorType, ...], A], Mapping[int, int]] | None = None
    body: Callable[[tuple[TensorType, ...]], Graph] | None = None
    selects: bool = False
    arity: int | None = field(init=False)

    def __post_init__(self) -> None:
        if self.name in _REGISTRY and self.listed:
            raise GraphError(f"op {self.name!r}", "declared twice")
        if not self.cases:
            raise GraphError(f"op {self.name!r}", "declared without a sample case")
        if not (dataclasses.is_dataclass(self.attrs) and issubclass(self.attrs, Attrs)):
            raise GraphError(f"op {self.name!r}", "expected a dataclass of Attrs for its attributes")
        counts = {len(case.shapes) for case in self.cases}
        object.__setattr__(self, "arity", counts.pop() if len(counts) == 1 else None)
        if self.batch is None:
            object.__setattr__(self, "batch", Batch.ELEMENTWISE if self.kind is OpKind.ELEMENTWISE else Batch.EACH)
        (_REGISTRY if self.listed else _UNLISTED)[self.name] = self

    def result_types(self, types: tuple[TensorType, ...], attrs: A) -> tuple[TensorType, ...]:
        """As `infer`, with the number of operands and the class of the attributes checked first."""
        if self.arity is not None and len(types) != self.arity:
            raise GraphError(f"op {self.name!r}", f"expected {self.arity} operands, got {len(types)}")
        if type(attrs) is not self.attrs:
            raise GraphError(f"op {self.name!r}", f"expected attributes {self.attrs.__name__}, got {attrs!r}")
        return self.infer(types, attrs)

    def __repr__(self) -> str:
        return f"Op({self.name})"


_REGISTRY: dict[str, Op[Any]] = {}
_UNLISTED: dict[str, Op[Any]] = {}


def registry() -> Mapping[str, Op[Any]]:
    """All listed ops by name."""
    return _REGISTRY


def find_op(name: str) -> Op[Any]:
    """The op called `name`; raises GraphError for any other name."""
    try:
        return _REGISTRY[name] if name in _REGISTRY else _UNLISTED[name]
    except KeyError:
        raise GraphError(f"op {name!r}", "no op of that name is declared") from None
