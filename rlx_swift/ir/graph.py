"""The graph: leaves, nodes and named results, built by appending; knows ops only through their records."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import DType, bool_, f32
from ..errors import DTypeError, GraphError, NameNotFoundError, ShapeError
from .op import Attrs, Op
from .tensor import FUNCTIONS, Tensor
from .types import Shape, TensorType, as_shape

Initializer = Callable[[np.random.Generator, Shape], np.ndarray]
Init = np.ndarray | Sequence[Any] | float | Initializer | None


NOISE = "noise/"


def is_noise(name: str) -> bool:
    """Whether an input is one that `Graph.uniform` made."""
    return name.startswith(NOISE)


class LeafKind(Enum):
    INPUT = "input"
    PARAM = "param"
    BUFFER = "buffer"
    CONSTANT = "constant"


@dataclass(eq=False, slots=True)
class Leaf:
    """Where values enter: `value` is a constant's array, or the initial value of a param or buffer."""

    kind: LeafKind
    name: str | None
    value: Any = None


class Node:
    """One application of an op.

    `scope` labels the nodes that came from one composite, `region` those that the backward pass computes again
    instead of keeping their results; both may be empty.
    """

    __slots__ = ("attrs", "inputs", "op", "outputs", "region", "scope")

    def __init__(self, op: Op[Any], attrs: Attrs, inputs: tuple[Tensor, ...], scope: str, region: str) -> None:
        self.op, self.attrs, self.inputs, self.scope, self.region = op, attrs, inputs, scope, region
        self.outputs: tuple[Tensor, ...] = ()

    def __repr__(self) -> str:
        return f"Node({self.op.name})"


