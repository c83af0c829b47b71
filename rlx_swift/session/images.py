"""Images as the tensors of programs, [1, channels, height, width], and back; scale and bias are the program's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import FeedError

_ANY = -1


def from_image(value: Any, color: str, shape: tuple[int, ...], subject: str) -> np.ndarray:
    """A PIL image, an array [height, width(, channels)] or a tensor of the input's own shape as that tensor.

    Arrays have their channels in the order red, green, blue. `shape` may have -1 for sizes left open. Raises FeedError.
    """
    if hasattr(value, "convert") and hasattr(value, "size"):
        mode = {"gray": "L", "gray_f16": "F"}.get(color, "RGB")
        array = np.asarray(value if value.mode == mode else value.convert(mode))
    else:
        array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise FeedError(subject, f"expected an image, got an array of {array.dtype}")
    if array.ndim == 4:
        tensor = array
    elif color.startswith("gray"):
        plane = array[..., 0] if array.ndim == 3 and array.shape[-1] == 1 else array
        tensor = plane[None, None]
    else:
        if array.ndim != 3 or array.shape[-1] not in (3, 4):
            raise FeedError(subject, f"expected an image with three channels, got shape {array.shape}")
        channels = array[..., :3] if color != "bgr" else array[..., 2::-1]
        tensor = channels.transpose(2, 0, 1)[None]
    if tensor.ndim != len(shape) or any(w not in (_ANY, n) for n, w in zip(tensor.shape, shape, strict=False)):
        height, width = shape[-2:]
        raise FeedError(
            subject, f"expected an image {width} wide and {height} high, got a tensor of shape {tensor.shape}",
            "resize it first",
        )
    return tensor


def to_image(tensor: np.ndarray, color: str) -> np.ndarray:
    """The first image of a tensor as bytes [height, width, 3], or [height, width] in gray; a gray_f16 one stays f16."""
    image = tensor.reshape(tensor.shape[-3:]) if tensor.ndim >= 3 else tensor[None]
    if color == "gray_f16":
        return image[0].astype(np.float16)
    values = np.clip(np.rint(image.astype(np.float32)), 0, 255).astype(np.uint8)
    if color == "gray":
        return values[0]
    return np.ascontiguousarray((values if color != "bgr" else values[::-1]).transpose(1, 2, 0))
