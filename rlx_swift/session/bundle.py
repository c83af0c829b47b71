"""A run for programs without Python: its lowered graphs, everything else as data, and where it stands.

The manifest says what each program's features mean. Knows the Swift side only by this format.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ConfigError, ShapeError
from ..ir.graph import Graph, is_noise
from ..ir.symbolic import SymbolicGraph
from ..ir.types import TensorType
from ..lower.mil import Lowered, lower
from ..lower.names import feature_name
from ..lower.package import to_bytes, whole_directory, write_package
from ..optim import schedule as schedules
from ..optim.formula import trace
from ..optim.requirement import HessianDiag
from . import checkpoint
from .curvature import hessian_graph
from .feeds import index_ranges
from .native_device import compute_units
from .programs import (
    Recipe,
    accumulate_graph,
    apply_graph,
    evaluation_graph,
    prediction_graph,
    step_graph,
)
from .scaling import HIGHEST, LOWEST, PATIENCE
from .snapshot import accumulators

if TYPE_CHECKING:
    from .training import TrainingSession

FORMAT = 1
MANIFEST, CHECKPOINT, MODEL = "manifest.json", "initial.safetensors", "predict.mlpackage"
_LARGEST_SEED = 2**63 - 1


def export_bundle(ts: TrainingSession, path: str | os.PathLike[str], sizes: Mapping[str, int] | None) -> None:
    """Writes the directory `path`, whole or not at all; see `TrainingSession.export_bundle`."""
    _require_data(ts)
    forward = _bound(ts, sizes)
    with whole_directory(path, MANIFEST, "bundle") as made:
        _write(ts, forward, made)


def _require_data(ts: TrainingSession) -> None:
    """Raises ConfigError for what of a run only Python can go on with."""
    schedule = schedules.to_data(ts.schedule)
    if "callable" in schedule:
        problem = "it is a Python function, which a bundle cannot hold"
        raise ConfigError(f"schedule {schedule['callable']!r}", problem, "use one of rlx.optim.schedules")
    if reason := ts._trained.host_only():
        raise ConfigError("export_bundle()", f"the update cannot be part of a program: {reason}", "choose another")
    if ts.config.seed > _LARGEST_SEED:
        raise ConfigError("seed", f"a bundle holds one below 2^63, got {ts.config.seed}")


def _bound(ts: TrainingSession, sizes: Mapping[str, int] | None) -> Graph:
    if isinstance(ts.graph, Graph):
        if sizes:
            raise ShapeError("export_bundle() sizes", "the graph has no named dimension")
        return ts.graph
    missing = [name for name in ts.graph.dimensions if name not in (sizes or {})]
    if missing:
        hint = f"give sizes={{{missing[0]!r}: 32}}, the batch that the bundle is to train with"
        raise ShapeError("export_bundle() sizes", f"a program has fixed shapes, and {missing[0]!r} has no size", hint)
    assert isinstance(ts.graph, SymbolicGraph)
    return ts.graph.bind(sizes or {})


def _write(ts: TrainingSession, forward: Graph, directory: Path) -> None:
    rule, policy = ts._trained.rule, ts.precision_policy
    recipe = Recipe(ts.loss, rule, policy, ts._trainer.scale.active)
    graphs = {
        "train": step_graph(forward, recipe), "accumulate": accumulate_graph(forward, recipe),
        "apply": apply_graph(recipe), "evaluate": evaluation_graph(forward, ts.loss, policy),
        "infer": prediction_graph(forward, ts.loss, policy),
    }
    kinds = list(rule.hessians)
    for i, (kind, params) in enumerate(rule.hessians.items()):
        graphs[f"estimate_{i}"] = hessian_graph(forward, ts.loss, params, kind)
    programs = {name: _program(graph, directory / f"{name}.mlpackage") for name, graph in graphs.items()}
    model = _model(ts, graphs["infer"], directory)
    checkpoint.save(ts, directory / CHECKPOINT, fused=True)
    manifest = {
        "format": FORMAT, "loss": ts.loss, "seed": ts.config.seed, "checkpoint": CHECKPOINT,
        "inputs": {n: _type(t.type) for n, t in forward.inputs.items() if not is_noise(n)},
        "predict_inputs": [n for n in graphs["infer"].inputs if not is_noise(n)],
        "outputs": {name: _type(t.type) for name, t in graphs["infer"].outputs.items()},
        "params": {
            name: {**_resident(name, info.shape), "trained": name in rule.shapes}
            for name, info in ts._trained.params.items()
        },
        "buffers": {
            name: {**_resident(name, shape), "assigned": name in forward.assigns}
            for name, shape in ts._weights.shapes.items() if name not in ts._trained.params
        },
        "state": {name: _resident(name, shape) for name, shape in rule.resident_shapes().items()},
        "accumulators": {name: _resident(name, shape) for name, shape in accumulators(ts).items()},
        "config": checkpoint.config_data(ts),
        "scalars": [_scalars(each, kinds) for each in rule.assignments],
        "estimates": [{**asdict(kind), "program": f"estimate_{i}"} for i, kind in enumerate(kinds)],
        "schedules": {"lr": schedules.to_data(ts.schedule)},
        "scale": {"lowest": LOWEST, "highest": HIGHEST, "patience": PATIENCE},
        "programs": programs, "model": model,
    }
    files = sorted(file for file in directory.rglob("*") if file.is_file())
    manifest["files"] = {file.relative_to(directory).as_posix(): _digest(file) for file in files}
    text = json.dumps(manifest, indent=1, sort_keys=True, allow_nan=False)
    (directory / MANIFEST).write_text(text + "\n", encoding="utf-8")


def _program(graph: Graph, path: Path) -> dict[str, Any]:
    """Writes a program; what its features mean, by the names that values have in graphs."""
    lowered = lower(graph)
    write_package(path, lowered.model)
    read = lowered.params.keys() | lowered.buffers.keys()
    ranges = {name: range for name, range in index_ranges(graph).items() if name in lowered.inputs}
    return {
        "file": path.name, "units": compute_units(graph),
        "inputs": {n: _feature(lowered, feature) for n, feature in lowered.inputs.items()},
        "outputs": {n: _feature(lowered, feature) for n, feature in lowered.outputs.items()},
        "pairs": {feature_name(n): output for n, output in lowered.assigns.items() if n in read},
        "written": {
            n: {**_feature(lowered, output), "resident": feature_name(n)}
            for n, output in lowered.assigns.items() if n not in read
        },
        "ranges": {lowered.inputs[n]: r.bound for n, r in ranges.items() if not r.replaced},
    }


def _feature(lowered: Lowered, feature: str) -> dict[str, Any]:
    return {"feature": feature, **_type(lowered.types[feature])}


def _type(type: TensorType) -> dict[str, Any]:
    return {"dtype": type.dtype.name, "shape": list(type.shape)}


def _resident(name: str, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"feature": feature_name(name), "shape": list(shape)}


def _scalars(each: Any, kinds: list[HessianDiag]) -> dict[str, Any]:
    """One optimizer's numbers as formulas of its own count of updates and its own rate."""
    needed = each.optimizer.requires
    return {
        "since": each.since, "lr_scale": each.lr_scale, "numbers": trace(each.optimizer),
        "estimate": kinds.index(needed) if isinstance(needed, HessianDiag) else None,
    }


