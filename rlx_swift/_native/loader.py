"""Finds the native library, checks that it fits rlx.h, and loads it once, when first asked; knows no handle."""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DeviceError
from . import header, interrupt

_SUBJECT = "native library"
_FOLDER = Path(__file__).resolve().parent
_CHECKOUT = _FOLDER.parents[1]
_FILE_NAME = "libRLXBridge.dylib" if sys.platform == "darwin" else "libRLXBridge.so"


class _ErrorSlot(threading.local):
    """One rlx_error * a thread, so that a call allocates none."""

    def __init__(self, ffi: Any) -> None:
        self.pointer = ffi.new("rlx_error **")


class Native:
    """The loaded library: `ffi` knows the types of rlx.h, `lib` holds its functions and enum values.

    `errors.pointer` is the calling thread's error slot.
    """

    def __init__(self, ffi: Any, lib: Any, path: Path) -> None:
        self.ffi, self.lib, self.path = ffi, lib, path
        self.errors = _ErrorSlot(ffi)


@dataclass(frozen=True)
class NativeStatus:
    """Whether the native library can be used; if so `path` is where it came from, else `reason` says why not."""

    available: bool
    path: Path | None = None
    reason: str = ""


_lock = threading.RLock()  # signal handlers load too


def native() -> Native:
    """The native library, loaded on the first call; `RLX_LIBRARY` may name another file.

    Raises:
        DeviceError: it is missing, cannot be loaded, or does not fit rlx.h. A later call tries again.
    """
    with _lock:
        return _load_once()


def native_status() -> NativeStatus:
    """What `native()` would do, as a value."""
    try:
        return NativeStatus(True, native().path)
    except DeviceError as error:
        return NativeStatus(False, reason=str(error))


def _library_path() -> Path:
    override = os.environ.get("RLX_LIBRARY")
    path = Path(override).absolute() if override else _FOLDER / _FILE_NAME
    if path.is_file():
        return path
    if override:
        raise DeviceError(_SUBJECT, f"RLX_LIBRARY names {path}, which is not a file")
    raise DeviceError(_SUBJECT, f"there is no {path}", _remedy())


def _remedy() -> str:
    if (_CHECKOUT / "Package.swift").is_file():
        return "build it with `python hatch_build.py`, which needs Swift 6.3 or newer"
    return "install a wheel made for this platform, or set RLX_LIBRARY to a library built elsewhere"


def _header() -> str:
    # The header this package was written against: in a checkout the source itself, so that a library built
    # from an older one is noticed; elsewhere the packaged copy.
    for path in (_CHECKOUT / "Sources/CRLX/include/rlx.h", _FOLDER / "rlx.h"):
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise DeviceError(_SUBJECT, f"there is no rlx.h in {_FOLDER}", "install the package again")


@functools.cache  # of success; a failure is tried again
def _load_once() -> Native:
    path, text = _library_path(), _header()
    declarations = header.declarations(text)
    ffi = _parsed(declarations)
    try:
        lib = ffi.dlopen(str(path))
    except OSError as error:
        raise DeviceError(_SUBJECT, str(error)) from error
    _check_version(ffi, lib, path, header.abi_version(text))
    missing = [name for name in header.function_names(declarations) if not _has(ffi, lib, name)]
    if missing:
        raise DeviceError(_SUBJECT, f"{path} is older than this package: it lacks {', '.join(missing)}", _remedy())
    ffi.dlopen(str(path), getattr(os, "RTLD_NODELETE", 0))  # what frees handles is called after the end of `lib` too
    interrupt.install(ffi, lib)
    return Native(ffi, lib, path)


def _parsed(declarations: str) -> Any:
    try:
        written = importlib.import_module("._declarations", __package__)
    except ImportError:
        return header.parse(declarations)
    return written.ffi if declarations == written.TEXT else header.parse(declarations)


def _check_version(ffi: Any, lib: Any, path: Path, expected: int) -> None:
    if not _has(ffi, lib, "rlx_abi_version"):
        raise DeviceError(_SUBJECT, f"{path} is another library: it has no rlx_abi_version", _remedy())
    version = lib.rlx_abi_version()
    if version != expected:
        problem = f"{path} has ABI version {version}, this package needs {expected}"
        raise DeviceError(_SUBJECT, problem, _remedy())


def _has(ffi: Any, lib: Any, function: str) -> bool:
    try:
        getattr(lib, function)
    except (AttributeError, ffi.error):
        return False
    return True
