"""Writes digits.rlxbundle and digits.safetensors, from which DigitsTrainer trains; needs rlx_swift[demo]."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.session import safetensors

BATCH, TEST = 32, 360


def network(x, y, w1, b1, w2, b2):
    logits = ops.dropout(ops.relu(x @ w1 + b1), 0.1) @ w2 + b2
    return {"loss": ops.softmax_cross_entropy_with_logits(logits, y).mean(), "logits": logits}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(), help="the folder to write to")
    folder = parser.parse_args().output
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    x, y = (images[order] / 16).astype(np.float32), labels[order].astype(np.int32)
    arrays = {"test/x": x[:TEST], "test/y": y[:TEST], "train/x": x[TEST:], "train/y": y[TEST:]}
    safetensors.write(folder / "digits.safetensors", arrays, {})

    he = rlx.nn.init.he_normal()
    graph = rlx.trace(
        network, x=rlx.spec(("B", 64)), y=rlx.spec(("B",), rlx.i32), w1=rlx.param_spec((64, 64), init=he),
        b1=rlx.param_spec(64, init=0.0), w2=rlx.param_spec((64, 10), init=he), b2=rlx.param_spec(10, init=0.0),
    )
    config = rlx.TrainConfig(lr=rlx.optim.schedules.Cosine(3e-3, 450, 20), optimizer=rlx.AdamW())
    ts = rlx.TrainingSession(graph, config=config)
    # Whole batches, what is left of them at the end of an epoch and of a test, and a single image.
    sizes = [BATCH, len(arrays["train/x"]) % BATCH, TEST % BATCH, 1]
    ts.export_bundle(folder / "digits.rlxbundle", sizes={"B": sizes})


if __name__ == "__main__":
    main()
