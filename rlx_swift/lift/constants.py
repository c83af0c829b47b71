"""The constants of a program as NumPy arrays, from literals and weight files. Knows neither operations nor graphs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..dtypes import DType, bool_, f16, f32, i32
from ..errors import PackageError, UnsupportedError
from ..lower.blobs import Data, Record, read_record
from ..lower.decode import BITS, bits
from ..lower.program import Array, Literal, Stored, Value, ValueType

WeightFile = Callable[[str], Data]

_NUMPY = {
    "bool": np.bool_, "fp16": np.float16, "fp32": np.float32, "fp64": np.float64, "int8": np.int8, "int16": np.int16,
    "int32": np.int32, "int64": np.int64, "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32,
    "uint64": np.uint64,
}
_INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
# What stands for values of a MIL dtype in a graph. Integers of every width are i32.
IR_DTYPES: dict[str, DType] = {"fp32": f32, "fp16": f16, "bool": bool_, **dict.fromkeys(_INTEGERS, i32)}


def ir_dtype(dtype: str, subject: str) -> DType:
    """The graph's dtype for a MIL dtype; raises UnsupportedError where it has none."""
    if dtype not in IR_DTYPES:
        raise UnsupportedError(subject, f"a graph has no values of {dtype}")
    return IR_DTYPES[dtype]


def array_type(type: ValueType, subject: str) -> Array:
    """`type` itself; raises UnsupportedError when it is no tensor."""
    if not isinstance(type, Array):
        raise UnsupportedError(subject, f"a graph has tensors only, got {type}")
    return type


def array_of(value: Value, weight_file: WeightFile, subject: str) -> np.ndarray:
    """A constant in its own dtype: integers narrower than a byte in 8 bits, bf16 as float32, strings as text.

    Raises PackageError for a weight file that does not hold it, UnsupportedError for what is no array of these.
    """
    type = array_type(value.type, subject)
    if None in type.shape:
        raise PackageError(subject, f"a constant of unknown shape, {type}")
    shape = tuple(size for size in type.shape if size is not None)
    if isinstance(value, Stored):
        return _elements(_stored(value, type, weight_file, subject), type.dtype, shape, subject)
    if type.dtype == "string":
        return np.asarray(value.data, dtype=np.str_).reshape(shape)
    return _elements(_bytes(value), type.dtype, shape, subject)


def _bytes(literal: Literal) -> bytes:
    assert isinstance(literal.data, bytes)  # as the reader makes it for every dtype but string
    return literal.data


def _stored(value: Stored, type: Array, weight_file: WeightFile, subject: str) -> memoryview:
    file = weight_file(value.file)
    record = read_record(file, value.offset)
    if record.dtype != type.dtype or record.size != _size(type):
        raise PackageError(subject, f"the weight file has {_described(record)} where {type} is expected")
    return file[record.start : record.start + record.size]


def _size(type: Array) -> int:
    return -(-math.prod(size or 0 for size in type.shape) * bits(type.dtype) // 8)


def _described(record: Record) -> str:
    return f"{record.size} bytes of {record.dtype}"


def _elements(data: bytes | memoryview, dtype: str, shape: tuple[int, ...], subject: str) -> np.ndarray:
    if dtype in _NUMPY:
        kind = np.dtype(_NUMPY[dtype])
        flat = np.frombuffer(data, kind.newbyteorder("<")).astype(kind, copy=False)
    elif dtype == "bf16":  # the upper half of a float32
        flat = (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
    elif dtype.startswith(("int", "uint")):
        flat = unpacked(np.frombuffer(data, np.uint8), BITS[dtype], math.prod(shape))
        flat = _signed(flat, BITS[dtype]) if dtype.startswith("int") else flat
    else:
        raise UnsupportedError(subject, f"constants of {dtype} are not read")
    return flat.reshape(shape)


def unpacked(data: np.ndarray, width: int, count: int) -> np.ndarray:
    """The first `count` numbers of `width` bits each, least significant bit first, as uint8."""
    digits = np.unpackbits(data, bitorder="little", count=count * width).reshape(count, width)
    return np.packbits(digits, axis=1, bitorder="little").reshape(count)


def _signed(values: np.ndarray, width: int) -> np.ndarray:
    """Two's complement of `width` bits."""
    limit = 1 << (width - 1)
    return ((values.astype(np.int16) ^ limit) - limit).astype(np.int8)
