"""A function of a Core ML model as a graph: the walk over its operations. Knows no rule."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..dtypes import DType, f32
from ..errors import ConfigError, DTypeError, FeedError, NameNotFoundError, PackageError, RlxError, UnsupportedError
from ..interp import evaluate
from ..ir.graph import Graph, LeafKind
from ..ir.rewrite import drop_unused_leaves
from ..ir.tensor import Tensor
from ..ir.types import Shape, as_shape
from ..lower.package import Opened, read_package
from ..lower.program import OPSETS, Array, Binding, Block, Function, Literal, Operation, StateOf
from ..ops import cast
from .call import Call, Operand
from .constants import IR_DTYPES, array_type, ir_dtype
from .table import Results, Rule, rules
from .weights import Constant, Weights, kind_of

_FOLDED = 1 << 16  # elements up to which results of constants are computed at once


def lift(
    path: str | os.PathLike[str], function: str | None = None, shapes: Mapping[str, Sequence[int]] | None = None
) -> Graph:
    """An ML Program as a graph with its inputs and outputs, to be run, changed and trained.

    Weights become params with values, under the names that the file gives them without endings such as
    `_to_fp16`: constants of ten and more floats, none as large as those of masks, and those of any size that a
    layer or product takes as its weight, bias, gamma or beta. An f16 weight is an f32 param and a cast. The
    averages of batch_norm become buffers, and so do states, which the graph assigns. What a session exported keeps
    its params and buffers, whatever their size. Of a classifier the graph has the probabilities only.

    Args:
        path: an .mlpackage, or a bare model file.
        function: one function of a model that has several; the default one if None.
        shapes: for inputs that may have several; by default those that the model gives as default.

    Raises:
        PackageError: the file is no readable ML Program.
        NameNotFoundError: there is no such function.
        UnsupportedError: operations that a graph does not have, all of them.
        FeedError: `shapes` does not fit the inputs.
    """
    return Lifting(read_package(path), function, shapes).graph()


class _Label:
    """Stands for the label that a classifier gives, which is no tensor."""


class _Missing:
    """Stands for the results of an operation that could not be lifted."""


_Bound = Tensor | Constant | StateOf | _Label | _Missing


class Lifting:
    """One lifting of a function; arguments and errors as for `lift`.

    Attributes:
        faults: what a graph does not have, one error an operation; complete once `graph` was called.
        tensors: what the program's names stand for in the graph, those of constants left out; as `faults`.
    """

    def __init__(
        self, package: Opened, function: str | None = None, shapes: Mapping[str, Sequence[int]] | None = None
    ) -> None:
        model = package.model
        self._name = model.default_function if function is None else function
        if self._name not in model.functions:
            known = ", ".join(sorted(model.functions)) or "none"
            raise NameNotFoundError(f"function {self._name!r}", "the model has no such function", f"it has {known}")
        self._function = model.functions[self._name]
        self._body, self._opset = _body(self._function, self._name)
        interface = model.interfaces.get(self._name)
        self._features = {feature.name: feature for feature in interface.inputs} if interface else {}
        self._shapes = {name: as_shape(shape, f"shape of {name!r}") for name, shape in (shapes or {}).items()}
        self._graph = Graph(self._name)
        self._values: dict[str, _Bound] = {}
        self._weights = Weights(self._graph, package.weight_file, frozenset(self._body.outputs))
        self._states: dict[str, Tensor] = {}
        self.faults: list[UnsupportedError] = []

    @property
    def tensors(self) -> dict[str, Tensor]:
        return {name: value for name, value in self._values.items() if isinstance(value, Tensor)}

    def graph(self) -> Graph:
        self._inputs()
        for index, operation in enumerate(self._body.operations):
            self._operation(operation, _place(index, operation, self._name))
        if len(self.faults) == 1:
            raise self.faults[0]
        if self.faults:
            listed = "".join(f"\n  {fault}" for fault in self.faults)
            raise UnsupportedError(f"function {self._name!r}", f"{len(self.faults)} operations are in the way:{listed}")
        self._outputs()
        drop_unused_leaves(self._graph, keep=self._graph.inputs)
        return self._graph

    # Boundary

    def _inputs(self) -> None:
        names = [name for name, _ in self._function.inputs]
        for name in self._shapes:
            if name not in names:
                raise FeedError(f"shape of {name!r}", "there is no input of that name", f"it has {', '.join(names)}")
        for name, type in self._function.inputs:
            subject = f"input {name!r}"
            if name in self._values:
                raise PackageError(subject, "there are two of that name")
            array = array_type(type.array if isinstance(type, StateOf) else type, subject)
            shape, dtype = self._input_shape(name, array), ir_dtype(array.dtype, subject)
            if isinstance(type, StateOf):
                self._values[name] = type
                self._states[name] = self._graph.buffer(name, shape)
            else:
                self._values[name] = self._graph.input(name, shape, dtype)

    def _input_shape(self, name: str, declared: Array) -> Shape:
        feature = self._features.get(name)
        default = feature.shape if feature and feature.flexible else declared.shape
        shape = self._shapes.get(name, default)
        if not _fits(shape, declared.shape):
            if name in self._shapes:
                raise FeedError(f"shape of {name!r}", f"expected one that fits {declared}, got {shape}")
            raise PackageError(f"input {name!r}", f"its shape {shape} does not fit {declared}")
        return tuple([size for size in shape if size is not None])

    def _outputs(self) -> None:
        outputs: dict[str, Tensor] = {}
        for name in self._body.outputs:
            value = self._value(name, f"output {name!r}")
            if isinstance(value, Constant):
                value = self._weights.tensor(value)
            if isinstance(value, Tensor):
                outputs[name] = value
        if not outputs:
            raise UnsupportedError(f"function {self._name!r}", "none of its outputs is a tensor")
        self._graph.set_outputs(outputs)
        for name, value in self._states.items():
            if value is not self._graph.buffers[name]:
                self._graph.assign(name, cast(value, f32))

    # Operations

    def _operation(self, operation: Operation, place: str) -> None:
        """Gives the operation's results their names; what stands in its way goes to `faults`."""
        results: Sequence[_Bound] = [_Missing()] * len(operation.outputs)
        try:
            results = self._results(operation, place)
        except _Skipped:
            pass
        except UnsupportedError as error:
            self.faults.append(error)
        except (DTypeError, ConfigError) as error:
            self.faults.append(UnsupportedError(place, str(error)))
        except PackageError:
            raise
        except RlxError as error:
            raise PackageError(place, str(error)) from error
        if len(results) != len(operation.outputs):
            raise PackageError(place, f"it gives {len(results)} results, {len(operation.outputs)} are declared")
        for (name, _), result in zip(operation.outputs, results, strict=True):
            self._values[name] = result

    def _results(self, operation: Operation, place: str) -> Sequence[_Bound]:
        special = _SPECIAL.get(operation.type)
        if special is not None:
            return special(self, operation, place)
        found = rules().get(operation.type)
        if found is None:
            raise UnsupportedError(place, "a graph has no such operation")
        outputs = [array_type(type, place) for _, type in operation.outputs]
        operands = self._operands(operation, place)
        call = Call(self._graph, operation.type, self._opset, operands, outputs, place, self._weights.tensor)
        results = _folded(call, found, operands)
        if results is None:
            results = _as_list(found(call))
        names = [name for name, _ in operation.outputs]
        return [_declared(call, *each) for each in zip(results, names, outputs, strict=False)]

    def _operands(self, operation: Operation, place: str) -> dict[str, list[Operand]]:
        bound: dict[str, list[Binding]] = {name: [value] for name, value in operation.attributes.items()}
        bound.update(operation.inputs)
        if "name" not in operation.inputs:
            bound.pop("name", None)  # a label
        return {
            parameter: [self._operand(binding, f"{_output(operation)}_{parameter}", place) for binding in bindings]
            for parameter, bindings in bound.items()
        }

    def _operand(self, binding: Binding, label: str, place: str) -> Operand:
        value = self._value(binding, place) if isinstance(binding, str) else self._weights.read(binding, label, place)
        if isinstance(value, _Missing):
            raise _Skipped(place, "")
        if not isinstance(value, (Tensor, Constant)):
            raise UnsupportedError(place, "one of its operands is no tensor")
        return value

    def _value(self, name: str, place: str) -> _Bound:
        if name not in self._values:
            raise PackageError(place, f"nothing before it is called {name!r}")
        return self._values[name]

    # Operations that are not about tensors alone

    def _const(self, operation: Operation, place: str) -> Sequence[_Bound]:
        value = operation.attributes.get("val")
        if value is None:
            raise PackageError(place, "it has no value")
        return [self._weights.read(value, _label(operation), place)]

    def _read_state(self, operation: Operation, place: str) -> Sequence[_Bound]:
        name, state = self._state(operation, place)
        return [cast(self._states[name], ir_dtype(state.array.dtype, place))]

    def _write_state(self, operation: Operation, place: str) -> Sequence[_Bound]:
        name, _ = self._state(operation, place)
        new = self._only(operation, "data", place)
        if new.shape != self._states[name].shape:
            raise PackageError(place, f"a state of shape {self._states[name].shape} gets {new.type}")
        self._states[name] = new
        return []

    def _state(self, operation: Operation, place: str) -> tuple[str, StateOf]:
        for name in operation.inputs.get("input", []):
            value = self._value(name, place) if isinstance(name, str) else None
            if isinstance(name, str) and isinstance(value, StateOf):
                return name, value
        raise PackageError(place, "its input is no state")

    def _classify(self, operation: Operation, place: str) -> Sequence[_Bound]:
        return [_Label(), self._only(operation, "probabilities", place)]

    def _only(self, operation: Operation, parameter: str, place: str) -> Tensor:
        operands = [self._operand(binding, parameter, place) for binding in operation.inputs.get(parameter, [])]
        if len(operands) != 1:
            raise PackageError(place, f"its parameter {parameter} has {len(operands)} values, expected one")
        (operand,) = operands
        return self._weights.tensor(operand) if isinstance(operand, Constant) else operand


