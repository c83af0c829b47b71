"""Small graphs and sessions that the tests of optimizers and of training share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import rlx_swift as rlx

DEVICES = ("numpy", pytest.param("cpu", marks=pytest.mark.native))
UPDATES = (pytest.param(False, id="host"), pytest.param(True, id="fused"))

X = np.random.default_rng(0).uniform(-1, 1, (8, 3)).astype(np.float32)
W_TRUE = np.array([[1.0], [-2.0], [0.5]], np.float32)
LINREG_BATCH = {"x": X, "target": X @ W_TRUE}


def linreg(rows: int = 8) -> rlx.Graph:
    """loss = sum((x W - target)^2), with the prediction as a second output."""
    g = rlx.Graph("linreg")
    x, w, t = g.input("x", (rows, 3)), g.param("W", (3, 1)), g.input("target", (rows, 1))
    z = x @ w
    g.set_outputs({"loss": ((z - t) ** 2).sum(), "prediction": z})
    return g


def linreg_session(device: str | None = "numpy", fused: bool = False, **config: Any) -> rlx.TrainingSession:
    ts = rlx.TrainingSession(
        linreg(), initial={"W": np.zeros((3, 1))}, config=rlx.TrainConfig(**config), device=device
    )
    return ts.with_fused_optimizer() if fused else ts


def fed_gradients(shapes: Mapping[str, Sequence[int]]) -> rlx.Graph:
    """A graph whose gradient of each param is what is fed: loss = sum over params of sum(param * g_<param>)."""
    g = rlx.Graph("fed_gradients")
    terms = [(g.param(name, shape) * g.input(f"g_{name}", shape)).sum() for name, shape in shapes.items()]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    g.set_outputs({"loss": total})
    return g


def fed_session(
    values: Mapping[str, Any], device: str = "numpy", fused: bool = False, **config: Any
) -> rlx.TrainingSession:
    """A session over `fed_gradients` that starts from the given values."""
    initial = {name: np.asarray(value, np.float32) for name, value in values.items()}
    ts = rlx.TrainingSession(
        fed_gradients({name: value.shape for name, value in initial.items()}), initial=initial,
        config=rlx.TrainConfig(**config), device=device,
    )
    if fused:
        ts = ts.with_fused_optimizer()
        assert ts.fused_active, ts.fused_reason
    return ts


def fed(gradients: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The batch for `fed_gradients` that makes these the gradients."""
    return {f"g_{name}": np.asarray(value, np.float32) for name, value in gradients.items()}


def mlp(rows: int | str = 16) -> rlx.Graph | rlx.SymbolicGraph:
    """A classifier of 4 features into 3 classes with a `hits` output of rank 0 and `logits`."""

    def model(x, y, w1, b1, w2, b2):
        logits = rlx.ops.tanh(x @ w1 + b1) @ w2 + b2
        loss = rlx.ops.softmax_cross_entropy_with_logits(logits, y).mean()
        return {"loss": loss, "logits": logits, "scale": rlx.ops.square(logits).mean()}

    rng = np.random.default_rng(1)
    return rlx.trace(
        model, x=rlx.spec((rows, 4)), y=rlx.spec((rows,), rlx.i32),
        w1=rlx.param_spec((4, 8), init=rng.normal(0, 0.5, (4, 8))), b1=rlx.param_spec((8,), init=0.0),
        w2=rlx.param_spec((8, 3), init=rng.normal(0, 0.5, (8, 3))), b2=rlx.param_spec((3,), init=0.0),
    )


def mlp_data(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 4)).astype(np.float32)
    return {"x": x, "y": (np.abs(x[:, :3]).argmax(1)).astype(np.int32)}


def snapshot(ts: rlx.TrainingSession) -> dict[str, bytes]:
    """Everything that an update changes, as bytes."""
    taken = {f"param/{name}": value.tobytes() for name, value in ts.params().items()}
    for name in ts.trainable:
        taken |= {f"state/{name}/{slot}": value.tobytes() for slot, value in ts.state(name).items()}
    return taken | {"steps": str(ts.steps).encode(), "pending": str(ts.pending_accumulation).encode()}
