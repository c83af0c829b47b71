"""What the pools share: their attributes, shapes and arguments, over one to three spatial axes; no ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ConfigError, ShapeError
from ..ir.op import Attrs
from ..ir.tensor import Tensor
from ..ir.types import Shape, TensorType
from . import conv_reference
from ._build import TensorLike, as_tensors, require_float
from .windows import Padding, Pads, as_padding, as_sizes, window_counts

Size = int | Sequence[int]


@dataclass(frozen=True)
class PoolAttrs(Attrs):
    """Each field has an entry for each spatial axis; `padding`: (before, after), each less than the kernel."""

    kernel: Shape
    strides: Shape
    padding: Pads


def pooled(shape: Shape, attrs: PoolAttrs) -> Shape:
    """The shape that a pool makes of an image's."""
    return (*shape[:2], *window_counts(shape[2:], attrs.kernel, attrs.strides, attrs.padding))


def pool_infer(types: tuple[TensorType, ...], attrs: PoolAttrs) -> tuple[TensorType, ...]:
    x, rank = types[0], len(attrs.kernel)
    require_float("pooling", x)
    if x.rank != rank + 2 or not len(attrs.strides) == len(attrs.padding) == rank:
        raise ShapeError("pooling", f"expected an image with {rank} spatial axes, got {x}")
    inside = [0 <= min(p) <= max(p) < k for p, k in zip(attrs.padding, attrs.kernel, strict=True)]
    if min(*attrs.kernel, *attrs.strides) < 1 or not all(inside):
        raise ShapeError("pooling", f"expected sizes and strides of at least 1, padding below the kernel, got {attrs}")
    shape = pooled(x.shape, attrs)
    if min(*shape[2:], *x.shape[2:]) < 1:
        raise ShapeError("pooling", f"the window {attrs.kernel} does not fit {x} with padding {attrs.padding}")
    return (x.with_shape(shape),)


def views(x: np.ndarray, attrs: PoolAttrs, fill: float) -> np.ndarray:
    """All windows, [N, C, out..., kernel...]."""
    return conv_reference.windows(x, attrs.kernel, attrs.strides, attrs.padding, (1,) * len(attrs.kernel), fill)


def window_axes(attrs: PoolAttrs) -> tuple[int, ...]:
    """The axes of `views` that run inside a window."""
    return tuple(range(-len(attrs.kernel), 0))


def flat_padding(attrs: PoolAttrs) -> tuple[int, ...]:
    return tuple(n for pair in attrs.padding for n in pair)


def arguments(
    subject: str, rank: int, x: TensorLike, kernel: Size, strides: Size | None, padding: Padding, ceil_mode: bool
) -> tuple[Tensor, PoolAttrs, Shape]:
    """The image, the attributes, and how much of the padding after it only `ceil_mode` adds.

    With `ceil_mode` a window that reaches past the end counts too, unless it would start in the padding.
    """
    (image,) = as_tensors(subject, x)
    if image.ndim != rank + 2:
        raise ShapeError(subject, f"expected x of rank {rank + 2}, got {image.type}")
    size = as_sizes(kernel, rank, f"{subject} kernel")
    steps = size if strides is None else as_sizes(strides, rank, f"{subject} strides")
    pads = as_padding(padding, image.shape[2:], size, steps, subject)
    if any(max(pair) >= k for pair, k in zip(pads, size, strict=True)):
        raise ConfigError(f"{subject} padding", f"expected less than the kernel {size}, got {pads}")
    extra = (0,) * rank
    if ceil_mode:
        extra = tuple(map(_overhang, image.shape[2:], size, steps, pads))
        pads = tuple((before, after + more) for (before, after), more in zip(pads, extra, strict=True))
    return image, PoolAttrs(size, steps, pads), extra


def _overhang(size: int, kernel: int, stride: int, pads: tuple[int, int]) -> int:
    total = size + sum(pads)
    last = -(-(total - kernel) // stride) * stride  # where the last window starts
    if last >= size + pads[0]:
        last -= stride
    return max(0, last + kernel - total)
