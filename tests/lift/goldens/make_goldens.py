"""Converts small PyTorch networks with coremltools and keeps the packages, inputs and PyTorch's own outputs.

Needs torch 2.13 and coremltools 9.0; run again only to change them: python make_goldens.py [NAME...]
"""

from __future__ import annotations

import pathlib
import shutil
import sys

import coremltools as ct
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

HERE = pathlib.Path(__file__).parent
OLDEST, RECENT, NEWEST = ct.target.iOS15, ct.target.iOS17, ct.target.iOS18
HALF, SINGLE = ct.precision.FLOAT16, ct.precision.FLOAT32


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(6, 16), nn.Linear(16, 16), nn.Linear(16, 5)
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        h = F.gelu(self.first(x))
        h = self.norm(h + torch.tanh(self.second(h)))
        return self.head(h)


class Images(nn.Module):
    """Convolutions of several kinds, pools, norms and activations, for digits of 12 by 10 pixels."""

    def __init__(self):
        super().__init__()
        self.stem, self.stem_norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.depthwise, self.depthwise_norm = nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=8), nn.BatchNorm2d(8)
        self.wide = nn.Conv2d(8, 8, 3, padding=2, dilation=2)
        self.up = nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1)
        self.group, self.instance = nn.GroupNorm(2, 8), nn.InstanceNorm2d(4, affine=True)
        self.slope, self.head = nn.PReLU(4, init=0.1), nn.Linear(12, 4)

    def forward(self, x):
        h = F.relu(self.stem_norm(self.stem(x)))
        h = F.max_pool2d(h, 3, stride=2, padding=1, ceil_mode=True)
        h = F.hardswish(self.depthwise_norm(self.depthwise(h)))
        h = F.silu(self.group(h + self.wide(h)))
        h = self.slope(self.instance(self.up(h)))
        h = F.interpolate(h, scale_factor=2, mode="bilinear", align_corners=False)
        h = F.interpolate(h, scale_factor=2, mode="nearest") + 0.5 * F.pad(h[:, :, 1:-1, 2:-2], (9, 7, 10, 8))
        h = F.avg_pool2d(F.leaky_relu(h, 0.2), 3, stride=2, padding=1, count_include_pad=False)
        pooled = torch.cat([h.mean((2, 3)), F.adaptive_max_pool2d(h, 1).flatten(1), h.std((2, 3))], 1)
        return self.head(F.dropout(pooled, training=self.training))


def randomized(model):
    """Averages of batch norms as after training."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, std=0.5)
            nn.init.uniform_(module.running_var, 0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 2)
            nn.init.normal_(module.bias)
    return model


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = self.qkv(x).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(n, length, width))


class Language(nn.Module):
    """A decoder of two blocks over 20 tokens."""

    def __init__(self, width=16, length=6):
        super().__init__()
        self.token, self.place = nn.Embedding(20, width), nn.Parameter(torch.randn(length, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(5))
        self.mixers = nn.ModuleList(Attention(width, 2) for _ in range(2))
        self.ups = nn.ModuleList(nn.Linear(width, 32) for _ in range(2))
        self.downs = nn.ModuleList(nn.Linear(32, width) for _ in range(2))

    def forward(self, ids):
        h = self.token(ids) + self.place
        for i in range(2):
            h = h + self.mixers[i](self.norms[2 * i](h))
            h = h + self.downs[i](F.gelu(self.ups[i](self.norms[2 * i + 1](h)), approximate="tanh"))
        return self.norms[4](h) @ self.token.weight.T


class Encoder(nn.Module):
    """Two blocks in the order of BERT, attention written as Einstein sums, and probabilities of three classes."""

    def __init__(self, width=16):
        super().__init__()
        self.projections = nn.ModuleList(nn.Linear(width, width) for _ in range(8))
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=1e-12) for _ in range(4))
        self.ups = nn.ModuleList(nn.Linear(width, 32) for _ in range(2))
        self.downs = nn.ModuleList(nn.Linear(32, width) for _ in range(2))
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        for i in range(2):
            q, k, v = (p(x).unflatten(2, (4, 4)) for p in self.projections[4 * i : 4 * i + 3])
            scores = torch.einsum("blhd,bmhd->bhlm", q, k) / 2
            mixed = torch.einsum("bhlm,bmhd->blhd", F.softmax(scores, -1), v).flatten(2)
            x = self.norms[2 * i](x + self.projections[4 * i + 3](mixed))
            x = self.norms[2 * i + 1](x + self.downs[i](F.gelu(self.ups[i](x))))
        return F.softmax(self.head(x[:, 0]), -1)


class Cached(nn.Module):
    """Attention to keys that are kept in a state, of which each call replaces two and forgets a little."""

    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(8, 8), nn.Linear(8, 8)
        self.register_buffer("cache", torch.zeros(1, 4, 8))

    def forward(self, x):
        self.cache *= 0.5
        self.cache[:, 1:3, :] += self.k(x)
        return self.q(x) @ self.cache.transpose(1, 2)


class Flexible(nn.Module):
    """Shapes that are computed from the batch."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 8), nn.Linear(4, 6)

    def forward(self, x):
        h = torch.relu(self.first(x.flatten(1)))
        h = h.unflatten(1, (2, 4))
        return self.second(h + torch.ones_like(h)).flatten(1)


