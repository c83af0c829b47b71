"""The types and constant values of one program, each made once. Knows neither graphs nor operations."""

from __future__ import annotations

import numpy as np

from .. import dtypes
from ..dtypes import DType, f16, f32, i32
from ..ir.types import TensorType
from .blobs import HEADER, next_offset
from .program import Array, Literal, Stored, Value

_SPELLING = {"f32": "fp32", "f16": "fp16", "i32": "int32", "bool": "bool"}
_STORED_INTEGERS_SINCE = 9  # the specification version
_SMALL = 9  # elements, as coremltools draws the line


def is_small(type: TensorType) -> bool:
    """Whether a constant may be bound as a literal where it is used, rather than through an operation `const`.

    f16 arrays may not, of any size: Core ML was seen to abort on them.
    """
    return type.size <= (1 if type.dtype is f16 else _SMALL)


class Constants:
    """Makes types, literals and stored constants; `weights` are the arrays of the weight file so far."""

    def __init__(self, specification: int) -> None:
        self.weights: list[np.ndarray] = []
        self._offset = HEADER
        self._stored_integers = specification >= _STORED_INTEGERS_SINCE
        self._arrays: dict[tuple[str, tuple[int, ...]], Array] = {}
        self._literals: dict[tuple[object, ...], Literal] = {}

    def array(self, type: TensorType) -> Array:
        key = (type.dtype.name, type.shape)
        found = self._arrays.get(key)
        if found is None:
            found = self._arrays[key] = Array(_SPELLING[type.dtype.name], type.shape)
        return found

    def of(self, value: np.ndarray, type: TensorType) -> Value:
        """The value of a tensor: small ones, bools and early integers inside the program, others stored."""
        stored = type.dtype.is_float or (type.dtype is i32 and self._stored_integers)
        if is_small(type) or not stored:
            return Literal(self.array(type), _little(value).tobytes())
        offset = self._offset
        self.weights.append(value)
        self._offset = next_offset(offset, value.nbytes)
        return Stored(self.array(type), offset)

    def literal(self, value: object, dtype: DType) -> Literal:
        """The value of a parameter: floats take `dtype` where it is a float, else f32; ints are i32."""
        element = type(value[0]) if isinstance(value, tuple) and value else None
        key = (type(value), value, element, dtype.name)
        found = self._literals.get(key)
        if found is None or isinstance(value, (float, np.generic)):  # 0.0 and -0.0 are equal but not the same
            found = self._literals[key] = self._literal(value, dtype)
        return found

    def _literal(self, value: object, dtype: DType) -> Literal:
        if isinstance(value, DType):
            value = _SPELLING[value.name]
        if isinstance(value, str):
            return Literal(Array("string", ()), (value,))
        if isinstance(value, float):
            value = (dtype if dtype.is_float else f32).numpy.type(value)
        array = np.empty(0, np.int32) if isinstance(value, tuple) and not value else np.asarray(value)
        kind = dtypes.of_numpy(array.dtype, "parameter")
        host = dtypes.to_host(array, kind, "parameter")
        return Literal(self.array(TensorType(host.shape, kind)), _little(host).tobytes())


def _little(value: np.ndarray) -> np.ndarray:
    return value.astype(value.dtype.newbyteorder("<"), copy=False)
