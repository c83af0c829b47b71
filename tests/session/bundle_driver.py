"""A training bundle run by Swift, from Python: the executable BundleDriver as an object."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlx_swift.session import safetensors

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / ".build/release/BundleDriver"


def driver() -> Path:
    """The executable, built where there is Swift; skips where there is none, unless it is required."""
    if shutil.which("swift"):
        command = ["swift", "build", "--package-path", str(ROOT), "-c", "release", "--product", "BundleDriver"]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stdout + built.stderr
        return DRIVER
    if os.environ.get("RLX_REQUIRE_NATIVE") == "1":
        pytest.fail("RLX_REQUIRE_NATIVE=1, but there is no swift to build BundleDriver with", pytrace=False)
    pytest.skip("there is no swift to build BundleDriver with")


class SwiftError(Exception):
    """What Swift threw, with its code."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(f"{code}: {message}")


class SwiftSession:
    """The calls of TrainingSession; arrays travel in files."""

    def __init__(self, executable: Path, bundle: Path, scratch: Path) -> None:
        self._process = subprocess.Popen([executable], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._scratch = scratch
        self.call("open", path=bundle)

    def __enter__(self) -> SwiftSession:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def call(self, call: str, batch: Mapping[str, Any] | None = None, **arguments: Any) -> dict[str, float]:
        """One call and its numbers; raises SwiftError."""
        if batch is not None:
            arguments["path"] = self._scratch / "batch.safetensors"
            safetensors.write(arguments["path"], {n: np.asarray(v) for n, v in batch.items()}, {})
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"call": call, **arguments}, default=str) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, f"the driver ended with {process.wait(timeout=60)}"
        answer = json.loads(line)
        if "error" in answer:
            raise SwiftError(answer["error"], answer["message"])
        return {name: float(number) for name, number in answer["numbers"].items()}

    def arrays(self, call: str, batch: Mapping[str, Any] | None = None, **arguments: Any) -> dict[str, np.ndarray]:
        """One call that gives arrays."""
        path = self._scratch / "result.safetensors"
        self.call(call, batch, to=path, **arguments)
        return safetensors.read(path)[0]
