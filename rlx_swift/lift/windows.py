"""How convolutions and pools lay their windows over an image, in MIL's spelling. Knows no rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..ir.tensor import Tensor
from ..ir.types import Shape
from ..ops.windows import Pads, as_padding, reach_of
from .call import Call


@dataclass(frozen=True)
class Windows:
    """One entry an axis."""

    reach: Shape
    strides: Shape
    dilations: Shape
    padding: Pads


def windows(call: Call, size: Shape, kernel: Shape) -> Windows:
    """The windows of an operation over an image of `size`."""
    ones = (1,) * len(kernel)
    strides, dilations = call.integers("strides", ones), call.integers("dilations", ones)
    reach = reach_of(kernel, dilations)
    return Windows(reach, strides, dilations, _padding(call, size, reach, strides))


def _padding(call: Call, size: Shape, reach: Shape, strides: Shape) -> Pads:
    kind = call.text("pad_type").lower()
    if kind == "custom":
        flat = call.integers("pad", (0,) * (2 * len(size)))
        return as_padding(list(zip(flat[::2], flat[1::2], strict=True)), size, reach, strides, "pad")
    if kind not in ("valid", "same", "same_lower"):
        raise call.unsupported(f"unknown pad_type {kind!r}")
    pads = as_padding(kind.removesuffix("_lower"), size, reach, strides, "pad")
    return tuple([(after, before) for before, after in pads]) if kind == "same_lower" else pads


def for_axes(call: Call, x: Tensor, functions: tuple[Callable[..., Tensor], ...]) -> Callable[..., Tensor]:
    """Of functions over one, two, ... axes, that for an image [N, C, ...]."""
    if not 0 < x.ndim - 2 <= len(functions):
        raise call.malformed(f"an image has rank 3 to {len(functions) + 2}, got {x.type}")
    return functions[x.ndim - 3]
