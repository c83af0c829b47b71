"""Python owners of the library's programs, stores and sessions; thin, and ignorant of what the tensors mean.

Each is a context manager. `close()` gives the handle back, twice is a no-op; any other use after it raises
SessionError. What is not closed goes with the garbage collector.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ConfigError, SessionError
from .call import Turns, call, check
from .loader import Native, native
from .values import Array, Feature, array_over, counts, enum_value, feature, session_options, struct, tensor, text

if TYPE_CHECKING:
    from typing_extensions import Self


def check_device(device: str) -> None:
    """Raises DeviceError with the reason when the library cannot use `device` ("cpu" or "coreml") here."""
    library = native()
    call(library, library.lib.rlx_device_check, enum_value(library, "device", device))


class Handle:
    """Owns one reference to a C object."""

    _destroy: str

    def __init__(self, library: Native, pointer: Any) -> None:
        self._native = library
        self._owned = library.ffi.gc(pointer, getattr(library.lib, self._destroy))

    @property
    def _pointer(self) -> Any:
        if self._owned is None:
            raise self._closed()
        return self._owned

    def _closed(self) -> SessionError:
        return SessionError(type(self).__name__, "it was closed")

    def close(self) -> None:
        """Gives the handle back; memory that arrays still show stays until they are gone."""
        self._owned = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Program(Handle):
    """A loaded Core ML package; immutable, and shared by any number of sessions."""

    _destroy = "rlx_program_destroy"

    @classmethod
    def load(cls, path: str | os.PathLike[str], function: str | None = None) -> Self:
        """Reads an .mlpackage folder or a bare model file; `function` None is the default one.

        Raises:
            PackageError, UnsupportedError, NameNotFoundError (no such function).
        """
        library = native()
        out = library.ffi.new("rlx_program **")
        call(library, library.lib.rlx_program_load, text(os.fspath(path)), _function(library, function), out)
        return cls(library, out[0])

    @classmethod
    def load_memory(cls, model: bytes, weights: bytes | None = None, function: str | None = None) -> Self:
        """Reads the bytes of model.mlmodel and of weights/weight.bin; raises as `load` does."""
        library = native()
        out = library.ffi.new("rlx_program **")
        call(
            library, library.lib.rlx_program_load_memory, library.ffi.from_buffer(model), len(model),
            library.ffi.NULL if weights is None else library.ffi.from_buffer(weights), len(weights or b""),
            _function(library, function), out,
        )
        return cls(library, out[0])

    @property
    def inputs(self) -> tuple[Feature, ...]:
        return self._features("input")

    @property
    def outputs(self) -> tuple[Feature, ...]:
        return self._features("output")

    def _features(self, kind: str) -> tuple[Feature, ...]:
        code = enum_value(self._native, "feature_kind", kind)
        count = self._native.lib.rlx_program_feature_count(self._pointer, code)
        return tuple(self._feature(code, index) for index in range(count))

    def _feature(self, kind: int, index: int) -> Feature:
        out = struct(self._native, "rlx_feature")
        call(self._native, self._native.lib.rlx_program_feature, self._pointer, kind, index, out)
        return feature(self._native, out)


class Store(Handle):
    """Named tensors that stay in native memory between runs and are shared by sessions."""

    _destroy = "rlx_store_destroy"

    def __init__(self) -> None:
        library = native()
        out = library.ffi.new("rlx_store **")
        call(library, library.lib.rlx_store_create, out)
        super().__init__(library, out[0])

    def put(self, name: str, value: Array) -> None:
        """Copies `value` in, whatever its strides; a tensor that exists keeps its shape and dtype.

        Raises:
            ShapeError, DTypeError: it differs from the tensor that is there, or no tensor can be like it.
        """
        view, _alive = tensor(self._native, name, value)
        call(self._native, self._native.lib.rlx_store_put, self._pointer, text(name), view)

    def get(self, name: str, out: Array) -> Array:
        """Copies the tensor into `out`, of the same shape and dtype and any strides; returns `out`.

        Raises:
            NameNotFoundError, ShapeError, DTypeError.
        """
        if not out.flags.writeable:
            raise ConfigError(f"get({name!r})", "`out` is read-only")
        view, _alive = tensor(self._native, name, out)
        call(self._native, self._native.lib.rlx_store_get, self._pointer, text(name), view)
        return out


class NativeSession(Handle):
    """A program planned for one store: planned when made, never again."""

    _destroy = "rlx_session_destroy"

    def __init__(
        self, program: Program, store: Store, *, pairs: Mapping[str, str] | None = None,
        ranges: Mapping[str, tuple[int, int]] | None = None, device: str = "cpu", units: str = "all", threads: int = 0,
    ) -> None:
        """Inputs of `program` that `store` names are read from there; the others are feeds.

        Args:
            pairs: store tensor (an input) -> the output that becomes its value after each run.
            ranges: i32 input -> (low, high): every element must be in [low, high).
            device: "cpu" or "coreml".
            units: "cpu", "cpu_and_gpu", "all" or "cpu_and_ne"; read for "coreml" only.
            threads: 0 is RLX_NUM_THREADS, else one per core.

        Raises:
            ConfigError, UnsupportedError, NameNotFoundError, ShapeError, DTypeError, DeviceError.
        """
        library = native()
        options, _alive = session_options(library, (pairs or {}).items(), ranges or {}, device, units, threads)
        out = library.ffi.new("rlx_session **")
        call(library, library.lib.rlx_session_create, program._pointer, store._pointer, options, out)
        super().__init__(library, out[0])
        self.runs = 0  # that callers have heard of
        self._run = library.lib.rlx_session_run
        self._errors = library.errors

    def run(self) -> None:
        """Runs once on what the feed buffers hold; on an error the store is unchanged.

        Raises:
            FeedError: an element outside its range.
            RlxError: what else the library reports.
        """
        session, slot = self._owned, self._errors.pointer
        if session is None:
            raise self._closed()
        status = self._run(session, slot)
        if status:
            check(self._native, status, slot)
        self.runs += 1

    def unheard(self) -> int:
        """Runs that were made though their calls ended with an exception, a signal handler's; tells them once."""
        runs = self.statistics()["runs"]
        unheard, self.runs = runs - self.runs, runs
        return unheard

    def lending(self, names: Sequence[str], results: Sequence[str] = ()) -> LentRun:
        """`run`, but on the memory of arrays, one for each of these feeds in order, with the feeds' shapes and dtypes,
        and into that of arrays in C order, one for each of these results.

        Large arrays need not be copied to and from buffers so. Feeds not in C order are copied first.

        Raises:
            NameNotFoundError: when called, for a name that is no feed or no result.
            ShapeError: when called, for an array of another size.
        """
        return LentRun(self, names, results)

    def buffer(self, name: str) -> Array:
        """The session's own memory of a feed (write it before a run) or of a result (read it after), in C order.

        It is the same memory for the life of the session, and each run overwrites the results. The array keeps
        the memory alive by itself, after `close()` too.

        Raises:
            NameNotFoundError: no feed or result has that name.
        """
        out = struct(self._native, "rlx_tensor")
        call(self._native, self._native.lib.rlx_session_buffer, self._pointer, text(name), out)
        return array_over(self._native, name, out, owner=self._owned)

    def statistics(self) -> dict[str, int]:
        """Counts since the session was made, by the names of rlx_session_statistics."""
        out = struct(self._native, "rlx_session_statistics")
        call(self._native, self._native.lib.rlx_session_get_statistics, self._pointer, out)
        return counts(self._native, out)


