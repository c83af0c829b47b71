"""Identifiers for a program's values, each given once. Knows nothing of what they name."""

from __future__ import annotations

import re
import zlib

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words of MIL's own text form, and `state`, which coremltools renames too.
_WORDS = """any bool dict false func list program state string tensor true tuple
bf16 fp16 fp32 fp64 int4 int8 int16 int32 int64 uint1 uint2 uint3 uint4 uint6 uint8 uint16 uint32 uint64"""
RESERVED = frozenset(_WORDS.split())


def feature_name(name: str) -> str:
    """The identifier for a leaf of a graph, which depends on its name alone.

    It is the name itself where that is an identifier, else a likeness of it with its checksum, so that
    programs that share named tensors agree on their features.
    """
    if IDENTIFIER.fullmatch(name) and name not in RESERVED:
        return name
    return f"v_{re.sub('[^A-Za-z0-9]+', '_', name)}_{zlib.crc32(name.encode()):08x}"


class Names:
    """Gives out identifiers that are unique in one program."""

    def __init__(self) -> None:
        self._taken: set[str] = set(RESERVED)
        self._count = 0

    def given(self, wanted: str) -> str:
        """`feature_name(wanted)`, with a number where it was given before."""
        base = feature_name(wanted)
        name, n = base, 0
        while name in self._taken:
            n += 1
            name = f"{base}_{n}"
        self._taken.add(name)
        return name

    def numbered(self, prefix: str) -> str:
        """The next of `prefix_0`, `prefix_1`, ... with one count for all prefixes."""
        while True:
            name = f"{prefix}_{self._count}"
            self._count += 1
            if name not in self._taken:
                self._taken.add(name)
                return name
