"""Fixtures of the native tests: stub libraries in several bad shapes, and the count of handles not given back."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlx_swift._native import native

StubBuilder = Callable[..., Path]


@pytest.fixture(scope="session")
def build_stub(tmp_path_factory: pytest.TempPathFactory) -> StubBuilder:
    """Compiles stub.c with the given -D options."""
    compiler = next(filter(None, map(shutil.which, ("cc", "clang", "gcc"))), None)
    if compiler is None:
        pytest.skip("there is no C compiler for the stub library")
    here = Path(__file__).parent

    def build(*options: str) -> Path:
        library = tmp_path_factory.mktemp("stub") / "libstub.so"
        include = here.parents[1] / "Sources/CRLX/include"
        command = [compiler, "-shared", "-fPIC", f"-I{include}", *options, str(here / "stub.c"), "-o", str(library)]
        subprocess.run(command, check=True)
        return library

    return build


@pytest.fixture
def python() -> Callable[..., str]:
    """Runs code in a fresh interpreter with environment variables; returns what it printed."""

    def run(code: str, **environment: str) -> str:
        command = [sys.executable, "-W", "error", "-c", code]
        done = subprocess.run(
            command, env=os.environ | environment, capture_output=True, text=True, check=False,
            cwd=Path(__file__).parents[2],
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    return run


@pytest.fixture
def no_leaks() -> Iterator[None]:
    """Fails when handles that the test made are still alive after it."""
    gc.collect()
    before = native().lib.rlx_live_handles()
    yield
    gc.collect()
    assert native().lib.rlx_live_handles() <= before  # fewer: what a failed test's traceback held is gone
