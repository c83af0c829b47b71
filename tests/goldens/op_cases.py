"""Cases whose values and gradients PyTorch computed once: shapes of the operands by name, and how they are drawn."""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np


class Ints(NamedTuple):
    """An operand of integers from 0 and below `high`, with `special` at its first place if that is given."""

    shape: tuple[int, ...]
    high: int
    special: int | None = None


SHAPES: dict[str, tuple[tuple[int, ...] | Ints, ...]] = {
    "conv1d": ((2, 3, 9), (4, 3, 3), (4,)),
    "conv1d-strided-dilated-grouped": ((2, 4, 12), (6, 2, 3), (6,)),
    "conv2d-dilated-grouped": ((2, 4, 9, 8), (6, 2, 3, 2), (6,)),
    "conv3d": ((2, 3, 4, 5, 6), (4, 3, 2, 3, 3), (4,)),
    "conv3d-strided-dilated-grouped": ((2, 4, 7, 6, 5), (4, 2, 3, 2, 2), (4,)),
    "depthwise_conv2d": ((2, 3, 6, 6), (6, 1, 3, 3), (6,)),
    "conv_transpose1d": ((2, 4, 5), (4, 3, 3), (3,)),
    "conv_transpose2d": ((2, 4, 4, 5), (4, 3, 3, 3), (3,)),
    "conv_transpose2d-output_padding-grouped": ((2, 4, 4, 5), (4, 2, 3, 3), (4,)),
    "conv_transpose2d-dilated": ((2, 2, 4, 4), (2, 3, 3, 2), (3,)),
    "conv_transpose3d": ((1, 2, 3, 4, 3), (2, 3, 2, 3, 2), (3,)),
    "conv_transpose3d-output_padding": ((2, 4, 2, 3, 3), (4, 1, 3, 3, 3), (2,)),
    "max_pool1d": ((2, 3, 10),),
    "max_pool2d-ceil": ((2, 2, 7, 6),),
    "max_pool2d-ceil-padded": ((2, 2, 6, 7),),
    "max_pool3d": ((2, 2, 5, 6, 4),),
    "avg_pool1d-ceil": ((2, 3, 10),),
    "avg_pool2d-ceil": ((2, 2, 7, 6),),
    "avg_pool2d-ceil-padded": ((2, 2, 6, 7),),
    "avg_pool2d-ceil-padded-uncounted": ((2, 2, 6, 7),),
    "avg_pool3d": ((2, 2, 5, 6, 4),),
    "adaptive_avg_pool1d": ((2, 3, 7),),
    "adaptive_avg_pool2d": ((2, 3, 7, 8),),
    "global_avg_pool": ((2, 3, 4, 5),),
    "resize-nearest-up": ((2, 2, 3, 4),),
    "resize-nearest-odd": ((2, 2, 5, 7),),
    "resize-bilinear": ((2, 2, 3, 4),),
    "resize-bilinear-down": ((2, 2, 7, 9),),
    "resize-bilinear-aligned": ((2, 2, 3, 4),),
    "layer_norm": ((2, 3, 5), (5,), (5,)),
    "layer_norm-two-axes": ((2, 3, 5), (3, 5), (3, 5)),
    "rms_norm": ((2, 3, 5), (5,)),
    "group_norm": ((2, 6, 3, 4), (6,), (6,)),
    "instance_norm": ((2, 3, 4, 5), (3,), (3,)),
    "l2_normalize": ((2, 3, 5),),
    "batch_norm": ((4, 3, 2, 5), (3,), (3,)),
    "batch_norm-vectors": ((5, 3), (3,), (3,)),
    "attention": ((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 2)),
    "attention-causal": ((2, 4, 5), (2, 4, 5), (2, 4, 3)),
    "attention-causal-wide": ((2, 3, 5), (2, 6, 5), (2, 6, 3)),
    "attention-mask": ((2, 2, 4, 5), (2, 2, 4, 5), (2, 2, 4, 3)),
    "attention-added-scaled": ((2, 4, 5), (2, 6, 5), (2, 6, 3), (4, 6)),
    "lstm": ((2, 5, 3), (3, 16), (4, 16), (16,), (2, 4), (2, 4)),
    "gru": ((2, 5, 3), (3, 12), (4, 12), (12,), (12,), (2, 4)),
    "mse": ((3, 4), (3, 4)),
    "l1": ((3, 4), (3, 4)),
    "huber": ((3, 4), (3, 4)),
    "cross_entropy": ((4, 3), Ints((4,), 3)),
    "cross_entropy-image": ((2, 3, 4), Ints((2, 4), 3)),
    "cross_entropy-all": ((5, 4), Ints((5,), 4, -100)),
    "cross_entropy-sum": ((5, 4), Ints((5,), 4, -100)),
    "cross_entropy-none": ((5, 4), Ints((5,), 4, -100)),
    "cross_entropy-soft": ((5, 4), (5, 4)),
    "nll": ((5, 4), Ints((5,), 4, -100)),
    "bce": ((3, 4), (3, 4)),
    "bce-weighted": ((3, 4), (3, 4)),
    "kl": ((3, 4), (3, 4)),
    "kl-log": ((3, 4), (3, 4)),
    "cosine_similarity": ((3, 4), (3, 4)),
    "cosine_embedding": ((4, 3), (4, 3)),
    "triplet": ((4, 3), (4, 3), (4, 3)),
    "pixel_shuffle": ((2, 8, 3, 2),),
    "pixel_unshuffle": ((2, 2, 6, 4),),
}


def operands(name: str) -> list[np.ndarray]:
    """The operands of a case, each float different."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    shapes = SHAPES[name]
    sizes = [0 if isinstance(shape, Ints) else int(np.prod(shape)) for shape in shapes]
    pool = rng.permutation(np.linspace(-1, 1, sum(sizes))).astype(np.float32)
    parts = np.split(pool, np.cumsum(sizes)[:-1])
    return [
        _integers(shape, rng) if isinstance(shape, Ints) else part.reshape(shape)
        for part, shape in zip(parts, shapes, strict=True)
    ]


def _integers(wanted: Ints, rng: np.random.Generator) -> np.ndarray:
    values = rng.integers(0, wanted.high, wanted.shape).astype(np.int32)
    if wanted.special is not None:
        values.flat[0] = wanted.special
    return values


CLASS_WEIGHTS = np.float32([1.0, 0.5, 2.0, 0.25])

# A mask in which query 1 of the second head sees nothing.
MASK = np.random.default_rng(0).random((2, 4, 4)) < 0.6
MASK[1, 1] = False


def cotangent(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The cotangent that the gradients are of."""
    rng = np.random.default_rng(zlib.crc32(name.encode()) + 1)
    return rng.uniform(-1, 1, shape).astype(np.float32)
