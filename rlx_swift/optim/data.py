"""Optimizers, groups and clips as plain data and back, by class name and hyperparameters."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from glob import escape
from typing import Any

import numpy as np

from ..errors import ConfigError
from . import clip as clips
from . import schedule as schedules
from .base import Optimizer, ParamInfo, registry
from .groups import Group, ParamGroups

_OWN = __name__.rpartition(".")[0] + "."
_BUILT_IN: dict[str, Any] = {"float": float, "list": list, "dict": dict}
_PLAIN = "numbers, text, tuples, lists, dicts, optimizers, clips and rlx.optim.schedules can be saved"
_FIELDS = "make it a frozen dataclass whose fields are all that it is made from"


def to_data(value: Any, subject: str = "value") -> Any:
    """An optimizer, `ParamGroups`, clip or schedule, or a plain value, as data that JSON can hold.

    Raises ConfigError for anything else, with the field that has it or the given subject.
    """
    if isinstance(value, (Optimizer, clips.Clip, ParamGroups, Group)):
        kind = type(value)
        written = [field.name for field in dataclasses.fields(value) if field.init]
        fields = {name: to_data(getattr(value, name), f"{kind.__name__} {name}") for name in written}
        return {"class": _name(kind), **fields}
    if isinstance(value, tuple):
        return [to_data(item, subject) for item in value]
    if isinstance(value, list):
        return {"class": "list", "items": to_data(tuple(value), subject)}
    if isinstance(value, Mapping):
        return {"class": "dict", "items": to_data(tuple(value.items()), subject)}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"class": "float", "value": repr(float(value))}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    data = schedules.to_data(value) if callable(value) else {}
    if "name" not in data:
        what = f"the function {data['callable']!r}" if data else repr(value)
        raise ConfigError(subject, f"a file cannot hold {what}", _PLAIN)
    return {"class": "schedule", **data}


def from_data(data: Any) -> Any:
    """What `to_data` wrote; raises ConfigError for a class that is not defined in this process, and what it raises."""
    if isinstance(data, list):
        return tuple(from_data(item) for item in data)
    if not isinstance(data, Mapping):
        return data
    name, rest = data["class"], {key: value for key, value in data.items() if key != "class"}
    if name == "schedule":
        return schedules.from_data(rest)
    if name in _BUILT_IN:
        return _BUILT_IN[name](*map(from_data, rest.values()))
    kind = _classes().get(name)
    if kind is None:
        raise ConfigError(f"class {name!r}", "it is not defined", "import the module that defines it first")
    try:
        return kind(**{key: from_data(value) for key, value in rest.items()})
    except TypeError as error:
        raise ConfigError(f"class {name!r}", f"its fields have changed: {error}") from None


def checked_data(value: Any, subject: str) -> Any:
    """As `to_data`; raises ConfigError where `from_data` would not read the same, also for attributes not written."""
    data = to_data(value, subject)
    try:
        loaded = from_data(json.loads(json.dumps(data, allow_nan=False)))
    except Exception as error:  # a class of the user's may raise anything
        raise ConfigError(subject, f"a file cannot hold {value!r}: {error}", _FIELDS) from error
    for field, saved, other in _differences(value, loaded, subject):
        raise ConfigError(field, f"it is {saved!r} and would be loaded as {other!r}", _FIELDS)
    return data


def _differences(a: Any, b: Any, subject: str) -> Iterator[tuple[str, Any, Any]]:
    """Where two values differ, with both; what is neither a dataclass nor plain data is not compared."""
    pairs: list[tuple[str, Any, Any]] = []
    if dataclasses.is_dataclass(a) and not isinstance(a, type):
        same = _name(type(a)) == _name(type(b))
        names = [field.name for field in dataclasses.fields(a)]
        names += [name for name in vars(a) if name in vars(b) and name not in names] if same else []
        pairs = [(f"{type(a).__name__} {n}", getattr(a, n, None), getattr(b, n, None)) for n in names]
    elif isinstance(a, (list, tuple)):
        same = type(a) is type(b) and len(a) == len(b)
        pairs = [(subject, *pair) for pair in zip(a, b, strict=True)] if same else []
    elif isinstance(a, Mapping):
        same = isinstance(b, Mapping) and a.keys() == b.keys()
        pairs = [(subject, a[key], b[key]) for key in a] if same else []
    elif isinstance(a, (bool, int, float, str, np.generic, np.ndarray)):
        same = np.shape(a) == np.shape(b) and bool(np.all((a == b) | ((a != a) & (b != b))))
    else:
        same = a is not None or b is None
    if not same:
        yield subject, a, b
        return
    for field, one, other in pairs:
        yield from _differences(one, other, field)


def without_functions(groups: ParamGroups, params: Sequence[ParamInfo]) -> ParamGroups:
    """The same groups, with the names that a function selects in its place."""
    plain: list[Group] = []
    for group in groups.groups:
        if isinstance(group.select, str):
            plain.append(group)
        else:
            plain += [dataclasses.replace(group, select=escape(param.name)) for param in params if group.takes(param)]
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
