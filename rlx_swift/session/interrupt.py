"""Ctrl-C during training: at once between updates, and in the middle of one only where it leaves nothing half done."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class _State:
    """Of the main thread, the only one in which Python calls signal handlers."""

    inside = pressed = False


_state = _State()


def _handle(number: int, frame: FrameType | None) -> None:
    """Outside of held blocks the same as Python's own handler, so that it does not matter when it stays installed."""
    if not _state.inside or _state.pressed:
        raise KeyboardInterrupt
    _state.pressed = True
    _tell_library(True)


class Interrupt:
    """While entered, holds KeyboardInterrupt back from the blocks `with interrupt.held:`.

    In other threads than the main one, and where the program has a handler of its own, this does nothing. A call of the
    library in such a block, if it can still end with nothing changed, does. A second Ctrl-C acts at once everywhere.
    """

    def __init__(self) -> None:
        self._installed = False
        self.held = _Held(self)
        self.acts = False

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            self._installed = before is signal.default_int_handler
            self.acts = self._installed or before is _handle
            if self._installed:
                signal.signal(signal.SIGINT, _handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class _Held:
    """A block that ends before KeyboardInterrupt is raised; within another one, that one's end is meant."""

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt, self._outer = interrupt, False

    def __enter__(self) -> None:
        if self._interrupt.acts:
            self._outer, _state.inside = _state.inside, True

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self._interrupt.acts:
            return
        _state.inside = self._outer
        if _state.pressed and not _state.inside:
            _state.pressed = False
            _tell_library(False)
            if kind is None:
                raise KeyboardInterrupt


def _tell_library(held_back: bool) -> None:
    from .._native import interrupt

    interrupt.held_back = held_back
