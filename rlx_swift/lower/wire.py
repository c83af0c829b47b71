"""Protobuf's wire format: a few functions to write it and one to read it. Knows no message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from ..errors import PackageError

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5
_SMALL = [bytes((n,)) for n in range(128)]


def varint(number: int) -> bytes:
    """A number of up to 64 bits; a negative one takes ten bytes."""
    if 0 <= number < 128:
        return _SMALL[number]
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


@cache
def key(field: int, kind: int) -> bytes:
    return varint(field << 3 | kind)


def integer(field: int, number: int) -> bytes:
    """A numeric field; nothing for 0, which a missing field means."""
    return key(field, VARINT) + varint(number) if number else b""


def message(field: int, payload: bytes) -> bytes:
    """A message or bytes field, written also when empty: presence may carry the meaning."""
    return key(field, DELIMITED) + varint(len(payload)) + payload


def text(field: int, string: str) -> bytes:
    """A string field; nothing for an empty one."""
    return message(field, string.encode()) if string else b""


def packed(numbers: Iterable[int]) -> bytes:
    """The payload of a packed field of integers."""
    return b"".join(map(varint, numbers))


Field = tuple[int, int, "int | memoryview"]


def fields(data: memoryview, subject: str) -> Iterator[Field]:
    """(field, wire kind, value) of each field: an int for varints, else the bytes. Raises PackageError."""
    at, end = 0, len(data)
    while at < end:
        tag, at = read_varint(data, at, subject)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, at = read_varint(data, at, subject)
            yield number, kind, value
            continue
        if kind == DELIMITED:
            size, at = read_varint(data, at, subject)
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
        else:
            raise PackageError(subject, f"field {number} has the unknown wire kind {kind}")
        if number == 0 or size > end - at:
            raise PackageError(subject, f"field {number} of {size} bytes ends after its message")
        yield number, kind, data[at : at + size]
        at += size


def read_varint(data: memoryview, at: int, subject: str) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise PackageError(subject, "a number is cut off or longer than ten bytes")
        byte = data[at]
        at += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result & (1 << 64) - 1, at
        shift += 7
