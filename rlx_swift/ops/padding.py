"""Padding in NumPy's modes: a constant, the mirror image, the edge repeated, or the other end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ConfigError, ShapeError
from ..ir.tensor import Tensor
from ..ir.types import as_shape
from ._build import TensorLike, as_tensors, public
from .shape import broadcast_to
from .slicing import concat, flip, pad_constant, slice_axis

_MODES = ("constant", "reflect", "edge", "wrap")


@public
def pad(x: TensorLike, widths: Sequence[Sequence[int]], value: float = 0.0, mode: str = "constant") -> Tensor:
    """x with `widths[i] = (before, after)` elements put around each axis i.

    `mode` as in NumPy: "constant" puts `value`, "reflect" mirrors at the edge element without repeating it,
    "edge" repeats it, "wrap" takes the other end. "reflect" and "wrap" reach as far as the tensor does.
    """
    if mode not in _MODES:
        raise ConfigError("pad mode", f"expected one of {', '.join(_MODES)}, got {mode!r}")
    if mode == "constant":
        return pad_constant(x, widths, value)
    (tensor,) = as_tensors("pad", x)
    if not isinstance(widths, (Sequence, np.ndarray)) or len(widths) != tensor.ndim:
        raise ShapeError("pad", f"expected a pair of widths for each axis of {tensor.type}, got {widths!r}")
    for axis, pair in enumerate(widths):
        sides = as_shape(pair, "pad")
        if len(sides) != 2:
            raise ShapeError("pad", f"expected a pair of widths for axis {axis}, got {pair!r}")
        tensor = _pad_axis(tensor, axis, sides[0], sides[1], mode)
    return tensor


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
