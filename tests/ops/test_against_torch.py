"""Values and gradients of ops as PyTorch computed them; `tests/goldens/make_ops.py` made the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from tests.goldens.op_cases import CLASS_WEIGHTS, MASK, SHAPES, cotangent, operands
from tests.helpers import gradients, same, traced, value

GOLDENS = np.load(Path(__file__).parents[1] / "goldens" / "ops.npz")

def averages(x):
    """Running averages for a batch norm over axis 1."""
    return x.graph.buffer("mean", x.shape[1:2]), x.graph.buffer("var", x.shape[1:2], 1.0)


OURS = {
    "conv1d": ops.conv1d,
    "conv1d-strided-dilated-grouped": lambda x, w, b: ops.conv1d(x, w, b, 2, 3, 2, 2),
    "conv2d-dilated-grouped": lambda x, w, b: ops.conv2d(x, w, b, (2, 1), (1, 2), (2, 3), 2),
    "conv3d": lambda x, w, b: ops.conv3d(x, w, b, 1, 1),
    "conv3d-strided-dilated-grouped": lambda x, w, b: ops.conv3d(x, w, b, (2, 1, 2), (1, 0, 2), (2, 2, 1), 2),
    "depthwise_conv2d": lambda x, w, b: ops.depthwise_conv2d(x, w, b, 1, 1),
    "conv_transpose1d": lambda x, w, b: ops.conv_transpose1d(x, w, b, 2, 1, 1),
    "conv_transpose2d": ops.conv_transpose2d,
    "conv_transpose2d-output_padding-grouped": lambda x, w, b: ops.conv_transpose2d(
        x, w, b, (2, 3), 1, output_padding=(1, 2), groups=2
    ),
    "conv_transpose2d-dilated": lambda x, w, b: ops.conv_transpose2d(x, w, b, 2, 1, 1, dilation=(2, 3)),
    "conv_transpose3d": ops.conv_transpose3d,
    "conv_transpose3d-output_padding": lambda x, w, b: ops.conv_transpose3d(x, w, b, 2, 1, 1, 2, 2),
    "max_pool1d": lambda x: ops.max_pool1d(x, 3, 2, 1),
    "max_pool2d-ceil": lambda x: ops.max_pool2d(x, 2, 2, ceil_mode=True),
    "max_pool2d-ceil-padded": lambda x: ops.max_pool2d(x, 3, (2, 3), 1, ceil_mode=True),
    "max_pool3d": lambda x: ops.max_pool3d(x, (2, 3, 2), (2, 2, 1), (0, 1, 1)),
    "avg_pool1d-ceil": lambda x: ops.avg_pool1d(x, 3, 2, ceil_mode=True),
    "avg_pool2d-ceil": lambda x: ops.avg_pool2d(x, (3, 2), 2, ceil_mode=True),
    "avg_pool2d-ceil-padded": lambda x: ops.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    "avg_pool2d-ceil-padded-uncounted": lambda x: ops.avg_pool2d(x, 3, 2, 1, count_padding=False, ceil_mode=True),
    "avg_pool3d": lambda x: ops.avg_pool3d(x, (2, 3, 2), (2, 2, 1), (0, 1, 1)),
    "adaptive_avg_pool1d": lambda x: ops.adaptive_avg_pool(x, 3),
    "adaptive_avg_pool2d": lambda x: ops.adaptive_avg_pool(x, (3, 4)),
    "global_avg_pool": ops.global_avg_pool,
    "resize-nearest-up": lambda x: ops.resize(x, (6, 12)),
    "resize-nearest-odd": lambda x: ops.resize(x, (8, 4)),
    "resize-bilinear": lambda x: ops.resize(x, (7, 6), "bilinear"),
    "resize-bilinear-down": lambda x: ops.resize(x, (3, 4), "bilinear"),
    "resize-bilinear-aligned": lambda x: ops.resize(x, (7, 6), "bilinear", align_corners=True),
    "layer_norm": ops.layer_norm,
    "layer_norm-two-axes": lambda x, c, b: ops.layer_norm(x, c, b, axis=(1, 2)),
    "rms_norm": ops.rms_norm,
    "group_norm": lambda x, c, b: ops.group_norm(x, 3, c, b),
    "instance_norm": ops.instance_norm,
    "l2_normalize": lambda x: ops.l2_normalize(x, 1),
    "batch_norm": lambda x, c, b: ops.batch_norm(x, *averages(x), c, b),
    "batch_norm-vectors": lambda x, c, b: ops.batch_norm(x, *averages(x), c, b),
    "attention": ops.scaled_dot_product_attention,
    "attention-causal": lambda q, k, v: ops.scaled_dot_product_attention(q, k, v, causal=True),
    "attention-causal-wide": lambda q, k, v: ops.scaled_dot_product_attention(q, k, v, causal=True),
    "attention-mask": lambda q, k, v: ops.scaled_dot_product_attention(q, k, v, MASK),
    "attention-added-scaled": lambda q, k, v, m: ops.scaled_dot_product_attention(q, k, v, m, scale=0.3),
    "lstm": lambda x, w, u, b, h, c: ops.lstm(x, w, u, b, h, c)[0],
    "gru": lambda x, w, u, b, d, h: ops.gru(x, w, u, b, d, h)[0],
    "mse": ops.mse_loss,
    "l1": ops.l1_loss,
    "huber": lambda x, t: ops.huber_loss(x, t, 0.4),
    "cross_entropy": ops.cross_entropy,
    "cross_entropy-image": lambda x, y: ops.cross_entropy(x, y, axis=1),
    "cross_entropy-all": lambda x, y: ops.cross_entropy(x, y, CLASS_WEIGHTS, -100, 0.2),
    "cross_entropy-sum": lambda x, y: ops.cross_entropy(x, y, CLASS_WEIGHTS, -100, reduction="sum"),
    "cross_entropy-none": lambda x, y: ops.cross_entropy(x, y, CLASS_WEIGHTS, -100, reduction="none"),
    "cross_entropy-soft": lambda x, t: ops.cross_entropy(x, ops.softmax(t), CLASS_WEIGHTS, label_smoothing=0.1),
    "nll": lambda x, y: ops.nll_loss(ops.log_softmax(x), y, CLASS_WEIGHTS, -100),
    "bce": lambda x, t: ops.bce_with_logits(4.0 * x, ops.sigmoid(t)),
    "bce-weighted": lambda x, t: ops.bce_with_logits(4.0 * x, ops.sigmoid(t), CLASS_WEIGHTS),
    "kl": lambda x, t: ops.kl_div(ops.log_softmax(x), ops.relu(t)),
    "kl-log": lambda x, t: ops.kl_div(ops.log_softmax(x), ops.log_softmax(t), True, "batchmean"),
    "cosine_similarity": ops.cosine_similarity,
    "cosine_embedding": lambda x, y: ops.cosine_embedding_loss(x, y, np.float32([1, -1, 1, -1]), 0.1),
    "triplet": ops.triplet_loss,
    "pixel_shuffle": lambda x: ops.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x: ops.pixel_unshuffle(x, 2),
}


def test_every_case_has_its_values():
    assert OURS.keys() == SHAPES.keys() == {key.partition("/")[0] for key in GOLDENS}


@pytest.mark.parametrize("name", SHAPES)
def test_values_and_gradients_are_pytorchs(name):
    xs = operands(name)
    out = GOLDENS[f"{name}/out"]
    same(value(OURS[name], *xs), out, 1e-5, 2e-6)
    grads = gradients(OURS[name], *xs, g=cotangent(name, out.shape))
    for i, grad in enumerate(grads if isinstance(grads, list) else [grads]):
        same(grad, GOLDENS[f"{name}/grad{i}"], 1e-5, 5e-6)


@pytest.mark.parametrize("name", SHAPES)
def test_gradients_of_gradients_are_right(name):
    graph, feeds = traced(OURS[name], *operands(name))
    floats = [name for name, array in feeds.items() if array.dtype == np.float32]
    rlx.check_grads(graph, feeds, floats, order=2)


@pytest.mark.parametrize(("options", "expected"), [
    ({"output_padding": 1, "dilation": 2}, [1, 2, 13, 20, 30, 0]),
    ({"output_padding": 3, "dilation": 4, "padding": 2}, [3, 0, 10, 20, 30, 0]),
    ({"output_padding": 2, "dilation": 3, "strides": 2, "padding": 1}, [0, 2, 10, 3, 20, 0, 30, 0]),
])
def test_output_padding_up_to_the_dilation(options, expected):
    """The values are those of PyTorch 2; what lies beyond every tap is 0."""
    w = np.float32([[[1, 10]]])
    same(value(lambda x: ops.conv_transpose1d(x, w, **options), np.float32([[[1, 2, 3]]])), [[expected]])
    graph, feeds = traced(lambda x: ops.conv_transpose1d(x, w, **options), np.float32([[[1, 2, 3]]]))
    rlx.check_grads(graph, feeds, ["x0"])
