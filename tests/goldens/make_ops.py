"""Computes ops.npz with PyTorch 2.13 in float64: `python -m tests.goldens.make_ops`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from tests.goldens.op_cases import CLASS_WEIGHTS, MASK, SHAPES, cotangent, operands

FILE = Path(__file__).with_name("ops.npz")


def attention(q, k, v, **options):
    return F.scaled_dot_product_attention(q, k, v, **options)


def masked(q, k, v):
    """PyTorch's own attention gives zeros for a query that sees nothing, but NaN gradients in some versions."""
    mask = torch.tensor(MASK)
    scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(~mask, -1e30)
    return scores.softmax(-1).masked_fill(~mask, 0.0) @ v


def lstm(x, w_ih, w_hh, bias, h, c):
    flat = [w_ih.T, w_hh.T, bias, torch.zeros_like(bias)]
    return torch.lstm(x, (h[None], c[None]), flat, True, 1, 0.0, False, False, True)[0]


def gru(x, w_ih, w_hh, b_ih, b_hh, h):
    return torch.gru(x, h[None], [w_ih.T, w_hh.T, b_ih, b_hh], True, 1, 0.0, False, False, True)[0]


def labels(y):
    return y.long()


WEIGHTS = torch.tensor(CLASS_WEIGHTS).double()
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
    "attention": attention,
    "attention-causal": lambda q, k, v: attention(q, k, v, is_causal=True),
    "attention-causal-wide": lambda q, k, v: attention(q, k, v, is_causal=True),
    "attention-mask": masked,
    "attention-added-scaled": lambda q, k, v, m: attention(q, k, v, attn_mask=m, scale=0.3),
    "lstm": lstm,
    "gru": gru,
    "mse": F.mse_loss,
    "l1": F.l1_loss,
    "huber": lambda x, t: F.huber_loss(x, t, delta=0.4),
    "cross_entropy": lambda x, y: F.cross_entropy(x, labels(y)),
    "cross_entropy-image": lambda x, y: F.cross_entropy(x, labels(y)),
    "cross_entropy-all": lambda x, y: F.cross_entropy(x, labels(y), WEIGHTS, label_smoothing=0.2),
    "cross_entropy-sum": lambda x, y: F.cross_entropy(x, labels(y), WEIGHTS, reduction="sum"),
    "cross_entropy-none": lambda x, y: F.cross_entropy(x, labels(y), WEIGHTS, reduction="none"),
    "cross_entropy-soft": lambda x, t: F.cross_entropy(x, t.softmax(1), WEIGHTS, label_smoothing=0.1),
    "nll": lambda x, y: F.nll_loss(x.log_softmax(1), labels(y), WEIGHTS),
    "bce": lambda x, t: F.binary_cross_entropy_with_logits(4 * x, t.sigmoid()),
    "bce-weighted": lambda x, t: F.binary_cross_entropy_with_logits(4 * x, t.sigmoid(), pos_weight=WEIGHTS),
    "kl": lambda x, t: F.kl_div(x.log_softmax(1), t.relu(), reduction="mean"),
    "kl-log": lambda x, t: F.kl_div(x.log_softmax(1), t.log_softmax(1), reduction="batchmean", log_target=True),
    "cosine_similarity": lambda x, y: F.cosine_similarity(x, y, 1),
    "cosine_embedding": lambda x, y: F.cosine_embedding_loss(x, y, torch.tensor([1, -1, 1, -1]), 0.1),
    "triplet": F.triplet_margin_loss,
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
}


def computed() -> dict[str, np.ndarray]:
    arrays = {}
    for name in SHAPES:
        xs = [torch.tensor(a.astype(np.float64) if a.dtype == np.float32 else a) for a in operands(name)]
        floats = [x.requires_grad_() for x in xs if x.is_floating_point()]
        out = TORCH[name](*xs)
        grads = torch.autograd.grad(out, floats, torch.tensor(cotangent(name, tuple(out.shape)), dtype=torch.float64))
        arrays[f"{name}/out"] = out.detach().numpy().astype(np.float32)
        for i, grad in enumerate(grads):
            arrays[f"{name}/grad{i}"] = grad.numpy().astype(np.float32)
    return arrays


if __name__ == "__main__":
    np.savez_compressed(FILE, **computed())
