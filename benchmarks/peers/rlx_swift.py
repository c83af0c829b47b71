"""rlx_swift: the whole step, optimizer included, as one Core ML program on its own CPU runtime."""
import os
import sys

import numpy as np
import workloads as W

# This file has the package's name: import the package, not the peer.
_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != _here]

import rlx_swift as rlx  # noqa: E402
from rlx_swift import ops  # noqa: E402

NAME = "rlx_swift"


def ce(z, y):
    return ops.softmax_cross_entropy_with_logits(z, y).mean()


def linreg(P, x, y):
    return ((x @ P["W"] - y) ** 2).sum()


def mlp(P, x, y):
    return ce(ops.relu(x @ P["W1"] + P["b1"]) @ P["W2"] + P["b2"], y)


def cnn(P, x, y):
    h = ops.max_pool2d(ops.relu(ops.conv2d(x, P["C1"], P["c1"], padding=1)), 2)
    h = ops.max_pool2d(ops.relu(ops.conv2d(h, P["C2"], P["c2"], padding=1)), 2)
    return ce(h.reshape(h.shape[0], -1) @ P["W"] + P["b"], y)


def lm(P, x, y):
    B, T = x.shape
    d, H = W.LM["d"], W.LM["heads"]
    e = d // H
    mask = np.triu(np.full((T, T), -1e30, np.float32), 1)
    h = (ops.gather(P["tok"], x) + P["pos"]).reshape(B * T, d)
    for i in range(W.LM["layers"]):
        p = {k.split(".")[1]: v for k, v in P.items() if k.startswith(f"l{i}.")}
        a = ops.layer_norm(h, p["ln1g"], p["ln1b"])
        qkv = (a @ p["wqkv"] + p["bqkv"]).reshape(B, T, 3, H, e)
        q, k, v = (qkv[:, :, j].transpose(0, 2, 1, 3) for j in range(3))
        s = ops.softmax(ops.matmul(q, k, transpose_y=True) * e**-0.5 + mask)
        h = h + (s @ v).transpose(0, 2, 1, 3).reshape(B * T, d) @ p["wo"] + p["bo"]
        a = ops.layer_norm(h, p["ln2g"], p["ln2b"])
        h = h + ops.gelu(a @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
    return ce(ops.layer_norm(h, P["lnfg"], P["lnfb"]) @ P["head"], y.reshape(B * T))


def opt(P, g):
    return (P["p"] * 0.0).sum()  # the gradient is given, so the loss is never computed


MODELS = dict(linreg=linreg, mlp=mlp, cnn=cnn, lm=lm, opt=opt)


def optimizer(o):
    name = o["name"]
    if name == "sgd":
        return rlx.SGD(momentum=o["momentum"])
    if name in ("adam", "adamw"):
        kind = rlx.Adam if name == "adam" else rlx.AdamW
        return kind(beta1=o["b1"], beta2=o["b2"], eps=o["eps"], weight_decay=o.get("wd", 0.0))
    if name == "lion":
        return rlx.optim.Lion(beta1=o["b1"], beta2=o["b2"], weight_decay=o["wd"])
    return rlx.optim.Muon(momentum=o["momentum"], weight_decay=o["wd"])


class Run:
    def __init__(self, wl):
        self.i, self.wl = 0, wl
        graph = rlx.Graph(wl.name)
        P = {name: graph.param(name, value.shape) for name, value in wl.params.items()}
        inputs = [
            graph.input(name, value.shape, rlx.i32 if value.dtype == np.int32 else rlx.f32)
            for name, value in wl.batches[0].items()
        ]
        graph.set_outputs({"loss": MODELS[wl.kind](P, *inputs)})
        config = rlx.TrainConfig(lr=wl.opt["lr"], optimizer=optimizer(wl.opt))
        ts = rlx.TrainingSession(graph, initial=wl.params, config=config, device="cpu")
        self.ts = ts.with_fused_optimizer()
        assert self.ts.fused_active, self.ts.fused_reason
        self.batches = [{"p": b["g"]} for b in wl.batches] if wl.kind == "opt" else wl.batches

    def step(self):
        batch = self.batches[self.i % W.NB]
        self.i += 1
        if self.wl.kind == "opt":
            self.ts.apply_gradients(batch)
        else:
            self.last = self.ts.step(batch).loss

    def loss(self):
        return W.moved(self.wl, self.ts.param("p")) if self.wl.kind == "opt" else self.last


def supports(workload):
    name = W.make(workload, 0).opt["name"]
    return hasattr(rlx.optim, {"lion": "Lion", "muon": "Muon"}.get(name, "SGD"))


def available():
    device = next(d for d in rlx.devices() if d.name == "cpu")
    return None if device.available else device.reason


def build(workload, seed):
    return Run(W.make(workload, seed))
