"""Compressed weights: what they are decompressed to, by the formulas of MIL's documentation."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import UnsupportedError
from rlx_swift.lower.program import Array, Literal
from tests.helpers import same
from tests.lift.programs import lifted, literal, model, operation

RNG = np.random.default_rng(3)
PLACES = np.arange(12).reshape(3, 4)


def packed(values: np.ndarray, dtype: str, width: int) -> Literal:
    """Numbers of a few bits each, least significant first."""
    digits = (values.reshape(-1, 1).astype(np.int64) >> np.arange(width)) & 1
    data = np.packbits(digits.astype(np.uint8).reshape(-1), bitorder="little")
    return Literal(Array(dtype, values.shape), data.tobytes())


def weight(made, shape, opset):
    """The value of the weight that operations make, and its graph: y = x + weight."""
    last = made[-1].outputs[-1][0]
    total = operation("add", {"y": Array("fp32", shape)}, x="%x", y=f"%{last}")
    graph = lifted(model({"x": Array("fp32", shape)}, [*made, total], ["y"], opset))
    assert rlx.evaluate(graph, {"x": np.zeros(shape)})["y"].dtype == np.float32
    return graph, rlx.evaluate(graph, {"x": np.zeros(shape)})["y"]


def test_affine():
    q, zero, scale = RNG.integers(0, 255, (3, 4), np.uint8), np.uint8([7, 0, 255]), np.float32([0.5, 2, 0.25])
    attributes = {
        "quantized_data": literal(q), "zero_point": literal(zero), "scale": literal(scale), "axis": literal(-2)
    }
    made = operation("constexpr_affine_dequantize", {"w_quantized": Array("fp32", (3, 4))}, attributes)
    graph, value = weight([made], (3, 4), "CoreML6")
    same(value, (q.astype(int) - zero.astype(int)[:, None]) * scale[:, None])
    assert list(graph.params) == ["w"]


@pytest.mark.parametrize("width", [1, 2, 4, 6, 8])
def test_table(width):
    table, indices = RNG.normal(size=2**width).astype(np.float32), RNG.integers(0, 2**width, (3, 4))
    data = np.frombuffer(packed(indices, "uint8", width).data, np.uint8)
    attributes = {"indices": literal(data), "lut": literal(table), "shape": literal(np.uint32([3, 4]))}
    made = operation("constexpr_lut_to_dense", {"w": Array("fp32", (3, 4))}, attributes)
    same(weight([made], (3, 4), "CoreML6")[1], table[indices])


def test_sparse():
    mask = PLACES % 3 == 1
    values = RNG.normal(size=int(mask.sum())).astype(np.float32)
    expected = np.zeros((3, 4), np.float32)
    expected[mask] = values
    bits = np.packbits(mask.reshape(-1), bitorder="little")
    attributes = {"nonzero_data": literal(values), "mask": literal(bits), "shape": literal(np.uint32([3, 4]))}
    old = operation("constexpr_sparse_to_dense", {"w": Array("fp32", (3, 4))}, attributes)
    same(weight([old], (3, 4), "CoreML6")[1], expected)
    new = operation("constexpr_sparse_to_dense", {"w": Array("fp32", (3, 4))}, nonzero_data=values)
    new.inputs["mask"] = [packed(mask, "uint1", 1)]
    same(weight([new], (3, 4), "CoreML8")[1], expected)


def test_cast():
    half = RNG.normal(size=(3, 4)).astype(np.float16)
    made = operation(
        "constexpr_cast", {"w": Array("fp32", (3, 4))}, {"source_val": literal(half), "output_dtype": literal("fp32")}
    )
    same(weight([made], (3, 4), "CoreML6")[1], half)


@pytest.mark.parametrize("offset", [False, True])
def test_blocks_with_scales(offset):
    q = RNG.integers(-8, 8, (3, 4))
    scale, zero = RNG.normal(size=(3, 2)).astype(np.float32), RNG.integers(-8, 8, (3, 2))
    made = operation("constexpr_blockwise_shift_scale", {"w": Array("fp32", (3, 4))}, scale=scale)
    made.inputs["data"] = [packed(q, "int4", 4)]
    if offset:
        made.inputs["offset"] = [packed(zero, "int4", 4)]
    expected = [[scale[i, j // 2] * (q[i, j] - offset * zero[i, j // 2]) for j in range(4)] for i in range(3)]
    same(weight([made], (3, 4), "CoreML8")[1], np.float32(expected))


def test_blocks_with_tables():
    indices, table = RNG.integers(0, 4, (3, 4)), RNG.normal(size=(3, 2, 4, 1)).astype(np.float32)
    made = operation("constexpr_lut_to_dense", {"w": Array("fp32", (3, 4))}, lut=table)
    made.inputs["indices"] = [packed(indices, "uint2", 2)]
    expected = [[table[i, j // 2, indices[i, j], 0] for j in range(4)] for i in range(3)]
    same(weight([made], (3, 4), "CoreML8")[1], np.float32(expected))


@pytest.mark.parametrize("axis", [0, 1])
def test_tables_of_vectors(axis):
    shape = (4, 3) if axis == 0 else (2, 6)
    indices, table = RNG.integers(0, 4, (2, 3)), RNG.normal(size=(1, 1, 4, 2)).astype(np.float32)
    made = operation("constexpr_lut_to_dense", {"w": Array("fp32", shape)}, lut=table, vector_axis=axis)
    made.inputs["indices"] = [packed(indices, "uint2", 2)]
    expected = np.empty(shape, np.float32)
    for i, j, v in np.ndindex(2, 3, 2):
        expected[(2 * i + v, j) if axis == 0 else (i, 2 * j + v)] = table[0, 0, indices[i, j], v]
    same(weight([made], shape, "CoreML8")[1], expected)


def test_sparse_tables_and_scales():
    mask = PLACES % 4 < 2
    count = int(mask.sum())
    indices, table = RNG.integers(0, 4, count), RNG.normal(size=(1, 1, 4, 1)).astype(np.float32)
    results = {"m": Array("uint1", (3, 4)), "v": Array("fp32", (count,))}
    looked_up = operation("constexpr_lut_to_sparse", results, lut=table)
    looked_up.inputs["indices_mask"] = [packed(mask, "uint1", 1)]
    looked_up.inputs["indices_nonzero_data"] = [packed(indices, "uint2", 2)]
    dense = operation("constexpr_sparse_to_dense", {"w": Array("fp32", (3, 4))}, nonzero_data="%v", mask="%m")
    expected = np.zeros((3, 4), np.float32)
    expected[mask] = table[0, 0, indices, 0]
    same(weight([looked_up, dense], (3, 4), "CoreML8")[1], expected)

    scale, q = RNG.normal(size=(3, 1)).astype(np.float32), RNG.integers(-8, 8, count)
    scaled = operation("constexpr_sparse_blockwise_shift_scale", results, scale=scale)
    scaled.inputs |= {"data_mask": [packed(mask, "uint1", 1)], "nonzero_data": [packed(q, "int4", 4)]}
    expected[mask] = q
    same(weight([scaled, dense], (3, 4), "CoreML8")[1], expected * scale)


def test_what_is_not_decompressed_is_said():
    mask = np.ones((3, 4), bool)
    made = operation(
        "constexpr_lut_to_sparse", {"m": Array("uint1", (3, 4)), "v": Array("fp32", (12,))},
        lut=np.ones((1, 1, 4, 2), np.float32),
    )
    made.inputs["indices_mask"] = [packed(mask, "uint1", 1)]
    made.inputs["indices_nonzero_data"] = [packed(PLACES % 4, "uint2", 2)]
    with pytest.raises(UnsupportedError, match=r"constexpr_lut_to_sparse.*tables of vectors"):
        weight([made], (3, 4), "CoreML8")
