"""How convolutions and pools lay their windows over an image: strides, dilations, padding, one axis or two."""

from __future__ import annotations

from dataclasses import dataclass

from .. import ops
from ..ir.tensor import Tensor
from ..ir.types import Shape
from ..ops.conv import as_padding
from .call import Call

Pads = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class Windows:
    """Rows, then columns; an image with one axis has one row."""

    kernel: Shape
    strides: Shape
    dilations: Shape
    padding: Pads


def windows(call: Call, size: Shape, kernel: Shape) -> Windows:
    """The windows of an operation over an image of `size` with two axes; `kernel` has as many as the operation's.

    Raises UnsupportedError for three axes.
    """
    axes = len(kernel)
    if axes not in (1, 2):
        raise call.unsupported(f"windows over {axes} axes are not lifted")
    strides, dilations = (call.integers(name, (1,) * axes) for name in ("strides", "dilations"))
    lead = (1,) * (2 - axes)
    taps, steps, spread = lead + kernel, lead + strides, lead + dilations
    reach = tuple([(k - 1) * d + 1 for k, d in zip(taps, spread, strict=True)])
    return Windows(taps, steps, spread, _padding(call, size, reach, steps, axes))


def _padding(call: Call, size: Shape, reach: Shape, strides: Shape, axes: int) -> Pads:
    kind = call.text("pad_type").lower()
    if kind == "custom":
        pads = call.integers("pad", (0,) * (2 * axes))
        pairs = [(0, 0)] * (2 - axes) + list(zip(pads[::2], pads[1::2], strict=True))
        return as_padding(pairs, size, reach, strides, "pad")
    if kind not in ("valid", "same", "same_lower"):
        raise call.unsupported(f"unknown pad_type {kind!r}")
    (top, bottom), (left, right) = as_padding(kind.removesuffix("_lower"), size, reach, strides, "pad")
    return ((bottom, top), (right, left)) if kind == "same_lower" else ((top, bottom), (left, right))


def as_image(x: Tensor) -> Tensor:
    """An image [n, C, W] or kernel as one with one row."""
    return ops.expand_dims(x, 2) if x.ndim == 3 else x


def like(x: Tensor, rank: int) -> Tensor:
    """Back to the rank that the operation's x has."""
    return ops.squeeze(x, 2) if rank == 3 else x

