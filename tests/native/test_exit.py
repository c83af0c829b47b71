"""A process that used the library's threads ends as if it had not."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import numpy as np, rlx_swift as rlx
g = rlx.Graph()
x = g.input("x", (256, 256))
g.set_outputs(x @ x)  # enough work for more than one thread
rlx.Session("cpu").compile(g).run({"x": np.ones((256, 256), np.float32)})
"""


@pytest.mark.native
@pytest.mark.parametrize("attempt", range(5))
def test_the_interpreter_exits_while_the_pool_waits(attempt: int) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
