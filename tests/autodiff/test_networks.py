"""Whole networks' gradients against PyTorch's, to 1e-5; `tests/goldens/make_networks.py` made the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from tests.goldens.network_cases import BATCHES, FIXED, HEADS, PARAMS, RANK, batch, params

GOLDENS = np.load(Path(__file__).parents[1] / "goldens" / "networks.npz")


def transformer(p, ids, labels):
    def linear(x, name):
        return x @ p[f"{name}.w"] + p[f"{name}.b"]

    def norm(x, name):
        return ops.layer_norm(x, p[f"{name}.g"], p[f"{name}.b"])

    x = ops.gather(p["emb"], ids) + p["pos"]
    for i in range(2):
        q, k, v = (linear(norm(x, f"{i}.ln1"), f"{i}.{name}") for name in "qkv")
        x = x + linear(ops.multi_head_attention(q, k, v, HEADS, causal=True), f"{i}.o")
        x = x + linear(ops.gelu(linear(norm(x, f"{i}.ln2"), f"{i}.up")), f"{i}.down")
    return ops.cross_entropy(ops.matmul(norm(x, "lnf"), p["emb"], transpose_y=True), labels)


def cnn(p, x, labels):
    for i in (1, 2):
        x = ops.conv2d(x, p[f"c{i}.w"], padding=1)
        averages = x.graph.buffer(f"mean{i}", x.shape[1:2]), x.graph.buffer(f"var{i}", x.shape[1:2], 1.0)
        x = ops.relu(ops.batch_norm(x, *averages, p[f"bn{i}.g"], p[f"bn{i}.b"]))
        if i == 1:
            x = ops.max_pool2d(x, 2)
    return ops.cross_entropy(x.reshape(x.shape[0], -1) @ p["fc.w"] + p["fc.b"], labels, label_smoothing=0.1)


def lstm(p, x, target):
    ys, _ = ops.lstm(x, p["w_ih"], p["w_hh"], p["b"])
    return ops.mse_loss(ys[:, -1] @ p["out.w"] + p["out.b"], target)


def lora(p, x, target):
    scale = 8 / RANK
    h = ops.tanh(x @ p["w1"] + scale * (x @ p["a1"] @ p["b1"]) + p["bias1"])
    return ops.huber_loss(h @ p["w2"] + scale * (h @ p["a2"] @ p["b2"]) + p["bias2"], target)


NETWORKS = {"transformer": transformer, "cnn": cnn, "lstm": lstm, "lora": lora}


def network(name: str) -> rlx.Graph:
    g = rlx.Graph(name)
    p = {n: g.param(n, shape) for n, shape in {**PARAMS[name], **FIXED.get(name, {})}.items()}
    feeds = {n: g.input(n, shape, rlx.i32 if classes else rlx.f32) for n, (shape, classes) in BATCHES[name].items()}
    g.set_outputs({"loss": NETWORKS[name](p, **feeds)})
    return g


@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.native)])
@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_are_pytorchs(name, device):
    compiled = rlx.Session(device=device).compile(rlx.grad_with_loss(network(name), list(PARAMS[name])))
    for n, value in params(name).items():
        compiled.set_param(n, value)
    out = compiled.run({**batch(name), "d_output": 1.0})
    np.testing.assert_allclose(out["loss"], GOLDENS[f"{name}/loss"], rtol=1e-5)
    for n in PARAMS[name]:
        exact = GOLDENS[f"{name}/{n}"].astype(np.float64)
        error = np.linalg.norm(out[f"grad_{n}"] - exact)
        assert error < 1e-5 * np.linalg.norm(exact) + 1e-7, (n, error)  # that of a key's bias is 0


@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.native)])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_one_step_moves_every_weight_against_its_gradient(name, device, fused):
    config = rlx.TrainConfig(lr=0.5, optimizer=rlx.SGD())
    ts = rlx.TrainingSession(
        network(name), trainable=list(PARAMS[name]), initial=params(name), config=config, device=device
    )
    ts = ts.with_fused_optimizer() if fused else ts
    ts.step(batch(name))
    for n, before in params(name).items():
        moved = ts.param(n).astype(np.float64) - before
        exact = -0.5 * GOLDENS[f"{name}/{n}"].astype(np.float64) if n in PARAMS[name] else np.zeros(before.shape)
        assert (np.linalg.norm(moved) > 0) == (n in PARAMS[name])
        np.testing.assert_allclose(moved, exact, rtol=1e-4, atol=1e-6, err_msg=n)  # the weights' own rounding


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_of_gradients_are_right(name):
    feeds = {**params(name), **batch(name)}
    rlx.check_grads(network(name), feeds, list(PARAMS[name])[:3], order=2, rtol=1e-4)
