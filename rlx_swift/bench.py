"""How fast this machine trains: steps of four small networks on random data, the optimizer inside the program."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from . import nn, ops
from .dtypes import i32
from .ir.graph import Graph
from .ir.tensor import Tensor
from .optim import AdamW
from .session.config import TrainConfig
from .session.training import TrainingSession

Batch = dict[str, np.ndarray]
CLASSES, VOCABULARY, LENGTH, WIDTH = 10, 256, 64, 128


@dataclass(frozen=True)
class Timing:
    """Attributes:
    params: numbers that are trained.
    batch: samples of one step.
    first_step: seconds from the graph to the end of the first step, compilation included.
    step: median seconds of a step.
    """

    network: str
    device: str
    params: int
    batch: int
    first_step: float
    step: float

    @property
    def samples_per_second(self) -> float:
        return self.batch / self.step


def run(device: str | None = None, seconds: float = 1.0, names: Sequence[str] = ()) -> list[Timing]:
    """Times each network for about so many seconds; all of them unless `names` says which."""
    return [_time(name, device, seconds) for name in names or NETWORKS]


def _time(name: str, device: str | None, seconds: float) -> Timing:
    graph, batch = NETWORKS[name]()
    started = time.perf_counter()
    ts = TrainingSession(graph, config=TrainConfig(optimizer=AdamW()), device=device).with_fused_optimizer()
    ts.step(batch)
    first_step = time.perf_counter() - started
    took: list[float] = []
    end = time.perf_counter() + seconds
    while not took or time.perf_counter() < end:
        took.append(_step_time(ts, batch))
    size = sum(value.size for value in ts.params().values())
    return Timing(name, ts.device, size, len(next(iter(batch.values()))), first_step, median(took))


def _step_time(ts: TrainingSession, batch: Batch) -> float:
    """Seconds of one step, over enough of them that the clock can tell."""
    steps, took = 0, 0.0
    started = time.perf_counter()
    while took < 1e-3:
        ts.step(batch)
        steps, took = steps + 1, time.perf_counter() - started
    return took / steps


def _linear_regression() -> tuple[Graph, Batch]:
    g, rng = Graph("linear_regression"), np.random.default_rng(0)
    error = g.input("x", (8, 3)) @ g.param("W", (3, 1), np.zeros((3, 1))) - g.input("target", (8, 1))
    g.set_outputs({"loss": (error**2).sum()})
    return g, {"x": rng.standard_normal((8, 3), np.float32), "target": rng.standard_normal((8, 1), np.float32)}


def _mlp() -> tuple[Graph, Batch]:
    return _classifier("mlp", (128, 784), nn.Sequential(nn.Dense(128, activation=ops.relu), nn.Dense(CLASSES)))


def _cnn() -> tuple[Graph, Batch]:
    layers = nn.Sequential(
        nn.Conv(16, 3, activation=ops.relu), lambda x: ops.max_pool2d(x, 2),
        nn.Conv(32, 3, activation=ops.relu), lambda x: ops.max_pool2d(x, 2),
        lambda x: x.reshape(x.shape[0], -1), nn.Dense(CLASSES),
    )
    return _classifier("cnn", (64, 1, 28, 28), layers)


def _classifier(name: str, shape: tuple[int, ...], layers: Callable[[Tensor], Tensor]) -> tuple[Graph, Batch]:
    g, rng = Graph(name), np.random.default_rng(0)
    logits, labels = layers(g.input("x", shape)), g.input("y", shape[:1], i32)
    g.set_outputs({"loss": ops.softmax_cross_entropy_with_logits(logits, labels).mean()})
    x, y = rng.standard_normal(shape, np.float32), rng.integers(0, CLASSES, shape[:1], np.int32)
    return g, {"x": x, "y": y}


def _transformer() -> tuple[Graph, Batch]:
    g, rng, shape = Graph("transformer"), np.random.default_rng(0), (8, LENGTH)
    ids, targets = g.input("ids", shape, i32), g.input("targets", shape, i32)
    x = nn.Embedding(VOCABULARY, WIDTH)(ids) + g.param("positions", (LENGTH, WIDTH), nn.init.normal())
    for _ in range(2):
        x = nn.TransformerBlock(4, 4 * WIDTH, causal=True)(x)
    logits = nn.Dense(VOCABULARY, bias=False)(nn.LayerNorm()(x))
    g.set_outputs({"loss": ops.softmax_cross_entropy_with_logits(logits, targets).mean()})
    return g, {name: rng.integers(0, VOCABULARY, shape, np.int32) for name in ("ids", "targets")}


NETWORKS: dict[str, Callable[[], tuple[Graph, Batch]]] = {
    "linear_regression": _linear_regression, "mlp": _mlp, "cnn": _cnn, "transformer": _transformer,
}
