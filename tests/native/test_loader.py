"""The loader: where the library comes from, and one clear sentence for each way in which it cannot be used."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import cffi
import pytest

from rlx_swift._native import header

Python = Callable[..., str]
STATUS = "from rlx_swift._native import native_status as s; print(s().available, s().path, s().reason)"


@pytest.fixture(scope="module")
def rlx_h() -> str:
    return (Path(__file__).parents[2] / "Sources/CRLX/include/rlx.h").read_text()


def test_override_is_loaded_and_named(python: Python, build_stub: Callable[..., Path]) -> None:
    path = build_stub()
    assert python(STATUS, RLX_LIBRARY=str(path)) == f"True {path} \n"


@pytest.mark.parametrize("written", [True, False], ids=["written", "parsed"])
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("-DSTUB_ABI=7",), "{path} has ABI version 7, this package needs {abi}; "),
        (("-DSTUB_WITHOUT_RUN",), "{path} is older than this package: it lacks rlx_session_run; "),
        (("-Drlx_abi_version=other",), "{path} is another library: it has no rlx_abi_version; "),
    ],
)
def test_library_that_does_not_fit(
    python: Python, build_stub: Callable[..., Path], rlx_h: str, options: tuple[str, ...], problem: str, written: bool
) -> None:
    path = build_stub(*options)
    without = "" if written else "import sys; sys.modules['rlx_swift._native._declarations'] = None\n"
    printed = python(without + STATUS, RLX_LIBRARY=str(path))
    expected = problem.format(path=path, abi=header.abi_version(rlx_h))
    assert printed.startswith(f"False None native library: {expected}build it with `python hatch_build.py`")


def test_missing_override(python: Python, tmp_path: Path) -> None:
    path = tmp_path / "none.so"
    printed = python(STATUS, RLX_LIBRARY=str(path))
    assert printed == f"False None native library: RLX_LIBRARY names {path}, which is not a file\n"


def test_file_that_is_no_library(python: Python, tmp_path: Path) -> None:
    path = tmp_path / "text.so"
    path.write_text("not a library")
    printed = python(STATUS, RLX_LIBRARY=str(path))
    assert printed.startswith("False None native library: ") and str(path) in printed
    assert printed.count("\n") == 1


def test_native_raises_what_status_says_and_tries_again(
    python: Python, build_stub: Callable[..., Path], tmp_path: Path
) -> None:
    code = (
        "import os\nfrom rlx_swift._native import native, native_status\nfrom rlx_swift.errors import DeviceError\n"
        "reason = native_status().reason\n"
        "try: native()\nexcept DeviceError as error: print(str(error) == reason)\n"
        "os.environ['RLX_LIBRARY'] = os.environ['GOOD']\nprint(native() is native(), native_status().available)"
    )
    printed = python(code, RLX_LIBRARY=str(tmp_path / "none.so"), GOOD=str(build_stub()))
    assert printed == "True\nTrue True\n"


def test_written_form_is_the_header(rlx_h: str, tmp_path: Path) -> None:
    text = header.declarations(rlx_h)
    header.write_module(text, tmp_path / "_declarations.py")
    written = runpy.run_path(str(tmp_path / "_declarations.py"))
    assert written["TEXT"] == text
    read = cffi.FFI()
    read.cdef(text)
    for struct in ("rlx_tensor", "rlx_feature", "rlx_session_options", "rlx_session_statistics"):
        assert written["ffi"].sizeof(struct) == read.sizeof(struct)
    assert written["ffi"].typeof("rlx_status").elements == read.typeof("rlx_status").elements


def test_function_names_are_all_of_them(rlx_h: str) -> None:
    text = header.declarations(rlx_h)
    ffi = cffi.FFI()
    ffi.cdef(text)
    parsed = (key.split() for key in ffi._parser._declarations)
    assert set(header.function_names(text)) == {name for kind, name in parsed if kind == "function"}


def test_nullability_is_stripped() -> None:
    text = "/* RLX_DECLARATIONS_BEGIN */ int f(char *RLX_NONNULL a, char * RLX_NULLABLE b); /* RLX_DECLARATIONS_END */"
    assert header.parse(header.declarations(text)) is not None


@pytest.mark.parametrize("function", [header.declarations, header.abi_version])
def test_foreign_header(function: Callable[[str], object]) -> None:
    with pytest.raises(ValueError, match=r"rlx\.h"):
        function("int main(void);")


def test_nothing_is_loaded_at_import(python: Python) -> None:
    code = "import sys, rlx_swift._native; print({'cffi', '_cffi_backend', 'pycparser'} & set(sys.modules))"
    assert python(code) == "set()\n"
