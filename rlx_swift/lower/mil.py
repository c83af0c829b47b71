"""Graphs as Core ML programs: one MIL op for each node, and what the boundary asks for. Knows no particular op."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .. import dtypes
from ..dtypes import DType, bool_, f32, i32
from ..errors import ConfigError, LoweringError, NameNotFoundError, ShapeError
from ..ir.graph import Graph, Leaf, LeafKind, Node
from ..ir.op import Mil
from ..ir.tensor import Tensor
from ..ir.types import TensorType
from ..passes.decompose import decompose
from .constants import Constants, is_small
from .names import Names
from .opset import Signature, first_opset, signatures
from .program import (
    OPSETS,
    Binding,
    Block,
    Feature,
    Function,
    Interface,
    Model,
    Named,
    Operation,
    Value,
)

TARGET = "CoreML7"  # the first opset in which conv and conv_transpose take weights made at run time
MAX_RANK = 5
_FIRST_WITHOUT_INPUTS = 9  # the specification version from which a function may have no input
_FIRST_NAMED_FUNCTION = 9


@dataclass(frozen=True)
class Lowered:
    """A graph as a Core ML model, and how to bind its values.

    Attributes:
        model: the program, its description and the contents of its weight file.
        inputs, params, buffers: feature names by IR name, for what is fed.
        outputs: feature names by IR name.
        assigns: for each buffer that the graph assigns, the output feature with its next value.
        types: the IR type of each feature. A feature of rank 0 travels as (1,), one of bool as i32.
        unused: IR names of leaves that no result needs; they have no feature.
    """

    model: Model
    inputs: Mapping[str, str]
    params: Mapping[str, str]
    buffers: Mapping[str, str]
    outputs: Mapping[str, str]
    assigns: Mapping[str, str]
    types: Mapping[str, TensorType]
    unused: tuple[str, ...]


def lower(
    graph: Graph, *, baked: Mapping[str, np.ndarray] | None = None, name: str = "main", target: str = TARGET,
    portable: bool = True,
) -> Lowered:
    """The graph as a program whose params and buffers are inputs, but for those with values in `baked`.

    `target` is the opset, CoreML7 or later. With `portable=False` values may have any rank and no elements,
    and the program no inputs, which Core ML refuses and our own runtime takes.

    Raises LoweringError, and NameNotFoundError, ShapeError or DTypeError for wrong `baked` values.
    """
    if OPSETS.get(target, 0) < OPSETS[TARGET]:
        known = [opset for opset, version in OPSETS.items() if version >= OPSETS[TARGET]]
        raise ConfigError("target", f"expected one of {', '.join(known)}, got {target!r}")
    if name != "main" and OPSETS[target] < _FIRST_NAMED_FUNCTION:
        raise ConfigError("name", f"{target} has only the function 'main', got {name!r}", 'give target="CoreML8"')
    if not graph.outputs and not graph.assigns:
        raise LoweringError(f"graph {graph.name!r}", "it has no outputs", "call set_outputs")
    return _Lowering(decompose(graph), baked or {}, name, target, portable).result()


def boundary_type(type: TensorType) -> TensorType:
    """The type under which a value enters or leaves a program: rank 1 or more, no bool."""
    return TensorType(type.shape or (1,), i32 if type.dtype is bool_ else type.dtype)


class _Lowering:
    """The state of one lowering: what the values are called, and the program so far."""

    def __init__(
        self, graph: Graph, baked: Mapping[str, np.ndarray], name: str, target: str, portable: bool
    ) -> None:
        self._graph, self._baked, self._name, self._target, self._portable = graph, baked, name, target, portable
        self._version = OPSETS[target]
        self._signatures = signatures(int(target.removeprefix("CoreML")))
        self._names, self._constants = Names(), Constants(self._version)
        self._operands: dict[int, Binding] = {}  # by tensor identity
        self._operations: list[Operation] = []
        self._types: dict[str, TensorType] = {}
        self._nodes = graph.live_nodes()

    def result(self) -> Lowered:
        graph = self._graph
        self._check_baked()
        used = {id(x) for node in self._nodes for x in node.inputs}
        used.update(id(t) for t in (*graph.outputs.values(), *graph.assigns.values()))
        fed = {
            kind: {name: t for name, t in table.items() if id(t) in used and name not in self._baked}
            for kind, table in (("inputs", graph.inputs), ("params", graph.params), ("buffers", graph.buffers))
        }
        features = {kind: {name: self._feature(name, t) for name, t in table.items()} for kind, table in fed.items()}
        outputs = {name: self._feature(name, t) for name, t in graph.outputs.items()}
        assigns = {name: self._feature(f"{name}_next", t) for name, t in graph.assigns.items()}
        for kind, table in fed.items():
            for name, tensor in table.items():
                self._enter(features[kind][name], tensor)
        results = [(outputs[name], t) for name, t in graph.outputs.items()]
        results += [(assigns[name], t) for name, t in graph.assigns.items()]
        direct = _made_here(results)
        for node in self._nodes:
            self._node(node, direct)
        for feature, tensor in results:
            self._leave(feature, tensor, direct)
        ins = [feature for table in features.values() for feature in table.values()]
        unused = tuple(name for name, t in graph.leaves().items() if id(t) not in used)
        model = self._model(ins, [feature for feature, _ in results])
        return Lowered(model, **features, outputs=outputs, assigns=assigns, types=self._types, unused=unused)

    def _model(self, ins: list[str], outs: list[str]) -> Model:
        if not ins and self._portable and self._version < _FIRST_WITHOUT_INPUTS:
            raise LoweringError(
                f"graph {self._graph.name!r}", f"no input reaches its outputs, and {self._target} needs one",
                'give target="CoreML8"',
            )
        arrays = {name: self._constants.array(boundary_type(self._types[name])) for name in (*ins, *outs)}
        inputs, outputs = ([self._description(name) for name in names] for names in (ins, outs))
        body = Block([], self._operations, outs)
        function = Function([(name, arrays[name]) for name in ins], self._target, {self._target: body})
        return Model(
            self._version, {self._name: function}, {self._name: Interface(inputs, outputs)}, self._name,
            weights=self._constants.weights,
        )

    def _check_baked(self) -> None:
        for name in self._baked:
            if name not in self._graph.params and name not in self._graph.buffers:
                raise NameNotFoundError(f"{name!r}", f"graph {self._graph.name!r} has no param or buffer of that name")

    # Boundary

    def _feature(self, wanted: str, tensor: Tensor) -> str:
        self._check(wanted, tensor.type)
        name = self._names.given(wanted)
        self._types[name] = tensor.type
        return name

    def _description(self, feature: str) -> Feature:
        type = boundary_type(self._types[feature])
        array = self._constants.array(type)
        return Feature(feature, "array", array.dtype, type.shape)

    def _enter(self, feature: str, tensor: Tensor) -> None:
        """The value that stands for a fed leaf inside the program."""
        binding: Binding = feature
        type = boundary_type(tensor.type)
        if tensor.dtype is bool_:
            type = type.with_dtype(bool_)
            binding = self._emit("cast", {"x": binding, "dtype": self._constants.literal("bool", f32)}, type)
        if not tensor.shape:
            binding = self._emit("squeeze", {"x": binding, "axes": self._constants.literal((0,), f32)}, tensor.type)
        self._operands[id(tensor)] = binding

    def _leave(self, feature: str, tensor: Tensor, direct: Mapping[int, str]) -> None:
        """Makes the output `feature`, unless a node did."""
        if direct.get(id(tensor)) == feature:
            return
        binding, type = self._operand(tensor, named=True), boundary_type(tensor.type)
        if tensor.dtype is bool_:
            last = {"name": feature} if tensor.shape else {}
            inside = TensorType(tensor.shape, i32)
            binding = self._emit("cast", {"x": binding, "dtype": self._constants.literal("int32", f32)}, inside, **last)
        if not tensor.shape:
            self._emit("expand_dims", {"x": binding, "axes": self._constants.literal((0,), f32)}, type, name=feature)
        elif tensor.dtype is not bool_:
            self._emit("identity", {"x": binding}, type, name=feature)

    def _emit(self, op: str, inputs: dict[str, Binding], type: TensorType, name: str = "") -> str:
        name = name or self._names.numbered(op)
        bindings = {parameter: [binding] for parameter, binding in inputs.items()}
        self._operations.append(Operation(op, bindings, [(name, self._constants.array(type))]))
        return name

    # Nodes

    def _node(self, node: Node, direct: Mapping[int, str]) -> None:
        record = node.op.lower
        assert isinstance(record, Mil)
        signature = self._signatures.get(record.op) or self._missing(node, record.op)
        operands = [self._operand(x) for x in node.inputs]
        inputs: dict[str, list[Binding]]
        if record.variadic:
            inputs = {record.inputs[0]: operands}
        else:
            inputs = {name: [operand] for name, operand in zip(record.inputs, operands, strict=True)}
        ins, outs = tuple([x.type for x in node.inputs]), tuple([t.type for t in node.outputs])
        dtype = ins[0].dtype if ins else outs[0].dtype
        if record.params:
            for name, value in record.params(node.attrs, ins, outs).items():
                inputs[name] = [self._constants.literal(value, dtype)]
        self._complete(node, inputs, signature, dtype)
        results: list[Named] = []
        for tensor in node.outputs:
            self._check(node.op.name, tensor.type)
            name = direct.get(id(tensor)) or self._names.numbered(record.op)
            self._operands[id(tensor)] = name
            results.append((name, self._constants.array(tensor.type)))
        operation = Operation(record.op, inputs, results)
        if node.scope:
            operation.attributes["name"] = self._constants.literal(node.scope, dtype)
        self._operations.append(operation)

    def _missing(self, node: Node, op: str) -> Signature:
        since = first_opset(op)
        hint = f'give target="CoreML{since}"' if since else ""
        raise LoweringError(f"op {node.op.name!r}", f"{self._target} has no operation {op}", hint)

    def _complete(self, node: Node, inputs: dict[str, list[Binding]], signature: Signature, dtype: DType) -> None:
        """Writes the defaults out, since Core ML knows none; refuses what the op does not have or lacks."""
        for name, value in signature.defaults:
            if name not in inputs:
                inputs[name] = [self._constants.literal(value, dtype)]
        if not signature.required <= inputs.keys() <= signature.known:
            unknown = sorted(inputs.keys() - signature.known)
            absent = sorted(signature.required - inputs.keys())
            problem = f"it has no parameter {unknown[0]}" if unknown else f"its parameter {absent[0]} is missing"
            raise LoweringError(f"op {node.op.name!r}", f"as {node.op.lower.op} of {self._target}, {problem}")  # type: ignore[union-attr]

    def _check(self, subject: str, type: TensorType) -> None:
        if self._portable and (len(type.shape) > MAX_RANK or 0 in type.shape):
            limit = f"rank {MAX_RANK} at most" if type.rank > MAX_RANK else "no size of 0"
            raise LoweringError(subject, f"Core ML takes {limit}, got {type}", 'run it with device="cpu" or "numpy"')

    # Values

    def _operand(self, tensor: Tensor, named: bool = False) -> Binding:
        """What an op binds for a tensor; `named` asks for a name rather than a literal."""
        binding = self._operands.get(id(tensor))
        if binding is None:
            leaf = tensor.producer
            assert isinstance(leaf, Leaf)
            baked = leaf.kind is not LeafKind.CONSTANT
            value = self._baked_value(leaf, tensor) if baked else leaf.value
            self._check("constant", tensor.type)
            constant = self._constants.of(value, tensor.type)
            literal = is_small(tensor.type) and not baked
            binding = self._operands[id(tensor)] = constant if literal else self._const_op(constant, leaf)
        return binding if isinstance(binding, str) or not named else self._const_op(binding)

    def _const_op(self, value: Value, leaf: Leaf | None = None) -> str:
        """An operation that makes a constant. That of a named leaf is labelled `param/<name>` or `buffer/<name>`."""
        attributes = {"val": value}
        if leaf is None or leaf.name is None:
            name = self._names.numbered("const")
        else:
            name = self._names.given(leaf.name)
            attributes["name"] = self._constants.literal(f"{leaf.kind.value}/{leaf.name}", f32)
        self._operations.append(Operation("const", {}, [(name, value.type)], attributes))
        return name

    def _baked_value(self, leaf: Leaf, tensor: Tensor) -> np.ndarray:
        subject = f"{leaf.kind.value} {leaf.name!r}"
        value = dtypes.to_host(self._baked[leaf.name or ""], tensor.dtype, subject)
        if value.shape != tensor.shape:
            raise ShapeError(subject, f"expected a value of shape {tensor.shape}, got {value.shape}")
        return value


def _made_here(results: list[tuple[str, Tensor]]) -> dict[int, str]:
    """By tensor identity, the output feature that the tensor's own node can make under that name."""
    direct: dict[int, str] = {}
    for feature, tensor in results:
        if isinstance(tensor.producer, Node) and tensor.shape and tensor.dtype is not bool_:
            direct.setdefault(id(tensor), feature)
    return direct