class Graph:
    """A typed, acyclic program over tensors.

    Nodes are kept in the order in which they were made, which is a topological order.

    Attributes:
        inputs, params, buffers: leaves by name. Params are f32 weights; buffers are state that `assign` writes.
        outputs: results by name.
        assigns: the next value of each assigned buffer; in a training program, also of params.
        region: the label that nodes get which are appended now; see `Node`.
        generated: names that derivative functions made (`d_output`, `grad_W`, ...), by the plain name.
    """

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self.inputs: dict[str, Tensor] = {}
        self.params: dict[str, Tensor] = {}
        self.buffers: dict[str, Tensor] = {}
        self.constants: list[Tensor] = []
        self.nodes: list[Node] = []
        self.outputs: dict[str, Tensor] = {}
        self.assigns: dict[str, Tensor] = {}
        self.region = ""
        self.generated: dict[str, str] = {}
        self._regions: set[str] = set()
        self._looked_at = 0
        self._shared: dict[tuple[DType, Shape, bytes], Tensor] = {}

    # Leaves

    def input(self, name: str, shape: Sequence[int] | int, dtype: DType = f32) -> Tensor:
        """A value fed at each run."""
        tensor = self._named_leaf(LeafKind.INPUT, name, shape, dtype, None)
        self.inputs[name] = tensor
        return tensor

    def param(self, name: str, shape: Sequence[int] | int, init: Init = None) -> Tensor:
        """A named f32 weight; `init` is an array, a number for all elements, or an initializer."""
        tensor = self._named_leaf(LeafKind.PARAM, name, shape, f32, init)
        self.params[name] = tensor
        return tensor

    def buffer(self, name: str, shape: Sequence[int] | int, init: Init = 0.0) -> Tensor:
        """A named f32 value that stays between steps and that no optimizer touches."""
        tensor = self._named_leaf(LeafKind.BUFFER, name, shape, f32, init)
        self.buffers[name] = tensor
        return tensor

    def uniform(self, shape: Sequence[int] | int) -> Tensor:
        """Uniform f32 in (0, 1), anew at each run: an input `noise/<n>` that whoever runs the graph draws."""
        number = sum(map(is_noise, self.inputs))
        while f"{NOISE}{number}" in self.inputs:
            number += 1
        return self.input(f"{NOISE}{number}", shape)

    def constant(self, value: object, dtype: DType | None = None) -> Tensor:
        """A value fixed in the graph. Equal ones share one leaf."""
        subject = "constant"
        array = dtypes.as_array(value, subject)
        kind = dtype or dtypes.of_numpy(array.dtype, subject)
        host = _frozen(dtypes.to_host(array, kind, subject))
        key = (kind, host.shape, host.tobytes() if host.nbytes <= 64 else hashlib.sha256(host.data).digest())
        if key not in self._shared:
            self._shared[key] = self._constant(host, kind)
        return self._shared[key]

    def _constant(self, host: np.ndarray, dtype: DType) -> Tensor:
        leaf = Leaf(LeafKind.CONSTANT, None, host)
        tensor = Tensor(self, TensorType(host.shape, dtype), leaf)
        self.constants.append(tensor)
        return tensor

    def _named_leaf(
        self, kind: LeafKind, name: str, shape: Sequence[int] | int, dtype: DType, init: Init
    ) -> Tensor:
        subject = f"{kind.value} {name!r}"
        if not isinstance(name, str) or not name:
            raise GraphError(f"{kind.value} name", f"expected a non-empty string, got {name!r}")
        if self._is_leaf(name):
            raise GraphError(subject, "the name is taken by another input, param or buffer")
        if not isinstance(dtype, DType):
            raise DTypeError(subject, f"expected a dtype such as rlx.f32, got {dtype!r}")
        type = TensorType(as_shape(shape, subject), dtype)
        return Tensor(self, type, Leaf(kind, name, checked_init(init, type, subject)), name=name)

    def leaves(self) -> dict[str, Tensor]:
        """All named leaves."""
        return {**self.inputs, **self.params, **self.buffers}

    def _is_leaf(self, name: str) -> bool:
        return name in self.inputs or name in self.params or name in self.buffers

    def leaf(self, name: str) -> Tensor:
        """The input, param or buffer of that name; raises NameNotFoundError."""
        for table in (self.params, self.inputs, self.buffers):
            if name in table:
                return table[name]
        raise NameNotFoundError(
            f"{name!r}", f"graph {self.name!r} has no input, param or buffer of that name",
            f"it has {', '.join(self.leaves()) or 'none'}",
        )

    def fresh_name(self, wanted: str) -> str:
        """`wanted`, or with `_1`, `_2`, ... where it is taken; recorded in `generated`."""
        name, n = wanted, 0
        while self._is_leaf(name) or name in self.outputs:
            n += 1
            name = f"{wanted}_{n}"
        self.generated[wanted] = name
        return name

    def fresh_region(self) -> str:
        """A label for `region` that no node has and that was not given out before."""
        # Nodes are only ever appended, so that each is looked at once.
        self._regions.update([node.region for node in self.nodes[self._looked_at :] if node.region])
        self._looked_at = len(self.nodes)
        number = len(self._regions)
        while f"remat#{number}" in self._regions:
            number += 1
        self._regions.add(f"remat#{number}")
        return f"remat#{number}"

    # Building

    def as_tensor(self, value: object, dtype: DType | None = None) -> Tensor:
        """`value` as a tensor of this graph. Python and NumPy scalars take `dtype`; arrays keep their own."""
        if isinstance(value, Tensor):
            if value.graph is not self:
                raise GraphError("operand", f"the tensor belongs to another graph, {value.graph.name!r}")
            return value
        if isinstance(value, (bool, int, float, np.generic)):
            if dtype in (dtypes.i32, bool_) and isinstance(value, (float, np.floating)):
                raise DTypeError("operand", f"the float {value!r} does not fit a tensor of {dtype}", "cast the tensor")
            if dtype is bool_ and not isinstance(value, (bool, np.bool_)):
                raise DTypeError("operand", f"the number {value!r} does not fit a tensor of bool", "cast the tensor")
            return self.constant(value, dtype)
        if isinstance(value, (np.ndarray, list, tuple)):
            return self.constant(value)
        raise DTypeError("operand", f"expected a tensor, a number or an array, got {type(value).__name__}")

    def apply(self, op: Op[Any], inputs: tuple[Tensor, ...], attrs: Attrs) -> tuple[Tensor, ...]:
        """Appends one application of `op` and returns its results; raises what `op.result_types` raises."""
        types = op.result_types(tuple([x.type for x in inputs]), attrs)
        return self.append(op, inputs, attrs, types)

    def append(
        self, op: Op[Any], inputs: tuple[Tensor, ...], attrs: Attrs, types: tuple[TensorType, ...], scope: str = ""
    ) -> tuple[Tensor, ...]:
        """As `apply`, with result types that are known already."""
        node = Node(op, attrs, inputs, scope, self.region)
        node.outputs = tuple([Tensor(self, type, node, i) for i, type in enumerate(types)])
        self.nodes.append(node)
        return node.outputs

    def assign(self, buffer: Tensor | str, value: Tensor) -> None:
        """Makes `value` the buffer's next value, once a step has succeeded."""
        target = self.buffers.get(buffer) if isinstance(buffer, str) else buffer
        if target is None or target.name not in self.buffers or self.buffers[target.name] is not target:
            raise GraphError("assign", f"expected a buffer of graph {self.name!r}, got {buffer!r}")
        value = self.as_tensor(value, target.dtype)
        if value.type != target.type:
            raise ShapeError(f"assign to {target.name!r}", f"expected {target.type}, got {value.type}")
        self.assigns[target.name] = value

    def set_outputs(self, outputs: Mapping[str, Tensor] | Sequence[Tensor] | Tensor) -> None:
        """Names the graph's results. Without names a tensor's own name is used, else `output_0`, `output_1`, ..."""
        if isinstance(outputs, Tensor):
            outputs = [outputs]
        if not isinstance(outputs, Mapping):
            named: dict[str, Tensor] = {}
            for i, tensor in enumerate(outputs):
                name = (tensor.name if isinstance(tensor, Tensor) else None) or f"output_{i}"
                if name in named:
                    raise GraphError("set_outputs", f"the name {name!r} comes twice", "give a dict of names")
                named[name] = tensor
            outputs = named
        if not outputs:
            raise GraphError("set_outputs", "expected at least one output")
        for name, tensor in outputs.items():
            if not isinstance(name, str) or not name:
                raise GraphError("set_outputs", f"expected a non-empty string as a name, got {name!r}")
            if not isinstance(tensor, Tensor):
                raise GraphError(f"output {name!r}", f"expected a tensor, got {type(tensor).__name__}")
            self.as_tensor(tensor)
        self.outputs = dict(outputs)

    # Reading

    def live_nodes(self) -> list[Node]:
        """The nodes that some output or assign needs, in order."""
        needed = {id(t.producer) for t in (*self.outputs.values(), *self.assigns.values())}
        live = []
        for node in reversed(self.nodes):
            if id(node) in needed:
                live.append(node)
                needed.update([id(x.producer) for x in node.inputs])
        live.reverse()
        return live

    def verify(self) -> None:
        """Raises GraphError with the node's text when the graph breaks a rule of the IR."""
        from .verify import verify

        verify(self)

    def with_loss(
        self, kind: str, logits: str | None = None, labels: str = "labels", loss: str = "loss", axis: int = -1
    ) -> Graph:
        """A copy with one input and one output more: what an output should have been, and the loss of rank 0.

        `kind` is "softmax_cross_entropy" (labels are i32 indices of the classes, which lie along `axis`),
        "sigmoid_cross_entropy" (labels from 0 to 1), "mse", "l1" or "huber"; each is a mean, in f32. `logits` is
        the output that it is of, the only one by default. Where that output is a softmax or sigmoid already, the
        cross entropies are taken of what goes into it.

        Raises ConfigError, NameNotFoundError (no such output), ShapeError and GraphError (a name that is taken).
        """
        return FUNCTIONS["with_loss"](self, kind, logits, labels, loss, axis)

    def to_json(self) -> str:
        """Structure and constants as JSON text, without param values."""
        from .serialize import to_json

        return to_json(self)

    @staticmethod
    def from_json(text: str) -> Graph:
        """The graph that `to_json` wrote; raises GraphError when the text is not one."""
        from .serialize import from_json

        return from_json(text)

    def __str__(self) -> str:
        from .printer import print_graph

        return print_graph(self)

    def __repr__(self) -> str:
        return f"Graph({self.name!r}, {len(self.nodes)} nodes, outputs {list(self.outputs)})"


def checked_init(init: Init, type: TensorType, subject: str) -> Any:
    """`init` as an array of `type`, an initializer unchanged, or None; raises ShapeError on another shape."""
    if init is None or callable(init):
        return init
    array = dtypes.to_host(init, type.dtype, subject)
    if array.ndim and array.shape != type.shape:
        raise ShapeError(subject, f"expected an initial value of shape {type.shape}, got {array.shape}")
    if not any(array.strides) and array.size:  # one number for all elements takes no memory for each
        return np.broadcast_to(_frozen(np.asarray(array[(0,) * array.ndim])), type.shape)
    return _frozen(array)


def _frozen(array: np.ndarray) -> np.ndarray:
    """The values in memory that nobody can write: graphs made from one another share them."""
    if type(array) is np.ndarray and type(array.base) is bytes and array.flags.c_contiguous and array.flags.aligned:
        return array
    return np.ndarray(array.shape, array.dtype, array.tobytes())  # an array's own flag can be set back
