"""Networks whose gradients PyTorch computed once: their params' shapes, and how params and batches are drawn."""

from __future__ import annotations

import zlib

import numpy as np

WIDTH, HEADS, LENGTH, BATCH, VOCABULARY, HIDDEN = 32, 4, 12, 3, 50, 64
IMAGES, STEPS, FEATURES, UNITS, RANK = 6, 8, 10, 16, 4


def _block(i: int) -> dict[str, tuple[int, ...]]:
    names = {"ln1.g": (WIDTH,), "ln1.b": (WIDTH,), "ln2.g": (WIDTH,), "ln2.b": (WIDTH,)}
    for name in ("q", "k", "v", "o"):
        names |= {f"{name}.w": (WIDTH, WIDTH), f"{name}.b": (WIDTH,)}
    names |= {"up.w": (WIDTH, HIDDEN), "up.b": (HIDDEN,), "down.w": (HIDDEN, WIDTH), "down.b": (WIDTH,)}
    return {f"{i}.{name}": shape for name, shape in names.items()}


PARAMS: dict[str, dict[str, tuple[int, ...]]] = {
    "transformer": {
        "emb": (VOCABULARY, WIDTH), "pos": (LENGTH, WIDTH), **_block(0), **_block(1), "lnf.g": (WIDTH,),
        "lnf.b": (WIDTH,),
    },
    "cnn": {
        "c1.w": (8, 3, 3, 3), "bn1.g": (8,), "bn1.b": (8,), "c2.w": (12, 8, 3, 3), "bn2.g": (12,), "bn2.b": (12,),
        "fc.w": (12 * 16, 10), "fc.b": (10,),
    },
    "lstm": {
        "w_ih": (FEATURES, 4 * UNITS), "w_hh": (UNITS, 4 * UNITS), "b": (4 * UNITS,), "out.w": (UNITS, 5),
        "out.b": (5,),
    },
    "lora": {"a1": (20, RANK), "b1": (RANK, HIDDEN), "a2": (HIDDEN, RANK), "b2": (RANK, 7)},
}
FIXED = {"lora": {"w1": (20, HIDDEN), "bias1": (HIDDEN,), "w2": (HIDDEN, 7), "bias2": (7,)}}
BATCHES: dict[str, dict[str, tuple[tuple[int, ...], int]]] = {  # shape, and the number of classes for integers
    "transformer": {"ids": ((BATCH, LENGTH), VOCABULARY), "labels": ((BATCH, LENGTH), VOCABULARY)},
    "cnn": {"x": ((IMAGES, 3, 8, 8), 0), "labels": ((IMAGES,), 10)},
    "lstm": {"x": ((4, STEPS, FEATURES), 0), "target": ((4, 5), 0)},
    "lora": {"x": ((9, 20), 0), "target": ((9, 7), 0)},
}


def _generator(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def params(network: str) -> dict[str, np.ndarray]:
    """Trained and fixed params: matrices of a spread that keeps activations of order one, scales around one."""
    values = {}
    for name, shape in {**PARAMS[network], **FIXED.get(network, {})}.items():
        rng = _generator(f"{network}/{name}")
        if name.endswith(".g"):
            value = 1 + 0.1 * rng.standard_normal(shape)
        elif len(shape) == 1:
            value = 0.1 * rng.standard_normal(shape)
        else:
            fan_in = int(np.prod(shape[1:])) if len(shape) == 4 else shape[0]
            value = rng.standard_normal(shape) / np.sqrt(fan_in)
        values[name] = value.astype(np.float32)
    return values


def batch(network: str) -> dict[str, np.ndarray]:
    values = {}
    for name, (shape, classes) in BATCHES[network].items():
        rng = _generator(f"{network}/{name}")
        values[name] = rng.integers(0, classes, shape).astype(np.int32) if classes else rng.standard_normal(shape)
    return {name: v if v.dtype == np.int32 else v.astype(np.float32) for name, v in values.items()}
