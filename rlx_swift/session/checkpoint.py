"""A run in one file: format, settings, and the refusal of a graph that is another."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from glob import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CheckpointError, ConfigError, RlxError
from ..ir.difference import difference
from ..ir.graph import Graph
from ..ir.symbolic import SymbolicGraph, sample
from ..optim import ParamGroups
from ..optim import schedule as schedules
from ..optim.data import checked_data, from_data, without_functions
from ..optim.schedule import Schedule
from ..precision import from_data as policy_from_data
from ..precision import to_data as policy_to_data
from . import safetensors
from .config import TrainConfig
from .device import devices
from .snapshot import capture, restore

if TYPE_CHECKING:
    from .training import TrainingSession

FORMAT = 1


def save(ts: TrainingSession, path: str | os.PathLike[str], fused: bool | None = None) -> None:
    """Writes the run; a file that was there stays whole until the new one is.

    `fused` says how the run that is loaded is to update; by default as this one does.
    """
    arrays, data = capture(ts)
    settings: dict[str, Any] = {
        "format": FORMAT, "graph": sample(ts.graph).to_json(), "open_sizes": isinstance(ts.graph, SymbolicGraph),
        "loss": ts.loss, "trainable": list(ts.trainable), "fused": ts.fused_active if fused is None else fused,
        "policy": policy_to_data(ts.precision_policy), "schedule": schedules.to_data(ts.schedule),
        "config": config_data(ts), "device": ts.device, "gemm_kernel": ts._device.kernel(),
    }
    safetensors.write(path, arrays, {"rlx": json.dumps({**settings, **data}, allow_nan=False)})


def load(
    kind: type[TrainingSession], path: str | os.PathLike[str], graph: Graph | SymbolicGraph | None,
    schedule: float | Schedule | None, device: str | None,
) -> TrainingSession:
    """The run that was saved; see `TrainingSession.load`."""
    subject = os.fspath(path)
    arrays, metadata = safetensors.read(path)
    try:
        data = json.loads(metadata["rlx"])
        version = data["format"]
    except (KeyError, TypeError, ValueError):
        raise CheckpointError(subject, "it is a safetensors file, but no checkpoint of a run") from None
    if version != FORMAT:
        raise CheckpointError(subject, f"expected format {FORMAT}, got {version!r}")
    try:
        ts = _session(kind, data, _graph(data, graph, subject), schedule, device)
        restore(ts, arrays, data)
    except (ConfigError, CheckpointError):
        raise
    except RlxError as error:
        raise CheckpointError(subject, str(error)) from error
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise CheckpointError(subject, f"its settings are not whole: {error!r}") from error
    return ts


def _graph(data: dict[str, Any], given: Graph | SymbolicGraph | None, subject: str) -> Graph | SymbolicGraph:
    saved = Graph.from_json(data["graph"])
    if given is None:
        if data["open_sizes"]:
            problem = "its graph has a named dimension, which only the function that it was traced from can bind"
            raise ConfigError(subject, problem, "give graph=")
        return saved
    different = difference(saved, sample(given))
    if different:
        raise CheckpointError(subject, f"it is of another graph: {different}")
    return given


def _session(
    kind: type[TrainingSession], data: dict[str, Any], graph: Graph | SymbolicGraph,
    schedule: float | Schedule | None, device: str | None,
) -> TrainingSession:
    lr = schedules.from_data(data["schedule"]) if schedule is None else schedule
    config = TrainConfig(lr=lr, **{name: from_data(value) for name, value in data["config"].items()})
    form = sample(graph)
    initial = {name: np.zeros(t.shape, np.float32) for name, t in (*form.params.items(), *form.buffers.items())}
    trainable = [escape(name) for name in data["trainable"]]  # names, not patterns
    ts = kind(graph, trainable, initial, config, device or _saved_device(data), data["loss"])
    ts._trained.since = {name: int(n) for name, n in data["since"].items()}
    ts._trained.left = {name: int(n) for name, n in data.get("left", {}).items()}
    ts._trained.choose(trainable, 0)
    ts._use_policy(policy_from_data(data["policy"]))
    if data["fused"]:
        ts.with_fused_optimizer()
    return ts


def _saved_device(data: dict[str, Any]) -> str | None:
    """The device that the run was on, if it is here; another one rounds differently."""
    return next((d.name for d in devices() if d.available and d.name == data.get("device")), None)


def config_data(ts: TrainingSession) -> dict[str, Any]:
    config = {field.name: getattr(ts.config, field.name) for field in fields(TrainConfig) if field.name != "lr"}
    if isinstance(config["optimizer"], ParamGroups):
        config["optimizer"] = without_functions(config["optimizer"], list(ts._trained.params.values()))
    return {name: checked_data(value, name) for name, value in config.items()}
