"""Lets Ctrl-C, and whatever else a signal handler raises, end a call of the library; knows nothing of what is called.

Python runs handlers between its own instructions, in the main thread. So the library calls a Python function from time
to time: entering it runs them, and what they raise is kept until the call has come back.
"""

from __future__ import annotations

import atexit
import threading
from typing import Any

_raised: list[BaseException] = []
_alive: list[Any] = []  # what C may call
held_back = False  # whether a handler has kept its exception to itself, to raise it after the call


def install(ffi: Any, lib: Any) -> None:
    """Has the library's calls from the main thread ask."""
    try:
        ask = ffi.callback("int32_t(void)", _ask, error=1, onerror=_keep)
    except MemoryError:  # where no code may be made at run time: calls then end by themselves
        return
    _alive.append(ask)
    lib.rlx_set_interrupt(ask, threading.main_thread().ident)
    atexit.register(lib.rlx_set_interrupt, ffi.NULL, 0)


def taken() -> BaseException | None:
    """What a handler raised inside of a call, once."""
    return _raised.pop() if _raised else None


def _ask() -> int:
    return held_back


def _keep(kind: type[BaseException], error: BaseException, traceback: Any) -> int:
    _raised[:] = [error.with_traceback(None)]
    return 1
