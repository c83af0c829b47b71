"""What rules for batches share: a batch put in, merged with the axis after it, and parted from it again."""

from __future__ import annotations

from ..ir.tensor import Tensor
from .shape import broadcast_to, expand_dims, reshape


def repeated(x: Tensor, size: int) -> Tensor:
    """x once for each value of a batch."""
    return broadcast_to(expand_dims(x, 0), (size, *x.shape))


def aligned(x: Tensor, rank: int) -> Tensor:
    """x [size, ...] with sizes of 1 after the batch, up to `rank` axes besides it."""
    return reshape(x, (x.shape[0], *(1,) * (rank + 1 - x.ndim), *x.shape[1:]))


def merged(x: Tensor) -> Tensor:
    """[size, n, ...] as [size * n, ...]."""
    return reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def parted(x: Tensor, size: int) -> Tensor:
    """[size * n, ...] as [size, n, ...]."""
    return reshape(x, (size, x.shape[0] // size, *x.shape[1:]))
