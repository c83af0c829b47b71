"""A process that used the library ends as if it had not, whatever is alive then."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SESSION = """
import numpy as np, rlx_swift as rlx
g = rlx.Graph()
x = g.input("x", (256, 256))
g.set_outputs(x @ x)  # enough work for more than one thread
session = rlx.Session("cpu").compile(g)
run = lambda: session.run({"x": np.ones((256, 256), np.float32)})
run()
"""
ENDINGS = {
    "the pool waits": "",
    "handles are in a cycle and outlive the modules": "import builtins\nbuiltins.kept = [session]\nkept.append(kept)",
    "a thread runs": """
import threading, time
def forever():
    while True:
        run()
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.05)
""",
    "a run is being ended by a signal": """
import signal, sys
signal.signal(signal.SIGALRM, lambda *_: sys.exit(0))
signal.setitimer(signal.ITIMER_REAL, 0.1)
while True:
    run()
""",
    "the end runs": "import atexit\natexit.register(run)",
}
# A library that was opened and forgotten, as tests do; calls at exit must find it.
FORGOTTEN = """
from rlx_swift._native import loader
library = loader._load_once.__wrapped__()
pointer = library.ffi.new("char *")
kept = library.ffi.gc(library.ffi.cast("rlx_store *", pointer), library.lib.rlx_store_destroy)
del library
del kept
"""


def ends_well(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.native
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_interpreter_exits_while(ending: str) -> None:
    ends_well(SESSION + ENDINGS[ending])


def test_the_interpreter_exits_after_a_library_was_forgotten(
    build_stub: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLX_LIBRARY", str(build_stub()))
    ends_well(FORGOTTEN)
