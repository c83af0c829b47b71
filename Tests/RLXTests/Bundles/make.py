"""Writes dropout.rlxbundle and golden.json: a run on the cpu device, step by step, for TrainingTests.swift.

Run it from the checkout when the format or the arithmetic changes on purpose: python Tests/RLXTests/Bundles/make.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

import rlx_swift as rlx  # noqa: E402
from rlx_swift import ops  # noqa: E402

ROWS, STEPS = 6, 8


def model(x, y, w1, b1, w2):
    running = x.graph.buffer("running", (5,), np.zeros(5, np.float32))
    h = ops.tanh(x @ w1 + b1)
    x.graph.assign(running, running * 0.9 + h.mean(axis=0) * 0.1)
    logits = ops.dropout(h, 0.25) @ w2
    return {"loss": ops.softmax_cross_entropy_with_logits(logits, y).mean(), "logits": logits}


def main() -> None:
    rng = np.random.default_rng(0)
    graph = rlx.trace(
        model, x=rlx.spec((ROWS, 4)), y=rlx.spec((ROWS,), rlx.i32),
        w1=rlx.param_spec((4, 5), init=rng.normal(0, 1, (4, 5))), b1=rlx.param_spec((5,), init=0.0),
        w2=rlx.param_spec((5, 3), init=rng.normal(0, 1, (5, 3))),
    )
    config = rlx.TrainConfig(
        lr=rlx.optim.schedules.Cosine(0.05, 20, 3), optimizer=rlx.NAdamW(), ema=0.9, seed=5,
        clip=rlx.optim.clip_by_global_norm(1.0), loss_scale="dynamic",
    )
    ts = rlx.TrainingSession(graph, config=config, device="cpu").with_fused_optimizer()
    ts.export_bundle(HERE / "dropout.rlxbundle")
    batches = [
        {"x": rng.normal(size=(ROWS, 4)).astype(np.float32), "y": rng.integers(0, 3, ROWS).astype(np.int32)}
        for _ in range(STEPS + 2)
    ]
    losses = [ts.step(batch).loss for batch in batches[:STEPS]]
    losses += [ts.accumulate(batch, weight=2.0) for batch in batches[STEPS:]]
    ts.step_accumulated()
    golden = {
        "kernel": ts._device.kernel(), "x": [b["x"].ravel().tolist() for b in batches],
        "y": [b["y"].tolist() for b in batches], "losses": losses, "evaluate": ts.evaluate(batches[0]),
        "params": {name: value.ravel().tolist() for name, value in ts.params().items()},
        "averages": {name: value.ravel().tolist() for name, value in ts.ema_params().items()}, "lr": ts.lr,
    }
    (HERE / "golden.json").write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
