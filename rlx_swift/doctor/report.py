"""Runs the cases, each in a process of its own with a time limit, and writes one file. Knows no mathematics.

Whatever a process does is a result: it answers, says an error, is killed by a signal, or takes too long.
"""

from __future__ import annotations

import fnmatch
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .._native import native
from ..errors import ConfigError
from ..session.device import pick

UNITS = ("cpu", "gpu", "ane", "all")
DTYPES = ("f32", "f16")
FORMAT = 1
_TELLING = ("ANE", "E5RT", "BNNS", "MPS", "Espresso")  # what Core ML's own lines on stderr are about
_MOST_LINES = 20
CHILD = (sys.executable, "-m", "rlx_swift.doctor.child")


@dataclass(frozen=True)
class Options:
    """Attributes:
    output: the file to write.
    only: patterns of case names; all for none.
    units, dtypes: which of them to try.
    seconds: the limit of each process.
    full: whether to ask what takes long too.
    """

    output: Path
    only: Sequence[str] = ()
    units: Sequence[str] = UNITS
    dtypes: Sequence[str] = DTYPES
    seconds: float = 60.0
    full: bool = False


@dataclass
class Result:
    """Attributes:
    status: "ok", "error", "crash" or "timeout".
    answer: what the process said.
    problem: the error, signal or exit status.
    lines: lines of Core ML's on stderr.
    """

    case: str
    units: str
    dtype: str
    status: str
    answer: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    lines: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        text = self.problem or _summary(self.answer)
        return f"{self.status:8}{self.units:4}{self.dtype:4}{self.case}: {text}"


def run(options: Options, show: Callable[[Result], None] = lambda result: None) -> dict[str, Any]:
    """The report, which is written after each case too, so that nothing is lost.

    Raises DeviceError where there is no Core ML, ConfigError when no case is left.
    """
    pick("coreml")
    chosen = list(_chosen(options))
    if not chosen:
        raise ConfigError("doctor", f"no case matches {', '.join(options.only)}", "--list shows their names")
    report: dict[str, Any] = {"format": FORMAT, "system": system(), "results": []}
    for case, units, dtype in chosen:
        result = in_child(case, units, dtype, options.seconds)
        show(result)
        report["results"].append(asdict(result))
        report["summary"] = dict(Counter(each["status"] for each in report["results"]))
        options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return report


def names(full: bool = True) -> dict[str, tuple[str, ...]]:
    """The dtypes of each case, by the case's name."""
    from .cases import cases
    from .runs import RUNS

    graphs = {name: case.dtypes for name, case in cases().items() if full or not case.full}
    return graphs | {name: ("f32",) for name, each in RUNS.items() if full or not each.full}


def _chosen(options: Options) -> Iterator[tuple[str, str, str]]:
    for name, dtypes in names(options.full).items():
        if not options.only or any(fnmatch.fnmatchcase(name, pattern) for pattern in options.only):
            for units in options.units:
                yield from ((name, units, dtype) for dtype in dtypes if dtype in options.dtypes)


def in_child(case: str, units: str, dtype: str, seconds: float, command: Sequence[str] = CHILD) -> Result:
    """One case in a process; never raises for what that does."""
    result = Result(case, units, dtype, "ok")
    environment = {**os.environ, "RLX_COREML_UNITS": units}
    arguments = [*command, case, dtype, units]
    process = subprocess.Popen(
        arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
    )
    try:
        output, noise = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        _, noise = process.communicate()
        result.status, result.problem = "timeout", f"more than {seconds:g} s"
    else:
        _judge(result, process.returncode, output, noise)
    result.lines = [line for line in noise.splitlines() if any(word in line for word in _TELLING)][:_MOST_LINES]
    return result


def _judge(result: Result, status: int, output: str, noise: str) -> None:
    if status < 0:
        result.status, result.problem = "crash", _signal_name(-status)
        return
    try:
        result.answer = json.loads(output.splitlines()[-1])
        result.problem = result.answer.pop("error", "")
    except (ValueError, IndexError, AttributeError):
        result.problem = f"exit status {status}; {noise.strip().splitlines()[-1:]}"
    if result.problem or status:
        result.status = "error"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _summary(answer: dict[str, Any]) -> str:
    parts = [f"{key} {value:.3g}" for key, value in answer.items() if isinstance(value, float)]
    errors = answer.get("errors", {}).values()
    if errors:
        parts.append(f"ulps {max(int(error.get('ulps', 0)) for error in errors)}")
        parts += [f"{key} {sum(e.get(key, 0) for e in errors)}" for key in ("wrong", "nan_differs", "infinite_differs")
                  if any(e.get(key) for e in errors)]
    if "refused" in answer:
        parts.append("refused" if answer["refused"] else "accepted")
    return ", ".join(parts)


def system() -> dict[str, str]:
    """What the results depend on: operating system and build, chip, time."""
    if sys.platform == "darwin":
        build, chip = _output("sw_vers", "-buildVersion"), _output("sysctl", "-n", "machdep.cpu.brand_string")
    else:
        build, chip = platform.version(), _processor()
    library = native()
    return {
        "rlx_swift": library.ffi.string(library.lib.rlx_version()).decode(),
        "os": platform.platform(), "build": build, "chip": chip, "machine": platform.machine(),
        "python": platform.python_version(), "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        return f"unknown ({error})"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
