"""Makes the stored networks: PyTorch modules with random weights, traced, converted by coremltools, and their outputs.

Run with torch 2.13.0 and coremltools 9.0: python make_networks.py [name ...]. networks.json says how large they are; it
gets the number of parameters of each. The tests need none of this.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import coremltools as ct
import numpy as np
import torch
from torch import nn

HERE = Path(__file__).parent
STORED = HERE / "stored"


def conv_bn(i, o, k=3, stride=1, groups=1, act=nn.ReLU6):
    layers = [nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, *([act()] if act else []))


class InvertedResidual(nn.Module):
    def __init__(self, i, o, stride, expand):
        super().__init__()
        wide = i * expand
        self.keeps = stride == 1 and i == o
        self.body = nn.Sequential(
            *([conv_bn(i, wide, 1)] if expand > 1 else []), conv_bn(wide, wide, 3, stride, wide),
            conv_bn(wide, o, 1, act=None),
        )

    def forward(self, x):
        return x + self.body(x) if self.keeps else self.body(x)


class MobileNetV2(nn.Module):
    def __init__(self, image, stem, blocks, head, classes):
        super().__init__()
        layers, width = [conv_bn(image[0], stem, 3, 2)], stem
        for expand, out, count, stride in blocks:
            for n in range(count):
                layers.append(InvertedResidual(width, out, stride if n == 0 else 1, expand))
                width = out
        self.features = nn.Sequential(*layers, conv_bn(width, head, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(head, classes))

    def forward(self, x):
        return self.classifier(self.features(x).mean([2, 3]))


class BasicBlock(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.body = nn.Sequential(conv_bn(i, o, 3, stride, act=nn.ReLU), conv_bn(o, o, act=None))
        self.skip = conv_bn(i, o, 1, stride, act=None) if stride > 1 or i != o else nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


class ResNet18(nn.Module):
    def __init__(self, image, widths, blocks, classes):
        super().__init__()
        layers, width = [conv_bn(image[0], widths[0], 7, 2, act=nn.ReLU), nn.MaxPool2d(3, 2, 1)], widths[0]
        for stage, (out, count) in enumerate(zip(widths, blocks, strict=True)):
            for n in range(count):
                layers.append(BasicBlock(width, out, 2 if stage and n == 0 else 1))
                width = out
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.features(x))


class UNet(nn.Module):
    def __init__(self, image, widths, classes):
        super().__init__()
        def double(i, o):
            return nn.Sequential(conv_bn(i, o, act=nn.ReLU), conv_bn(o, o, act=nn.ReLU))

        self.down = nn.ModuleList([double(i, o) for i, o in zip([image[0], *widths[:-1]], widths, strict=True)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(o, i, 2, 2) for i, o in pairwise(widths)])
        self.merge = nn.ModuleList([double(2 * i, i) for i in widths[:-1]])
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        skips = []
        for n, block in enumerate(self.down):
            x = block(x if n == 0 else nn.functional.max_pool2d(x, 2))
            skips.append(x)
        for n in reversed(range(len(self.up))):
            x = self.merge[n](torch.cat([skips[n], self.up[n](x)], 1))
        return self.head(x)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def split(self, x):
        b, n, w = x.shape
        return self.qkv(x).reshape(b, n, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)

    def join(self, q, k, v, mask=None):
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        weights = (scores if mask is None else scores + mask).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))

    def forward(self, x, mask=None):
        q, k, v = self.split(x)
        return self.join(q, k, v, mask)


class Block(nn.Module):
    """Norm first as in GPT-2 and ViT, or last as in BERT."""

    def __init__(self, width, heads, first=True):
        super().__init__()
        self.first, self.attention = first, Attention(width, heads)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask=None):
        if self.first:
            x = x + self.attention(self.norms[0](x), mask)
            return x + self.mlp(self.norms[1](x))
        x = self.norms[0](x + self.attention(x, mask))
        return self.norms[1](x + self.mlp(x))


class ViT(nn.Module):
    def __init__(self, image, patch, layers, width, heads, classes):
        super().__init__()
        self.patch = nn.Conv2d(image[0], width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width) / 4)
        self.places = nn.Parameter(torch.randn(1, (image[1] // patch) ** 2 + 1, width) / 4)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class Bert(nn.Module):
    def __init__(self, layers, width, heads, vocabulary, length, classes):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.kinds, self.norm = nn.Embedding(2, width), nn.LayerNorm(width)
        self.blocks = nn.ModuleList([Block(width, heads, first=False) for _ in range(layers)])
        self.pool, self.head = nn.Linear(width, width), nn.Linear(width, classes)

    def forward(self, ids, kinds, mask):
        x = self.words(ids) + self.kinds(kinds) + self.places.weight[None]
        x = self.norm(x)
        bias = (1.0 - mask[:, None, None, :]) * -1e4
        for block in self.blocks:
            x = block(x, bias)
        return self.head(torch.tanh(self.pool(x[:, 0])))


class Gpt2(nn.Module):
    """One call takes some tokens; the mask's last size says how many there were before. Caches are state."""

    def __init__(self, layers, width, heads, vocabulary, context):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        shape = (layers, 1, heads, context, width // heads)
        self.register_buffer("keys", torch.zeros(shape))
        self.register_buffer("values", torch.zeros(shape))

    def forward(self, ids, mask):
        end = mask.shape[-1]
        begin = end - ids.shape[-1]
        x = self.words(ids) + self.places.weight[begin:end][None]
        for n, block in enumerate(self.blocks):
            q, k, v = block.attention.split(block.norms[0](x))
            self.keys[n : n + 1, :, :, begin:end, :] = k[None]
            self.values[n : n + 1, :, :, begin:end, :] = v[None]
            x = x + block.attention.join(q, self.keys[n, :, :, :end, :], self.values[n, :, :, :end, :], mask)
            x = x + block.mlp(block.norms[1](x))
        return self.head(self.norm(x))


class LstmTagger(nn.Module):
    def __init__(self, vocabulary, embedding, hidden, layers, length, tags):
        super().__init__()
        self.words = nn.Embedding(vocabulary, embedding)
        self.lstm = nn.LSTM(embedding, hidden, layers, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, tags)

    def forward(self, ids):
        return self.head(self.lstm(self.words(ids))[0]).log_softmax(-1)


def image(size):
    return {"x": np.random.default_rng(5).standard_normal((1, *size)).astype(np.float32)}


def tokens(vocabulary, length):
    return np.random.default_rng(5).integers(0, vocabulary, (1, length)).astype(np.int32)


def bert_feeds(vocabulary, length):
    mask = np.ones((1, length), np.float32)
    mask[:, -3:] = 0
    return {"ids": tokens(vocabulary, length), "kinds": np.arange(length, dtype=np.int32)[None] // 7, "mask": mask}


NETWORKS = {
    "mobilenet_v2": (MobileNetV2, lambda s: image(s["image"])), "resnet18": (ResNet18, lambda s: image(s["image"])),
    "unet": (UNet, lambda s: image(s["image"])), "vit": (ViT, lambda s: image(s["image"])),
    "bert": (Bert, lambda s: bert_feeds(s["vocabulary"], s["length"])),
    "lstm_tagger": (LstmTagger, lambda s: {"ids": tokens(s["vocabulary"], s["length"])}),
}


def settle(module):
    """Batch norms get averages that are not those of a fresh module."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    return module.eval()


def convert(module, feeds, precision, **options):
    traced = torch.jit.trace(module, tuple(torch.from_numpy(v) for v in feeds.values()))
    return ct.convert(
        traced, inputs=options.pop("inputs", None) or [
            ct.TensorType(name=name, shape=v.shape, dtype=v.dtype.type) for name, v in feeds.items()
        ],
        outputs=options.pop("outputs", [ct.TensorType(name="y")]), compute_precision=precision, skip_model_load=True,
        minimum_deployment_target=options.pop("target", ct.target.iOS17), **options,
    )


def store(name, model, arrays):
    package = STORED / f"{name}.mlpackage"
    shutil.rmtree(package, ignore_errors=True)
    model.save(str(package))
    np.savez(STORED / f"{name}.npz", **arrays)


def make(name, sizes):
    kind, feeding = NETWORKS[name]
    module, feeds = settle(kind(**sizes)), feeding(sizes)
    with torch.no_grad():
        y = module(*(torch.from_numpy(v) for v in feeds.values())).numpy()
    for suffix, precision in (("f32", ct.precision.FLOAT32), ("f16", ct.precision.FLOAT16)):
        outputs = [ct.TensorType(name="y", dtype=np.float32)]
        store(f"{name}_{suffix}", convert(module, feeds, precision, outputs=outputs), {**feeds, "y": y})
    return module


def make_gpt2(sizes):
    """A prompt of five tokens, then three of one."""
    module = Gpt2(**sizes).eval()
    ids, outputs = tokens(sizes["vocabulary"], 8), []
    calls = [(0, 5), (5, 6), (6, 7), (7, 8)]

    def mask(begin, end):
        places = np.arange(begin, end)[:, None] < np.arange(end)[None]
        return np.where(places, np.float32(-1e4), np.float32(0))[None, None]

    with torch.no_grad():
        for begin, end in calls:
            outputs.append(module(torch.from_numpy(ids[:, begin:end]), torch.from_numpy(mask(begin, end))).numpy())
    module.keys.zero_(), module.values.zero_()
    length = ct.RangeDim(1, sizes["context"], default=1)
    end = ct.RangeDim(1, sizes["context"], default=1)
    states = [
        ct.StateType(ct.TensorType(shape=tuple(module.keys.shape), dtype=np.float16), name=name)
        for name in ("keys", "values")
    ]
    model = convert(
        module, {"ids": ids[:, :2], "mask": mask(2, 4)}, ct.precision.FLOAT16, states=states, target=ct.target.iOS18,
        inputs=[ct.TensorType(name="ids", shape=(1, length), dtype=np.int32),
                ct.TensorType(name="mask", shape=(1, 1, length, end), dtype=np.float16)],
        outputs=[ct.TensorType(name="y", dtype=np.float16)],
    )
    arrays = {f"y{n}": y for n, y in enumerate(outputs)}
    arrays |= {f"mask{n}": mask(*call) for n, call in enumerate(calls)}
    arrays |= {f"ids{n}": ids[:, b:e] for n, (b, e) in enumerate(calls)}
    store("gpt2_f16", model, arrays)
    return module


def main(names):
    STORED.mkdir(exist_ok=True)
    listed = json.loads((HERE / "networks.json").read_text())
    for name in names or listed:
        torch.manual_seed(3)
        sizes = {key: value for key, value in listed[name].items() if key != "parameters"}
        module = make_gpt2(sizes) if name == "gpt2" else make(name, sizes)
        listed[name]["parameters"] = sum(p.numel() for p in module.parameters())
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(sizes)}" for name, sizes in listed.items())
    (HERE / "networks.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
