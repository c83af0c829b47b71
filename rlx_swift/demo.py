"""The demonstration: scikit-learn's digits learned by an MLP and a CNN, shown, saved, and loaded back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import ops
from .dtypes import i32
from .errors import UnsupportedError
from .ir.symbolic import SymbolicGraph, param_spec, spec, trace
from .ir.tensor import Tensor
from .nn import init
from .optim import AdamW
from .session.config import TrainConfig
from .session.data import batches
from .session.model import load_model
from .session.training import TrainingSession

TEST_ROWS = 360
BATCH = 64


@dataclass(frozen=True)
class Result:
    """What one network came to."""

    name: str
    accuracy: float
    seconds: float
    losses: list[float]
    package: Path | None
    package_accuracy: float


def run(
    output: Path, device: str | None = None, epochs: int = 12, seed: int = 0, progress: bool = True
) -> list[Result]:
    """Trains both networks and writes `loss.png` and an .mlpackage of each to `output`."""
    data = digits(seed)
    results = []
    for name, graph in networks().items():
        results.append(_train(name, graph, data, output, device, epochs, seed, progress))
    plot({result.name: result.losses for result in results}, output / "loss.png")
    return results


def digits(seed: int) -> dict[str, np.ndarray]:
    """The 1,797 images of 8x8 as f32 in [0, 1], with labels, split by a fixed seed."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise UnsupportedError("demo", "scikit-learn is not installed", "pip install 'rlx_swift[demo]'") from error
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    x = (images[order] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    y = labels[order].astype(np.int32)
    return {"x": x[TEST_ROWS:], "y": y[TEST_ROWS:], "x_test": x[:TEST_ROWS], "y_test": y[:TEST_ROWS]}


def networks() -> dict[str, SymbolicGraph]:
    """The two networks; their batch size is open."""
    he, zero = init.he_normal(), init.constant(0.0)
    images: dict[str, Any] = {"x": spec(("B", 1, 8, 8)), "y": spec(("B",), i32)}
    mlp = trace(
        _mlp, **images, w1=param_spec((64, 128), init=he), b1=param_spec(128, init=zero),
        w2=param_spec((128, 10), init=he), b2=param_spec(10, init=zero),
    )
    cnn = trace(
        _cnn, **images, k1=param_spec((16, 1, 3, 3), init=he), c1=param_spec(16, init=zero),
        k2=param_spec((32, 16, 3, 3), init=he), c2=param_spec(32, init=zero),
        w=param_spec((128, 10), init=he), b=param_spec(10, init=zero),
    )
    assert isinstance(mlp, SymbolicGraph) and isinstance(cnn, SymbolicGraph)
    return {"MLP": mlp, "CNN": cnn}


def _mlp(x: Tensor, y: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> dict[str, Tensor]:
    hidden = ops.relu(x.reshape(x.shape[0], 64) @ w1 + b1)
    return _classify(hidden @ w2 + b2, y)


def _cnn(
    x: Tensor, y: Tensor, k1: Tensor, c1: Tensor, k2: Tensor, c2: Tensor, w: Tensor, b: Tensor
) -> dict[str, Tensor]:
    h = ops.max_pool2d(ops.relu(ops.conv2d(x, k1, c1, padding="same")), 2)
    h = ops.max_pool2d(ops.relu(ops.conv2d(h, k2, c2, padding="same")), 2)
    return _classify(h.reshape(x.shape[0], 128) @ w + b, y)


def _classify(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    loss = ops.softmax_cross_entropy_with_logits(logits, labels).mean()
    return {"loss": loss, "probabilities": ops.softmax(logits)}


def _train(
    name: str, graph: SymbolicGraph, data: Mapping[str, np.ndarray], output: Path, device: str | None, epochs: int,
    seed: int, progress: bool,
) -> Result:
    config = TrainConfig(lr=3e-3, optimizer=AdamW(), seed=seed)
    ts = TrainingSession(graph, config=config, device=device).with_fused_optimizer()
    started = time.perf_counter()
    rows = batches({"x": data["x"], "y": data["y"]}, BATCH, shuffle=True, seed=seed)
    history = ts.fit(rows, epochs=epochs, progress=progress)
    seconds = time.perf_counter() - started
    accuracy = _accuracy(lambda x: ts.predict({"x": x})["probabilities"], data)
    package = output / f"digits_{name.lower()}.mlpackage"
    ts.export(package, sizes={"B": TEST_ROWS})
    model = load_model(package, device=device)
    package_accuracy = _accuracy(lambda x: model.predict({"x": x})["probabilities"], data)
    return Result(name, accuracy, seconds, history.losses, package, package_accuracy)


def _accuracy(predict: Callable[[np.ndarray], np.ndarray], data: Mapping[str, np.ndarray]) -> float:
    return float(np.mean(predict(data["x_test"]).argmax(1) == data["y_test"]))


def plot(curves: Mapping[str, list[float]], path: Path) -> None:
    """Draws the loss of each update, on a logarithmic scale."""
    try:
        import matplotlib
    except ImportError as error:
        raise UnsupportedError("demo", "matplotlib is not installed", "pip install 'rlx_swift[demo]'") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), dpi=120)
    for name, losses in curves.items():
        axes.semilogy(losses, label=name, linewidth=1)
    axes.set(xlabel="update", ylabel="training loss", title="Digits: loss of each update")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    pyplot.close(figure)
