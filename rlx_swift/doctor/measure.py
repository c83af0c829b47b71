"""One case on one choice of compute units, in this process: times, errors against our own CPU result, determinism."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import dtypes
from .._native.handles import NativeSession, Program, Store
from ..ir.graph import Graph
from ..lower.mil import lower
from ..lower.package import to_bytes
from ..session.native_device import boundary_shape
from .cases import Feeds, cases
from .runs import RUNS

REPEATS = 20
Outputs = dict[str, np.ndarray]


def measure(case: str, dtype: str, units: str) -> dict[str, Any]:
    """What there is to say of a case, as plain data; raises whatever Core ML or the library does."""
    if case in RUNS:
        return RUNS[case].measure(units)
    graph, feeds = cases()[case].build(dtypes.parse(dtype))
    expected = _Loaded(graph, "cpu", "cpu").run(feeds)
    started = time.perf_counter()
    model = _Loaded(graph, "coreml", units)
    loaded = time.perf_counter()
    got = model.run(feeds)
    first = time.perf_counter() - loaded
    times, again = [], got
    for _ in range(REPEATS):
        before = time.perf_counter()
        again = model.run(feeds)
        times.append(time.perf_counter() - before)
    return {
        "load_ms": (loaded - started) * 1e3, "first_us": first * 1e6, "median_us": statistics.median(times) * 1e6,
        "operations": model.operations, "backing_copies": model.session.statistics()["backing_copies"],
        "errors": {name: difference(got[name], expected[name]) for name in expected},
        "same_again": all(got[name].tobytes() == again[name].tobytes() for name in got),
        "hash": _hash(got),
    }


class _Loaded:
    """A graph as a program on a device."""

    def __init__(self, graph: Graph, device: str, units: str) -> None:
        lowered = lower(graph)
        (body,) = lowered.model.functions["main"].bodies.values()
        self.operations = len(body.operations)
        model, weights = to_bytes(lowered.model)
        program = Program.load_memory(model, weights or None)
        self.session = NativeSession(program, Store(), device=device, units=units)
        self._feeds = {name: self.session.buffer(feature) for name, feature in lowered.inputs.items()}
        self._results = {name: self.session.buffer(feature) for name, feature in lowered.outputs.items()}

    def run(self, feeds: Feeds) -> Outputs:
        for name, buffer in self._feeds.items():
            buffer[...] = feeds[name].reshape(boundary_shape(feeds[name].shape))
        self.session.run()
        return {name: np.array(buffer) for name, buffer in self._results.items()}


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


