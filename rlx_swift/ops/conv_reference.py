"""Two-dimensional convolution and its two transposes in NumPy: what the conv ops evaluate with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Pair = tuple[int, ...]
Padding = tuple[tuple[int, int], tuple[int, int]]


def windows(
    x: np.ndarray, kernel: Pair, strides: Pair, padding: Padding, dilation: Pair, fill: float = 0.0
) -> np.ndarray:
    """Views [N, C, OH, OW, KH, KW] of all windows of x [N, C, H, W]."""
    padded = np.pad(x, ((0, 0), (0, 0), *padding), constant_values=fill)
    n, c, h, w = padded.shape
    (kh, kw), (sh, sw), (dh, dw) = kernel, strides, dilation
    oh, ow = (h - (kh - 1) * dh - 1) // sh + 1, (w - (kw - 1) * dw - 1) // sw + 1
    a, b, r, s = padded.strides
    return np.lib.stride_tricks.as_strided(
        padded, (n, c, oh, ow, kh, kw), (a, b, r * sh, s * sw, r * dh, s * dw), writeable=False
    )


def add_windows(cols: np.ndarray, size: Pair, strides: Pair, padding: Padding, dilation: Pair) -> np.ndarray:
    """The transpose of `windows`: [N, C, OH, OW, KH, KW] summed into [N, C, H, W]."""
    n, c, oh, ow, kh, kw = cols.shape
    (top, bottom), (left, right) = padding
    out = np.zeros((n, c, size[0] + top + bottom, size[1] + left + right), cols.dtype)
    for i in range(kh):
        for j in range(kw):
            y, x = i * dilation[0], j * dilation[1]
            rows = slice(y, y + (oh - 1) * strides[0] + 1, strides[0])
            columns = slice(x, x + (ow - 1) * strides[1] + 1, strides[1])
            out[:, :, rows, columns] += cols[:, :, :, :, i, j]
    return out[:, :, top : top + size[0], left : left + size[1]]


def conv2d(x: np.ndarray, w: np.ndarray, strides: Pair, padding: Padding, dilation: Pair, groups: int) -> np.ndarray:
    """x [N, C, H, W] with w [O, C/groups, KH, KW] -> [N, O, OH, OW]."""

    def one(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        views = windows(x, w.shape[2:], strides, padding, dilation)
        return np.moveaxis(np.tensordot(views, w, axes=([1, 4, 5], [1, 2, 3])), 3, 1)

    return np.ascontiguousarray(_by_group(one, groups, (x, 1), (w, 0), out_axis=1))


def conv2d_input_grad(
    g: np.ndarray, w: np.ndarray, size: Pair, strides: Pair, padding: Padding, dilation: Pair, groups: int
) -> np.ndarray:
    """The cotangent of x, of spatial `size`, from g [N, O, OH, OW]."""

    def one(g: np.ndarray, w: np.ndarray) -> np.ndarray:
        cols = np.moveaxis(np.tensordot(g, w, axes=([1], [0])), 3, 1)
        return add_windows(cols, size, strides, padding, dilation)

    return np.ascontiguousarray(_by_group(one, groups, (g, 1), (w, 0), out_axis=1))


def conv2d_weight_grad(
    x: np.ndarray, g: np.ndarray, kernel: Pair, strides: Pair, padding: Padding, dilation: Pair, groups: int
) -> np.ndarray:
    """The cotangent of w, of spatial size `kernel`, from x and g."""

    def one(x: np.ndarray, g: np.ndarray) -> np.ndarray:
        views = windows(x, kernel, strides, padding, dilation)[:, :, : g.shape[2], : g.shape[3]]
        return np.tensordot(g, views, axes=([0, 2, 3], [0, 2, 3]))

    return np.ascontiguousarray(_by_group(one, groups, (x, 1), (g, 1), out_axis=0))


def _by_group(
    function: Callable[..., np.ndarray], groups: int, a: tuple[np.ndarray, int], b: tuple[np.ndarray, int],
    out_axis: int,
) -> np.ndarray:
    if groups == 1:
        return function(a[0], b[0])
    pieces = zip(np.split(a[0], groups, a[1]), np.split(b[0], groups, b[1]), strict=True)
    return np.concatenate([function(x, y) for x, y in pieces], axis=out_axis)
