"""The value that graph code handles: a typed edge of one graph, with NumPy's operators.

The operators reach the ops through `FUNCTIONS`, which `rlx_swift.ops` fills, so that the IR imports no op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..dtypes import DType
from ..errors import GraphError
from .types import Shape, TensorType

if TYPE_CHECKING:
    from .graph import Graph, Leaf, Node

FUNCTIONS: dict[str, Callable[..., Any]] = {}


def _binary(name: str) -> Callable[[Tensor, object], Tensor]:
    def method(self: Tensor, other: object) -> Tensor:
        return FUNCTIONS[name](self, other)

    return method


def _reflected(name: str) -> Callable[[Tensor, object], Tensor]:
    def method(self: Tensor, other: object) -> Tensor:
        return FUNCTIONS[name](other, self)

    return method


class Tensor:
    """One typed result of a leaf or a node of `graph`.

    `name` is the leaf's name, or what the user called it; node results have none by default.
    `==` and `!=` compare elements, as in NumPy; identity is `is`, and hashing is by identity.
    """

    __slots__ = ("graph", "index", "name", "producer", "type")
    __array_priority__ = 1000  # ndarray.__add__ and friends leave mixed expressions to us

    def __init__(
        self, graph: Graph, type: TensorType, producer: Leaf | Node, index: int = 0, name: str | None = None
    ) -> None:
        self.graph, self.type, self.producer, self.index, self.name = graph, type, producer, index, name

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    @property
    def size(self) -> int:
        return self.type.size

    @property
    def T(self) -> Tensor:
        return self.transpose()

    def __repr__(self) -> str:
        return f"Tensor({self.name + ': ' if self.name else ''}{self.type})"

    def __bool__(self) -> bool:
        raise GraphError("bool(tensor)", "a tensor has no value while a graph is built", "use rlx.ops.where")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor of rank 0")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __array__(self, *_: object, **__: object) -> Any:
        raise GraphError("array(tensor)", "a tensor has no value while a graph is built", "use rlx.ops functions")

    __array_ufunc__ = None
    __hash__ = object.__hash__
    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("sub"), _reflected("sub")
    __mul__, __rmul__ = _binary("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _binary("div"), _reflected("div")
    __floordiv__, __rfloordiv__ = _binary("floor_div"), _reflected("floor_div")
    __mod__, __rmod__ = _binary("mod"), _reflected("mod")
    __pow__, __rpow__ = _binary("pow"), _reflected("pow")
    __matmul__, __rmatmul__ = _binary("matmul"), _reflected("matmul")
    __and__, __rand__ = _binary("logical_and"), _reflected("logical_and")
    __or__, __ror__ = _binary("logical_or"), _reflected("logical_or")
    __xor__, __rxor__ = _binary("logical_xor"), _reflected("logical_xor")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __eq__ = _binary("equal")  # type: ignore[assignment]
    __ne__ = _binary("not_equal")  # type: ignore[assignment]

    def __neg__(self) -> Tensor:
        return FUNCTIONS["neg"](self)

    def __invert__(self) -> Tensor:
        return FUNCTIONS["logical_not"](self)

    def __abs__(self) -> Tensor:
        return FUNCTIONS["abs"](self)

    def __getitem__(self, key: object) -> Tensor:
        return FUNCTIONS["getitem"](self, key)

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        return FUNCTIONS["reshape"](self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: int | Sequence[int]) -> Tensor:
        return FUNCTIONS["transpose"](self, (axes[0] if len(axes) == 1 else axes) or None)

    def squeeze(self, axis: int | Sequence[int] | None = None) -> Tensor:
        return FUNCTIONS["squeeze"](self, axis)

    def sum(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        return FUNCTIONS["sum"](self, axis, keepdims)

    def mean(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        return FUNCTIONS["mean"](self, axis, keepdims)

    def max(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        return FUNCTIONS["max"](self, axis, keepdims)

    def min(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        return FUNCTIONS["min"](self, axis, keepdims)

    def astype(self, dtype: DType) -> Tensor:
        return FUNCTIONS["cast"](self, dtype)
