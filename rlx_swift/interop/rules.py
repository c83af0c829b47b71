"""The structural rules of Core ML packages that coremltools' loader lets pass. Knows plain models only."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..errors import PackageError, ValidationError
from ..lower.blobs import read_record
from ..lower.decode import bits
from ..lower.names import RESERVED
from ..lower.opset import Signature, first_opset, signatures
from ..lower.package import Opened
from ..lower.program import (
    OPSETS,
    Array,
    Block,
    Feature,
    Function,
    Interface,
    Model,
    Operation,
    StateOf,
    Stored,
    ValueType,
)

MAX_RANK = 5
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_@]*")  # coremltools writes an @ into some names
_FEATURE_SINCE = {"fp32": 6, "int32": 6, "fp16": 7, "int8": 10}
_NO_INPUTS_SINCE = 9

Fault = tuple[str, str]  # the place, and what is wrong there
Check = Callable[[Opened], Iterator[Fault]]


@dataclass(frozen=True)
class Rule:
    text: str
    check: Check


RULES: list[Rule] = []


def check(package: Opened) -> None:
    """Raises ValidationError for the first rule that the package breaks, with the place and the rule."""
    for rule in RULES:
        for place, problem in rule.check(package):
            raise ValidationError(place, problem, f"the rule: {rule.text}")


def _rule(text: str) -> Callable[[Check], Check]:
    def declare(function: Check) -> Check:
        RULES.append(Rule(text, function))
        return function

    return declare


# What the rules walk over


def _functions(model: Model) -> Iterator[tuple[str, Function, Block]]:
    """The functions that have a body for their opset."""
    for name, function in model.functions.items():
        if function.opset in function.bodies:
            yield name, function, function.bodies[function.opset]


def _operations(model: Model) -> Iterator[tuple[str, Function, Operation]]:
    """Every operation, those of nested blocks too, with its place."""
    for name, function, body in _functions(model):
        pending = [(f"{name}: ", body)]
        while pending:
            prefix, block = pending.pop()
            for i, op in enumerate(block.operations):
                place = f"{prefix}operation {i}, {op.type} {op.outputs[0][0] if op.outputs else ''}".rstrip()
                yield place, function, op
                pending += [(f"{place}, block {j}: ", inner) for j, inner in enumerate(op.blocks)]


def _signature(function: Function, op: Operation) -> Signature | None:
    opset = function.opset.removeprefix("CoreML")
    return signatures(int(opset)).get(op.type) if function.opset in OPSETS else None


# The rules, from the whole to the parts


@_rule("the opset of each function is the one of the specification version")
def opset_fits_version(package: Opened) -> Iterator[Fault]:
    for name, function in package.model.functions.items():
        version = OPSETS.get(function.opset)
        if version != package.model.specification:
            yield f"function {name}", f"opset {function.opset!r} in a model of version {package.model.specification}"


@_rule("each function has a body for its opset and is described, and the default function is one of them")
def functions_are_described(package: Opened) -> Iterator[Fault]:
    model = package.model
    for name, function in model.functions.items():
        if function.opset not in function.bodies:
            yield f"function {name}", f"there is no body for opset {function.opset!r}"
    if set(model.functions) != set(model.interfaces):
        yield "description", f"it describes {sorted(model.interfaces)}, the program has {sorted(model.functions)}"
    if model.default_function not in model.functions:
        yield "description", f"the default function {model.default_function!r} does not exist"


@_rule(f"a function has an output, and an input too before version {_NO_INPUTS_SINCE}")
def functions_have_features(package: Opened) -> Iterator[Fault]:
    for name, function, body in _functions(package.model):
        if not body.outputs:
            yield f"function {name}", "it has no output"
        if not function.inputs and package.model.specification < _NO_INPUTS_SINCE:
            yield f"function {name}", "it has no input"


@_rule("each operation exists in the opset")
def operations_exist(package: Opened) -> Iterator[Fault]:
    for place, function, op in _operations(package.model):
        if function.opset in OPSETS and _signature(function, op) is None:
            since = first_opset(op.type)
            yield place, f"{op.type} came with CoreML{since}" if since else f"there is no operation {op.type!r}"


@_rule("parameters are known to the opset, and those for which Core ML has no default are given")
def parameters_fit(package: Opened) -> Iterator[Fault]:
    for place, function, op in _operations(package.model):
        signature = _signature(function, op)
        if signature is None:
            continue
        given = {*op.inputs, *op.attributes} - ({"name"} - signature.known)
        for name in sorted(given - signature.known):
            yield place, f"it has no parameter {name!r} in {function.opset}"
        for name in sorted(signature.required - given):
            yield place, f"parameter {name!r} is missing"
        for name, bindings in op.inputs.items():
            if not bindings:
                yield place, f"parameter {name!r} is bound to nothing"


@_rule("names are identifiers, and none is a word of MIL's own")
def names_are_identifiers(package: Opened) -> Iterator[Fault]:
    def faults(place: str, names: list[str]) -> Iterator[Fault]:
        for name in names:
            if not _IDENTIFIER.fullmatch(name) or name in RESERVED:
                yield place, f"{name!r} is no name for a value"

    for name, function, _ in _functions(package.model):
        yield from faults(f"function {name}", [value for value, _ in function.inputs])
    for place, _, op in _operations(package.model):
        yield from faults(place, [value for value, _ in op.outputs])


@_rule("a name is given to one value, and used after that value was made")
def names_are_unique_and_defined(package: Opened) -> Iterator[Fault]:
    def scan(prefix: str, block: Block, visible: set[str]) -> Iterator[Fault]:
        known = set(visible)

        def define(place: str, name: str) -> Iterator[Fault]:
            if name in known:
                yield place, f"the name {name!r} is taken already"
            known.add(name)

        for name, _ in block.inputs:
            yield from define(f"{prefix}block inputs", name)
        for i, op in enumerate(block.operations):
            place = f"{prefix}operation {i}, {op.type}"
            for parameter, bindings in op.inputs.items():
                for binding in bindings:
                    if isinstance(binding, str) and binding not in known:
                        yield place, f"parameter {parameter!r} is {binding!r}, which was not made before"
            for j, inner in enumerate(op.blocks):
                yield from scan(f"{place}, block {j}: ", inner, known)
            for name, _ in op.outputs:
                yield from define(place, name)
        for name in block.outputs:
            if name not in known:
                yield f"{prefix}outputs", f"{name!r} was not made"

    for name, function, body in _functions(package.model):
        names = [value for value, _ in function.inputs]
        if len(set(names)) != len(names):
            yield f"function {name}", "two inputs have one name"
        yield from scan(f"{name}: ", body, set(names))


@_rule("a function returns no input unchanged, and no value twice")
def outputs_are_made_once(package: Opened) -> Iterator[Fault]:
    for name, function, body in _functions(package.model):
        inputs, seen = {value for value, _ in function.inputs}, set()
        for output in body.outputs:
            if output in inputs:
                yield f"function {name}", f"output {output!r} is an input"
            if output in seen:
                yield f"function {name}", f"output {output!r} is returned twice"
            seen.add(output)


@_rule(f"arrays at the boundary are of fp32, int32, fp16 (version 7) or int8 (version 10), of rank {MAX_RANK} at most, "
       "inputs of rank 1 at least, with sizes of 1 at least")
def features_are_possible(package: Opened) -> Iterator[Fault]:
    for name, interface in package.model.interfaces.items():
        for least, features in ((1, interface.inputs), (0, interface.outputs), (0, interface.states)):
            for feature in features:
                if feature.kind in ("array", "state"):
                    yield from _feature_faults(f"{name}: feature {feature.name}", feature, least, package.model)


def _feature_faults(place: str, feature: Feature, least: int, model: Model) -> Iterator[Fault]:
    if _FEATURE_SINCE.get(feature.dtype, math.inf) > model.specification:
        yield place, f"its dtype is {feature.dtype} in a model of version {model.specification}"
    if not least <= len(feature.shape) <= MAX_RANK:
        yield place, f"its shape is {feature.shape}"
    if any(size < 1 for size in feature.shape):
        yield place, f"its shape is {feature.shape}"


@_rule("the description has the names, dtypes and shapes of the function")
def description_fits_function(package: Opened) -> Iterator[Fault]:
    for name, function, body in _functions(package.model):
        interface = package.model.interfaces.get(name)
        if interface is None:
            continue
        types = dict(function.inputs)
        types.update(value for op in body.operations for value in op.outputs)
        yield from _side_faults(name, "inputs", _inputs(interface), [value for value, _ in function.inputs], types)
        yield from _side_faults(name, "outputs", interface.outputs, body.outputs, types)


def _inputs(interface: Interface) -> list[Feature]:
    return [*interface.inputs, *interface.states]


def _side_faults(
    function: str, side: str, features: list[Feature], values: list[str], types: dict[str, ValueType]
) -> Iterator[Fault]:
    described = [feature.name for feature in features]
    if sorted(described) != sorted(values):
        yield f"{function}: {side}", f"described are {described}, the function has {values}"
    for feature in features:
        type = types.get(feature.name)
        if type is not None and not _same(feature, type):
            place = f"{function}: feature {feature.name}"
            yield place, f"described as {feature.dtype}{feature.shape}, the value is {type}"


def _same(feature: Feature, type: ValueType) -> bool:
    if feature.kind not in ("array", "state"):  # images and classes have types of their own in the program
        return True
    array = type.array if isinstance(type, StateOf) else type
    kind = "state" if isinstance(type, StateOf) else "array"
    if not isinstance(array, Array) or (array.dtype, kind) != (feature.dtype, feature.kind):
        return False
    # A value of rank 0 may be described as one element.
    return None in array.shape or feature.shape in (array.shape, array.shape or (1,))


@_rule(f"values have rank {MAX_RANK} at most and sizes of 1 at least")
def values_are_possible(package: Opened) -> Iterator[Fault]:
    def faults(place: str, values: list[tuple[str, ValueType]]) -> Iterator[Fault]:
        for value, type in values:
            if isinstance(type, Array) and (len(type.shape) > MAX_RANK or 0 in type.shape):
                yield place, f"{value!r} is {type}"

    for name, function, _ in _functions(package.model):
        yield from faults(f"function {name}", function.inputs)
    for place, _, op in _operations(package.model):
        if op.type != "const" and not op.type.startswith("constexpr_"):  # parameters may be empty
            yield from faults(place, op.outputs)


@_rule("a stored constant is a record of its weight file with the dtype and the size of its type")
def stored_constants_exist(package: Opened) -> Iterator[Fault]:
    for place, _, op in _operations(package.model):
        bound = [binding for bindings in op.inputs.values() for binding in bindings]
        for value in (*bound, *op.attributes.values()):
            if isinstance(value, Stored):
                problem = _stored_problem(value, package)
                if problem:
                    yield place, problem


def _stored_problem(value: Stored, package: Opened) -> str | None:
    type = value.type
    if not isinstance(type, Array) or None in type.shape:
        return f"a stored constant of type {type}"
    try:
        record = read_record(package.weight_file(value.file), value.offset)
    except PackageError as error:
        return str(error)
    if record.dtype != type.dtype:
        return f"the record at {value.offset} holds {record.dtype}, the type is {type}"
    expected = math.prod(size for size in type.shape if size is not None) * bits(type.dtype)
    if record.size * 8 - record.padding != expected:
        return f"the record at {value.offset} has {record.size} bytes, the type is {type}"
    return None