def floats(*shape):
    return torch.randn(*shape)


def ids(*shape):
    return torch.randint(0, 20, shape, dtype=torch.int32)


torch.manual_seed(0)
BATCHES = ct.Shape((ct.RangeDim(1, 8, default=2), 3, 4))
NETWORKS = {
    "perceptron_oldest_half": (Perceptron, {"x": floats(3, 6)}, OLDEST, HALF, {}),
    "perceptron_recent_single": (Perceptron, {"x": floats(3, 6)}, RECENT, SINGLE, {}),
    "images_oldest_single": (Images, {"x": floats(2, 3, 12, 10)}, OLDEST, SINGLE, {"keep_batch_norm": True}),
    "images_recent_half": (Images, {"x": floats(2, 3, 12, 10)}, RECENT, HALF, {}),
    "language_oldest_single": (Language, {"ids": ids(2, 6)}, OLDEST, SINGLE, {}),
    "language_recent_half": (Language, {"ids": ids(2, 6)}, RECENT, HALF, {}),
    "language_newest_half": (Language, {"ids": ids(2, 6)}, NEWEST, HALF, {}),
    "encoder_recent_single": (Encoder, {"x": floats(2, 5, 16)}, RECENT, SINGLE, {}),
    "classifier_recent_half": (
        Encoder, {"x": floats(1, 5, 16)}, RECENT, HALF, {"labels": ["ant", "bee", "cat"]},
    ),
    "cached_newest_half": (Cached, {"x": floats(1, 2, 8)}, NEWEST, HALF, {"states": {"cache": (1, 4, 8)}}),
    "flexible_recent_single": (Flexible, {"x": floats(2, 3, 4)}, RECENT, SINGLE, {"shapes": {"x": BATCHES}}),
}


def make(name):
    build, inputs, target, precision, options = NETWORKS[name]
    torch.manual_seed(sum(name.encode()))
    network = randomized(build().eval())
    with torch.no_grad():
        traced = torch.jit.trace(network, tuple(inputs.values()))
        for buffer in options.get("states", ()):
            getattr(network, buffer).zero_()
        expected, again = (network(*inputs.values()).numpy() for _ in range(2))
    pipeline = ct.PassPipeline.DEFAULT
    if options.get("keep_batch_norm"):
        pipeline.remove_passes({"common::fuse_conv_batchnorm"})
    shapes = options.get("shapes", {})
    config = ct.ClassifierConfig(options["labels"]) if "labels" in options else None
    model = ct.convert(
        traced, inputs=[
            ct.TensorType(n, shapes.get(n, tuple(v.shape)), dtype=np.int32 if v.dtype == torch.int32 else np.float32)
            for n, v in inputs.items()
        ],
        states=[
            ct.StateType(ct.TensorType(shape=shape, dtype=np.float16), name)
            for name, shape in options.get("states", {}).items()
        ] or None,
        outputs=None if config else [ct.TensorType("y", dtype=np.float32)], convert_to="mlprogram",
        minimum_deployment_target=target, compute_precision=precision, classifier_config=config, pass_pipeline=pipeline,
        skip_model_load=True,
    )
    package = HERE / f"{name}.mlpackage"
    shutil.rmtree(package, ignore_errors=True)
    model.save(str(package))
    np.savez(HERE / f"{name}.npz", y=expected, again=again, **{n: v.numpy() for n, v in inputs.items()})


for each in sys.argv[1:] or NETWORKS:
    make(each)
