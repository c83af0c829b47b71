"""How values enter and leave a lowered program."""

from __future__ import annotations

import rlx_swift as rlx
from rlx_swift import dtypes
from rlx_swift.lower.mil import lower
from rlx_swift.lower.program import Array, Operation


def operations(lowered) -> list[Operation]:
    (function,) = lowered.model.functions.values()
    return function.bodies[function.opset].operations


def features(lowered, side: str) -> dict[str, Array]:
    (interface,) = lowered.model.interfaces.values()
    return {f.name: Array(f.dtype, f.shape) for f in getattr(interface, side)}


def makers(lowered) -> dict[str, Operation]:
    return {name: op for op in operations(lowered) for name, _ in op.outputs}


def test_a_scalar_input_travels_as_one_element():
    g = rlx.Graph()
    lr = g.input("lr", ())
    g.set_outputs({"y": g.input("x", (3,)) * lr})
    lowered = lower(g)
    assert features(lowered, "inputs")["lr"] == Array("fp32", (1,))
    squeeze = operations(lowered)[0]
    assert (squeeze.type, squeeze.inputs["x"], squeeze.outputs[0][1]) == ("squeeze", ["lr"], Array("fp32", ()))
    assert lowered.types["lr"].shape == ()


def test_a_scalar_output_is_returned_as_one_element():
    g = rlx.Graph()
    g.set_outputs({"loss": g.input("x", (3,)).sum()})
    lowered = lower(g)
    assert features(lowered, "outputs") == {"loss": Array("fp32", (1,))}
    assert makers(lowered)["loss"].type == "expand_dims"
    assert lowered.types["loss"].shape == ()


def test_bools_travel_as_i32_both_ways():
    g = rlx.Graph()
    x, mask, flag = g.input("x", (3,)), g.input("mask", (3,), dtypes.bool_), g.input("flag", (), dtypes.bool_)
    g.set_outputs({"y": rlx.ops.where(mask, x, 0.0), "positive": x > 0.0, "flag_out": flag})
    lowered = lower(g)
    assert features(lowered, "inputs")["mask"] == Array("int32", (3,))
    assert features(lowered, "inputs")["flag"] == Array("int32", (1,))
    assert features(lowered, "outputs")["positive"] == Array("int32", (3,))
    assert features(lowered, "outputs")["flag_out"] == Array("int32", (1,))
    assert lowered.types["mask"].dtype is dtypes.bool_
    assert lowered.types["positive"].dtype is dtypes.bool_
