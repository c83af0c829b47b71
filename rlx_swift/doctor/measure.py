"""One case on one choice of compute units, in this process: times, errors against our own CPU result, determinism."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from .._native.handles import NativeSession, Program, Store
from ..errors import DeviceError, RlxError
from ..interp import evaluate
from ..lower.mil import lower
from ..lower.package import to_bytes
from ..lower.program import Model
from ..session.native_device import boundary_shape
from .cases import Feeds, cases
from .programs import programs
from .runs import RUNS, planned

REPEATS = 20
_SHOWN = 8
Outputs = dict[str, np.ndarray]


@dataclass(frozen=True)
class _Question:
    """A case for one dtype, as a program.

    Attributes:
        model, feeds: by the names of features.
        names: what outputs are called, by their features.
        exact: the outputs in float64.
        open: whether a refusal is an answer.
    """

    model: Model
    feeds: Feeds
    names: Mapping[str, str]
    exact: Outputs | None = None
    open: bool = False


def _question(case: str, dtype: str) -> _Question:
    if case in programs():
        model, feeds = programs()[case].made(dtypes.parse(dtype))
        return _Question(model, feeds, {f.name: f.name for f in model.interfaces["main"].outputs}, open=True)
    asked = cases()[case]
    graph, given = asked.build(dtypes.parse(dtype))
    lowered = lower(graph)
    feeds = {lowered.inputs[n]: value.reshape(boundary_shape(value.shape)) for n, value in given.items()}
    exact = evaluate(graph, given, dtype=np.float64) if asked.exact else None
    return _Question(lowered.model, feeds, {feature: name for name, feature in lowered.outputs.items()}, exact)


def measure(case: str, dtype: str, units: str) -> dict[str, Any]:
    """What there is to say of a case, as plain data; raises whatever Core ML or the library does."""
    if case in RUNS:
        return RUNS[case].measure(units)
    question = _question(case, dtype)
    ours, expected = _ours(question)
    try:
        return {**ours, **_theirs(question, units, expected)}
    except DeviceError:
        raise
    except RlxError as error:
        if not question.open:
            raise
        return {**ours, "refused": str(error)}


def plan(case: str, dtype: str, units: str) -> dict[str, Any]:
    """How many operations of each kind Core ML plans for each processor; empty for a case that is no program."""
    return {} if case in RUNS else {"plan": planned(_question(case, dtype).model, units)}


def _ours(question: _Question) -> tuple[dict[str, Any], Outputs]:
    """Our own runtime's time and results; what it says when it takes no such program."""
    try:
        loaded = _Loaded(question, "cpu", "cpu")
        expected = loaded.run()
    except RlxError as error:
        if not question.open:
            raise
        return {"ours": str(error)}, {}
    return {"ours_us": loaded.median() * 1e6}, expected


def _theirs(question: _Question, units: str, expected: Outputs) -> dict[str, Any]:
    started = time.perf_counter()
    loaded = _Loaded(question, "coreml", units)
    ready = time.perf_counter()
    got = loaded.run()
    first = time.perf_counter() - ready
    median, again = loaded.median(), loaded.results()
    answer: dict[str, Any] = {
        "load_ms": (ready - started) * 1e3, "first_us": first * 1e6, "median_us": median * 1e6,
        "operations": len(_operations(question.model)),
        "backing_copies": loaded.session.statistics()["backing_copies"],
        "errors": {name: difference(got[name], value) for name, value in expected.items()},
        "same_again": all(got[name].tobytes() == again[name].tobytes() for name in got), "hash": _hash(got),
    }
    if question.exact is not None:
        answer["relative_to_float64"] = {name: _relative(got[name], value) for name, value in question.exact.items()}
    if question.open:
        answer["values"] = {name: value.ravel()[:_SHOWN].tolist() for name, value in got.items()}
    return answer


def _relative(got: np.ndarray, exact: np.ndarray) -> float:
    """The largest error, as a share of the largest value."""
    return float(np.max(np.abs(got.reshape(exact.shape) - exact)) / np.max(np.abs(exact)))


def _operations(model: Model) -> list[Any]:
    (body,) = model.functions["main"].bodies.values()
    return body.operations


class _Loaded:
    """A question as a program on a device, with its feeds."""

    def __init__(self, question: _Question, device: str, units: str) -> None:
        model, weights = to_bytes(question.model)
        self.session = NativeSession(Program.load_memory(model, weights or None), Store(), device=device, units=units)
        for feature, value in question.feeds.items():
            self.session.buffer(feature)[...] = value
        self._results = {name: self.session.buffer(feature) for feature, name in question.names.items()}

    def run(self) -> Outputs:
        self.session.run()
        return self.results()

    def results(self) -> Outputs:
        return {name: np.array(buffer) for name, buffer in self._results.items()}

    def median(self) -> float:
        """Seconds of a run."""
        times = []
        for _ in range(REPEATS):
            before = time.perf_counter()
            self.session.run()
            times.append(time.perf_counter() - before)
        return statistics.median(times)


def difference(got: np.ndarray, expected: np.ndarray) -> dict[str, Any]:
    """How two arrays differ: the largest error, absolute, relative and in units of the last place; NaN apart."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return {"type": f"{got.dtype}{got.shape}, expected {expected.dtype}{expected.shape}"}
    if got.dtype.kind != "f":
        return {"wrong": int(np.sum(got != expected))}
    nan = np.isnan(got) != np.isnan(expected)
    both = ~np.isnan(got) & ~np.isnan(expected)
    wide, right = got[both].astype(np.float64), expected[both].astype(np.float64)
    infinite = (np.isinf(wide) | np.isinf(right)) & (wide != right)
    finite = np.isfinite(wide) & np.isfinite(right)
    off = np.abs(wide[finite] - right[finite])
    size = np.maximum(np.abs(right[finite]), float(np.finfo(got.dtype).tiny))
    places = np.abs(_ordered(got[both])[finite] - _ordered(expected[both])[finite])
    return {
        "absolute": float(off.max(initial=0)), "relative": float((off / size).max(initial=0)),
        "ulps": int(places.max(initial=0)), "nan_differs": int(nan.sum()), "infinite_differs": int(infinite.sum()),
    }


def _ordered(values: np.ndarray) -> np.ndarray:
    """Integers in the order of the floats, neighbours one apart."""
    bits = values.view(np.int16 if values.dtype.itemsize == 2 else np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & (2 ** (8 * values.dtype.itemsize - 1) - 1)), bits)


def _hash(outputs: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(outputs):
        digest.update(outputs[name].tobytes())
    return digest.hexdigest()[:16]


