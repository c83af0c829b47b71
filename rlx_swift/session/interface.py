"""What a model's program takes and gives, and feeds checked against it; runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import DType
from ..errors import DTypeError, FeedError, UnsupportedError
from ..ir.types import Shape, TensorType
from .feeds import require_known, require_mapping
from .images import from_image, to_image

_DTYPES = {
    "float32": dtypes.f32, "float16": dtypes.f16, "int32": dtypes.i32, "bool": dtypes.bool_,
    "int8": DType("i8", np.dtype(np.int8)), "uint8": DType("u8", np.dtype(np.uint8)),
    "int16": DType("i16", np.dtype(np.int16)), "uint16": DType("u16", np.dtype(np.uint16)),
}
ANY = -1  # a size that the program leaves open


@dataclass(frozen=True)
class Feature:
    """An input, output or state.

    Attributes:
        kind: "array", "image", "state", or "class": the label or the probabilities that a classifier gives.
        type: of the tensor; its shape is the default one.
        declared: the shape with ANY where it is open.
        shapes, ranges: what the model allows, where it allows more than one shape; an upper bound may be None.
        optional, default: what an input is when it is not fed.
        color: of images: "gray", "gray_f16", "rgb" or "bgr".
    """

    name: str
    kind: str
    type: TensorType
    declared: tuple[int, ...]
    shapes: tuple[Shape, ...] = ()
    ranges: tuple[tuple[int, int | None], ...] = ()
    optional: bool = False
    default: float = 0.0
    color: str = ""

    @property
    def flexible(self) -> bool:
        return bool(self.shapes or self.ranges or ANY in self.declared)

    def filled(self) -> np.ndarray:
        """The value of an optional input that is not fed."""
        return np.full(self.type.shape, self.default, self.type.dtype.numpy)

    def checked(self, value: Any) -> np.ndarray:
        """A fed value as an array that the program takes; raises FeedError or DTypeError."""
        if self.kind == "image":
            array = from_image(value, self.color, self.declared, f"input {self.name!r}")
            self._check_shape(array.shape)
            return np.ascontiguousarray(array, self.type.dtype.numpy)
        array = np.ascontiguousarray(_converted(value, self.type.dtype, f"input {self.name!r}"))
        shape = np.shape(value)  # ascontiguousarray makes rank 1 of rank 0
        self._check_shape(shape)
        return array.reshape(shape)

    def _check_shape(self, shape: Shape) -> None:
        if self.shapes:
            fits, expected = shape in self.shapes, f"one of {', '.join(map(str, self.shapes))}"
        elif self.ranges and len(self.ranges) == len(self.declared):
            expected = f"({', '.join(_range_text(*bounds) for bounds in self.ranges)})"
            fits = len(shape) == len(self.ranges) and all(
                low <= size and (high is None or size <= high)
                for size, (low, high) in zip(shape, self.ranges, strict=True)
            )
        else:
            expected = str(tuple("any" if size == ANY else size for size in self.declared))
            fits = len(shape) == len(self.declared)
        fits = fits and all(d in (ANY, size) for size, d in zip(shape, self.declared, strict=False))
        if not fits:
            raise FeedError(f"input {self.name!r}", f"expected shape {expected}, got {shape}")

    def result(self, value: np.ndarray) -> np.ndarray:
        """An output as users get it: images as bytes, all else as it is."""
        return to_image(value, self.color) if self.kind == "image" else value


class Interface:
    """The features of one function, from the text that the native library gives of it."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self.inputs = {f["name"]: _feature(f) for f in said["inputs"]}
        self.states = {f["name"]: _feature(f) for f in said["states"]}
        label, probabilities = (said["classify"] + ["", ""])[:2]
        self.outputs: dict[str, Feature] = {}
        for described in said["outputs"]:
            name = described["name"]
            feature = _class_feature if name in (label, probabilities) else _feature
            self.outputs[name] = feature(described)
        self.classes: list[str | int] = said["classes"]

    def checked(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The feeds, and the defaults of optional inputs, as arrays; raises FeedError or DTypeError."""
        given = require_mapping(feeds)
        require_known(self.inputs, given)
        arrays = {}
        for name, feature in self.inputs.items():
            if name in given and given[name] is not None:
                arrays[name] = feature.checked(given[name])
            elif feature.optional:
                arrays[name] = feature.filled()
            else:
                raise FeedError(f"input {name!r}", "no value was given", f"it takes {feature.type}")
        return arrays

    def label(self, place: int, subject: str) -> str | int:
        """The class at a place."""
        if not 0 <= place < len(self.classes):
            raise UnsupportedError(subject, f"class {place} was predicted, the model names {len(self.classes)}")
        return self.classes[place]

    def probabilities(self, values: np.ndarray) -> dict[str | int, float]:
        """Classes to probabilities."""
        return dict(zip(self.classes, values.ravel().astype(float).tolist(), strict=False))


def _feature(said: Mapping[str, Any]) -> Feature:
    name, kind = said["name"], said["kind"]
    if kind not in ("array", "image", "state") or said["dtype"] not in _DTYPES:
        what = f"an array of {said['dtype']}" if kind == "array" else f"of kind {kind}"
        raise UnsupportedError(f"feature {name!r}", f"expected an array or an image, it is {what}")
    declared = tuple(said["shape"])
    allowed = said["allowed"] or {}
    shapes = tuple(tuple(shape) for shape in allowed.get("shapes", ()))
    ranges = tuple((low, None if high < 0 else high) for low, high in allowed.get("ranges", ()))
    if shapes or ranges:
        declared = tuple([ANY] * len(declared))
    default = 0.0 if said["default"] is None else float(said["default"])
    shape = tuple(max(size, 0) for size in said["shape"])
    type = TensorType(shape, _DTYPES[said["dtype"]])
    return Feature(name, kind, type, declared, shapes, ranges, said["optional"], default, said["color"])


def _class_feature(said: Mapping[str, Any]) -> Feature:
    return Feature(said["name"], "class", TensorType((), dtypes.f32), ())


def _converted(value: Any, dtype: DType, subject: str) -> np.ndarray:
    if dtype in dtypes.ALL:
        return dtypes.to_host(value, dtype, subject)
    array = dtypes.as_array(value, subject)
    if array.dtype == dtype.numpy:
        return array
    limits = np.iinfo(dtype.numpy)
    if array.dtype.kind not in "iub" or (array.size and not limits.min <= array.min() <= array.max() <= limits.max):
        raise DTypeError(subject, f"expected integers that fit {dtype}, got {array.dtype}")
    return array.astype(dtype.numpy)


def _range_text(low: int, high: int | None) -> str:
    return str(low) if low == high else f"{low}..{'' if high is None else high}"
