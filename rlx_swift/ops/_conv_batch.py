"""How a convolution and its two transposes take a batch: as more images, or as more groups of channels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..ir.op import find_op
from ..ir.tensor import Tensor
from ._batch import merged, parted, repeated
from ._build import apply
from .shape import reshape, transpose

Rule = Callable[[tuple[Tensor, ...], tuple[bool, ...], Any, int], Tensor]


def as_groups(name: str, kernel: int) -> Rule:
    """The rule of the op `name`, in which place 0 or 1 of the operands, or 2 for the result, is the kernel."""

    def rule(ins: tuple[Tensor, ...], many: tuple[bool, ...], attrs: Any, size: int) -> Tensor:
        op = find_op(name)
        if kernel == 1 and not many[1]:
            return parted(apply(op, merged(ins[0]), ins[1], attrs=attrs), size)
        whole = [x if m else repeated(x, size) for x, m in zip(ins, many, strict=True)]
        wide = [merged(x) if place == kernel else _side_by_side(x) for place, x in enumerate(whole)]
        out = apply(op, *wide, attrs=replace(attrs, groups=size * attrs.groups))
        return parted(out, size) if kernel == 2 else _apart(out, size)

    return rule


def _side_by_side(x: Tensor) -> Tensor:
    """[size, n, channels, ...] as [n, size * channels, ...]."""
    size, n, channels, *spatial = x.shape
    return reshape(transpose(x, (1, 0, *range(2, x.ndim))), (n, size * channels, *spatial))


def _apart(x: Tensor, size: int) -> Tensor:
    """[n, size * channels, ...] as [size, n, channels, ...]."""
    n, channels, *spatial = x.shape
    return transpose(reshape(x, (n, size, channels // size, *spatial)), (1, 0, *range(2, x.ndim + 1)))
