"""Computes ops.npz with PyTorch 2.13 in float64: `python -m tests.goldens.make_ops`, in an environment that has it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from tests.goldens.op_cases import SHAPES, cotangent, operands

TORCH = {
    "conv1d": F.conv1d,
    "conv1d-strided-dilated-grouped": lambda x, w, b: F.conv1d(x, w, b, 2, 3, 2, 2),
    "conv2d-dilated-grouped": lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 2), (2, 3), 2),
    "conv3d": lambda x, w, b: F.conv3d(x, w, b, 1, 1),
    "conv3d-strided-dilated-grouped": lambda x, w, b: F.conv3d(x, w, b, (2, 1, 2), (1, 0, 2), (2, 2, 1), 2),
    "depthwise_conv2d": lambda x, w, b: F.conv2d(x, w, b, 1, 1, 1, 3),
    "conv_transpose1d": lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1),
    "conv_transpose2d": F.conv_transpose2d,
    "conv_transpose2d-output_padding-grouped": lambda x, w, b: F.conv_transpose2d(x, w, b, (2, 3), 1, (1, 2), 2),
    "conv_transpose2d-dilated": lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1, 1, (2, 3)),
    "conv_transpose3d": F.conv_transpose3d,
    "conv_transpose3d-output_padding": lambda x, w, b: F.conv_transpose3d(x, w, b, 2, 1, 1, 2, 2),
    "max_pool1d": lambda x: F.max_pool1d(x, 3, 2, 1),
    "max_pool2d-ceil": lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True),
    "max_pool2d-ceil-padded": lambda x: F.max_pool2d(x, 3, (2, 3), 1, ceil_mode=True),
    "max_pool3d": lambda x: F.max_pool3d(x, (2, 3, 2), (2, 2, 1), (0, 1, 1)),
    "avg_pool1d-ceil": lambda x: F.avg_pool1d(x, 3, 2, ceil_mode=True),
    "avg_pool2d-ceil": lambda x: F.avg_pool2d(x, (3, 2), 2, ceil_mode=True),
    "avg_pool2d-ceil-padded": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    "avg_pool2d-ceil-padded-uncounted": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "avg_pool3d": lambda x: F.avg_pool3d(x, (2, 3, 2), (2, 2, 1), (0, 1, 1)),
    "adaptive_avg_pool1d": lambda x: F.adaptive_avg_pool1d(x, 3),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
    "global_avg_pool": lambda x: F.adaptive_avg_pool2d(x, 1),
    "resize-nearest-up": lambda x: F.interpolate(x, (6, 12), mode="nearest"),
    "resize-nearest-odd": lambda x: F.interpolate(x, (8, 4), mode="nearest"),
    "resize-bilinear": lambda x: F.interpolate(x, (7, 6), mode="bilinear"),
    "resize-bilinear-down": lambda x: F.interpolate(x, (3, 4), mode="bilinear"),
    "resize-bilinear-aligned": lambda x: F.interpolate(x, (7, 6), mode="bilinear", align_corners=True),
    "layer_norm": lambda x, c, b: F.layer_norm(x, (5,), c, b),
    "layer_norm-two-axes": lambda x, c, b: F.layer_norm(x, (3, 5), c, b),
    "rms_norm": lambda x, c: F.rms_norm(x, (5,), c, 1e-6),
    "group_norm": lambda x, c, b: F.group_norm(x, 3, c, b),
    "instance_norm": lambda x, c, b: F.instance_norm(x, weight=c, bias=b),
    "l2_normalize": lambda x: F.normalize(x, dim=1),
    "batch_norm": lambda x, c, b: F.batch_norm(x, None, None, c, b, True),
    "batch_norm-vectors": lambda x, c, b: F.batch_norm(x, None, None, c, b, True),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
}


def main() -> None:
    arrays = {}
    for name in SHAPES:
        xs = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in operands(name)]
        out = TORCH[name](*xs)
        grads = torch.autograd.grad(out, xs, torch.tensor(cotangent(name, tuple(out.shape)), dtype=torch.float64))
        arrays[f"{name}/out"] = out.detach().numpy().astype(np.float32)
        for i, grad in enumerate(grads):
            arrays[f"{name}/grad{i}"] = grad.numpy().astype(np.float32)
    np.savez_compressed(Path(__file__).with_name("ops.npz"), **arrays)


if __name__ == "__main__":
    main()
