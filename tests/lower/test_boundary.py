"""How values enter and leave a lowered program."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import dtypes
from rlx_swift.errors import ConfigError, LoweringError
from rlx_swift.ir.types import TensorType
from rlx_swift.lower.mil import boundary_type, lower
from rlx_swift.lower.names import IDENTIFIER, RESERVED
from rlx_swift.lower.program import Array
from tests.programs import features, judged, makers, operations


def test_a_scalar_input_travels_as_one_element() -> None:
    g = rlx.Graph()
    lr = g.input("lr", ())
    g.set_outputs({"y": g.input("x", (3,)) * lr})
    lowered = judged(g)
    assert features(lowered, "inputs")["lr"] == Array("fp32", (1,))
    squeeze = operations(lowered)[0]
    assert (squeeze.type, squeeze.inputs["x"], squeeze.outputs[0][1]) == ("squeeze", ["lr"], Array("fp32", ()))
    assert lowered.types["lr"].shape == ()


def test_a_scalar_output_is_returned_as_one_element() -> None:
    g = rlx.Graph()
    g.set_outputs({"loss": g.input("x", (3,)).sum()})
    lowered = judged(g)
    assert features(lowered, "outputs") == {"loss": Array("fp32", (1,))}
    assert makers(lowered)["loss"].type == "expand_dims"
    assert lowered.types["loss"].shape == ()


def test_bools_travel_as_i32_both_ways() -> None:
    g = rlx.Graph()
    x, mask, flag = g.input("x", (3,)), g.input("mask", (3,), dtypes.bool_), g.input("flag", (), dtypes.bool_)
    g.set_outputs({"y": rlx.ops.where(mask, x, 0.0), "positive": x > 0.0, "flag_out": flag})
    lowered = judged(g)
    assert features(lowered, "inputs") == {
        "x": Array("fp32", (3,)), "mask": Array("int32", (3,)), "flag": Array("int32", (1,))
    }
    assert features(lowered, "outputs")["positive"] == Array("int32", (3,))
    assert features(lowered, "outputs")["flag_out"] == Array("int32", (1,))
    assert lowered.types["mask"] == TensorType((3,), dtypes.bool_)
    assert lowered.types["flag_out"] == TensorType((), dtypes.bool_)


def test_the_types_of_the_boundary() -> None:
    assert boundary_type(TensorType((), dtypes.bool_)) == TensorType((1,), dtypes.i32)
    assert boundary_type(TensorType((2, 0), dtypes.f16)) == TensorType((2, 0), dtypes.f16)


def test_what_passes_through_is_an_identity_under_a_name_of_its_own() -> None:
    g = rlx.Graph()
    x, w = g.input("x", (2,)), g.param("w", (2,))
    y = x + w
    g.set_outputs({"x": x, "y": y, "again": y, "w": w, "scalar": y.sum(), "scalar_again": y.sum()})
    lowered = judged(g)
    made = makers(lowered)
    assert lowered.inputs == {"x": "x"}
    assert lowered.outputs["x"] == "x_1"
    assert (made["x_1"].type, made["x_1"].inputs["x"]) == ("identity", ["x"])
    assert (made["again"].type, made["again"].inputs["x"]) == ("identity", ["y"])
    assert made[lowered.outputs["w"]].inputs["x"] == ["w"]
    assert len(set(features(lowered, "outputs"))) == 6


def test_constants_are_returned_through_an_operation() -> None:
    g = rlx.Graph()
    x = g.input("x", (2,))
    g.set_outputs({
        "y": x + 1.0, "one": g.constant(1.0), "table": g.constant(np.arange(12, dtype=np.float32)),
        "flags": g.constant(np.array([True, False])), "half": g.constant(np.ones(3, np.float16)),
    })
    made = makers(judged(g))
    assert {name: made[name].type for name in ("one", "table", "flags", "half")} == {
        "one": "expand_dims", "table": "identity", "flags": "cast", "half": "identity"
    }


def test_unused_leaves_have_no_feature_and_are_told() -> None:
    g = rlx.Graph()
    x, y, w, b = g.input("x", (2,)), g.input("y", (2,)), g.param("w", (2,)), g.buffer("b", (2,))
    rlx.ops.exp(y)  # a dead node reads y
    g.assign(b, x * 2.0)
    g.set_outputs({"z": x + 1.0})
    lowered = judged(g)
    assert set(features(lowered, "inputs")) == {"x"}
    assert lowered.unused == ("y", "w", "b")
    assert lowered.assigns == {"b": "b_next"}
    assert w is g.params["w"]


def test_assigned_buffers_are_further_outputs() -> None:
    g = rlx.Graph()
    x, mean, kept = g.input("x", (2,)), g.buffer("mean", (2,)), g.buffer("kept", (2,))
    g.assign(mean, mean * 0.9 + x * 0.1)
    g.assign(kept, kept)
    g.set_outputs({"y": x - mean + kept, "mean_next": x})
    lowered = judged(g)
    assert lowered.buffers == {"mean": "mean", "kept": "kept"}
    assert lowered.assigns == {"mean": "mean_next_1", "kept": "kept_next"}
    assert makers(lowered)["kept_next"].type == "identity"
    assert list(features(lowered, "outputs")) == ["y", "mean_next", "mean_next_1", "kept_next"]


ODD = [
    "l0.ln1g", "Ünïcode", "0", "a b", "state", "tensor", "true", "fp16", "add_0", "matmul_1",
    "x/y", "x_y", "x.y", "-",
]


def test_odd_names_become_identifiers_without_clashes() -> None:
    g = rlx.Graph()
    tensors = [g.param(name, (2, 2)) for name in ODD]
    total = g.input("_", (2, 2))
    for tensor in tensors:
        total = total @ tensor + 1.0
    g.set_outputs({**{f"{name} ": t + 1.0 for name, t in zip(ODD, tensors, strict=True)}, "list": total})
    lowered = judged(g)
    names = [*lowered.params.values(), *lowered.inputs.values(), *lowered.outputs.values()]
    assert len(set(names)) == len(names)
    for name in [*names, *makers(lowered)]:
        assert IDENTIFIER.fullmatch(name), name
        assert name not in RESERVED
    assert lowered.params["add_0"] == "add_0"
    assert list(lowered.params) == ODD


def test_a_graph_without_outputs_is_an_error() -> None:
    g = rlx.Graph()
    g.input("x", (2,))
    with pytest.raises(LoweringError, match="no outputs"):
        lower(g)


def test_a_program_needs_an_input_before_opset_8() -> None:
    g = rlx.Graph()
    g.set_outputs({"y": rlx.ops.full(g, (2, 6), 1.5)})
    with pytest.raises(LoweringError, match=r"no input reaches its outputs.*CoreML8"):
        lower(g)
    assert judged(g, target="CoreML8").inputs == {}
    assert lower(g, portable=False).inputs == {}


@pytest.mark.parametrize(("target", "version"), [("CoreML7", 8), ("CoreML8", 9), ("CoreML9", 10)])
def test_the_target_gives_opset_and_version(target: str, version: int) -> None:
    g = rlx.Graph()
    g.set_outputs({"y": g.input("x", (2,)) + 1.0})
    lowered = judged(g, target=target)
    assert lowered.model.specification == version
    assert lowered.model.functions["main"].opset == target


@pytest.mark.parametrize("target", ["CoreML6", "iOS17", ""])
def test_other_targets_are_errors(target: str) -> None:
    g = rlx.Graph()
    g.set_outputs({"y": g.input("x", (2,)) + 1.0})
    with pytest.raises(ConfigError, match="CoreML7, CoreML8, CoreML9"):
        lower(g, target=target)


def test_a_function_of_another_name_needs_opset_8() -> None:
    g = rlx.Graph()
    g.set_outputs({"y": g.input("x", (2,)) + 1.0})
    with pytest.raises(ConfigError, match="CoreML8"):
        lower(g, name="train")
    assert judged(g, name="train", target="CoreML8").model.default_function == "train"


@pytest.mark.parametrize("shape", [(1, 1, 1, 1, 1, 2), (2, 0)])
def test_rank_6_and_empty_values_are_for_our_own_runtime_only(shape: tuple[int, ...]) -> None:
    inside, outside = rlx.Graph(), rlx.Graph()
    flat = inside.input("x", (int(np.prod(shape)) or 1,))
    hidden = rlx.ops.reshape(flat, shape) if np.prod(shape) else flat[:0]
    inside.set_outputs({"y": hidden.sum()})
    outside.set_outputs({"y": outside.input("x", shape) + 1.0})
    for g in (inside, outside):
        with pytest.raises(LoweringError, match="Core ML takes"):
            lower(g)
        assert lower(g, portable=False).outputs == {"y": "y"}
