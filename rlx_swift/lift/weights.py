"""Constants of a file as leaves of a graph: weights become params, the rest constants. Knows no operation."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ..dtypes import DType
from ..ir.graph import Graph, LeafKind
from ..ir.tensor import Tensor
from ..lower.program import Stored, Value
from ..ops import cast
from .constants import WeightFile, array_of, array_type, ir_dtype

_NUMBERS = 9  # floats up to which a constant is a number of the program rather than a weight
_MASKED = 1e4  # a constant with values as far from 0 switches something off: coremltools writes -3e4
_LABELLED = {"param": LeafKind.PARAM, "buffer": LeafKind.BUFFER}  # as our own lowering labels named leaves
_ENDINGS = re.compile(
    r"(_(to_(fp16|fp32|u?int(8|16))|cast_fp(16|32)|promoted|palettized|quantized|sparsified))+(_\d+)?$"
)


@dataclass(frozen=True, eq=False)
class Constant:
    """A value known before a run.

    Attributes:
        dtype: as MIL spells it.
        label: what the file calls it.
        kind: what it becomes in a graph, unless the operation that reads it knows better.
    """

    array: np.ndarray
    dtype: str
    label: str = ""
    kind: LeafKind = LeafKind.CONSTANT

    @property
    def is_weight(self) -> bool:
        return self.kind is not LeafKind.CONSTANT


class Weights:
    """Reads constants and makes the leaves that stand for them, each once."""

    def __init__(self, graph: Graph, weight_file: WeightFile, reserved: Collection[str]) -> None:
        self._graph, self._weight_file, self._reserved = graph, weight_file, reserved
        self._records: dict[tuple[str, int, str], Constant] = {}
        self._leaves: dict[Constant, Tensor] = {}

    def read(self, value: Value, label: str, place: str) -> Constant:
        """A constant of the file; one record of a weight file is one constant however often it is named."""
        if not isinstance(value, Stored):
            return self._read(value, label, place)
        key = (value.file, value.offset, str(value.type))
        if key not in self._records:
            self._records[key] = self._read(value, label, place)
        return self._records[key]

    def _read(self, value: Value, label: str, place: str) -> Constant:
        type = array_type(value.type, place)
        array = array_of(value, self._weight_file, place)
        prefix, _, name = label.partition("/")
        if prefix in _LABELLED and name:
            return Constant(array, type.dtype, name, _LABELLED[prefix])
        return Constant(array, type.dtype, label, kind_of(array))

    def tensor(self, constant: Constant, dtype: DType | None = None, role: LeafKind = LeafKind.CONSTANT) -> Tensor:
        """What an op reads for a constant, as a float of `dtype` if given.

        A weight is an f32 param or buffer and a cast, and so is a number in the role of one.
        """
        own = ir_dtype(constant.dtype, f"constant {constant.label!r}")
        wanted = dtype if dtype is not None and own.is_float else own
        kind = constant.kind if constant.is_weight and role is not LeafKind.BUFFER else role
        if constant not in self._leaves:
            self._leaves[constant] = self._leaf(constant, own, kind)
        return cast(self._leaves[constant], wanted)

    def _leaf(self, constant: Constant, dtype: DType, kind: LeafKind) -> Tensor:
        if kind is LeafKind.CONSTANT or not _can_be_trained(constant.array):
            return self._graph.constant(constant.array, dtype)
        make = self._graph.buffer if kind is LeafKind.BUFFER else self._graph.param
        value = constant.array.astype(np.float32, copy=False)
        return make(self._name(constant.label), value.shape, value)

    def _name(self, label: str) -> str:
        base = _ENDINGS.sub("", label) or "weight"
        name, n = base, 0
        while name in self._graph.leaves() or name in self._reserved:
            n += 1
            name = f"{base}_{n}"
        return name


def kind_of(array: np.ndarray) -> LeafKind:
    """Whether a constant is a param, or rather a number or a mask of the program."""
    weight = array.size > _NUMBERS and _can_be_trained(array) and float(np.abs(array).max()) < _MASKED
    return LeafKind.PARAM if weight else LeafKind.CONSTANT


def _can_be_trained(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" and bool(np.isfinite(array).all())
