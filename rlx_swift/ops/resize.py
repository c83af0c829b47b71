"""Changing the spatial size of images: nearest and bilinear resizing, pixels exchanged with channels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import ConfigError, ShapeError
from ..ir.tensor import Tensor
from ..ir.types import as_int
from ._build import TensorLike, as_tensors, public, require_float
from .index import gather
from .linalg import matmul
from .shape import broadcast_to, reshape, swapaxes, transpose
from .windows import as_sizes


@public
def resize(
    x: TensorLike, size: int | Sequence[int], mode: str = "nearest", align_corners: bool = False
) -> Tensor:
    """x [N, C, H, W] at another height and width, as PyTorch's interpolate.

    "nearest" takes element floor(i in / out). "bilinear" mixes the two neighbours of (i + 1/2) in / out - 1/2,
    or of i (in - 1) / (out - 1) with `align_corners`.
    """
    if mode not in ("nearest", "bilinear") or (align_corners and mode == "nearest"):
        raise ConfigError("resize mode", f"expected 'nearest' or 'bilinear' (aligned or not), got {mode!r}")
    (image,) = as_tensors("resize", x)
    require_float("resize", image.type)
    if image.ndim != 4 or min(image.shape[2:]) < 1:
        raise ShapeError("resize", f"expected x of rank 4 with elements, got {image.type}")
    height, width = as_sizes(size, 2, "resize size")
    if mode == "nearest":
        return _nearest(_nearest(image, 2, height), 3, width)
    rows = _mixed(swapaxes(image, 2, 3), height, align_corners)
    return _mixed(swapaxes(rows, 2, 3), width, align_corners)


def _nearest(x: Tensor, axis: int, count: int) -> Tensor:
    size = x.shape[axis]
    if count == size:
        return x
    if count % size == 0:  # whole repeats need no gather
        lead, trail, times = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :]), count // size
        repeated = broadcast_to(reshape(x, (lead, size, 1, trail)), (lead, size, times, trail))
        return reshape(repeated, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
    indices = np.arange(count) * size // count
    return gather(x, x.graph.constant(indices.astype(np.int32)), axis)


def _mixed(x: Tensor, count: int, align_corners: bool) -> Tensor:
    """Bilinear resizing of the last axis, as a product with a constant matrix."""
    size = x.shape[-1]
    if count == size:
        return x
    if align_corners:
        places = np.arange(count) * ((size - 1) / max(count - 1, 1))
    else:
        places = np.clip((np.arange(count) + 0.5) * size / count - 0.5, 0, size - 1)
    below = np.minimum(np.floor(places).astype(np.int64), size - 1)
    above = np.minimum(below + 1, size - 1)
    weights = np.zeros((size, count))
    np.add.at(weights, (below, np.arange(count)), 1 - (places - below))
    np.add.at(weights, (above, np.arange(count)), places - below)
    return matmul(x, x.graph.constant(weights.astype(x.dtype.numpy)))


@public
def pixel_shuffle(x: TensorLike, factor: int) -> Tensor:
    """[N, C r^2, H, W] as [N, C, H r, W r]: each r^2 channels become a square of r by r pixels."""
    (image,) = as_tensors("pixel_shuffle", x)
    r = as_int(factor, "pixel_shuffle factor")
    if image.ndim != 4 or r < 1 or image.shape[1] % (r * r):
        raise ShapeError("pixel_shuffle", f"expected x [N, C {r}^2, H, W], got {image.type}")
    n, channels, h, w = image.shape
    c = channels // (r * r)
    squares = transpose(reshape(image, (n * c, r, r, h, w)), (0, 3, 1, 4, 2))
    return reshape(squares, (n, c, h * r, w * r))


@public
def pixel_unshuffle(x: TensorLike, factor: int) -> Tensor:
    """[N, C, H r, W r] as [N, C r^2, H, W]: the inverse of `pixel_shuffle`."""
    (image,) = as_tensors("pixel_unshuffle", x)
    r = as_int(factor, "pixel_unshuffle factor")
    if image.ndim != 4 or r < 1 or image.shape[2] % r or image.shape[3] % r:
        raise ShapeError("pixel_unshuffle", f"expected x [N, C, H {r}, W {r}], got {image.type}")
    n, c, h, w = image.shape
    squares = transpose(reshape(image, (n * c, h // r, r, w // r, r)), (0, 2, 4, 1, 3))
    return reshape(squares, (n, c * r * r, h // r, w // r))
