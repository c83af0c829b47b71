"""Random numbers that depend on their address alone: seed, micro-batch and site. Knows nothing of what they are for.

Philox4x32-10 (Salmon et al. 2011, Parallel random numbers: as easy as 1, 2, 3). The same address gives the same
numbers on every machine, in any order of calls, and after a resume.
"""

from __future__ import annotations

import math
import zlib

import numpy as np

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox(counter: np.ndarray, key: tuple[int, int]) -> np.ndarray:
    """Ten rounds over counters of shape (n, 4), words of 32 bits in uint64; result of the same shape."""
    c0, c1, c2, c3 = (counter[:, i].astype(np.uint64) for i in range(4))
    k0, k1 = key
    for _ in range(10):
        p0, p1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c2 = (p1 >> _HALF) ^ c1 ^ np.uint64(k0), (p0 >> _HALF) ^ c3 ^ np.uint64(k1)
        c1, c3 = p1 & _LOW, p0 & _LOW
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=1)


def uniform(seed: int, micro_batch: int, site: str, shape: tuple[int, ...]) -> np.ndarray:
    """f32 in (0, 1): odd multiples of 2^-24, so that neither end is hit."""
    words = _words(seed, micro_batch, site, shape)
    return ((words >> np.uint64(9)).astype(np.float32) * np.float32(2.0**-23) + np.float32(2.0**-24)).reshape(shape)


def signs(seed: int, micro_batch: int, site: str, shape: tuple[int, ...]) -> np.ndarray:
    """f32, each 1 or -1."""
    return (1 - 2 * (_words(seed, micro_batch, site, shape) >> np.uint64(31)).astype(np.float32)).reshape(shape)


def _words(seed: int, micro_batch: int, site: str, shape: tuple[int, ...]) -> np.ndarray:
    """One word of 32 random bits for each element."""
    count = math.prod(shape)
    counter = np.zeros((-(-count // 4), 4), np.uint64)
    counter[:, 0] = np.arange(len(counter), dtype=np.uint64)
    counter[:, 1] = zlib.crc32(site.encode())
    counter[:, 2] = micro_batch & 0xFFFFFFFF
    counter[:, 3] = (micro_batch >> 32) & 0xFFFFFFFF
    return philox(counter, (seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF)).reshape(-1)[:count]
