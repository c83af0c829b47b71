"""Rules of pools over one or two axes."""

from __future__ import annotations

import numpy as np

from .. import ops
from ..ir.tensor import Tensor
from ..ir.types import Shape
from .call import Call
from .table import rule
from .windows import Pads, Windows, as_image, like, windows


@rule("max_pool")
def _max_pool(call: Call) -> Tensor:
    x = call.tensor("x")
    image = as_image(x)
    over, extra = _windows(call, image)
    padding = _extended(over.padding, extra)
    return like(ops.max_pool2d(image, over.kernel, over.strides, padding), x.ndim)


@rule("avg_pool")
def _avg_pool(call: Call) -> Tensor:
    """Elements that only ceil_mode adds count in no mean."""
    x = call.tensor("x")
    image = as_image(x)
    over, extra = _windows(call, image)
    counted = not call.flag("exclude_padding_from_average")
    out = ops.avg_pool2d(image, over.kernel, over.strides, _extended(over.padding, extra), counted)
    if counted and any(extra):
        rows, columns = (
            _counts(n + sum(pads), kernel, stride, size) / kernel for n, pads, kernel, stride, size in zip(
                image.shape[2:], over.padding, over.kernel, over.strides, out.shape[2:], strict=True
            )
        )
        out = ops.div(out, np.outer(rows, columns).astype(x.dtype.numpy))
    return like(out, x.ndim)


def _windows(call: Call, image: Tensor) -> tuple[Windows, Shape]:
    """The windows, and by how much ceil_mode extends the image after each axis."""
    over = windows(call, image.shape[2:], call.integers("kernel_sizes"))
    if not call.flag("ceil_mode"):
        return over, (0, 0)
    axes = zip(image.shape[2:], over.padding, over.kernel, over.strides, strict=True)
    return over, tuple([_missing(n, pads, kernel, stride) for n, pads, kernel, stride in axes])


def _missing(size: int, pads: tuple[int, int], kernel: int, stride: int) -> int:
    """What the last window of ceil_mode lacks. A window that begins in the padding after the image is left out."""
    steps = -(-(size + sum(pads) - kernel) // stride)
    if any(pads) and steps * stride >= size + pads[0]:
        steps -= 1
    return max(0, steps * stride + kernel - size - sum(pads))


def _counts(size: int, kernel: int, stride: int, windows: int) -> np.ndarray:
    """How many of `size` elements each window covers."""
    first = np.arange(windows) * stride
    return np.minimum(first + kernel, size) - first


def _extended(padding: Pads, extra: Shape) -> Pads:
    """Padding with so many elements more after each axis."""
    rows, columns = [(before, after + more) for (before, after), more in zip(padding, extra, strict=True)]
    return rows, columns
