"""The devices behind the native library: graphs are lowered to Core ML programs and run there."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..dtypes import bool_
from ..errors import ConfigError, FeedError, RlxError
from ..ir.graph import Graph
from ..ir.types import TensorType
from ..lower.names import feature_name
from .artifact import Artifact, artifact
from .cache import cached
from .device import NO_SCALARS, DeviceStatus, Direct, Ran, Repeat, Series, Store
from .feeds import check_ranges

_WHAT = {"cpu": "our own runtime for Core ML programs", "coreml": "Apple's Core ML"}
CALL_NANOSECONDS = 50_000_000  # of many runs, so that Ctrl-C and a progress bar need not wait
LEAST_LENT = 1 << 14  # bytes from which on feeds are read and results written where they are; copying fewer is faster
NO_ARRAYS: Mapping[str, np.ndarray] = {}
UNITS = {"cpu": "cpu", "gpu": "cpu_and_gpu", "ane": "cpu_and_ne", "all": "all"}  # RLX_COREML_UNITS
PREDICTING_UNITS = "cpu_and_ne"


class NativeStore:
    """Tensors in the library's memory, under the names that they have in graphs."""

    def __init__(self) -> None:
        from .._native.handles import Store as Handle

        self.handle = Handle()
        self._shapes: dict[str, tuple[int, ...]] = {}

    def put(self, name: str, value: np.ndarray) -> None:
        array = np.asarray(value, np.float32)
        self.handle.put(feature_name(name), array.reshape(boundary_shape(array.shape)))
        self._shapes[name] = array.shape

    def get(self, name: str) -> np.ndarray:
        shape = self._shapes[name]
        out = np.empty(boundary_shape(shape), np.float32)
        self.handle.get(feature_name(name), out)
        return out.reshape(shape)

    def __contains__(self, name: str) -> bool:
        return name in self._shapes


class NativeExecutable:
    """One lowered program, planned for one store; small feeds and results are the session's own memory."""

    def __init__(self, made: Artifact, store: NativeStore, device: str, units: str) -> None:
        from .._native.call import Turns
        from .._native.handles import NativeSession, Program

        self._turns = Turns("session")  # from the writing of feeds to the reading of results
        self._made, self._ranges, self._store = made, made.ranges, store
        self._holed = {name: range for name, range in self._ranges.items() if range.replaced}
        self._session = NativeSession(
            Program.load_memory(made.model, made.weights or None), store.handle,
            pairs={feature_name(name): output for name, output in made.pairs.items()},
            ranges={made.inputs[n]: (0, r.bound) for n, r in self._ranges.items() if n not in self._holed},
            device=device, units=units,
        )
        types = made.input_types
        self.inputs = {name: type.shape for name, type in types.items()}
        feeds = {name: self._session.buffer(feature) for name, feature in made.inputs.items()}
        self._scalars = {name: buffer for name, buffer in feeds.items() if not types[name].shape}
        lent = [n for n, b in feeds.items() if b.nbytes >= LEAST_LENT and b.dtype == types[n].dtype.numpy]
        self._feeds = {n: b for n, b in feeds.items() if types[n].shape and n not in lent}
        self._lent = lent
        self._results = {
            name: (self._session.buffer(made.outputs[name]), type) for name, type in made.output_types.items()
        }
        self._fresh = [n for n, (b, t) in self._results.items() if b.nbytes >= LEAST_LENT and b.dtype == t.dtype.numpy]
        self._run_lent = self._session.lending(
            [made.inputs[name] for name in lent], [made.outputs[name] for name in self._fresh]
        )
        # A pair joins an input with an output; what is only written is an output alone.
        self._written = {
            name: (self._session.buffer(output), made.written_types[name]) for name, output in made.written.items()
        }

    def run(self, feeds: Mapping[str, np.ndarray], scalars: Mapping[str, float] = NO_SCALARS) -> dict[str, np.ndarray]:
        fresh = {name: np.empty_like(self._results[name][0]) for name in self._fresh}
        with self._turns.lock():
            self._run(feeds, scalars, fresh)
            return {
                name: fresh[name].reshape(type.shape) if name in fresh else _result(buffer, type)
                for name, (buffer, type) in self._results.items()
            }

    def run_scalars(self, feeds: Mapping[str, np.ndarray], scalars: Mapping[str, float]) -> dict[str, float]:
        with self._turns.lock():
            self._run(feeds, scalars)
            return {name: buffer.item() for name, (buffer, _) in self._results.items()}

    def _run(
        self, feeds: Mapping[str, np.ndarray], scalars: Mapping[str, float],
        fresh: Mapping[str, np.ndarray] = NO_ARRAYS,
    ) -> None:
        check_ranges(self._holed, feeds)  # the session checks ranges without further values itself
        for name, buffer in self._feeds.items():
            buffer[...] = feeds[name]
        for name, buffer in self._scalars.items():
            buffer[0] = scalars[name] if name in scalars else feeds[name]
        try:
            if self._lent or fresh:
                self._run_lent([feeds[name] for name in self._lent], list(fresh.values()))
            else:
                self._session.run()
        except FeedError:
            check_ranges(self._ranges, feeds)  # says the same with the input's own name and indices
            raise
        if self._written:
            self._keep_written()

    def _keep_written(self) -> None:
        for name, (buffer, type) in self._written.items():
            self._store.put(name, _result(buffer, type))

    def direct(self) -> Direct | None:
        if self._written or self._holed or any(type.dtype is bool_ for _, type in self._results.values()):
            return None
        outputs = {name: buffer for name, (buffer, _) in self._results.items()}
        inputs, session = {**self._feeds, **self._scalars}, self._session
        return Direct(inputs, outputs, self._lent, session.run, self._run_lent, session.unheard)

    def repeated(self, endings: Mapping[str, str]) -> Repeat | None:
        from .._native.steps import Steps

        features, outputs = self._made.inputs.values(), self._made.outputs
        records = {feature: endings.get(name, "none") for name, feature in outputs.items()}
        run, dtypes = Steps(self._session, list(features), records), [self._session.buffer(f).dtype for f in features]

        def repeat(feeds: Mapping[str, Series], count: int) -> Ran:
            try:
                check_ranges(self._holed, {name: _read(feeds[name]) for name in self._holed})
                taken = [_as(feeds[name], dtype) for name, dtype in zip(self._made.inputs, dtypes, strict=True)]
                done, results, raised = run(count, taken, CALL_NANOSECONDS)
            except FeedError:
                return Ran(0, {})
            if done:
                self._keep_written()
            return Ran(done, {name: results[feature].ravel() for name, feature in outputs.items()}, raised)

        return repeat

    def statistics(self) -> dict[str, int]:
        counts: dict[str, int] = self._session.statistics()
        return counts


