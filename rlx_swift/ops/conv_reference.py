"""Convolution over any number of axes and its two transposes in NumPy: what the conv and pooling ops evaluate with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Sizes = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]


def windows(
    x: np.ndarray, kernel: Sizes, strides: Sizes, padding: Padding, dilation: Sizes, fill: float = 0.0
) -> np.ndarray:
    """Views [N, C, out..., kernel...] of all windows of x [N, C, size...]."""
    padded = np.pad(x, ((0, 0), (0, 0), *padding), constant_values=fill)
    spatial = padded.shape[2:]
    out = tuple((n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(spatial, kernel, dilation, strides, strict=True))
    steps = padded.strides[2:]
    between = tuple(step * s for step, s in zip(steps, strides, strict=True))
    within = tuple(step * d for step, d in zip(steps, dilation, strict=True))
    return np.lib.stride_tricks.as_strided(
        padded, (*padded.shape[:2], *out, *kernel), (*padded.strides[:2], *between, *within), writeable=False
    )


def add_windows(cols: np.ndarray, size: Sizes, strides: Sizes, padding: Padding, dilation: Sizes) -> np.ndarray:
    """The transpose of `windows`: [N, C, out..., kernel...] summed into [N, C, size...]."""
    rank = len(size)
    out, kernel = cols.shape[2 : 2 + rank], cols.shape[2 + rank :]
    total = np.zeros((*cols.shape[:2], *(n + sum(p) for n, p in zip(size, padding, strict=True))), cols.dtype)
    for tap in np.ndindex(*kernel):
        reached = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(tap, dilation, out, strides, strict=True)
        )
        where, place = (slice(None), slice(None), *reached), (..., *tap)
        total[where] += cols[place]
    inside = tuple(slice(before, before + n) for (before, _), n in zip(padding, size, strict=True))
    where = (slice(None), slice(None), *inside)
    return total[where]


def conv(
    x: np.ndarray, w: np.ndarray, strides: Sizes, padding: Padding, dilation: Sizes, groups: int
) -> np.ndarray:
    """x [N, C, size...] with w [O, C/groups, kernel...] -> [N, O, out...]."""
    rank = w.ndim - 2

    def one(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        views = windows(x, w.shape[2:], strides, padding, dilation)
        summed = [1, *range(2 + rank, 2 + 2 * rank)]
        return np.moveaxis(np.tensordot(views, w, axes=(summed, range(1, 2 + rank))), -1, 1)

    return np.ascontiguousarray(_by_group(one, groups, (x, 1), (w, 0), out_axis=1))


def conv_transpose(
    g: np.ndarray, w: np.ndarray, size: Sizes, strides: Sizes, padding: Padding, dilation: Sizes, groups: int
) -> np.ndarray:
    """The transpose of `conv` in x: from g [N, O, out...] to [N, C, size...]."""
    rank = w.ndim - 2

    def one(g: np.ndarray, w: np.ndarray) -> np.ndarray:
        cols = np.moveaxis(np.tensordot(g, w, axes=([1], [0])), 1 + rank, 1)
        return add_windows(cols, size, strides, padding, dilation)

    return np.ascontiguousarray(_by_group(one, groups, (g, 1), (w, 0), out_axis=1))


def conv_weight_grad(
    x: np.ndarray, g: np.ndarray, kernel: Sizes, strides: Sizes, padding: Padding, dilation: Sizes, groups: int
) -> np.ndarray:
    """The transpose of `conv` in w, of spatial size `kernel`, from x and g."""
    spatial = range(2, 2 + len(kernel))

    def one(x: np.ndarray, g: np.ndarray) -> np.ndarray:
        reached = (slice(None), slice(None), *map(slice, g.shape[2:]))
        views = windows(x, kernel, strides, padding, dilation)[reached]
        return np.tensordot(g, views, axes=([0, *spatial], [0, *spatial]))

    return np.ascontiguousarray(_by_group(one, groups, (x, 1), (g, 1), out_axis=0))


Cut = tuple[np.ndarray, int]


def _by_group(function: Callable[..., np.ndarray], groups: int, a: Cut, b: Cut, out_axis: int) -> np.ndarray:
    """The function applied to each group of two arrays, each cut along an axis of its own."""
    if groups == 1:
        return function(a[0], b[0])
    pieces = zip(np.split(a[0], groups, a[1]), np.split(b[0], groups, b[1]), strict=True)
    return np.concatenate([function(x, y) for x, y in pieces], axis=out_axis)
