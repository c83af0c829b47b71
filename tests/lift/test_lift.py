"""What becomes of a program's parts: leaves and their names, functions, literals, and what cannot be lifted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.dtypes import bool_, f16, i32
from rlx_swift.errors import NameNotFoundError, PackageError, RlxError, UnsupportedError
from rlx_swift.lift import Lifting
from rlx_swift.lower.package import Opened, read_package
from rlx_swift.lower.program import Array, Function, ListOf, Literal
from tests.helpers import same
from tests.lift.programs import lifted, literal, model, operation

FIXTURES = Path(__file__).resolve().parents[2] / "Tests/MILFormatTests/Fixtures"
TEN = np.linspace(-1, 1, 10).astype(np.float32)


def f32(*shape):
    return Array("fp32", shape)


def const(name, value, label=None):
    constant = literal(value)
    attributes = {"val": constant} | ({"name": literal(label)} if label else {})
    return operation("const", {name: constant.type}, attributes)


def with_constant(value, label="w", type="add"):
    """y = x + w."""
    array = Array("fp16" if value.dtype == np.float16 else "fp32", value.shape)
    return model({"x": array}, [const("w", value, label), operation(type, {"y": array}, x="%x", y="%w")], ["y"])


# Leaves


def test_ten_floats_are_a_param_and_nine_are_a_constant():
    graph = lifted(with_constant(TEN))
    same(graph.params["w"].producer.value, TEN)
    graph = lifted(with_constant(TEN[:9]))
    assert not graph.params
    same(rlx.evaluate(graph, {"x": np.ones(9)})["y"], 1 + TEN[:9])


@pytest.mark.parametrize("value", [-np.inf, np.nan, -3e4])
def test_masks_are_constants(value):
    mask = np.where(np.arange(10) < 5, 0, value).astype(np.float32)
    graph = lifted(with_constant(mask))
    assert not graph.params and len(graph.constants) == 1
    same(rlx.evaluate(graph, {"x": np.ones(10)})["y"], 1 + mask)


def test_integers_and_bools_are_constants():
    array = Array("int32", (12,))
    total = operation("add", {"y": array}, x="%x", y=np.arange(12, dtype=np.int32))
    graph = lifted(model({"x": array}, [total], ["y"]))
    assert not graph.params
    assert rlx.evaluate(graph, {"x": np.arange(12)})["y"].tolist() == list(range(0, 24, 2))


def test_a_half_weight_is_an_f32_param_and_a_cast():
    graph = lifted(with_constant(TEN.astype(np.float16), "w_to_fp16"))
    assert graph.params["w"].dtype is rlx.f32
    assert [node.op.name for node in graph.nodes] == ["cast", "add"]
    assert graph.outputs["y"].dtype is f16


@pytest.mark.parametrize(("label", "name"), [
    ("fc_weight", "fc_weight"), ("fc_weight_to_fp16", "fc_weight"), ("fc_weight_to_fp16_palettized", "fc_weight"),
    ("fc_weight_cast_fp16", "fc_weight"), ("fc_weight_quantized_0", "fc_weight"), ("to_fp16", "to_fp16"),
    ("weight_0", "weight_0"), ("x", "x_1"), ("y", "y_1"), ("_to_fp16", "weight"),
])
def test_names_of_params(label, name):
    assert list(lifted(with_constant(TEN, label)).params) == [name]


def test_two_constants_of_one_name_are_two_params():
    program = model(
        {"x": f32(10)}, [
            const("a", TEN, "w_to_fp16"), const("b", 2 * TEN, "w"), operation("add", {"s": f32(10)}, x="%x", y="%a"),
            operation("mul", {"y": f32(10)}, x="%s", y="%b"),
        ], ["y"],
    )
    graph = lifted(program)
    assert list(graph.params) == ["w", "w_1"]
    same(rlx.evaluate(graph, {"x": np.ones(10)})["y"], (1 + TEN) * 2 * TEN)


def test_a_layers_weights_are_params_of_any_size():
    weight, bias = np.float32([[1, 2], [3, 4]]), np.float32([5, 6])
    program = model(
        {"x": f32(3, 2)}, [operation("linear", {"y": f32(3, 2)}, x="%x", weight=weight, bias=bias)], ["y"]
    )
    graph = lifted(program)
    assert list(graph.params) == ["y_weight", "y_bias"]
    x = np.float32([[1, 0], [0, 1], [1, 1]])
    same(rlx.evaluate(graph, {"x": x})["y"], x @ weight.T + bias)


def test_one_record_of_a_weight_file_is_one_param():
    graph = rlx.lift(FIXTURES / "linear32.mlpackage")
    assert len(graph.params) == 1


def test_what_nothing_reads_is_left_out():
    program = with_constant(TEN)
    body = program.functions["main"].bodies["CoreML7"]
    body.operations.insert(0, const("unused", TEN, "unused"))
    assert list(lifted(program).params) == ["w"]


def test_inputs_stay_though_nothing_reads_them():
    program = model({"x": f32(2), "z": Array("int32", (1,))}, [operation("relu", {"y": f32(2)}, x="%x")], ["y"])
    assert list(lifted(program).inputs) == ["x", "z"]
    assert lifted(program).inputs["z"].dtype is i32


def test_an_input_or_a_constant_can_be_an_output():
    program = model({"x": f32(2)}, [const("c", np.float32([3, 4]))], ["x", "c"])
    results = rlx.evaluate(lifted(program), {"x": [1, 2]})
    assert {n: v.tolist() for n, v in results.items()} == {"x": [1, 2], "c": [3, 4]}


# Functions and interfaces


def test_functions():
    path = FIXTURES / "functions.mlpackage"
    assert rlx.lift(path).name == "second"
    assert rlx.lift(path, "first").inputs["x"].shape == (2, 4)
    with pytest.raises(NameNotFoundError, match=r"'third'.*it has first, second"):
        rlx.lift(path, "third")


def test_a_classifier_gives_its_probabilities():
    graph = rlx.lift(FIXTURES / "classifier.mlpackage")
    assert list(graph.outputs) == ["classLabel_probs"]
    (weight,) = graph.params.values()
    scores = np.exp(np.float64([[1, 2, 3, 4]]) @ weight.producer.value)
    same(rlx.evaluate(graph, {"x": [[1, 2, 3, 4]]})["classLabel_probs"], scores / scores.sum(), rtol=1e-5)


def test_a_flexible_input_has_its_default_shape():
    graph = rlx.lift(FIXTURES / "flexible.mlpackage")
    assert graph.inputs["x"].shape == (2, 4)


def test_shapes_that_the_program_computes():
    """reshape(x, [shape(x)[0] * 2, -1])."""
    zero = np.zeros(1, np.int32)
    first = {"begin": zero, "end": zero, "squeeze_mask": np.array([True])}
    program = model(
        {"x": Array("fp32", (2, 6))}, [
            operation("shape", {"s": Array("int32", (2,))}, x="%x"),
            operation("slice_by_index", {"n": Array("int32", ())}, x="%s", **first),
            operation("mul", {"m": Array("int32", ())}, x="%n", y=2),
            operation("concat", {"t": Array("int32", (2,))}, values=["%m", -1], axis=0, interleave=np.bool_(False)),
            operation("reshape", {"y": Array("fp32", (None, None))}, x="%x", shape="%t"),
        ], ["y"],
    )
    graph = lifted(program)
    assert graph.outputs["y"].shape == (4, 3) and [node.op.name for node in graph.nodes] == ["reshape"]


# What cannot be lifted


def test_all_operations_in_the_way_are_named_at_once():
    rnn = operation("lstm", {"h": f32(2), "c": f32(2)}, x="%x")
    program = model(
        {"x": f32(2)}, [
            rnn, operation("relu", {"r": f32(2)}, x="%h"), operation("affine", {"a": f32(2)}, x="%x"),
            operation("cast", {"d": f32(2)}, x="%x", dtype="fp64"), operation("add", {"y": f32(2)}, x="%r", y="%a"),
        ], ["y"],
    )
    with pytest.raises(UnsupportedError) as caught:
        lifted(program)
    lines = str(caught.value).splitlines()
    assert lines[0] == "function 'main': 3 operations are in the way:"
    assert [line.split()[0] for line in lines[1:]] == ["lstm", "affine", "cast"]
    assert "'h', operation 0 of 'main'" in lines[1] and "fp64" in lines[3]


def test_a_parameter_that_is_computed_at_run_time():
    reshape = operation("reshape", {"y": f32(2, 2)}, x="%x", shape="%n")
    program = model({"x": f32(4), "n": Array("int32", (2,))}, [reshape], ["y"])
    with pytest.raises(UnsupportedError, match=r"reshape \('y', operation 0 of 'main'\): its parameter shape"):
        lifted(program)


BROKEN = {
    "a name that nothing has": ([operation("relu", {"y": f32(2)}, x="%z")], "nothing before it is called 'z'"),
    "a parameter left out": ([operation("relu", {"y": f32(2)})], "its parameter x is missing"),
    "two values for one": ([operation("relu", {"y": f32(2)}, x=["%x", "%x"])], "x has 2 values"),
    "another shape": ([operation("relu", {"y": f32(3)}, x="%x")], r"it gives shape \(2,\), fp32\[3\] is declared"),
    "shapes that do not fit": ([operation("add", {"y": f32(2)}, x="%x", y=np.ones(3, np.float32))], "broadcast"),
    "a text for a number": ([operation("softmax", {"y": f32(2)}, x="%x", axis="last")], "its parameter axis is"),
    "another number of results": ([operation("relu", {"y": f32(2), "z": f32(2)}, x="%x")], "1 results, 2 are declared"),
    "an axis outside": ([operation("softmax", {"y": f32(2)}, x="%x", axis=4)], "axis from -1 to 0"),
    "a const without a value": ([operation("const", {"y": f32(2)})], "it has no value"),
    "sizes that do not add up": (
        [operation("split", {"y": f32(1), "z": f32(2)}, x="%x", split_sizes=np.int32([1, 2]), axis=0)], "add up to 3",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_program(fault):
    operations, text = BROKEN[fault]
    with pytest.raises(PackageError, match=text) as caught:
        lifted(model({"x": f32(2)}, operations, ["y"]))
    assert "operation 0 of 'main'" in str(caught.value)


def test_other_broken_models():
    program = model({"x": f32(2)}, [operation("relu", {"y": f32(2)}, x="%x")], ["y"])
    program.functions["main"].bodies["CoreML7"].outputs[:] = ["z"]
    with pytest.raises(PackageError, match="output 'z'"):
        lifted(program)
    program = model({"x": f32(2)}, [], ["x"])
    program.functions["main"] = Function([("x", f32(2))], "CoreML7", {})
    with pytest.raises(PackageError, match="no body for its opset CoreML7"):
        lifted(program)
    program.functions["main"] = Function([("x", f32(2))], "CoreML99", {})
    with pytest.raises(UnsupportedError, match="its opset 'CoreML99'"):
        lifted(program)
    program = model({"x": f32(2)}, [], ["x"])
    program.functions["main"].inputs.append(("x", f32(2)))
    with pytest.raises(PackageError, match="input 'x': there are two"):
        lifted(program)
    program.functions["main"].inputs[:] = [("x", ListOf(f32(2), 1))]
    with pytest.raises(UnsupportedError, match="input 'x': a graph has tensors only"):
        lifted(program)
    program.functions["main"].inputs[:] = [("x", Array("fp64", (2,)))]
    with pytest.raises(UnsupportedError, match="input 'x': a graph has no values of fp64"):
        lifted(program)
    program.functions["main"].inputs[:] = [("x", Array("fp32", (None,)))]
    with pytest.raises(PackageError, match="input 'x': its shape"):
        lifted(program)


def test_a_weight_file_that_lacks_the_constant():
    package = read_package(FIXTURES / "linear32.mlpackage")
    for damaged in (memoryview(b""), memoryview(bytes(4096))):
        with pytest.raises(PackageError):
            Lifting(Opened(package.model, package.data, lambda name, data=damaged: data)).graph()


@pytest.mark.parametrize("path", ["README.md", "gone.mlpackage", "."])
def test_files_that_are_no_models(path):
    with pytest.raises(PackageError):
        rlx.lift(FIXTURES / path)


def test_models_of_another_kind():
    with pytest.raises(UnsupportedError, match="it is a neural network"):
        rlx.lift(FIXTURES / "neural.mlmodel")


def test_every_fixture_is_lifted_or_refused_with_our_own_errors():
    outcomes = {}
    for path in sorted(FIXTURES.glob("*.mlpackage")):
        try:
            outcomes[path.stem] = type(rlx.lift(path)).__name__
        except RlxError as error:
            outcomes[path.stem] = type(error).__name__
    assert outcomes.pop("control") == "UnsupportedError"
    assert set(outcomes.values()) == {"Graph"}


def test_bools_inside_a_program():
    program = model(
        {"x": f32(2)}, [
            operation("greater", {"g": Array("bool", (2,))}, x="%x", y=np.float32(0)),
            operation("logical_not", {"n": Array("bool", (2,))}, x="%g"),
            operation("cast", {"y": Array("int32", (2,))}, x="%n", dtype="int32"),
        ], ["y"],
    )
    graph = lifted(program)
    assert bool_ in [t.dtype for node in graph.nodes for t in node.outputs]
    assert rlx.evaluate(graph, {"x": [1, -1]})["y"].tolist() == [0, 1]


def test_sizes_that_no_machine_holds_allocate_nothing():
    endless = operation("range_1d", {"y": Array("int32", (None,))}, start=0, end=2**31 - 1, step=1)
    with pytest.raises(UnsupportedError, match=r"range_1d.*2147483647 elements"):
        lifted(model({"x": f32(2)}, [endless], ["y"]))
    given = {"nonzero_data": np.ones(1, np.float32), "mask": np.ones(1, np.uint8), "shape": np.uint32([2**20, 2**20])}
    attributes = {name: literal(value) for name, value in given.items()}
    sparse = operation("constexpr_sparse_to_dense", {"y": f32(2**20, 2**20)}, attributes)
    with pytest.raises(PackageError, match=r"constexpr_sparse_to_dense.*1099511627776"):
        lifted(model({"x": f32(2)}, [sparse], ["y"], "CoreML6"))
    large = operation("fill", {"y": f32(2**15, 2**15)}, shape=np.int32([2**15] * 2))
    graph = lifted(model({"x": f32(2)}, [large], ["y"]))
    assert graph.outputs["y"].shape == (2**15, 2**15)


def test_text_constants_of_several_elements_are_no_parameter():
    several = Literal(Array("string", (2,)), ("fp32", "fp16"))
    cast = operation("cast", {"y": f32(2)}, x="%x")
    cast.inputs["dtype"] = [several]
    with pytest.raises(PackageError, match="its parameter dtype is"):
        lifted(model({"x": f32(2)}, [cast], ["y"]))
