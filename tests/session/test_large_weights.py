"""Weight files that are mapped: they are not copied, and a file that is shortened while it is open ends nothing."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import rlx_swift as rlx
from rlx_swift.lower.encode import encode
from rlx_swift.lower.program import OPSETS, Array, Block, Feature, Function, Interface, Model, Operation, Stored

pytestmark = [
    pytest.mark.skipif(
        not next(status for status in rlx.devices() if status.name == "cpu").available, reason="no native library"
    ),
    pytest.mark.skipif(sys.platform != "linux", reason="memory is told as Linux does it"),
]
ROWS = 1024

LOAD = """
import sys, numpy as np, rlx_swift as rlx

def private():  # KiB of memory that is no file's
    with open("/proc/self/status") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith(("RssAnon", "RssShmem")))

rlx.load_model(sys.argv[2], device="cpu")  # what the library itself takes
before = private()
model = rlx.load_model(sys.argv[1], device="cpu")
print((private() - before) // 1024)
if len(sys.argv) > 3:
    import os
    for size in (None, 4096):
        if size:
            os.truncate(sys.argv[3], size)
        try:
            print(float(np.abs(model.predict({"x": np.ones((1, 1024))})["y"]).sum()), (private() - before) // 1024)
        except rlx.RlxError as error:
            print(type(error).__name__, error)
"""


def sparse(folder: Path, columns: int) -> tuple[Path, Path]:
    """y = x @ W with a W of zeros that takes no room on the disk; the model file and its weights."""
    size = ROWS * columns * 4
    weight = Array("fp32", (columns, ROWS))
    operations = [
        Operation("const", {}, [("w", weight)], {"val": Stored(weight, 64)}),
        Operation("linear", {"x": ["x"], "weight": ["w"]}, [("y", Array("fp32", (1, columns)))]),
    ]
    function = Function([("x", Array("fp32", (1, ROWS)))], "CoreML7", {"CoreML7": Block([], operations, ["y"])})
    described = Interface([Feature("x", "array", "fp32", (1, ROWS))], [Feature("y", "array", "fp32", (1, columns))])
    (folder / "weights").mkdir(parents=True)
    model, weights = folder / "model.mlmodel", folder / "weights/weight.bin"
    model.write_bytes(encode(Model(OPSETS["CoreML7"], {"main": function}, {"main": described})))
    with open(weights, "wb") as file:
        file.write(struct.pack("<II56x", 1, 2) + struct.pack("<IIQQQ32x", 0xDEADBEEF, 2, size, 128, 0))
        file.truncate(128 + size)
    return model, weights


def loaded(*arguments: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", LOAD, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "RLX_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_a_package_of_500_mb_is_mapped(tmp_path: Path) -> None:
    small, _ = sparse(tmp_path / "small", 8)
    large, weights = sparse(tmp_path / "large", 128_000)
    assert weights.stat().st_size > 500e6 and weights.stat().st_blocks * 512 < 1e6
    assert int(loaded(large, small)) < 64


def test_a_file_shortened_while_it_is_open(tmp_path: Path) -> None:
    small, _ = sparse(tmp_path / "small", 8)
    large, weights = sparse(tmp_path / "large", 10_000)  # 40 MB
    _, whole, shortened = loaded(large, small, weights).splitlines()
    total, private = whole.split()
    assert float(total) == 0 and int(private) < 24
    assert shortened.startswith("PackageError") and "was shortened" in shortened
