"""Many runs of a session in one call: NumPy arrays as the series and records of rlx.h; ignorant of what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import interrupt
from .call import Turns, check
from .values import Array, enum_value, struct, text

if TYPE_CHECKING:
    from .handles import NativeSession


class Steps:
    """Calls a session for many runs.

    Args:
        feeds: the feeds that change from run to run.
        records: the results to keep, and at what first element the call ends: "none", "zero" or "not_finite".
    """

    def __init__(self, session: NativeSession, feeds: Sequence[str], records: Mapping[str, str]) -> None:
        self._session, self._native = session, session._native
        new = self._native.ffi.new
        self._names = [new("char[]", text(name)) for name in (*feeds, *records)]  # the structs only point to them
        self._feeds = new("rlx_series[]", [(name,) for name in self._names[: len(feeds)]])
        self._records = new("rlx_record[]", [(name,) for name in self._names[len(feeds) :]])
        self._results = {name: session.buffer(name) for name in records}
        for index, ending in enumerate(records.values()):
            self._records[index].ending = enum_value(self._native, "ending", ending)
        self._done, self._turns = new("int64_t *"), Turns(type(session).__name__)
        self._steps = struct(
            self._native, "rlx_steps", feeds=self._feeds, feed_count=len(feeds), records=self._records,
            record_count=len(records),
        )

    def __call__(
        self, count: int, feeds: Iterable[tuple[Array, Array | None]], nanoseconds: int
    ) -> tuple[int, dict[str, Array], BaseException | None]:
        """Up to `count` runs, none of which begins `nanoseconds` after the first: their number, and their results.

        Each feed is an array in C order, of the feed's dtype, and the places along its first axis that the runs read in
        their order (int64), as many a run as make the feed; None reads it from its beginning.

        Raises what the first of the runs raises. Before a later one that would raise, the call ends. Where a signal
        handler ended it after some runs, what that raised comes with them.
        """
        with self._turns.lock():  # the library reads the structs while other threads of Python's run
            return self._call(count, feeds, nanoseconds)

    def _call(
        self, count: int, feeds: Iterable[tuple[Array, Array | None]], nanoseconds: int
    ) -> tuple[int, dict[str, Array], BaseException | None]:
        view, null = self._native.ffi.from_buffer, self._native.ffi.NULL
        alive: list[Any] = []
        for index, (values, places) in enumerate(feeds):
            entry, memory = self._feeds[index], view(values)
            entry.data, entry.bytes, entry.block_bytes = memory, values.nbytes, values.nbytes // max(len(values), 1)
            entry.blocks, entry.block_count = null, 0
            if places is not None:
                entry.blocks, entry.block_count = view("int64_t[]", places), len(places)
            alive += (memory, entry.blocks)
        results = {name: np.empty((count, *buffer.shape), buffer.dtype) for name, buffer in self._results.items()}
        for index, array in enumerate(results.values()):
            memory = view(array)
            self._records[index].data, self._records[index].bytes = memory, array.nbytes
            alive.append(memory)
        self._steps.count, self._steps.nanoseconds, self._done[0] = count, nanoseconds, 0
        slot, run = self._native.errors.pointer, self._native.lib.rlx_session_run_steps
        session, late = self._session._pointer, None
        try:
            status = run(session, self._steps, self._done, slot)
        except BaseException as error:  # a signal handler's: it came when the runs had been made
            status, late = 0, error
        done, raised = self._done[0], late
        self._session.runs += done
        if late is None and not done:
            check(self._native, status, slot)
        elif slot[0]:
            raised = interrupt.taken() or late
            self._native.lib.rlx_error_destroy(slot[0])
            slot[0] = null
        if raised is not None and not done:
            raise raised
        return done, {name: array[:done] for name, array in results.items()}, raised
