"""Each structural rule accepts a sound program and rejects one that breaks it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import ValidationError
from rlx_swift.interop import rules
from rlx_swift.lower.mil import lower
from rlx_swift.lower.package import Bytes, opened, to_bytes
from rlx_swift.lower.program import Array, Block, Feature, Literal, Model, Operation, StateOf, Stored

Change = Callable[[Model], None]


def sound() -> Model:
    """out = softmax(x) @ table, total = sum of it; `table` is stored."""
    g = rlx.Graph()
    y = rlx.ops.softmax(g.input("x", (2, 3)), 1) @ g.constant(np.ones((3, 4), np.float32))
    g.set_outputs({"out": y, "total": y.sum()})
    return lower(g).model


def body(model: Model) -> Block:
    return model.functions["main"].bodies["CoreML7"]


def find(model: Model, type: str) -> Operation:
    return next(op for op in body(model).operations if op.type == type)


def rejects(
    change: Change, rule: Callable[..., object], place: str, problem: str, weights: bytes | None = None
) -> None:
    model = sound()
    change(model)
    contents = to_bytes(model)
    if weights is not None:
        contents = Bytes(contents.model, weights)
    faults = list(rule(opened(contents)))
    assert len(faults) >= 1
    found = "; ".join(": ".join(fault) for fault in faults)
    assert place in found
    assert problem in found


CASES: list[tuple[Callable[..., object], Change, str, str]] = []


def case(rule: Callable[..., object], place: str, problem: str) -> Callable[[Change], Change]:
    def declare(change: Change) -> Change:
        CASES.append((rule, change, place, problem))
        return change

    return declare


@case(rules.opset_fits_version, "function main", "opset 'CoreML7' in a model of version 7")
def older_version(m: Model) -> None:
    m.specification = 7


@case(rules.opset_fits_version, "function main", "'CoreML4'")
def unknown_opset(m: Model) -> None:
    m.functions["main"].opset = "CoreML4"


@case(rules.functions_are_described, "function main", "no body for opset 'CoreML7'")
def no_body(m: Model) -> None:
    m.functions["main"].bodies = {"CoreML6": body(m)}


@case(rules.functions_are_described, "description", "the program has ['f', 'main']")
def not_described(m: Model) -> None:
    m.functions["f"] = m.functions["main"]


@case(rules.functions_are_described, "description", "default function 'gone'")
def no_default(m: Model) -> None:
    m.interfaces["f"], m.functions["f"] = m.interfaces["main"], m.functions["main"]
    m.default_function = "gone"


@case(rules.functions_have_features, "function main", "no output")
def no_outputs(m: Model) -> None:
    body(m).outputs = []


@case(rules.functions_have_features, "function main", "no input")
def no_inputs(m: Model) -> None:
    m.functions["main"].inputs = []


@case(rules.operations_exist, "operation 0, soft_max", "no operation 'soft_max'")
def unknown_operation(m: Model) -> None:
    find(m, "softmax").type = "soft_max"


@case(rules.operations_exist, "slice_update", "came with CoreML8")
def later_operation(m: Model) -> None:
    find(m, "softmax").type = "slice_update"


@case(rules.parameters_fit, "softmax", "parameter 'axis' is missing")
def missing_parameter(m: Model) -> None:
    del find(m, "softmax").inputs["axis"]


@case(rules.parameters_fit, "matmul", "no parameter 'alpha' in CoreML7")
def unknown_parameter(m: Model) -> None:
    find(m, "matmul").inputs["alpha"] = ["x"]


@case(rules.parameters_fit, "softmax", "parameter 'x' is bound to nothing")
def unbound_parameter(m: Model) -> None:
    find(m, "softmax").inputs["x"] = []


@case(rules.parameters_fit, "const", "parameter 'val' is missing")
def const_without_value(m: Model) -> None:
    find(m, "const").attributes = {}


@case(rules.names_are_identifiers, "softmax", "'soft max'")
def blank_in_name(m: Model) -> None:
    find(m, "softmax").outputs = [("soft max", Array("fp32", (2, 3)))]


@case(rules.names_are_identifiers, "function main", "'state'")
def reserved_name(m: Model) -> None:
    m.functions["main"].inputs = [("state", Array("fp32", (2, 3)))]


@case(rules.names_are_unique_and_defined, "operation 0", "'const_1', which was not made before")
def used_before_made(m: Model) -> None:
    operations = body(m).operations
    operations.insert(0, operations.pop(next(i for i, op in enumerate(operations) if op.type == "matmul")))


@case(rules.names_are_unique_and_defined, "softmax", "'x' is taken")
def name_taken(m: Model) -> None:
    find(m, "softmax").outputs = [("x", Array("fp32", (2, 3)))]


@case(rules.names_are_unique_and_defined, "outputs", "'gone' was not made")
def output_not_made(m: Model) -> None:
    body(m).outputs.append("gone")


@case(rules.names_are_unique_and_defined, "function main", "two inputs")
def two_inputs_of_one_name(m: Model) -> None:
    m.functions["main"].inputs *= 2


@case(rules.names_are_unique_and_defined, "block 0: operation 0, exp", "'inner', which was not made before")
def undefined_in_nested_block(m: Model) -> None:
    inner = Block([], [Operation("exp", {"x": ["inner"]}, [("e", Array("fp32", (2, 3)))])], ["e"])
    body(m).operations.append(Operation("cond", {"pred": ["x"]}, [("c", Array("fp32", (2, 3)))], blocks=[inner, inner]))


@case(rules.outputs_are_made_once, "function main", "'x' is an input")
def input_returned(m: Model) -> None:
    body(m).outputs.append("x")


@case(rules.outputs_are_made_once, "function main", "'out' is returned twice")
def returned_twice(m: Model) -> None:
    body(m).outputs.append("out")


def features(*, inputs: list[Feature] | None = None, outputs: list[Feature] | None = None) -> Change:
    def change(m: Model) -> None:
        interface = m.interfaces["main"]
        interface.inputs, interface.outputs = inputs or interface.inputs, outputs or interface.outputs

    return change


for change, problem in (
    (features(inputs=[Feature("x", "array", "fp64", (2, 3))]), "dtype is fp64"),
    (features(inputs=[Feature("x", "array", "int8", (2, 3))]), "dtype is int8 in a model of version 8"),
    (features(inputs=[Feature("x", "array", "fp32", ())]), "shape is ()"),
    (features(inputs=[Feature("x", "array", "fp32", (1,) * 6)]), "shape is (1, 1, 1, 1, 1, 1)"),
    (features(outputs=[Feature("out", "array", "fp32", (2, 0))]), "shape is (2, 0)"),
):
    case(rules.features_are_possible, "main: feature", problem)(change)

OUT, TOTAL = Feature("out", "array", "fp32", (2, 4)), Feature("total", "array", "fp32", (1,))
for change, problem in (
    (features(inputs=[Feature("x2", "array", "fp32", (2, 3))]), "described are ['x2'], the function has ['x']"),
    (features(outputs=[OUT]), "described are ['out'], the function has ['out', 'total']"),
    (features(inputs=[Feature("x", "array", "fp16", (2, 3))]), "described as fp16(2, 3), the value is fp32[2, 3]"),
    (features(outputs=[Feature("out", "array", "fp32", (4, 2)), TOTAL]), "fp32(4, 2), the value is fp32[2, 4]"),
    (features(outputs=[OUT, Feature("total", "array", "fp32", (1, 1))]), "described as fp32(1, 1)"),
    (features(inputs=[Feature("x", "state", "fp32", (2, 3))]), "the value is fp32[2, 3]"),
):
    case(rules.description_fits_function, "main: ", problem)(change)


@case(rules.description_fits_function, "feature x", "described as fp32(2, 3)")
def state_described_as_array(m: Model) -> None:
    m.functions["main"].inputs = [("x", StateOf(Array("fp32", (2, 3))))]


@case(rules.values_are_possible, "softmax", "fp32[1, 1, 1, 1, 2, 3]")
def rank_6(m: Model) -> None:
    find(m, "softmax").outputs = [("softmax_1", Array("fp32", (1, 1, 1, 1, 2, 3)))]


@case(rules.values_are_possible, "function main", "fp32[0, 3]")
def no_elements(m: Model) -> None:
    m.functions["main"].inputs = [("x", Array("fp32", (0, 3)))]


def stored(value: Stored) -> Change:
    def change(m: Model) -> None:
        find(m, "const").attributes["val"] = value

    return change


for value, problem in (
    (Stored(Array("fp32", (3, 4)), 128), "weight file, offset 128"),
    (Stored(Array("fp32", (3, 4)), 65), "weight file, offset 65"),
    (Stored(Array("fp32", (3, 5)), 64), "has 48 bytes, the type is fp32[3, 5]"),
    (Stored(Array("int32", (3, 4)), 64), "holds fp32, the type is int32[3, 4]"),
    (Stored(Array("fp32", (3, None)), 64), "of type fp32[3, ?]"),
    (Stored(Array("fp32", (3, 4)), 64, "@model_path/weights/gone.bin"), "no such weight file"),
):
    case(rules.stored_constants_exist, "const", problem)(stored(value))


def bound_directly(m: Model) -> None:
    find(m, "matmul").inputs["y"] = [Stored(Array("fp32", (3, 4)), 640)]


case(rules.stored_constants_exist, "matmul", "offset 640")(bound_directly)


@pytest.mark.parametrize(
    ("rule", "change", "place", "problem"),
    [pytest.param(*c, id=f"{c[0].__name__}-{c[3]}") for c in CASES],
)
def test_a_broken_program_is_rejected(rule: Callable[..., object], change: Change, place: str, problem: str) -> None:
    rejects(change, rule, place, problem)


def test_each_rule_has_a_program_that_breaks_it() -> None:
    assert {rule.check for rule in rules.RULES} == {rule for rule, *_ in CASES}


def test_a_cut_weight_file_is_rejected() -> None:
    weights = to_bytes(sound()).weights[:-1]
    rejects(lambda m: None, rules.stored_constants_exist, "const", "not inside", weights)


def test_a_sound_program_breaks_no_rule() -> None:
    package = opened(to_bytes(sound()))
    rules.check(package)
    assert [list(rule.check(package)) for rule in rules.RULES] == [[]] * len(rules.RULES)


def test_the_error_has_the_place_the_problem_and_the_rule() -> None:
    model = sound()
    missing_parameter(model)
    with pytest.raises(ValidationError) as caught:
        rules.check(opened(to_bytes(model)))
    assert caught.value.subject == "main: operation 0, softmax softmax_0"
    assert caught.value.problem == "parameter 'axis' is missing"
    assert caught.value.hint.startswith("the rule: parameters are known")


def test_half_features_need_version_7() -> None:
    model = sound()
    model.specification = 6
    model.interfaces["main"].inputs = [Feature("x", "array", "fp16", (2, 3))]
    faults = list(rules.features_are_possible(opened(to_bytes(model))))
    assert faults == [("main: feature x", "its dtype is fp16 in a model of version 6")]


def test_empty_parameters_are_no_values() -> None:
    model = sound()
    empty = Array("int32", (0,))
    body(model).operations.insert(0, Operation("const", {}, [("c", empty)], {"val": Literal(empty, b"")}))
    assert list(rules.values_are_possible(opened(to_bytes(model)))) == []
