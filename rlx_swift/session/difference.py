"""Two models compared value by value: where they begin to differ. Knows how to run each, and no mathematics."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ConfigError, NameNotFoundError
from ..interp import all_values
from ..lift import Lifting
from ..lower.package import Opened, read_package
from ..lower.program import Array, Block
from . import feeds as feeding
from .interface import Interface
from .matching import Matches, Value, match
from .model import load_model
from .widening import write_widened

_LISTED = 10
_WITHIN = {"f16": 1e-2, "f32": 1e-4}
_Path = str | os.PathLike[str]


@dataclass(frozen=True)
class ValueDifference:
    """How one value of the first model and its counterpart differ.

    Attributes:
        name, other: what the two models call it.
        operation: what makes it in the first model.
        error: the largest absolute difference; infinite where one of the two is no number and the other is.
        scale: the largest finite absolute value of the counterpart.
        place: the index of the largest difference; `values` are the two numbers there.
        differs: whether `error` is larger than atol + rtol * scale.
    """

    name: str
    other: str
    operation: str
    type: str
    error: float
    scale: float
    place: tuple[int, ...]
    values: tuple[float, float]
    differs: bool

    @property
    def relative(self) -> float:
        return self.error / self.scale if self.scale else self.error

    def __str__(self) -> str:
        also = f" ({self.other})" if self.other != self.name else ""
        first, second = self.values
        return (
            f"{self.name}{also}, {self.operation} {self.type}: off by {self.error:.3g}, {self.relative:.2e} of the "
            f"largest value; {first:.7g} and {second:.7g} at {list(self.place)}"
        )


@dataclass(frozen=True)
class ModelDifference:
    """All values that could be compared, in the order of the first program.

    Attributes:
        skipped: names that were not compared, and why.
    """

    first_model: str
    second_model: str
    compared: tuple[ValueDifference, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def first(self) -> ValueDifference | None:
        """The first value that differs."""
        return next((value for value in self.compared if value.differs), None)

    def worst(self, count: int = _LISTED) -> tuple[ValueDifference, ...]:
        """By the difference's share of the largest value."""
        return tuple(sorted(self.compared, key=lambda value: -value.relative)[:count])

    def __str__(self) -> str:
        differing = sum(value.differs for value in self.compared)
        lines = [
            f"{self.first_model} and {self.second_model}: {len(self.compared)} values compared, {differing} differ",
            f"first that differs: {self.first}" if self.first else "no value differs", "",
            f"{'relative':>9} {'absolute':>9} {'largest':>9}  worst values",
        ]
        lines += [
            f"{v.relative:9.2e} {v.error:9.2e} {v.scale:9.3g} {'*' if v.differs else ' '} "
            f"{v.name}: {v.operation} {v.type}"
            for v in self.worst()
        ]
        if self.skipped:
            lines += ["", f"{len(self.skipped)} values not compared"]
            lines += [f"  {name}: {reason}" for name, reason in list(self.skipped.items())[:_LISTED]]
            if len(self.skipped) > _LISTED:
                lines.append(f"  and {len(self.skipped) - _LISTED} more")
        return "\n".join(lines)


def diff_models(
    a: _Path, b: _Path | None = None, feeds: Mapping[str, Any] | None = None, *, precision: str | None = None,
    device: str | None = None, function: str | None = None, rtol: float | None = None, atol: float = 0.0,
) -> ModelDifference:
    """Where the intermediate values of two models begin to differ, run on our own runtime with states of zeros.

    Give one of `b`, `precision` and `device`.

    Args:
        b: another package. Its values correspond to those of `a` when the same operations make them from the same
            inputs, else by their names; weights, precisions, casts and names may differ.
        feeds: for the inputs of both, by name; as for `Model.predict`.
        precision: "f32": the same program with f32 in the place of every f16.
        device: "numpy": the program lifted to a graph and interpreted in float64; another device: its outputs only.
        function: one function of models that have several; the default one if None.
        rtol: a value differs when it is off by more than atol + rtol * the largest value of the counterpart; by
            default 1e-2 where one of the two is f16, else 1e-4. Integers and bools must be equal.

    Raises:
        ConfigError: not exactly one of the three was given.
        PackageError, UnsupportedError, FeedError, DTypeError: as `load_model` and `Model.predict`.
    """
    if sum(choice is not None for choice in (b, precision, device)) != 1:
        raise ConfigError("diff_models", "expected exactly one of a second model, precision= and device=")
    if precision not in (None, "f32"):
        raise ConfigError("precision", f"expected 'f32', got {precision!r}")
    from .._native.model import NativeModel

    given = feeding.require_mapping(feeds or {})
    package = read_package(a)
    body = _body(package, function)
    matches = match(body, body if b is None else _body(read_package(b), function))
    seconds = [second.name for _, second in matches.pairs]
    model = NativeModel(a, function, watched=[first.name for first, _ in matches.pairs])
    checked = Interface(model.interface).checked(given)
    if b is not None:
        other = os.fspath(b)
        compared = NativeModel(b, function, watched=seconds)
        got = _arrays(compared, Interface(compared.interface).checked(given))
    elif precision is not None:
        other, got = "its program in f32", _widened(package, function, seconds, checked)
    else:
        assert device is not None  # one of the three
        other = f"the device {device}"
        got = _interpreted(package, function, given) if device == "numpy" else _predicted(a, function, device, given)
    return _compared(os.fspath(a), other, matches, _arrays(model, checked), got, rtol, atol)


