"""Protobuf's wire format: a few functions to write it and a class to read it. Knows no message."""

from __future__ import annotations

from collections.abc import Iterable

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


_DELIMITED_KEYS = [varint(field << 3 | DELIMITED) for field in range(1024)]


def integer(field: int, number: int) -> bytes:
    """A numeric field; nothing for 0, which a missing field means."""
    return varint(field << 3 | VARINT) + varint(number) if number else b""


def message(field: int, payload: bytes) -> bytes:
    """A message or bytes field, written also when empty: presence may carry the meaning."""
    size = len(payload)
    return _DELIMITED_KEYS[field] + (_SMALL[size] if size < 128 else varint(size)) + payload


def text(field: int, string: str) -> bytes:
    """A string field; nothing for an empty one."""
    return message(field, string.encode()) if string else b""


def packed(numbers: Iterable[int]) -> bytes:
    """The payload of a packed field of integers."""
    return b"".join(map(varint, numbers))


class Message:
    """The fields of one message, by number. Of a field that stands twice but is no list, the last counts.

    Raises PackageError, with `subject` as the place, for bytes that are no message.
    """

    __slots__ = ("_fields", "subject")

    def __init__(self, data: memoryview, subject: str) -> None:
        self.subject = subject
        self._fields: dict[int, list[int | memoryview]] = {}
        at = 0
        while at < len(data):
            tag, at = self._varint(data, at)
            number, kind = tag >> 3, tag & 7
            value: int | memoryview
            if kind == VARINT:
                value, at = self._varint(data, at)
            else:
                size, at = self._size(data, at, kind)
                if number == 0 or size > len(data) - at:
                    raise PackageError(subject, f"field {number} of {size} bytes ends after its message")
                value = data[at : at + size]
                at += size
            self._fields.setdefault(number, []).append(value)

    def __contains__(self, field: int) -> bool:
        return field in self._fields

    def chunks(self, field: int) -> list[memoryview]:
        """All values of a field that is no number."""
        values = self._fields.get(field, [])
        if any(isinstance(value, int) for value in values):
            raise PackageError(self.subject, f"field {field} is a number, expected bytes")
        return values  # type: ignore[return-value]

    def messages(self, field: int, what: str) -> list[Message]:
        return [Message(chunk, f"{self.subject}, {what}") for chunk in self.chunks(field)]

    def message(self, field: int, what: str) -> Message:
        """The message of a field; an empty one where the field is missing."""
        chunks = self.chunks(field)
        return Message(chunks[-1] if chunks else memoryview(b""), f"{self.subject}, {what}")

    def texts(self, field: int) -> list[str]:
        try:
            return [str(chunk, "utf-8") for chunk in self.chunks(field)]
        except UnicodeDecodeError as error:
            raise PackageError(self.subject, f"field {field} is no UTF-8 text") from error

    def text(self, field: int) -> str:
        texts = self.texts(field)
        return texts[-1] if texts else ""

    def number(self, field: int) -> int:
        """A number as written, without a sign; 0 where it is missing."""
        value = self._fields.get(field, [0])[-1]
        if not isinstance(value, int):
            raise PackageError(self.subject, f"field {field} is no number")
        return value

    def signed(self, field: int) -> list[int]:
        """The numbers of a repeated field, packed or not, as 64-bit integers with a sign."""
        numbers: list[int] = []
        for value in self._fields.get(field, []):
            if isinstance(value, int):
                numbers.append(value)
                continue
            at = 0
            while at < len(value):
                number, at = self._varint(value, at)
                numbers.append(number)
        return [n - (1 << 64) if n >> 63 else n for n in numbers]

    def _size(self, data: memoryview, at: int, kind: int) -> tuple[int, int]:
        if kind == DELIMITED:
            return self._varint(data, at)
        if kind not in (FIXED32, FIXED64):
            raise PackageError(self.subject, f"unknown wire kind {kind}")
        return (4 if kind == FIXED32 else 8), at

    def _varint(self, data: memoryview, at: int) -> tuple[int, int]:
        """The number at a position, and the position after it."""
        result = shift = 0
        while at < len(data) and shift < 70:
            byte = data[at]
            at += 1
            result |= (byte & 127) << shift
            if byte < 128:
                return result & (1 << 64) - 1, at
            shift += 7
        raise PackageError(self.subject, "a number is cut off or longer than ten bytes")
