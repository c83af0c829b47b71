"""Ctrl-C during training: at once between steps, never in the middle of one."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Interrupt:
    """While entered, holds KeyboardInterrupt back from the blocks `with interrupt.held:`.

    Python calls signal handlers in the main thread only; elsewhere, and where the program has a handler of
    its own, this does nothing. A second Ctrl-C acts at once everywhere.
    """

    def __init__(self) -> None:
        self.inside = self.pressed = self._installed = False
        self.held = _Held(self)

    def __enter__(self) -> Interrupt:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._handle)
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self.inside or self.pressed:
            raise KeyboardInterrupt
        self.pressed = True


class _Held:
    """A block that ends before KeyboardInterrupt is raised."""

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt

    def __enter__(self) -> None:
        self._interrupt.inside = True

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._interrupt.inside = False
        if self._interrupt.pressed and kind is None:
            raise KeyboardInterrupt