def _body(package: Opened, function: str | None) -> Block:
    name = function or package.model.default_function
    found = package.model.functions.get(name)
    if found is None or found.opset not in found.bodies:
        raise NameNotFoundError(f"function {name!r}", f"the model has {', '.join(package.model.functions) or 'none'}")
    body = found.bodies[found.opset]
    return Block(found.inputs, body.operations, body.outputs)


# Running


def _arrays(model: Any, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: result.value for name, result in model.predict(feeds).items() if result.value is not None}


def _widened(
    package: Opened, function: str | None, wanted: list[str], feeds: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    from .._native.model import NativeModel

    wide = {name: array.astype(np.float32) if array.dtype == np.float16 else array for name, array in feeds.items()}
    with tempfile.TemporaryDirectory() as folder:
        written = write_widened(package, Path(folder))
        return _arrays(NativeModel(written, function, watched=wanted), wide)


def _interpreted(package: Opened, function: str | None, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    shapes = {name: np.shape(value) for name, value in feeds.items()}
    lifting = Lifting(package, function, shapes)
    graph = lifting.graph()
    types = {name: tensor.type for name, tensor in graph.inputs.items()}
    found = all_values(graph, feeding.checked(types, feeds), np.float64)
    return {name: found[id(tensor)] for name, tensor in lifting.tensors.items() if id(tensor) in found}


def _predicted(path: _Path, function: str | None, device: str, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    results = load_model(path, function, device).predict(feeds)
    return {name: value for name, value in results.items() if isinstance(value, np.ndarray)}


# Comparing


def _compared(
    a: str, b: str, matches: Matches, own: Mapping[str, np.ndarray], got: Mapping[str, np.ndarray],
    rtol: float | None, atol: float,
) -> ModelDifference:
    skipped = dict(matches.skipped)
    compared = []
    for first, second in matches.pairs:
        x, y = own.get(first.name), got.get(second.name)
        if x is None or y is None:
            skipped[first.name] = "only one of the two gives it"
        elif x.shape != y.shape:
            skipped[first.name] = f"its shapes are {x.shape} and {y.shape}"
        elif x.size:
            halves = "fp16" in (first.type.dtype, second.type.dtype)
            within = rtol if rtol is not None else _WITHIN["f16" if halves else "f32"]
            compared.append(_difference(first, second, x, y, within, atol))
    return ModelDifference(a, b, tuple(compared), skipped)


def _difference(
    first: Value, second: Value, x: np.ndarray, y: np.ndarray, rtol: float, atol: float
) -> ValueDifference:
    p, q = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(invalid="ignore"):
        same = (p == q) | (np.isnan(p) & np.isnan(q))
        error = np.where(same, 0.0, np.abs(p - q))
    error = np.where(np.isnan(error), np.inf, error)
    place = np.unravel_index(int(np.argmax(error)), error.shape)
    finite = np.abs(q[np.isfinite(q)])
    scale = float(finite.max()) if finite.size else 0.0
    limit = atol + rtol * scale if x.dtype.kind == "f" else 0.0
    largest = float(error[place])
    return ValueDifference(
        first.name, second.name, first.operation, str(Array(first.type.dtype, x.shape)), largest, scale,
        tuple(map(int, place)), (float(p[place]), float(q[place])), not largest <= limit,
    )
