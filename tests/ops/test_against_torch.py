"""Values and gradients of ops as PyTorch computed them; `tests/goldens/make_ops.py` made the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from tests.goldens.op_cases import SHAPES, cotangent, operands
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
    rlx.check_grads(graph, feeds, list(feeds), order=2)
