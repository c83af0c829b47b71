"""Loads damaged packages, and predicts with those that load: nothing may crash, hang or take memory without end.

Run: nice python -m tests.fuzz.driver COUNT [FIRST]. Mutants have numbers, and a number alone makes its mutant, so what
is found is repeated with `driver 1 NUMBER`. Each batch runs in a process of its own under a limit of memory.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BATCH = 2000
SECONDS = 1.0  # of processor time for one mutant
MEMORY = 2 << 30
TIME_LIMIT = 0.5  # seconds that a prediction with a loop may take


@dataclass
class Found:
    """Faults by mutant, and how often each outcome was seen."""

    faults: dict[int, str] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)


def run(count: int, first: int = 0) -> Found:
    found = Found()
    at, end = first, first + count
    while at < end:
        at = _batch(at, min(at + BATCH, end), found)
    return found


def _batch(begin: int, end: int, found: Found) -> int:
    """Runs mutants in one process and returns the first that is still to run."""
    command = [sys.executable, "-m", "tests.fuzz.driver", "--worker", str(begin), str(end)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, errors="replace")
    last = begin - 1
    for line in done.stdout.splitlines():
        said = json.loads(line)
        last = said["mutant"]
        if "outcome" in said:
            found.outcomes[said["outcome"]] += 1
            if said["seconds"] > SECONDS:
                found.faults[last] = f"took {said['seconds']:.1f} s"
            if said["outcome"].startswith("fault"):
                found.faults[last] = said["outcome"]
    if done.returncode != 0:
        last = max(last, begin)
        found.faults[last] = f"ended the process with {done.returncode}: {done.stderr[-500:]}"
        return last + 1
    return end


# In the process of a batch


def _worker(begin: int, end: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (600, 600))
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        for line in _outcomes(begin, end, Path(folder)):
            print(json.dumps(line), flush=True)


def _outcomes(begin: int, end: int, folder: Path) -> Iterator[dict[str, object]]:
    from .mutants import mutant

    package = folder / "mutant.mlpackage"
    for number in range(begin, end):
        mutant(number).write(package)
        yield {"mutant": number}  # whom to name if the process ends
        start = time.process_time()
        outcome = _outcome(package)
        yield {"mutant": number, "outcome": outcome, "seconds": time.process_time() - start}


def _outcome(package: Path) -> str:
    import numpy as np

    import rlx_swift as rlx
    from rlx_swift.errors import RlxError

    try:
        model = rlx.load_model(package, device="cpu", time_limit=TIME_LIMIT)
        if sum(np.prod([max(n, 1) for n in type.shape], dtype=float) for type in model.inputs.values()) > 1 << 20:
            return "loaded, too large to feed"
        model.predict({name: np.ones(type.shape, type.dtype.numpy) for name, type in model.inputs.items()})
    except RlxError as error:
        return type(error).__name__
    except MemoryError:
        return "MemoryError"
    except Exception as error:  # what is no error of ours is a finding
        return f"fault: {type(error).__name__}: {error}"
    return "predicted"


def main(arguments: list[str]) -> int:
    if arguments[0] == "--worker":
        _worker(int(arguments[1]), int(arguments[2]))
        return 0
    found = run(*map(int, arguments))
    for outcome, times in found.outcomes.most_common():
        print(f"{times:8} {outcome}")
    for number, fault in found.faults.items():
        print(f"mutant {number}: {fault}")
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
