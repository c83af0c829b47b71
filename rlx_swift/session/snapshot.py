"""Everything that a run is, as arrays and plain data, and back. Knows no file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CheckpointError
from ..ir.types import Shape
from ..optim.requirement import HessianDiag
from .names import accumulator_name
from .scaling import LossScale
from .trainer import Counters, Window

if TYPE_CHECKING:
    from .training import TrainingSession

Arrays = dict[str, np.ndarray]


def capture(ts: TrainingSession) -> tuple[Arrays, dict[str, Any]]:
    """Values on the device under the names of the checkpoint format, and the counters."""
    trainer, weights = ts._trainer, ts._weights
    arrays = {_key(ts, name): value for name, value in weights.all().items()}
    window = trainer.window
    resident = trainer.resident | (accumulators(ts).keys() if window.count else set())
    arrays.update({name: weights.store.get(name) for name in sorted(resident)})
    arrays.update({f"window/{name}": value for name, value in window.buffers.items()})
    data = {
        "counters": asdict(trainer.counters), "scale": asdict(trainer.scale), "since": dict(ts._trained.since),
        "window": {
            "count": window.count, "weight": window.weight, "loss": repr(window.loss), "start": window.start,
            "fresh": [asdict(kind) for kind in window.fresh],
        },
    }
    return arrays, data


def restore(ts: TrainingSession, arrays: Mapping[str, np.ndarray], data: Mapping[str, Any]) -> None:
    """Makes a session of the same graph and settings the one that was captured; all or nothing."""
    try:
        counters, scale = Counters(**data["counters"]), LossScale(**data["scale"])
        window = Window(
            **{
                **data["window"], "loss": float(data["window"]["loss"]),  # text, since it may not be finite
                "fresh": [HessianDiag(**kind) for kind in data["window"]["fresh"]],
            },
            buffers={key.partition("/")[2]: np.array(v) for key, v in arrays.items() if key.startswith("window/")},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError("checkpoint", f"its counters are not whole: {error}") from None
    rule, weights = ts._trained.rule, ts._weights
    expected = {_key(ts, name): shape for name, shape in weights.shapes.items()} | rule.resident_shapes()
    accumulating = accumulators(ts)
    for key, shape in (expected | (accumulating if window.count else {})).items():
        if key not in arrays:
            raise CheckpointError(f"checkpoint entry {key!r}", "it is missing")
        if arrays[key].shape != shape or arrays[key].dtype != np.float32:
            got = f"{arrays[key].dtype} {arrays[key].shape}"
            raise CheckpointError(f"checkpoint entry {key!r}", f"expected f32 of shape {shape}, got {got}")
    for key, array in arrays.items():
        kind, _, name = key.partition("/")
        if kind in ("param", "buffer"):
            weights.store.put(name, array)
        elif kind != "window":
            weights.store.put(key, array)
            if key not in accumulating:
                ts._trainer.resident.add(key)
    trainer = ts._trainer
    trainer.counters, trainer.scale, trainer.window = counters, scale, window


def _key(ts: TrainingSession, name: str) -> str:
    return f"{'param' if name in ts._trained.params else 'buffer'}/{name}"


def accumulators(ts: TrainingSession) -> dict[str, Shape]:
    """The shapes of the accumulators by name."""
    rule = ts._trained.rule
    present = {accumulator_name(name): shape for name, shape in rule.shapes.items()}
    return present | {accumulator_name(name, True): rule.shapes[name] for name in rule.previous}
