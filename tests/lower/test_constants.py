"""Constants and parameters of lowered programs: dtype, place, bits."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import dtypes
from rlx_swift.errors import DTypeError, NameNotFoundError, ShapeError
from rlx_swift.lower.blobs import read_record
from rlx_swift.lower.mil import lower
from rlx_swift.lower.package import opened, to_bytes
from rlx_swift.lower.program import Array, Literal, Stored
from tests.programs import judged, makers, operations


def bound(value: object, dtype: dtypes.DType = dtypes.f32, shape: tuple[int, ...] = (), **options: object):
    """The program of x + value, and what `y` is bound to."""
    g = rlx.Graph()
    g.set_outputs({"z": g.input("x", shape or np.shape(value), dtype) + g.constant(value, dtype)})
    lowered = judged(g, **options)
    return lowered, makers(lowered)["z"].inputs["y"][0]


@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f16, dtypes.i32])
def test_scalars_are_literals_in_the_dtype_of_the_operation(dtype: dtypes.DType) -> None:
    lowered, literal = bound(3, dtype, (4,))
    assert len(operations(lowered)) == 1
    assert isinstance(literal, Literal)
    assert np.frombuffer(literal.data, dtype.numpy) == 3


@pytest.mark.parametrize(("count", "kind"), [(9, Literal), (10, str)])
def test_ten_elements_and_more_are_constants_of_their_own(count: int, kind: type) -> None:
    lowered, binding = bound(np.arange(count, dtype=np.float32))
    assert isinstance(binding, kind)
    assert len(lowered.model.weights) == (kind is str)


def test_arrays_of_f16_are_stored_however_small() -> None:
    lowered, name = bound(np.array([1.0, 2.0], np.float16), dtypes.f16)
    value = makers(lowered)[name].attributes["val"]
    assert isinstance(value, Stored)
    one, literal = bound(np.array([1.0], np.float16), dtypes.f16)
    assert isinstance(literal, Literal)
    assert one.model.weights == []


@pytest.mark.parametrize(("target", "kind"), [("CoreML7", Literal), ("CoreML8", Stored)])
def test_many_integers_are_stored_from_opset_8_on(target: str, kind: type) -> None:
    lowered, name = bound(np.arange(-6, 6, dtype=np.int32), dtypes.i32, target=target)
    value = makers(lowered)[name].attributes["val"]
    assert isinstance(value, kind)
    if isinstance(value, Literal):
        np.testing.assert_array_equal(np.frombuffer(value.data, np.int32), np.arange(-6, 6))


def test_many_bools_are_in_the_program() -> None:
    g, mask = rlx.Graph(), np.arange(12) % 2 == 0
    x = g.input("x", (12,))
    g.set_outputs({"y": rlx.ops.where(g.constant(mask), x, 0.0)})
    lowered = judged(g)
    value = makers(lowered)[makers(lowered)["y"].inputs["cond"][0]].attributes["val"]
    assert value == Literal(Array("bool", (12,)), mask.tobytes())


def test_stored_constants_have_their_values_where_the_program_says() -> None:
    g, rng = rlx.Graph(), np.random.default_rng(0)
    values = [rng.normal(size=shape).astype(dtype) for shape, dtype in (
        ((3, 5), np.float32), ((17,), np.float16), ((2, 2, 16), np.float32), ((11,), np.float16)
    )]
    total = g.input("x", ()) * 1.0
    outputs = {}
    for i, value in enumerate(values):
        constant = g.constant(value)
        outputs[f"y{i}"] = constant + rlx.ops.cast(total, constant.dtype)
    outputs["again"] = rlx.ops.exp(g.constants[0])
    g.set_outputs(outputs)
    lowered = judged(g)
    package = opened(to_bytes(lowered.model))
    stored = [op.attributes["val"] for op in operations(lowered) if op.type == "const"]
    assert len(stored) == 4
    for value, where in zip(values, stored, strict=True):
        data = package.weight_file(where.file)
        record = read_record(data, where.offset)
        got = np.frombuffer(data[record.start : record.start + record.size], value.dtype)
        np.testing.assert_array_equal(got, value.reshape(-1))


def test_a_constant_that_is_used_twice_is_made_once() -> None:
    g = rlx.Graph()
    table = g.constant(np.arange(10, dtype=np.int32))
    x = g.input("x", (10,), dtypes.i32)
    g.set_outputs({"y": x + table, "z": x * table})
    assert [op.type for op in operations(judged(g))] == ["const", "add", "mul"]


@pytest.mark.parametrize("value", [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 0.1])
@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f16])
def test_the_bits_of_parameters_are_kept(value: float, dtype: dtypes.DType) -> None:
    g = rlx.Graph()
    x = g.input("x", (2,), dtype)
    g.set_outputs({"y": rlx.ops.pad(x, ((1, 0),), value), "other": rlx.ops.pad(x, ((1, 0),), 0.0)})
    literal = makers(judged(g))["y"].inputs["constant_val"][0]
    with np.errstate(under="ignore"):
        assert literal.data == dtype.numpy.type(value).tobytes()


def test_baked_params_and_buffers_are_constants() -> None:
    g = rlx.Graph()
    x, w, b, m = g.input("x", (2, 3)), g.param("w", (3, 4)), g.param("b", (4,)), g.buffer("m", ())
    g.set_outputs({"y": x @ w + b + m})
    values = {"w": np.arange(12.0).reshape(3, 4), "m": 2.0}
    lowered = judged(g, baked=values)
    assert (lowered.params, lowered.buffers) == ({"b": "b"}, {})
    np.testing.assert_array_equal(lowered.model.weights[0], values["w"])
    assert lowered.model.weights[0].dtype == np.float32


def test_a_baked_value_that_is_returned_is_made_by_an_operation() -> None:
    g = rlx.Graph()
    w = g.param("w", (12,))
    g.set_outputs({"y": g.input("x", (12,)) + w, "w": w})
    assert makers(judged(g, baked={"w": np.zeros(12)}))["w"].type == "identity"


def test_wrong_baked_values_are_errors() -> None:
    g = rlx.Graph()
    g.set_outputs({"y": g.input("x", (2,)) + g.param("w", (2,))})
    with pytest.raises(NameNotFoundError, match="'x'"):
        lower(g, baked={"x": np.zeros(2)})
    with pytest.raises(ShapeError, match=r"param 'w': expected a value of shape \(2,\), got \(3,\)"):
        lower(g, baked={"w": np.zeros(3)})
    with pytest.raises(DTypeError, match="param 'w'"):
        lower(g, baked={"w": np.zeros(2, complex)})
