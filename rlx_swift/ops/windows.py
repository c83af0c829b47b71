"""How windows are spelled and counted: sizes, strides, dilation and padding of convolutions and pools; no ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ConfigError, ShapeError
from ..ir.types import Shape, as_ints

Pads = tuple[tuple[int, int], ...]
Padding = str | int | Sequence[int] | Sequence[Sequence[int]]


def as_sizes(value: int | Sequence[int], rank: int, subject: str) -> Shape:
    """A number for all axes, or one for each; at least 1. Raises ConfigError."""
    try:
        sizes = as_ints(value, subject)
    except ShapeError:
        sizes = ()
    sizes = sizes * rank if len(sizes) == 1 else sizes
    if len(sizes) != rank or min(sizes) < 1:
        raise ConfigError(subject, f"expected an integer of at least 1, or {rank} of them, got {value!r}")
    return sizes


def as_padding(padding: Padding, size: Shape, reach: Shape, strides: Shape, subject: str) -> Pads:
    """Padding in any of its spellings as (before, after) for each axis. Raises ConfigError.

    "same" gives ceil(size / stride) windows, with the odd element after, as TensorFlow does.
    """
    rank = len(size)
    if isinstance(padding, str) and padding == "valid":
        return ((0, 0),) * rank
    if isinstance(padding, str) and padding == "same":
        totals = [max(0, (-(-n // s) - 1) * s + k - n) for n, k, s in zip(size, reach, strides, strict=True)]
        return tuple((total // 2, total - total // 2) for total in totals)
    sides = _sides(padding, rank, subject)
    if len(sides) != rank or any(min(pair) < 0 for pair in sides):
        wanted = f"'valid', 'same', a number, {rank} numbers or {rank} pairs"
        raise ConfigError(f"{subject} padding", f"expected {wanted} of at least 0, got {padding!r}")
    return sides


def _sides(padding: Any, rank: int, subject: str) -> Pads:
    """Empty when it is spelled in no known way."""
    given: Any = (padding,) * rank if isinstance(padding, int) else padding
    try:
        entries = [as_ints(entry, subject) for entry in given]
    except (TypeError, ShapeError):
        return ()
    if any(len(entry) not in (1, 2) for entry in entries):
        return ()
    return tuple((entry[0], entry[-1]) for entry in entries)


def reach_of(kernel: Shape, dilation: Shape) -> Shape:
    """How many elements a kernel spans along each axis."""
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))


def window_counts(size: Shape, reach: Shape, strides: Shape, padding: Pads) -> Shape:
    """How many windows fit along each axis; less than 1 where none does."""
    return tuple(
        (n + sum(p) - k) // s + 1 for n, k, s, p in zip(size, reach, strides, padding, strict=True)
    )
