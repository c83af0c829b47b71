"""The safetensors file format: named arrays with text metadata in one file. Knows nothing of what they mean.

A file is the header's length (u64, little endian), the header (JSON: dtype, shape and byte range of each array, and
`__metadata__`, a map of text), and the arrays' bytes in C order, little endian, without gaps.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CheckpointError

_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1",
    "BOOL": "?",
}
_NAMES = {np.dtype(text): name for name, text in _DTYPES.items()}
_LONGEST_HEADER = 100_000_000


def write(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Writes a file whole or not at all: under another name, to the disk, and then renamed."""
    path = Path(path)
    names = sorted(arrays)
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name in names:
        start, end = end, end + arrays[name].nbytes
        dtype = _NAMES[arrays[name].dtype.newbyteorder("<")]
        header[name] = {"dtype": dtype, "shape": list(arrays[name].shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for name in names:
                array = np.ascontiguousarray(arrays[name], arrays[name].dtype.newbyteorder("<"))
                file.write(array.reshape(-1).view(np.uint8).data if array.size else b"")
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_directory(path.parent)


def _mode(path: Path) -> int:
    """The permissions of the file that is replaced, or what a new file gets."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_directory(directory: Path) -> None:
    """Makes a rename last; Windows has no such call and needs none."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the metadata; raises CheckpointError for a file that is not whole and well formed."""
    subject = os.fspath(path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            raise CheckpointError(subject, f"expected a safetensors file, got {size} bytes without a whole header")
        header = _header(file.read(length), subject)
        data = file.read()
    metadata = header.pop("__metadata__", {})
    arrays = {name: _array(name, entry, data, subject) for name, entry in header.items()}
    end = 0
    for start, stop in sorted(entry["data_offsets"] for entry in header.values()):
        if start != end:
            break
        end = stop
    if end != len(data):
        raise CheckpointError(subject, f"its arrays do not fill the {len(data)} bytes that it has for them")
    return arrays, metadata


def _header(text: bytes, subject: str) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(subject, f"its header is not JSON: {error}") from None
    metadata = header.get("__metadata__", {}) if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise CheckpointError(subject, "its header is not a map of arrays with metadata of text")
    return header


def _array(name: str, entry: Any, data: bytes, subject: str) -> np.ndarray:
    try:
        dtype, shape, (start, end) = np.dtype(_DTYPES[entry["dtype"]]), entry["shape"], entry["data_offsets"]
        whole = all(type(n) is int and n >= 0 for n in (*shape, start, end))
    except (KeyError, TypeError, ValueError):
        raise CheckpointError(subject, f"its entry {name!r} is not a dtype, a shape and two offsets") from None
    if not whole or not start <= end <= len(data) or end - start != math.prod(shape) * dtype.itemsize:
        raise CheckpointError(subject, f"its entry {name!r} does not fit the {len(data)} bytes of arrays")
    return np.frombuffer(data[start:end], dtype).reshape(shape)
