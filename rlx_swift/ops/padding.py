"""Padding in NumPy's modes: a constant, the mirror image, the edge repeated, or the other end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ConfigError, ShapeError
from ..ir.tensor import Tensor
from ._build import TensorLike, as_tensors, public
from .shape import broadcast_to
from .slicing import concat, flip, pad_constant, slice_axis

Widths = int | Sequence[int] | Sequence[Sequence[int]] | np.ndarray
_MODES = ("constant", "reflect", "edge", "wrap")


@public
def pad(x: TensorLike, widths: Widths, value: float = 0.0, mode: str = "constant") -> Tensor:
    """x with `widths[i] = (before, after)` elements put around each axis i; one pair or number is for every axis.

    `mode` as in NumPy: "constant" puts `value`, "reflect" mirrors at the edge element without repeating it,
    "edge" repeats it, "wrap" takes the other end. "reflect" and "wrap" reach as far as the tensor does.
    """
    if mode not in _MODES:
        raise ConfigError("pad mode", f"expected one of {', '.join(_MODES)}, got {mode!r}")
    (tensor,) = as_tensors("pad", x)
    pairs = _pairs(tensor, widths)
    if mode == "constant":
        return pad_constant(tensor, pairs, value)
    for axis, (before, after) in enumerate(pairs):
        tensor = _pad_axis(tensor, axis, before, after, mode)
    return tensor


def _pairs(x: Tensor, widths: Widths) -> list[tuple[int, int]]:
    """(before, after) for each axis, as NumPy broadcasts widths."""
    try:
        array = np.asarray(widths)
        pairs = np.broadcast_to(array if array.size else array.reshape(0, 2), (x.ndim, 2))
    except ValueError:
        pairs = np.zeros((0, 2))
    if len(pairs) != x.ndim or (x.ndim and array.dtype.kind not in "iu") or (pairs < 0).any():
        raise ShapeError("pad", f"expected a pair of widths of at least 0 for each axis of {x.type}, got {widths!r}")
    return [(int(before), int(after)) for before, after in pairs]


def _pad_axis(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    size = x.shape[axis]
    reach = {"reflect": size - 1, "edge": before + after if size else 0, "wrap": size}[mode]
    if max(before, after) > max(reach, 0):
        raise ShapeError("pad", f"mode {mode!r} reaches {max(reach, 0)} elements along axis {axis} of {x.type}")
    parts = [x]
    if before:
        parts.insert(0, _side(x, axis, before, mode, start=True))
    if after:
        parts.append(_side(x, axis, after, mode, start=False))
    return concat(parts, axis)


def _side(x: Tensor, axis: int, count: int, mode: str, start: bool) -> Tensor:
    size = x.shape[axis]
    if mode == "edge":
        edge = slice_axis(x, axis, 0, 1) if start else slice_axis(x, axis, size - 1, size)
        return broadcast_to(edge, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
    if mode == "wrap":
        return slice_axis(x, axis, size - count, size) if start else slice_axis(x, axis, 0, count)
    mirrored = slice_axis(x, axis, 1, count + 1) if start else slice_axis(x, axis, size - 1 - count, size - 1)
    return flip(mirrored, axis)
