"""What a training step costs by count, which no busy machine changes: kernel launches, memory for values inside a step,
and allocations, on the benchmark's workloads. The bounds are `benchmarks/counts.json`; lower them when a step gets
cheaper."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.native

ROOT = Path(__file__).parents[2]
BOUNDS: dict[str, dict[str, int]] = json.loads((ROOT / "benchmarks/counts.json").read_text())


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float]]:
    """Of each workload, from a process of its own, in which allocations are counted where that can be."""
    environment = {**os.environ, "RLX_NUM_THREADS": "2", "PYTHONPATH": str(ROOT)}  # each thread has memory of its own
    compiler = next(filter(None, map(shutil.which, ("cc", "clang", "gcc"))), None)
    if sys.platform == "linux" and compiler:
        library = tmp_path_factory.mktemp("counter") / "liballocations.so"
        source = Path(__file__).with_name("allocations.c")
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
        environment["LD_PRELOAD"] = str(library)
    driver = Path(__file__).with_name("counts_driver.py")
    command = [sys.executable, str(driver), str(ROOT / "benchmarks")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_workload_has_bounds(counts: dict[str, dict[str, float]]) -> None:
    assert BOUNDS.keys() == counts.keys()


@pytest.mark.parametrize("name", BOUNDS)
def test_a_step_costs_no_more_than_its_bounds(counts: dict[str, dict[str, float]], name: str) -> None:
    for count, bound in BOUNDS[name].items():
        if count == "allocations" and count not in counts[name]:
            continue
        assert counts[name][count] <= bound, f"{name}: {count} is {counts[name][count]}, at most {bound} was expected"
