"""Everything that a run is, as arrays and plain data, and back. Knows no file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CheckpointError
from ..ir.types import Shape
from ..optim.base import NONNEGATIVE, POSITIVE, require, require_counts, require_ranges
from ..optim.requirement import HessianDiag
from .names import accumulator_name
from .scaling import LossScale
from .trainer import Counters, Window

if TYPE_CHECKING:
    from .training import TrainingSession

Arrays = dict[str, np.ndarray]
_MOST = 2**63


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
        "left": dict(ts._trained.left),
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
        _require_whole(counters, scale, window, data["since"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError("checkpoint", f"its counters are not whole: {error}") from None
    rule, weights = ts._trained.rule, ts._weights
    expected = {_key(ts, name): shape for name, shape in weights.shapes.items()} | rule.resident_shapes()
    accumulating = accumulators(ts)
    for name in window.buffers:
        if name not in weights.shapes:
            raise CheckpointError(f"checkpoint entry 'window/{name}'", "the graph has no such buffer")
    if window.count:
        expected |= accumulating | {f"window/{name}": weights.shapes[name] for name in window.buffers}
    for key, shape in expected.items():
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


def _require_whole(counters: Counters, scale: LossScale, window: Window, since: Mapping[str, Any]) -> None:
    """Raises ConfigError for a number that no run can have."""
    require_counts(counters, steps=0, micro_batches=0, skips=0)
    require_counts(scale, good=0)
    require_ranges(scale, scale=POSITIVE)
    require_counts(window, count=0, start=0)
    require_ranges(window, weight=POSITIVE if window.count else NONNEGATIVE)
    for name in ("active", "dynamic"):
        require(f"LossScale {name}", isinstance(getattr(scale, name), bool), "true or false", getattr(scale, name))
    require("Counters steps", counters.steps < _MOST, f"less than {_MOST}", counters.steps)
    require("Counters micro_batches", counters.micro_batches < _MOST, f"less than {_MOST}", counters.micro_batches)
    require("Window start", window.start <= counters.micro_batches, "no more than all micro-batches", window.start)
    for name, steps in since.items():
        good = type(steps) is int and 0 <= steps <= counters.steps
        require(f"since {name!r}", good, f"an integer from 0 to {counters.steps}", steps)


def _key(ts: TrainingSession, name: str) -> str:
    return f"{'param' if name in ts._trained.params else 'buffer'}/{name}"


def accumulators(ts: TrainingSession) -> dict[str, Shape]:
    """The shapes of the accumulators by name."""
    rule = ts._trained.rule
    present = {accumulator_name(name): shape for name, shape in rule.shapes.items()}
    return present | {accumulator_name(name, True): rule.shapes[name] for name in rule.previous}
