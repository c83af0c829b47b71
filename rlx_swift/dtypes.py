"""The element types of the IR and how NumPy spells them; knows nothing of graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import DTypeError


@dataclass(frozen=True)
class DType:
    """An element type: `name` as printed and serialised, `numpy` as stored on the host."""

    name: str
    numpy: np.dtype

    @property
    def is_float(self) -> bool:
        return self.numpy.kind == "f"

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return _known, (self.name, self.numpy)  # each type is there once, also after pickling


def _known(name: str, numpy: np.dtype) -> DType:
    return _BY_NAME.get(name) or DType(name, numpy)


f32 = DType("f32", np.dtype(np.float32))
f16 = DType("f16", np.dtype(np.float16))
i32 = DType("i32", np.dtype(np.int32))
bool_ = DType("bool", np.dtype(np.bool_))

ALL = (f32, f16, i32, bool_)
_BY_NAME = {dtype.name: dtype for dtype in ALL}
_INT32 = np.iinfo(np.int32)


def parse(name: str) -> DType:
    """The type called `name`; raises DTypeError for any other name."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise DTypeError(f"dtype {name!r}", f"expected one of {', '.join(_BY_NAME)}") from None


def of_numpy(dtype: np.dtype, subject: str) -> DType:
    """The type that holds values of a NumPy dtype: f64 becomes f32, every integer becomes i32."""
    if dtype.kind == "f":
        return f16 if dtype == np.float16 else f32
    if dtype.kind in "iu":
        return i32
    if dtype.kind == "b":
        return bool_
    raise DTypeError(subject, f"expected numbers or bools, got an array of {dtype}")


def as_array(value: object, subject: str) -> np.ndarray:
    """`value` as an array; raises DTypeError for nested lists of uneven lengths."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise DTypeError(subject, f"expected something that NumPy can view as an array ({error})") from None


def to_host(value: object, dtype: DType, subject: str) -> np.ndarray:
    """`value` as an array of `dtype`, converting only where no meaning is lost.

    Floats convert to floats; integers and bools to i32 (range-checked) and to floats where exact.
    Raises DTypeError for floats into i32, complex, object and text.
    """
    array = as_array(value, subject)
    target, kind = dtype.numpy, array.dtype.kind
    if array.dtype == target:
        return array
    if kind == "f" and dtype.is_float:
        return array.astype(target)
    if kind in "iub" and target.kind != "b":
        if array.size == 0 or kind == "b":
            return array.astype(target)
        if dtype is i32:
            low, high = int(array.min()), int(array.max())
            if low < _INT32.min or high > _INT32.max:
                raise DTypeError(subject, f"expected integers that fit i32, got values from {low} to {high}")
            return array.astype(target)
        with np.errstate(over="ignore"):
            converted = array.astype(target)
        if not np.array_equal(converted.astype(np.float64), array.astype(np.float64)):
            raise DTypeError(subject, f"expected integers that {dtype} holds exactly", "cast them yourself")
        return converted
    raise DTypeError(subject, f"expected {dtype}, got {array.dtype}", f"convert it to {target} first")
