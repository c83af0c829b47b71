"""Reads rlx.h, the only declaration of the C ABI, for cffi; knows neither the library nor the package.

Parsing C takes cffi some 50 ms, so a build writes the parsed form beside the library (`write_module`). It is a
cache: it holds the text it came from and is used only for that text. The build hook runs this file by its path.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import tempfile
from pathlib import Path
from typing import Any

_DECLARATIONS = re.compile(r"/\* RLX_DECLARATIONS_BEGIN \*/(.*)/\* RLX_DECLARATIONS_END \*/", re.DOTALL)
_VERSION = re.compile(r"^#define RLX_ABI_VERSION (\d+)$", re.MULTILINE)
_FUNCTION = re.compile(r"\b(rlx_\w+)\(")


def declarations(header: str) -> str:
    """The part between the two markers, without the nullability macros, which cffi cannot parse."""
    found = _DECLARATIONS.search(header)
    if found is None:
        raise ValueError("rlx.h has no RLX_DECLARATIONS markers")
    return re.sub(r"\bRLX_(NULLABLE|NONNULL)\b ?", "", found[1])


def abi_version(header: str) -> int:
    """RLX_ABI_VERSION."""
    found = _VERSION.search(header)
    if found is None:
        raise ValueError("rlx.h does not define RLX_ABI_VERSION")
    return int(found[1])


def function_names(text: str) -> list[str]:
    """Every function of the declarations."""
    return _FUNCTION.findall(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))


def write_module(text: str, target: Path) -> None:
    """Writes a module with the parsed declarations (`ffi`) and the text they came from (`TEXT`)."""
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(text)
    ffi.set_source(target.stem, None)
    with contextlib.redirect_stdout(io.StringIO()):  # cffi reports each file it writes
        ffi.emit_python_code(str(target))
    with target.open("a") as module:
        module.write(f"TEXT = {text!r}\n")


def parse(text: str) -> Any:
    """The declarations as an FFI of the same kind as `write_module` writes."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "_declarations.py")
        write_module(text, target)
        return runpy.run_path(str(target))["ffi"]
