"""The pytest plugin in a suite of its own: the option, the fixture, and that nothing is imported until it is used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

BARE = """
import sys

def test_nothing_is_imported():
    assert "rlx_swift" not in sys.modules
"""
SUITE = """
def test_device(rlx_device):
    import rlx_swift as rlx
    assert rlx.Session(rlx_device).device == rlx_device
"""


def run(directory: Path, *options: str, suite: str = SUITE) -> str:
    (directory / "test_suite.py").write_text(suite)
    command = [sys.executable, "-m", "pytest", "-rs", "-v", "-p", "rlx_swift_pytest", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr


def test_the_best_device_by_default(tmp_path):
    assert "1 passed" in run(tmp_path)
    assert "1 passed" in run(tmp_path, suite=BARE)


def test_devices_by_option(tmp_path):
    text = run(tmp_path, "--rlx-device", "numpy", "--rlx-device", "coreml")
    assert "test_device[numpy] PASSED" in text
    assert "test_device[coreml]" in text and ("SKIPPED" in text or "PASSED" in text.partition("[coreml]")[2])
    assert "test_device[numpy] PASSED" in run(tmp_path, "--rlx-device", "all")


def test_an_unknown_device_fails(tmp_path):
    assert "expected one of coreml, cpu, numpy, or all" in run(tmp_path, "--rlx-device", "tpu")


def test_it_is_in_the_help(tmp_path):
    assert "--rlx-device" in run(tmp_path, "--help")


@pytest.mark.parametrize("text", ['rlx_swift = "rlx_swift_pytest"', '"rlx_swift_pytest.py" = "rlx_swift_pytest.py"'])
def test_it_is_packaged(text):
    assert text in (ROOT / "pyproject.toml").read_text("utf-8")
