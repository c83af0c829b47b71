"""Builds the benchmark's workloads and prints, as JSON, what the runtime counts of a step of each; see test_counts.py.

Where `allocations.c` is preloaded, that is also how often a run allocates, the native library's part of a step.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RUNS = 20


def peer(benchmarks: Path) -> Any:
    sys.path.insert(0, str(benchmarks))
    spec = importlib.util.spec_from_file_location("benchmark_peer", benchmarks / "peers/rlx_swift.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def counter() -> Callable[[], int] | None:
    """The number of allocations so far, where it is counted."""
    try:
        count = ctypes.CDLL(None).allocation_count
    except AttributeError:
        return None
    count.restype = ctypes.c_int64
    probe = count()
    bytearray(1 << 16)
    assert count() > probe, "the counter does not see an allocation"
    return count


def counts(run: Any, count: Callable[[], int] | None) -> dict[str, float]:
    run.step()
    run.step()
    kind = "given" if run.wl.kind == "opt" else "train"
    executable = run.ts._trainer._families[kind]._last[1]
    counted = executable.statistics()
    assert counted["runs"] == 2, "the two steps must have used one program"
    if count is not None:
        lent = [np.zeros(run.batches[0][name].shape, run.batches[0][name].dtype) for name in lent_names(executable)]
        once = (lambda: executable._run_lent(lent)) if lent else executable._session.run
        once()
        before = count()
        for _ in range(RUNS):
            once()
        counted["allocations"] = (count() - before) / RUNS
    return counted


def lent_names(executable: Any) -> list[str]:
    return [name.removeprefix("gradient/") for name in executable._lent]


if __name__ == "__main__":
    module, count = peer(Path(sys.argv[1])), counter()
    print(json.dumps({name: counts(module.build(name, 0), count) for name in module.W.NAMES}))
