"""Computes networks.npz with PyTorch 2.13 in float64: `python -m tests.goldens.make_networks`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from tests.goldens.network_cases import HEADS, LENGTH, PARAMS, RANK, WIDTH, batch, params

FILE = Path(__file__).with_name("networks.npz")


def transformer(p, ids, labels):
    def linear(x, name):
        return x @ p[f"{name}.w"] + p[f"{name}.b"]

    def norm(x, name):
        return F.layer_norm(x, (WIDTH,), p[f"{name}.g"], p[f"{name}.b"])

    def heads(x):
        return x.view(len(x), LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2)

    x = p["emb"][ids] + p["pos"]
    for i in range(2):
        h = norm(x, f"{i}.ln1")
        q, k, v = (heads(linear(h, f"{i}.{name}")) for name in "qkv")
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(attended.transpose(1, 2).reshape(x.shape), f"{i}.o")
        h = F.gelu(linear(norm(x, f"{i}.ln2"), f"{i}.up"))
        x = x + linear(h, f"{i}.down")
    logits = norm(x, "lnf") @ p["emb"].T
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def cnn(p, x, labels):
    for i in (1, 2):
        x = F.conv2d(x, p[f"c{i}.w"], padding=1)
        x = F.relu(F.batch_norm(x, None, None, p[f"bn{i}.g"], p[f"bn{i}.b"], True))
        if i == 1:
            x = F.max_pool2d(x, 2)
    return F.cross_entropy(x.flatten(1) @ p["fc.w"] + p["fc.b"], labels, label_smoothing=0.1)


def lstm(p, x, target):
    start = torch.zeros(1, len(x), p["w_hh"].shape[0], dtype=x.dtype)
    flat = [p["w_ih"].T, p["w_hh"].T, p["b"], torch.zeros_like(p["b"])]
    ys = torch.lstm(x, (start, start), flat, True, 1, 0.0, False, False, True)[0]
    return F.mse_loss(ys[:, -1] @ p["out.w"] + p["out.b"], target)


def lora(p, x, target):
    scale = 8 / RANK
    h = torch.tanh(x @ p["w1"] + scale * (x @ p["a1"] @ p["b1"]) + p["bias1"])
    return F.huber_loss(h @ p["w2"] + scale * (h @ p["a2"] @ p["b2"]) + p["bias2"], target)


NETWORKS = {"transformer": transformer, "cnn": cnn, "lstm": lstm, "lora": lora}


def computed() -> dict[str, np.ndarray]:
    arrays = {}
    for name, network in NETWORKS.items():
        p = {n: torch.tensor(v.astype(np.float64)) for n, v in params(name).items()}
        trained = [p[n].requires_grad_() for n in PARAMS[name]]
        wide = {np.dtype(np.int32): np.int64, np.dtype(np.float32): np.float64}
        feeds = {n: torch.tensor(v.astype(wide[v.dtype])) for n, v in batch(name).items()}
        loss = network(p, **feeds)
        arrays[f"{name}/loss"] = np.float64(loss.item())
        for n, grad in zip(PARAMS[name], torch.autograd.grad(loss, trained), strict=True):
            arrays[f"{name}/{n}"] = grad.numpy().astype(np.float32)
    return arrays


if __name__ == "__main__":
    np.savez_compressed(FILE, **computed())
