"""A run for programs without Python: its lowered graphs, everything else as data, and where it stands.

The manifest says what each program's features mean. Knows the Swift side only by this format.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ConfigError, ShapeError
from ..ir.graph import Graph, is_noise
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
    given_graph,
    gradient_graph,
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


Sizes = Mapping[str, int | Sequence[int]]


@dataclass(frozen=True)
class _Form:
    """The forward graph at one choice of sizes; the suffix tells its programs from those of other forms."""

    forward: Graph
    sizes: Mapping[str, int]
    suffix: str


def export_bundle(ts: TrainingSession, path: str | os.PathLike[str], sizes: Sizes | None) -> None:
    """Writes the directory `path`, whole or not at all; see `TrainingSession.export_bundle`."""
    _require_data(ts)
    forms = _forms(ts, sizes or {})
    with whole_directory(path, MANIFEST, "bundle") as made:
        _write(ts, forms, made)


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


def _forms(ts: TrainingSession, sizes: Sizes) -> list[_Form]:
    """One for each choice of sizes, those that were named first in front."""
    graph = ts.graph
    if isinstance(graph, Graph):
        if sizes:
            raise ShapeError("export_bundle() sizes", "the graph has no named dimension")
        return [_Form(graph, {}, "")]
    for name in graph.dimensions:
        if name not in sizes:
            hint = f"give sizes={{{name!r}: [32, 1]}}, the batches that the bundle is to train and predict with"
            raise ShapeError("export_bundle() sizes", f"a program has fixed shapes, and {name!r} has no size", hint)
    choices = itertools.product(*[_each(name, sizes[name]) for name in sizes])
    bound = [dict(zip(sizes, choice, strict=True)) for choice in choices]
    suffixes = ["", *["_" + "x".join(str(each[name]) for name in graph.dimensions) for each in bound[1:]]]
    return [_Form(graph.bind(each), each, suffix) for each, suffix in zip(bound, suffixes, strict=True)]


def _each(name: str, given: int | Sequence[int]) -> list[int]:
    """The sizes of one dimension, each once."""
    listed = [given] if isinstance(given, int) else list(given)
    for size in listed:
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ShapeError("export_bundle() sizes", f"{name!r}: expected integers of at least 1, got {size!r}")
    if not listed:
        raise ShapeError("export_bundle() sizes", f"{name!r}: expected at least one size")
    return list(dict.fromkeys(listed))


def _write(ts: TrainingSession, forms: Sequence[_Form], directory: Path) -> None:
    rule = ts._trained.rule
    recipe = Recipe(ts.loss, rule, ts.precision_policy, ts._trainer.scale.active)
    kinds = list(rule.hessians)
    first, *others = [_form_data(ts, form, recipe, directory) for form in forms]
    for name, graph in (("apply", apply_graph(recipe)), ("given", given_graph(recipe))):
        first["programs"][name] = _program(graph, directory / f"{name}.mlpackage")
    checkpoint.save(ts, directory / CHECKPOINT, fused=True)
    manifest = {
        "format": FORMAT, "loss": ts.loss, "seed": ts.config.seed, "checkpoint": CHECKPOINT, **first,
        "more_sizes": others, "predict_inputs": ts._prediction_inputs,
        "params": {
            name: {**_resident(name, info.shape), "trained": name in rule.shapes}
            for name, info in ts._trained.params.items()
        },
        "buffers": {
            name: {**_resident(name, shape), "assigned": name in forms[0].forward.assigns}
            for name, shape in ts._weights.shapes.items() if name not in ts._trained.params
        },
        "state": {name: _resident(name, shape) for name, shape in rule.resident_shapes().items()},
        "accumulators": {name: _resident(name, shape) for name, shape in accumulators(ts).items()},
        "config": checkpoint.config_data(ts),
        "scalars": [_scalars(each, kinds) for each in rule.assignments],
        "estimates": [{**asdict(kind), "program": f"estimate_{i}"} for i, kind in enumerate(kinds)],
        "schedules": {"lr": schedules.to_data(ts.schedule)},
        "scale": {"lowest": LOWEST, "highest": HIGHEST, "patience": PATIENCE},
        "model": _model(ts, min(forms, key=lambda form: tuple(form.sizes.values())).forward, directory),
    }
    files = sorted(file for file in directory.rglob("*") if file.is_file())
    manifest["files"] = {file.relative_to(directory).as_posix(): _digest(file) for file in files}
    text = json.dumps(manifest, indent=1, sort_keys=True, allow_nan=False)
    (directory / MANIFEST).write_text(text + "\n", encoding="utf-8")


def _form_data(ts: TrainingSession, form: _Form, recipe: Recipe, directory: Path) -> dict[str, Any]:
    """Writes the programs of a form; its sizes, inputs, outputs and programs as data."""
    forward, policy = form.forward, recipe.policy
    graphs = {
        "train": step_graph(forward, recipe), "accumulate": accumulate_graph(forward, recipe),
        "gradients": gradient_graph(forward, recipe), "evaluate": evaluation_graph(forward, ts.loss, policy),
        "infer": prediction_graph(forward, ts.loss, policy),
    }
    for i, (kind, params) in enumerate(recipe.rule.hessians.items()):
        graphs[f"estimate_{i}"] = hessian_graph(forward, ts.loss, params, kind)
    return {
        "sizes": dict(form.sizes), "inputs": {n: _type(t.type) for n, t in forward.inputs.items() if not is_noise(n)},
        "outputs": {name: _type(t.type) for name, t in graphs["infer"].outputs.items()},
        "programs": {
            name: _program(graph, directory / f"{name}{form.suffix}.mlpackage") for name, graph in graphs.items()
        },
    }


def _program(graph: Graph, path: Path) -> dict[str, Any]:
    """Writes a program; what its features mean, by the names that values have in graphs."""
    lowered = lower(graph)
    write_package(path, lowered.model)
    read = lowered.params.keys() | lowered.buffers.keys()
    ranges = {lowered.inputs[n]: range for n, range in index_ranges(graph).items() if n in lowered.inputs}
    return {
        "file": path.name, "units": compute_units(graph),
        "inputs": {n: _feature(lowered, feature) for n, feature in lowered.inputs.items()},
        "outputs": {n: _feature(lowered, feature) for n, feature in lowered.outputs.items()},
        "pairs": {feature_name(n): output for n, output in lowered.assigns.items() if n in read},
        "written": {
            n: {**_feature(lowered, output), "resident": feature_name(n)}
            for n, output in lowered.assigns.items() if n not in read
        },
        "ranges": {feature: range.bound for feature, range in ranges.items()},
        "replaced": {feature: sorted(range.replaced) for feature, range in ranges.items() if range.replaced},
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


def _model(ts: TrainingSession, forward: Graph, directory: Path) -> dict[str, Any]:
    """Writes the model to deploy, and finds where in its files the values of params and buffers are.

    Each is found by other values put in its place: where two models, each with other marks, both have theirs.
    """
    graph = prediction_graph(forward, ts.loss, ts.precision_policy)
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