class _Skipped(RlxError):
    """An operand was not lifted, which `faults` says already."""


_SPECIAL: Mapping[str, Callable[[Lifting, Operation, str], Sequence[_Bound]]] = {
    "const": Lifting._const, "read_state": Lifting._read_state, "write_state": Lifting._write_state,
    "classify": Lifting._classify,
}
# coremltools declares for select the shape of a and b, whatever that of cond.
_WRONGLY_DECLARED = ("select",)


def _body(function: Function, name: str) -> tuple[Block, int]:
    if function.opset not in OPSETS:
        raise UnsupportedError(f"function {name!r}", f"its opset {function.opset!r} is not one of {', '.join(OPSETS)}")
    if function.opset not in function.bodies:
        raise PackageError(f"function {name!r}", f"it has no body for its opset {function.opset}")
    return function.bodies[function.opset], int(function.opset.removeprefix("CoreML"))


def _place(index: int, operation: Operation, function: str) -> str:
    return f"{operation.type} ({_output(operation)!r}, operation {index} of {function!r})"


def _output(operation: Operation) -> str:
    return operation.outputs[0][0] if operation.outputs else ""


def _label(operation: Operation) -> str:
    """What the file calls a constant: the operation's own name, else that of its value."""
    name = operation.attributes.get("name")
    if isinstance(name, Literal) and len(name.data) == 1 and isinstance(name.data[0], str) and name.data[0]:
        return name.data[0]
    return _output(operation)


