"""What a training step costs by count, which no busy machine changes: kernel launches, and memory for values inside a
step, on the benchmark's workloads. The bounds are `benchmarks/counts.json`; lower them when a step gets cheaper."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.native

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
BOUNDS: dict[str, dict[str, int]] = json.loads((BENCHMARKS / "counts.json").read_text())


@pytest.fixture(scope="module")
def peer() -> ModuleType:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("benchmark_peer", BENCHMARKS / "peers/rlx_swift.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_every_workload_has_bounds(peer: ModuleType) -> None:
    assert BOUNDS.keys() == set(peer.W.NAMES)


@pytest.mark.parametrize("name", BOUNDS)
def test_a_step_costs_no_more_than_its_bounds(peer: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLX_NUM_THREADS", "2")  # each thread has memory of its own
    run = peer.build(name, 0)
    run.step()
    run.step()
    kind = "given" if run.wl.kind == "opt" else "train"
    counts = run.ts._trainer._families[kind].statistics()
    assert counts["runs"] == 2, "the two steps must have used one program"
    for count, bound in BOUNDS[name].items():
        assert counts[count] <= bound, f"{name}: {count} is {counts[count]}, at most {bound} was expected"
