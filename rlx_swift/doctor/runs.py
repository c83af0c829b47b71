"""Cases that are no single graph: programs that Core ML should refuse, training, many predictions. Knows no processes.

For a refusal every outcome is a result: an error with its text, numbers, or the end of the process.
"""

from __future__ import annotations

import ctypes
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import ops
from .._native.handles import NativeSession, Program, Store
from ..dtypes import DType, f16, f32, i32
from ..errors import DeviceError, RlxError
from ..ir.graph import Graph
from ..lower.mil import lower
from ..lower.package import to_bytes, write_package
from ..lower.program import Array, Literal, Model
from ..optim import Adam
from ..session.config import TrainConfig
from ..session.training import TrainingSession
from .programs import with_states

Answer = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """Attributes:
    measure: a function of the compute units.
    full: whether only a full run asks it.
    """

    measure: Callable[[str], Answer]
    full: bool = False


# Programs that are not right


def _refusal(damage: Callable[[Model], None], build: Callable[[Graph], Any]) -> Run:
    def measure(units: str) -> Answer:
        graph = Graph("bad")
        graph.set_outputs({"y": build(graph)})
        model = lower(graph).model
        damage(model)
        try:
            session = _session(model, units)
            session.run()
        except DeviceError:
            raise
        except RlxError as error:
            return {"refused": str(error)}
        return {"refused": None, "value": np.array(session.buffer("y")).ravel()[:8].tolist()}

    return Run(measure)


def _operations(model: Model, kind: str) -> list[Any]:
    body = next(iter(model.functions["main"].bodies.values()))
    return [operation for operation in body.operations if operation.type == kind]


def _literal(array: np.ndarray) -> Literal:
    kind = {"f": "fp32", "i": "int32"}[array.dtype.kind]
    return Literal(Array(kind, array.shape), array.tobytes())


def _change(kind: str, parameter: str, value: np.ndarray) -> Callable[[Model], None]:
    def damage(model: Model) -> None:
        for operation in _operations(model, kind):
            operation.inputs[parameter] = [_literal(value)]

    return damage


def _drop(kind: str, parameter: str) -> Callable[[Model], None]:
    def damage(model: Model) -> None:
        for operation in _operations(model, kind):
            del operation.inputs[parameter]

    return damage


def _x(graph: Graph) -> Any:
    return graph.input("x", (2, 3, 4))


def _after_a_refusal(units: str) -> Answer:
    """Whether a program that is not right harms the right one that follows."""
    bad = RUNS["refusal/gather out of range"].measure(units)
    graph = Graph("good")
    graph.set_outputs({"y": graph.input("x", (4,)) * 2.0})
    session = _session(lower(graph).model, units)
    session.buffer("x")[...] = 3.0
    session.run()
    return {"before": bad, "right_after_it": bool(np.all(np.array(session.buffer("y")) == 6.0))}


# States, plans


def planned(model: Model, units: str) -> Answer:
    """How many operations of each kind Core ML plans for each processor."""
    from .._native.placement import Placement

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.mlpackage")
        write_package(path, model)
        with Placement.load(path, units=units) as placement:
            steps = placement.report["steps"]
    found: dict[str, Counter[str]] = {}
    for step in steps:
        found.setdefault(step.get("preferred", "none"), Counter())[step["operation"]] += 1
    return {device: dict(counts) for device, counts in sorted(found.items())}


def _states(dtype: DType, count: int) -> Run:
    """Whether Core ML takes states of a dtype, so many of them. Our programs have none: it only compiles and plans."""

    def measure(units: str) -> Answer:
        try:
            return {"plan": planned(with_states(dtype, count), units)}
        except DeviceError:
            raise
        except RlxError as error:
            return {"refused": str(error)}

    return Run(measure)


def _long(operations: int) -> Callable[[str], Answer]:
    """How loading grows with the number of operations."""

    def measure(units: str) -> Answer:
        graph = Graph("long")
        y = graph.input("x", (8, 8))
        w = graph.input("w", (8, 8))
        for i in range(operations):
            y = ops.tanh(y) if i % 3 == 1 else y @ w if i % 3 else y + w
        graph.set_outputs({"y": y})
        model, started = lower(graph).model, time.perf_counter()
        session = _session(model, units)
        loaded = time.perf_counter()
        session.run()
        return {"operations": operations, "load_ms": (loaded - started) * 1e3,
                "first_us": (time.perf_counter() - loaded) * 1e6}

    return measure


def _session(model: Model, units: str) -> NativeSession:
    data, weights = to_bytes(model)
    return NativeSession(Program.load_memory(data, weights or None), Store(), device="coreml", units=units)


def _at_priority(quality: int) -> Callable[[str], Answer]:
    """The time of a prediction in a thread of that quality of service; Apple systems alone have those."""

    def measure(units: str) -> Answer:
        choose = getattr(ctypes.CDLL(None), "pthread_set_qos_class_self_np", None)
        changed = choose is not None and choose(quality, 0) == 0
        return {"quality_of_service": quality if changed else "unknown here", **_many(200)(units)}

    return measure


# Training


