"""Rules of compressed weights, which are decompressed when they are read, and of quantised values."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from .. import ops
from ..dtypes import f32
from ..ir.tensor import Tensor
from ..ir.types import Shape
from .call import Call
from .constants import unpacked
from .table import rule

_INPUTS_FROM = 8  # the opset from which tables have blocks, and masks and indices shapes of their own


@rule("constexpr_cast")
def _cast(call: Call) -> np.ndarray:
    return call.array("source_val").astype(np.float32)


@rule("constexpr_affine_dequantize")
def _affine(call: Call) -> np.ndarray:
    data = call.array("quantized_data").astype(np.float32)
    along = [1] * data.ndim
    along[call.integer("axis")] = -1
    zero, scale = (call.array(name).astype(np.float32) for name in ("zero_point", "scale"))
    return np.asarray((data - zero.reshape(along)) * scale.reshape(along))


@rule("constexpr_blockwise_shift_scale")
def _blockwise(call: Call) -> np.ndarray:
    data = call.array("data").astype(np.float32)
    if call.has("offset"):
        data = data - _each(call.array("offset"), data.shape)
    return np.asarray(data * _each(call.array("scale"), data.shape))


@rule("constexpr_lut_to_dense")
def _lut(call: Call) -> np.ndarray:
    table, indices = call.array("lut").astype(np.float32), call.array("indices")
    if call.opset < _INPUTS_FROM:
        return np.asarray(table[_packed(call, indices, (table.size - 1).bit_length())])
    vectors = _looked_up(table, indices, np.indices(indices.shape), indices.shape)
    axis = (call.integer("vector_axis") if call.has("vector_axis") else -1) % indices.ndim
    shape = tuple([n * table.shape[-1] if i == axis else n for i, n in enumerate(indices.shape)])
    return np.moveaxis(vectors, -1, axis + 1).reshape(shape)


@rule("constexpr_sparse_to_dense")
def _sparse(call: Call) -> np.ndarray:
    values, mask = call.array("nonzero_data").astype(np.float32), call.array("mask")
    if call.opset < _INPUTS_FROM:
        mask = _packed(call, mask, 1)
    dense = np.zeros(mask.shape, np.float32)
    dense[mask != 0] = values
    return dense


@rule("constexpr_lut_to_sparse")
def _lut_to_sparse(call: Call) -> list[np.ndarray]:
    table, mask = call.array("lut").astype(np.float32), call.array("indices_mask")
    if table.shape[-1] != 1:
        raise call.unsupported("tables of vectors for sparse weights are not lifted")
    vectors = _looked_up(table, call.array("indices_nonzero_data"), np.nonzero(mask), mask.shape)
    return [mask, vectors[..., 0]]


@rule("constexpr_sparse_blockwise_shift_scale")
def _sparse_blockwise(call: Call) -> list[np.ndarray]:
    mask, values = call.array("data_mask"), call.array("nonzero_data").astype(np.float32)
    if call.has("offset"):
        values = values - _each(call.array("offset"), mask.shape)[mask != 0]
    return [mask, np.asarray(values * _each(call.array("scale"), mask.shape)[mask != 0])]


def _packed(call: Call, data: np.ndarray, width: int) -> np.ndarray:
    """Numbers of a few bits each, in the shape that the operation gives."""
    shape = call.integers("shape")
    count = math.prod(shape)
    if count * width > data.size * 8:
        raise call.malformed(f"{data.size} bytes are not {count} numbers of {width} bits")
    return unpacked(data, width, count).reshape(shape)


def _each(blocks: np.ndarray, shape: Shape) -> np.ndarray:
    """One number a block, as one an element; the blocks divide each axis evenly."""
    for axis, size in enumerate(shape):
        blocks = np.repeat(blocks, size // blocks.shape[axis], axis)
    return blocks.astype(np.float32)


def _looked_up(table: np.ndarray, indices: np.ndarray, places: Iterable[np.ndarray], shape: Shape) -> np.ndarray:
    """The vectors of a table [*blocks, entries, length] at the indices of elements at `places` in `shape`."""
    axes = zip(places, table.shape[:-2], shape, strict=True)
    blocks = tuple([at * count // size for at, count, size in axes])
    return np.asarray(table[blocks + (indices,)])


# Values of a run


@rule("quantize")
def _quantize(call: Call) -> Tensor:
    x = call.tensor("input", f32)
    limits = np.iinfo(call.text("output_dtype"))
    zero = _along(call, "zero_point", x) if call.has("zero_point") else 0.0
    whole = ops.round(ops.div(x, _along(call, "scale", x)))
    return ops.clip(ops.add(whole, zero), float(limits.min), float(limits.max))


@rule("dequantize")
def _dequantize(call: Call) -> Tensor:
    x = ops.cast(call.tensor("input"), f32)
    if call.has("zero_point"):
        x = ops.sub(x, _along(call, "zero_point", x))
    return ops.mul(x, _along(call, "scale", x))


def _along(call: Call, name: str, x: Tensor) -> np.ndarray:
    """A number, or one for each place along the operation's axis."""
    values = call.array(name).astype(np.float32)
    if not values.ndim:
        return values
    shape = [1] * x.ndim
    shape[call.integer("axis")] = -1
    return values.reshape(shape)
