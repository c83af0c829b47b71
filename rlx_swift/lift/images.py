"""Rules of resizing: each axis by itself, linear interpolation as a product with a constant matrix."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .. import ops
from ..dtypes import f32
from ..ir.tensor import Tensor
from .call import Call
from .table import rule

Grid = Callable[[int, int], np.ndarray]


def _places(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.float64)


def _aligned(size: int, count: int) -> np.ndarray:
    return _places(count) * ((size - 1) / max(count - 1, 1))


def _offset(size: int, count: int) -> np.ndarray:
    step = max(1, size - 1) / count
    return step / 2 + _places(count) * step


# Where each of `count` results lies among `size` elements, by MIL's names of the modes; ends are cut later.
_GRIDS: dict[str, Grid] = {
    "STRICT_ALIGN_CORNERS": _aligned,
    "ALIGN_CORNERS": lambda size, count: _aligned(size, count) if count > 1 else np.array([(size - 1) / 2]),
    "DEFAULT": lambda size, count: _places(count) * (size / count),
    "OFFSET_CORNERS": _offset,
    "UNALIGN_CORNERS": lambda size, count: (_places(count) + 0.5) * (size / count) - 0.5,
}


def _grid(call: Call, mode: str, size: int, count: int) -> np.ndarray:
    if mode not in _GRIDS:
        raise call.unsupported(f"unknown sampling mode {mode!r}")
    return np.clip(_GRIDS[mode](size, count), 0, size - 1)


def _interpolated(call: Call, x: Tensor, axis: int, mode: str, count: int) -> Tensor:
    """x at `count` places between its elements along the last axis or the last but one."""
    size = x.shape[axis]
    if count == size and mode != "OFFSET_CORNERS":
        return x
    grid = _grid(call, mode, size, count)
    below = np.minimum(np.floor(grid).astype(int), max(size - 2, 0))
    above = grid - below
    weights, row = np.zeros((count, size), np.float32), np.arange(count)
    weights[row, below] = 1 - above
    weights[row, np.minimum(below + 1, size - 1)] += above
    matrix = call.graph.constant(weights)
    return ops.matmul(matrix, x) if axis == x.ndim - 2 else ops.matmul(x, matrix, transpose_y=True)


def _nearest(x: Tensor, axis: int, places: np.ndarray) -> Tensor:
    return ops.gather(x, np.clip(places, 0, x.shape[axis] - 1).astype(np.int32), axis)


def _spread(x: Tensor, axis: int, count: int) -> Tensor:
    """Each result is the element at or before its place."""
    return _nearest(x, axis, np.arange(count) * x.shape[axis] // count)


def _image(call: Call) -> tuple[Tensor, int, int]:
    """x in f32, and its axes of rows and columns."""
    x = call.tensor("x", f32)
    return x, x.ndim - 2, x.ndim - 1


@rule("upsample_bilinear")
def _upsample_bilinear(call: Call) -> Tensor:
    x, rows, columns = _image(call)
    align = call.flag("align_corners")
    half_pixel = call.flag("half_pixel_centers", not align)
    mode = "STRICT_ALIGN_CORNERS" if align else "UNALIGN_CORNERS" if half_pixel else "DEFAULT"
    for axis, name in ((rows, "scale_factor_height"), (columns, "scale_factor_width")):
        x = _interpolated(call, x, axis, mode, math.floor(x.shape[axis] * call.number(name)))
    return x


@rule("upsample_nearest_neighbor")
def _upsample_nearest(call: Call) -> Tensor:
    x, rows, columns = _image(call)
    for axis, name in ((rows, "scale_factor_height"), (columns, "scale_factor_width")):
        x = _spread(x, axis, math.floor(x.shape[axis] * call.number(name)))
    return x


@rule("resize_bilinear")
def _resize_bilinear(call: Call) -> Tensor:
    x, rows, columns = _image(call)
    mode = call.text("sampling_mode").upper()
    x = _interpolated(call, x, rows, mode, call.integer("target_size_height"))
    return _interpolated(call, x, columns, mode, call.integer("target_size_width"))


@rule("resize_nearest_neighbor")
def _resize_nearest(call: Call) -> Tensor:
    x, rows, columns = _image(call)
    return _spread(_spread(x, rows, call.integer("target_size_height")), columns, call.integer("target_size_width"))


@rule("resize")
def _resize(call: Call) -> Tensor:
    """The last axes get the last sizes of `shape`, of which a 0 keeps what is there. Nearest rounds the place."""
    x = call.tensor("x", f32)
    mode, nearest = call.text("sampling_mode").upper(), call.text("interpolation_mode").upper() != "LINEAR"
    sizes, axes = call.integers("shape"), call.integer("resized_dims")
    if axes > 2:
        raise call.unsupported(f"{axes} resized axes are not lifted")
    for axis, size in zip(range(x.ndim - axes, x.ndim), sizes[len(sizes) - axes :], strict=True):
        count = size or x.shape[axis]
        if nearest:
            x = _nearest(x, axis, np.floor(_grid(call, mode, x.shape[axis], count) + 0.5))
        else:
            x = _interpolated(call, x, axis, mode, count)
    return x


@rule("crop")
def _crop(call: Call) -> Tensor:
    """What `crop_height` and `crop_width` say is cut off before and after."""
    x, rows, columns = call.tensor("x"), call.integers("crop_height"), call.integers("crop_width")
    (top, bottom), (left, right) = rows, columns
    return x[..., top : x.shape[-2] - bottom, left : x.shape[-1] - right]