def _training(layers: int) -> Callable[[str], Answer]:
    """Adam on a deep perceptron, the whole update in one program: against the same run on our own runtime."""

    def session(device: str) -> TrainingSession:
        graph = Graph("perceptron")
        h, target = graph.input("x", (16, 8)), graph.input("target", (16, 8))
        rng = np.random.default_rng(0)
        for i in range(layers):
            w = graph.param(f"w{i}", (8, 8), init=rng.normal(0, 0.5, (8, 8)).astype(np.float32))
            h = ops.tanh(h @ w)
        graph.set_outputs({"loss": ops.square(h - target).mean()})
        made = TrainingSession(graph, config=TrainConfig(lr=0.01, optimizer=Adam()), device=device)
        return made.with_fused_optimizer()

    def measure(units: str) -> Answer:
        rng = np.random.default_rng(1)
        batch = {name: rng.uniform(-1, 1, (16, 8)).astype(np.float32) for name in ("x", "target")}
        ours, theirs = session("cpu"), session("coreml")
        started = time.perf_counter()
        losses = [theirs.step(batch).loss]
        compiled = time.perf_counter()
        losses += [theirs.step(batch).loss for _ in range(9)]
        done = time.perf_counter()
        expected = [ours.step(batch).loss for _ in range(10)]
        return {
            "compile_ms": (compiled - started) * 1e3, "step_us": (done - compiled) / 9 * 1e6, "losses": losses,
            "largest_relative_error": max(abs(a - b) / abs(b) for a, b in zip(losses, expected, strict=True)),
        }

    return measure


# Endurance


def _many(count: int) -> Callable[[str], Answer]:
    """Memory must not grow with the number of predictions."""

    def measure(units: str) -> Answer:
        graph = Graph("many")
        x, w = graph.input("x", (32, 64)), graph.param("w", (64, 64))
        graph.set_outputs({"y": ops.tanh(x @ w)})
        lowered = lower(graph)
        store = Store()
        store.put("w", np.eye(64, dtype=np.float32))
        data, weights = to_bytes(lowered.model)
        session = NativeSession(Program.load_memory(data, weights or None), store, device="coreml", units=units)
        for _ in range(count // 10):
            session.run()
        before, started = _peak_bytes(), time.perf_counter()
        for _ in range(count):
            session.run()
        return {
            "runs": count, "us": (time.perf_counter() - started) / count * 1e6, "grown_bytes": _peak_bytes() - before,
            "backing_copies": session.statistics()["backing_copies"],
        }

    return measure


def _weights(megabytes: int) -> Callable[[str], Answer]:
    """What it costs to feed weights at each prediction."""

    def measure(units: str) -> Answer:
        rows = megabytes * 256
        graph = Graph("weights")
        graph.set_outputs({"y": graph.input("x", (1, rows)) @ graph.param("w", (rows, 1024))})
        data, weights = to_bytes(lower(graph).model)
        store = Store()
        store.put("w", np.ones((rows, 1024), np.float32))
        session = NativeSession(Program.load_memory(data, weights or None), store, device="coreml", units=units)
        session.run()
        started = time.perf_counter()
        for _ in range(10):
            session.run()
        return {"megabytes": megabytes, "us_per_megabyte": (time.perf_counter() - started) / 10 / megabytes * 1e6}

    return measure


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


_INDICES = np.array([1], np.int32)
RUNS: dict[str, Run] = {
    "refusal/reshape to another size": _refusal(
        _change("reshape", "shape", np.array([5, 5], np.int32)), lambda g: ops.reshape(_x(g), (6, 4))),
    "refusal/clip the wrong way round": _refusal(
        _change("clip", "alpha", np.float32(2)), lambda g: ops.clip(_x(g), 0.0, 1.0)),
    "refusal/a default left out": _refusal(
        _drop("reduce_sum", "keep_dims"), lambda g: ops.sum(_x(g), 1)),
    "refusal/axis out of range": _refusal(
        _change("reduce_sum", "axes", np.array([7], np.int32)), lambda g: ops.sum(_x(g), 1)),
    "refusal/gather of scalar indices": _refusal(
        _change("gather", "indices", np.int32(1)),
        lambda g: ops.gather(_x(g), g.constant(_INDICES, i32), 1)),
    "refusal/gather out of range": _refusal(
        _change("gather", "indices", np.array([9], np.int32)),
        lambda g: ops.gather(_x(g), g.constant(_INDICES, i32), 1)),
    "training/2 layers": Run(_training(2)), "training/8 layers": Run(_training(8)),
    "training/32 layers": Run(_training(32), full=True),
    "executor/1000 predictions": Run(_many(1000)), "executor/50000 predictions": Run(_many(50000), full=True),
    "executor/16 MB of weights": Run(_weights(16)), "executor/256 MB of weights": Run(_weights(256), full=True),
    "executor/user initiated priority": Run(_at_priority(0x19)), "executor/utility priority": Run(_at_priority(0x11)),
    "refusal/and then a good program": Run(_after_a_refusal),
    **{f"states/{count} of {dtype}": _states(dtype, count) for dtype in (f16, f32) for count in (1, 2, 3, 8)},
    **{f"compile/{n} operations": Run(_long(n), full=n > 1000) for n in (100, 1000, 10000)},
}