def _model(ts: TrainingSession, graph: Graph, directory: Path) -> dict[str, Any]:
    """Writes the model to deploy, and finds where in its files the values of params and buffers are.

    Each is found by other values put in its place: where two models, each with other marks, both have theirs.
    """
    values = {name: ts.param(name) for name in (*graph.params, *graph.buffers)}
    write_package(directory / MODEL, lower(graph, baked=values).model)
    found = [_marked(graph, values, salt) for salt in ("a", "b")]
    places = {}
    for name in values:
        ((file, offset),) = found[0][name] & found[1][name]
        places[name] = {"file": file, "offset": offset}
    return {"file": MODEL, "places": places}


def _marked(graph: Graph, values: Mapping[str, np.ndarray], salt: str) -> dict[str, set[tuple[str, int]]]:
    """Where a model's files have the marks that stand in it for the values: `model` or `weights`, and the offset."""
    marks = {}
    for name, value in values.items():
        rng = np.random.default_rng(list(hashlib.sha256(f"{salt}{name}".encode()).digest()))
        marks[name] = np.asarray(rng.standard_normal(value.shape), np.float32)
    contents = to_bytes(lower(graph, baked=marks).model)
    return {
        name: {(file, at) for file, data in contents._asdict().items() for at in _occurrences(data, mark.tobytes())}
        for name, mark in marks.items()
    }


def _occurrences(data: bytes, part: bytes) -> Iterator[int]:
    at = data.find(part)
    while at >= 0:
        yield at
        at = data.find(part, at + 1)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
