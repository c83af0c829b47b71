"""Optimizers, groups and clips as plain data and back, by class name and hyperparameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ConfigError
from . import clip as clips
from . import schedule as schedules
from .base import Optimizer, ParamInfo, registry
from .groups import Group, ParamGroups

_OWN = __name__.rpartition(".")[0] + "."


def to_data(value: Any) -> Any:
    """An optimizer, `ParamGroups`, clip or schedule, or a plain value, as data that JSON can hold."""
    if isinstance(value, (Optimizer, clips.Clip)):
        fields = {field.name: to_data(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"class": _name(type(value)), **fields}
    if isinstance(value, ParamGroups):
        return {"class": "ParamGroups", "groups": [to_data(group) for group in value.groups]}
    if isinstance(value, Group):
        return {"class": "Group", "select": value.select, "optimizer": to_data(value.optimizer),
                "lr_scale": value.lr_scale}
    if isinstance(value, (list, tuple)):
        return [to_data(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return {"class": "schedule", **schedules.to_data(value)} if callable(value) else value


def from_data(data: Any) -> Any:
    """What `to_data` wrote; raises ConfigError for a class that is not defined in this process, and what it raises."""
    if isinstance(data, list):
        return tuple(from_data(item) for item in data)
    if not isinstance(data, Mapping):
        return data
    rest = {key: value for key, value in data.items() if key != "class"}
    if data["class"] == "schedule":
        return schedules.from_data(rest)
    kind = _classes().get(data["class"])
    if kind is None:
        raise ConfigError(f"class {data['class']!r}", "it is not defined", "import the module that defines it first")
    try:
        return kind(**{key: from_data(value) for key, value in rest.items()})
    except TypeError as error:
        raise ConfigError(f"class {data['class']!r}", f"its fields have changed: {error}") from None


def without_functions(groups: ParamGroups, params: Sequence[ParamInfo]) -> ParamGroups:
    """The same groups, with the names that a function selects in its place."""
    plain: list[Group] = []
    for group in groups.groups:
        if isinstance(group.select, str):
            plain.append(group)
        else:
            plain += [dataclasses.replace(group, select=param.name) for param in params if group.takes(param)]
    return ParamGroups(plain)


def _name(kind: type) -> str:
    full = f"{kind.__module__}.{kind.__qualname__}"
    return kind.__name__ if full.startswith(_OWN) else full


def _classes() -> dict[str, Any]:
    found: dict[str, Any] = {_name(kind): kind for kind in (*registry().values(), *_subclasses(clips.Clip))}
    return found | {"ParamGroups": ParamGroups, "Group": Group}


def _subclasses(kind: type[clips.Clip]) -> Iterator[type[clips.Clip]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)
