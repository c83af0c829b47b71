"""The weight file of a package: where records lie, writing and reading them. Knows nothing of programs."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..errors import PackageError

ALIGNMENT = 64
HEADER = 64  # of the file, and of each record
VERSION = 2
_SENTINEL = 0xDEADBEEF
_FIELDS = struct.calcsize("<IIQQQ")
_CODES = {
    "fp16": 1, "fp32": 2, "uint8": 3, "int8": 4, "bf16": 5, "int16": 6, "uint16": 7, "int4": 8, "uint1": 9, "uint2": 10,
    "uint4": 11, "uint3": 12, "uint6": 13, "int32": 14, "uint32": 15, "fp8e4m3fn": 16, "fp8e5m2": 17,
}
_NAMES = {code: name for name, code in _CODES.items()}
_OF_NUMPY = {"float16": "fp16", "float32": "fp32", "int32": "int32", "int8": "int8", "uint8": "uint8"}


class Data(Protocol):
    """A weight file: its length, and slices of it; a slice raises PackageError where it cannot be read."""

    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> memoryview: ...


class Record(NamedTuple):
    """One constant: where its record and its data begin, and its size in bytes and unused bits at the end."""

    offset: int
    dtype: str
    start: int
    size: int
    padding: int


def aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def next_offset(offset: int, size: int) -> int:
    """Where the record lies that follows a record at `offset` with `size` bytes of data."""
    return aligned(offset + HEADER + size)


def chunks(arrays: Sequence[np.ndarray]) -> Iterator[bytes | memoryview]:
    """The file's bytes in pieces, without a copy of the arrays."""
    yield struct.pack("<II56x", len(arrays), VERSION)
    offset = HEADER
    for i, array in enumerate(arrays):
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        yield struct.pack("<IIQQQ32x", _SENTINEL, _CODES[_OF_NUMPY[array.dtype.name]], array.nbytes, offset + HEADER, 0)
        yield little.reshape(-1).view(np.uint8).data
        following = next_offset(offset, array.nbytes)
        if i + 1 < len(arrays):
            yield bytes(following - offset - HEADER - array.nbytes)
        offset = following


def read_record(data: Data, offset: int) -> Record:
    """The record at `offset` of a weight file, inside the file; raises PackageError otherwise."""
    subject = f"weight file, offset {offset}"
    if offset % ALIGNMENT or not HEADER <= offset <= len(data) - HEADER:
        raise PackageError(subject, f"expected a multiple of {ALIGNMENT} inside the {len(data)} bytes of the file")
    sentinel, code, size, start, padding = struct.unpack("<IIQQQ", data[offset : offset + _FIELDS])
    if sentinel != _SENTINEL:
        raise PackageError(subject, "there is no record")
    if code not in _NAMES:
        raise PackageError(subject, f"the record has the unknown dtype {code}")
    if start % ALIGNMENT or start < offset + HEADER or size > len(data) - start:
        raise PackageError(subject, f"its {size} bytes at {start} are not inside the {len(data)} bytes of the file")
    return Record(offset, _NAMES[code], start, size, padding)


def read_header(data: Data) -> int:
    """The number of records that a weight file declares; raises PackageError when it is no weight file."""
    if len(data) < HEADER:
        raise PackageError("weight file", f"expected at least {HEADER} bytes, got {len(data)}")
    count, version = struct.unpack("<II", data[:8])
    if version != VERSION:
        raise PackageError("weight file", f"expected version {VERSION}, got {version}")
    return int(count)