class NativeDevice:
    repeats = True

    def __init__(self, name: str) -> None:
        self.name = name

    def status(self) -> DeviceStatus:
        from .._native.handles import check_device

        try:
            check_device(self.name)
            return DeviceStatus(self.name, True, _WHAT[self.name])
        except RlxError as error:
            return DeviceStatus(self.name, False, str(error))

    def kernel(self) -> str:
        from .._native import native

        library = native()
        return f"{self.name} {library.ffi.string(library.lib.rlx_isa()).decode()}"

    def make_store(self) -> NativeStore:
        return NativeStore()

    def compile(self, graph: Graph, store: Store) -> NativeExecutable:
        assert isinstance(store, NativeStore)
        made = artifact(graph, portable=self.name == "coreml")
        return NativeExecutable(made, store, self.name, compute_units(graph))

    def compile_kept(self, key: str, build: Callable[[], Graph], store: Store) -> NativeExecutable:
        if self.name != "cpu":
            return self.compile(build(), store)
        assert isinstance(store, NativeStore)
        made = cached(key, lambda: artifact(build(), portable=False))
        return NativeExecutable(made, store, self.name, asked_units(PREDICTING_UNITS))


def compute_units(graph: Graph) -> str:
    """What Core ML may compute on: RLX_COREML_UNITS, else CPU and GPU for f32 training, CPU and Neural Engine else."""
    trains = bool(graph.assigns) or any(name.startswith(("grad_", "gradient/")) for name in graph.outputs)
    half = any(t.dtype.name == "f16" for node in graph.live_nodes() for t in node.outputs)
    return asked_units("cpu_and_gpu" if trains and not half else PREDICTING_UNITS)


def asked_units(default: str) -> str:
    """What RLX_COREML_UNITS asks for; raises ConfigError when that is no kind of unit."""
    asked = os.environ.get("RLX_COREML_UNITS")
    if asked is not None and asked not in UNITS:
        raise ConfigError("RLX_COREML_UNITS", f"expected one of {', '.join(UNITS)}, got {asked!r}")
    return default if asked is None else UNITS[asked]


def boundary_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Rank 0 travels as one element."""
    return shape or (1,)


def _read(series: Series) -> np.ndarray:
    return series.values if series.places is None else series.values[series.places]


def _as(series: Series, dtype: np.dtype[Any]) -> Series:
    """As a feed of that dtype takes it; of values that must be converted, only those that are read."""
    return series if series.values.dtype == dtype else Series(_read(series).astype(dtype))


def _result(buffer: np.ndarray, type: TensorType) -> np.ndarray:
    return buffer.astype(type.dtype.numpy).reshape(type.shape)
