"""Python values as the structs and enum values of rlx.h, and back; calls nothing and owns no handle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError, DTypeError
from .loader import Native

Array = NDArray[Any]

_DTYPES: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(np.bool_), "f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "i32": np.dtype(np.int32),
    "i8": np.dtype(np.int8), "i16": np.dtype(np.int16), "u8": np.dtype(np.uint8), "u16": np.dtype(np.uint16),
}


@dataclass(frozen=True)
class Feature:
    """What a program says of one input or output."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class Memory:
    """Native memory as NumPy's array interface; the array keeps this, and with it the owner of the memory."""

    def __init__(self, owner: object, address: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.owner = owner
        self.__array_interface__ = {"version": 3, "data": (address, False), "typestr": dtype.str, "shape": shape}


def struct(library: Native, type_name: str, **fields: object) -> Any:
    """A new struct of rlx.h that says its size."""
    return library.ffi.new(f"{type_name} *", {"size": library.ffi.sizeof(type_name), **fields})


def enum_value(library: Native, enum: str, name: str) -> int:
    """The value of an enum's member by the tail of its name: ("device", "cpu") is RLX_DEVICE_CPU."""
    members = _members(library.ffi, enum)
    value = members.get(f"RLX_{enum.upper()}_{name.upper()}")
    if value is None:
        by_value = sorted(members, key=lambda member: members[member])
        known = (member.removeprefix(f"RLX_{enum.upper()}_").lower() for member in by_value)
        raise ConfigError(enum, f"expected one of {', '.join(known)}, got {name!r}")
    return value


@cache
def _members(ffi: Any, enum: str) -> dict[str, int]:
    members: dict[str, int] = ffi.typeof(f"rlx_{enum}").relements  # made anew at each access
    return members


@cache
def _dtypes(ffi: Any) -> dict[int, np.dtype[Any]]:
    """The dtypes by their codes."""
    return {_members(ffi, "dtype")[f"RLX_DTYPE_{key.upper()}"]: dtype for key, dtype in _DTYPES.items()}


@cache
def _codes(ffi: Any) -> dict[np.dtype[Any], int]:
    return {dtype: code for code, dtype in _dtypes(ffi).items()}


def text(name: str) -> bytes:
    """A C string."""
    if "\0" in name:
        raise ConfigError(repr(name), "a name cannot hold a NUL character")
    return name.encode()


def tensor(library: Native, name: str, array: Array) -> tuple[Any, object]:
    """rlx_tensor over an array's memory, and what must outlive it beside the array."""
    code = _codes(library.ffi).get(array.dtype)
    if code is None:
        raise DTypeError(name, f"expected one of {', '.join(map(str, _DTYPES.values()))}, got {array.dtype}")
    shape = library.ffi.new("int64_t[]", array.shape)
    strides = library.ffi.new("int64_t[]", array.strides)
    data = library.ffi.cast("void *", array.__array_interface__["data"][0])
    view = struct(library, "rlx_tensor", data=data, dtype=code, rank=array.ndim, shape=shape, strides=strides)
    return view, (shape, strides)


def array_over(library: Native, name: str, view: Any, owner: object) -> Array:
    """The array that an rlx_tensor in C order describes; it keeps `owner` alive."""
    address = int(library.ffi.cast("uintptr_t", view.data))
    return np.asarray(Memory(owner, address, _dtype(library, view.dtype, name), _shape(view)))


def feature(library: Native, described: Any) -> Feature:
    """A Feature from rlx_feature."""
    name = library.ffi.string(described.name).decode()
    return Feature(name, _dtype(library, described.dtype, name), _shape(described))


def session_options(
    library: Native, pairs: Iterable[tuple[str, str]], ranges: Mapping[str, tuple[int, int]], device: str, units: str,
    threads: int,
) -> tuple[Any, object]:
    """rlx_session_options, and what must outlive it."""
    new = library.ffi.new
    pair_names = [(new("char[]", text(name)), new("char[]", text(output))) for name, output in pairs]
    range_rows = [(new("char[]", text(name)), low, high) for name, (low, high) in ranges.items()]
    pair_array, range_array = new("rlx_pair[]", pair_names), new("rlx_range[]", range_rows)
    options = struct(
        library, "rlx_session_options", pairs=pair_array, pair_count=len(pair_names), ranges=range_array,
        range_count=len(range_rows), device=enum_value(library, "device", device),
        units=enum_value(library, "units", units), threads=threads,
    )
    return options, (pair_names, range_rows, pair_array, range_array)


def counts(library: Native, pointer: Any) -> dict[str, int]:
    """The fields of a struct, without its size."""
    fields = library.ffi.typeof(pointer).item.fields
    return {name: getattr(pointer, name) for name, _ in fields if name != "size"}


def _dtype(library: Native, code: int, name: str) -> np.dtype[Any]:
    dtype = _dtypes(library.ffi).get(code)
    if dtype is None:
        raise DTypeError(name, f"the library has element type {code}, which this package does not know")
    return dtype


def _shape(described: Any) -> tuple[int, ...]:
    return tuple(described.shape[axis] for axis in range(described.rank))
