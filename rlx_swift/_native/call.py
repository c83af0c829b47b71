"""Calls into the native library and turns its statuses into exceptions; knows no handle."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Any

from ..errors import (
    ConfigError,
    DeviceError,
    DTypeError,
    FeedError,
    NameNotFoundError,
    NativeError,
    OutOfMemoryError,
    PackageError,
    RlxError,
    SessionError,
    ShapeError,
    TimeLimitError,
    UnsupportedError,
)
from . import interrupt
from .loader import Native

EXCEPTIONS: dict[str, type[RlxError]] = {
    "RLX_STATUS_INVALID_ARGUMENT": ConfigError,
    "RLX_STATUS_BAD_SHAPE": ShapeError,
    "RLX_STATUS_BAD_DTYPE": DTypeError,
    "RLX_STATUS_NOT_FOUND": NameNotFoundError,
    "RLX_STATUS_BAD_PACKAGE": PackageError,
    "RLX_STATUS_UNSUPPORTED": UnsupportedError,
    "RLX_STATUS_BAD_FEED": FeedError,
    "RLX_STATUS_IO": PackageError,
    "RLX_STATUS_OUT_OF_MEMORY": OutOfMemoryError,
    "RLX_STATUS_UNAVAILABLE": DeviceError,
    "RLX_STATUS_INTERNAL": NativeError,
    "RLX_STATUS_TIME_LIMIT": TimeLimitError,
    "RLX_STATUS_BUSY": SessionError,
}


class Turns:
    """Has calls that share structs come one after another."""

    def __init__(self, subject: str) -> None:
        self._lock, self._subject = threading.RLock(), subject

    def lock(self) -> AbstractContextManager[object]:
        """To be held for one call.

        Raises:
            SessionError: this thread holds it: a signal handler came into the call, and would wait for ever.
        """
        if self._lock._is_owned():  # type: ignore[attr-defined]
            problem = "it is busy with a call that a signal came into; act on the signal after it"
            raise SessionError(self._subject, problem)
        return self._lock


def call(native: Native, function: Any, *arguments: Any) -> None:
    """`function(*arguments, &error)`; raises what the status stands for."""
    slot = native.errors.pointer
    check(native, function(*arguments, slot), slot)


def check(native: Native, status: int, slot: Any) -> None:
    """Raises the exception of a status that is not OK, with the text left in `slot`, which is emptied.

    Of a call that was asked to stop, it is what the signal handler raised.
    """
    if status:
        raise _exception(native, status, slot)


def _exception(native: Native, status: int, slot: Any) -> BaseException:
    lib, error = native.lib, slot[0]
    slot[0] = native.ffi.NULL
    message, detail, subject = (
        native.ffi.string(read(error)).decode("utf-8", "replace") if error else ""
        for read in (lib.rlx_error_message, lib.rlx_error_detail, lib.rlx_error_subject)
    )
    lib.rlx_error_destroy(error)
    if status == lib.RLX_STATUS_INTERRUPTED:
        return interrupt.taken() or KeyboardInterrupt()
    name = native.ffi.typeof("rlx_status").elements.get(status, "unknown to this package")
    problem = message.removeprefix(f"{subject}: ") or f"it failed with status {status} ({name}) and no message"
    raised = EXCEPTIONS.get(name, NativeError)(subject or "native library", problem)
    raised.detail = detail
    return raised