class LentRun:
    """Runs a session on the memory of arrays."""

    def __init__(self, session: NativeSession, names: Sequence[str], results: Sequence[str]) -> None:
        self._session, self._native = session, session._native
        new = self._native.ffi.new
        self._names = [new("char[]", text(name)) for name in names]  # rlx_feed only points to them
        self._feeds = new("rlx_feed[]", [(name,) for name in self._names])
        self._entries = [self._feeds[index] for index in range(len(self._names))]
        self._result_names = [new("char[]", text(name)) for name in results]
        self._targets = new("rlx_target[]", [(name,) for name in self._result_names])
        self._turns = Turns(type(session).__name__)

    def __call__(self, arrays: Iterable[Array], results: Sequence[Array] = ()) -> None:
        session, view = self._session._pointer, self._native.ffi.from_buffer
        views = [view(a if a.flags.c_contiguous else np.ascontiguousarray(a)) for a in arrays]
        targets = [view(a, require_writable=True) for a in results]
        slot = self._native.errors.pointer
        with self._turns.lock():  # the library reads the structs while other threads of Python's run
            for entry, memory in zip(self._entries, views, strict=True):
                entry.data, entry.bytes = memory, len(memory)
            for index, memory in enumerate(targets):
                self._targets[index].data, self._targets[index].bytes = memory, len(memory)
            lib = self._native.lib
            if targets:
                status = lib.rlx_session_run_lent(session, self._feeds, len(views), self._targets, len(targets), slot)
            else:
                status = lib.rlx_session_run_feeds(session, self._feeds, len(views), slot)
        check(self._native, status, slot)
        self._session.runs += 1


def _function(library: Native, name: str | None) -> Any:
    return library.ffi.NULL if name is None else text(name)