def _fits(shape: Sequence[int | None], declared: Sequence[int | None]) -> bool:
    """Whether a shape is known and is one of those that are declared."""
    pairs = zip(shape, declared, strict=False)
    return len(shape) == len(declared) and all(n is not None and d in (None, n) for n, d in pairs)


def _as_list(results: Results) -> list[Tensor | np.ndarray]:
    return [results] if isinstance(results, (Tensor, np.ndarray)) else list(results)


def _folded(
    call: Call, found: Rule, operands: Mapping[str, Sequence[Operand]]
) -> list[Tensor | np.ndarray] | None:
    """The results as arrays, where no operand is a weight or computed at run time and they are not too large."""
    values = [value for several in operands.values() for value in several]
    if not all(isinstance(value, Constant) and not value.is_weight for value in values):
        return None
    scratch = Graph("folded")

    def tensor(constant: Constant, dtype: DType | None = None, role: LeafKind = LeafKind.CONSTANT) -> Tensor:
        own = ir_dtype(constant.dtype, call.place)
        made = scratch.constant(constant.array, own)
        return cast(made, dtype) if dtype is not None and own.is_float else made

    results = _as_list(found(Call(scratch, call.operation, call.opset, operands, call.outputs, call.place, tensor)))
    computed = {str(i): result for i, result in enumerate(results) if isinstance(result, Tensor)}
    if sum(result.size for result in computed.values()) > _FOLDED:
        return None
    if computed:
        scratch.set_outputs(computed)
        arrays = evaluate(scratch, {})
        results = [arrays.get(str(i), result) for i, result in enumerate(results)]
    return results


def _declared(call: Call, result: Tensor | np.ndarray, label: str, declared: Array) -> Operand:
    """A result with the type that the file declares for it."""
    if not _fits(result.shape, declared.shape) and call.operation not in _WRONGLY_DECLARED:
        raise PackageError(call.place, f"it gives shape {result.shape}, {declared} is declared")
    if isinstance(result, Tensor):
        return cast(result, ir_dtype(declared.dtype, call.place))
    if declared.dtype in IR_DTYPES:
        result = result.astype(IR_DTYPES[declared.dtype].numpy, copy=False)
    kind = kind_of(result) if call.operation.startswith("constexpr_") else LeafKind.CONSTANT
    return Constant(result, declared.dtype, label, kind)
