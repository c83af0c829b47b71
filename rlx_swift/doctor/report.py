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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .._native import native
from ..errors import ConfigError
from ..session.device import pick
from .checklist import CHECKLIST

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

    Raises DeviceError where there is no Core ML, ConfigError when no case is left or the file cannot be written.
    """
    pick("coreml")
    _require_place(options.output)
    chosen = list(_chosen(options))
    if not chosen:
        raise ConfigError("doctor", f"no case matches {', '.join(options.only)}", "--list shows their names")
    from .cases import cases

    repeated = {name for name, each in cases().items() if each.twice}
    results: list[Result] = []
    report: dict[str, Any] = {
        "format": FORMAT, "text": [], "system": system(), "summary": {},
        "checklist": [asdict(question) for question in CHECKLIST], "results": [],
    }
    for case, units, dtype in chosen:
        result = in_child(case, units, dtype, options.seconds)
        if result.status == "ok" and case in repeated:
            again = in_child(case, units, dtype, options.seconds).answer
            result.answer["same_in_another_process"] = again.get("hash") == result.answer.get("hash")
        show(result)
        results.append(result)
        report["summary"] = dict(Counter(each.status for each in results))
        report["text"] = describe(report["system"], results)
        report["results"] = [asdict(each) for each in results]
        _write(options.output, report)
    return report


def _require_place(path: Path) -> None:
    """A run takes minutes: what would keep its report from being written is said before."""
    if path.is_dir():
        raise _unwritable(path, "it is a folder")
    beside = _beside(path)
    try:
        beside.touch()
        beside.unlink()
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error


def _write(path: Path, report: Mapping[str, Any]) -> None:
    """The file is whole at any moment, whatever ends this process."""
    beside = _beside(path)
    try:
        beside.write_text(json.dumps(report, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        os.replace(beside, path)
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def _unwritable(path: Path, problem: str) -> ConfigError:
    return ConfigError(f"report {str(path)!r}", f"it cannot be written: {problem}", "give another --output")


def names(full: bool = True) -> dict[str, tuple[str, ...]]:
    """The dtypes of each case, by the case's name."""
    from .cases import cases
    from .programs import programs
    from .runs import RUNS

    graphs = {name: each.dtypes for name, each in cases().items() if full or not each.full}
    graphs |= {name: each.dtypes for name, each in programs().items() if full or not each.full}
    return graphs | {name: ("f32",) for name, each in RUNS.items() if full or not each.full}


def _chosen(options: Options) -> Iterator[tuple[str, str, str]]:
    for name, dtypes in names(options.full).items():
        if not options.only or any(fnmatch.fnmatchcase(name, pattern) for pattern in options.only):
            for units in options.units:
                yield from ((name, units, dtype) for dtype in dtypes if dtype in options.dtypes)


def in_child(case: str, units: str, dtype: str, seconds: float, command: Sequence[str] | None = None) -> Result:
    """One case in a process; never raises for what that does."""
    result = Result(case, units, dtype, "ok")
    environment = {**os.environ, "RLX_COREML_UNITS": units}
    arguments = [*(command or CHILD), case, dtype, units]
    with subprocess.Popen(
        arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
    ) as process:
        try:
            output, noise = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            output, noise = process.communicate()
            result.status, result.problem = "timeout", f"more than {seconds:g} s"
        except BaseException:
            process.kill()
            raise
    result.answer = _answers(output)
    error = str(result.answer.pop("error", ""))
    if result.status == "ok":
        _judge(result, process.returncode, error, noise)
    result.lines = [line for line in noise.splitlines() if any(word in line for word in _TELLING)][:_MOST_LINES]
    return result


def _answers(output: str) -> dict[str, Any]:
    """What a process has said, also one that did not come to its end."""
    answers: dict[str, Any] = {}
    for line in output.splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            continue  # a line of Core ML's
        if isinstance(said, dict):
            answers |= said
    return answers


def _judge(result: Result, status: int, error: str, noise: str) -> None:
    if status < 0:
        result.status, result.problem = "crash", _signal_name(-status)
    elif error:
        result.status, result.problem = "error", error
    elif status or not result.answer:
        result.status = "error"
        result.problem = f"exit status {status}; {noise.strip().splitlines()[-1:]}"


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
    if answer.get("same_in_another_process") is False:
        parts.append("other bits in another process")
    parts += [f"{sum(operations.values())} on {device}" for device, operations in answer.get("plan", {}).items()]
    return ", ".join(parts)


def describe(about: dict[str, str], results: Sequence[Result]) -> list[str]:
    """The report as lines for people: the system, each question of the checklist, and what went wrong."""
    lines = [f"{name}: {value}" for name, value in about.items()]
    if about["os"].startswith("macOS-14") or about["os"].startswith(("macOS-26.4", "macOS-26.5")):
        lines.append("Predictions on the CPU are known to fault on this system: update it before you judge crashes.")
    for question in CHECKLIST:
        asked = [result for result in results if question.asks(result.case)]
        counts = Counter(result.status for result in asked)
        said = ", ".join(f"{count} {status}" for status, count in counts.items()) or "not asked in this run"
        lines += ["", f"[{'x' if asked else ' '}] {question.text}", f"    {said}"]
        if question.left_out:
            lines.append(f"    Left out: {question.left_out}")
        if "*" not in question.cases:
            lines += [f"    {result}" for result in asked if result.status != "ok"]
    return lines


def compare(old: Path, new: Path) -> list[str]:
    """How two reports differ, a line for each case whose end or errors are other ones; raises ConfigError."""
    before, after = _read(old), _read(new)
    lines = []
    for key in sorted(before.keys() | after.keys()):
        texts = [table.get(key, "not asked") for table in (before, after)]
        if texts[0] != texts[1]:
            lines.append(f"{' '.join(key)}: {texts[0]} -> {texts[1]}")
    return lines


def _read(path: Path) -> dict[tuple[str, str, str], str]:
    """What of each result does not change from run to run; raises ConfigError for a file that is no report."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        results = [Result(**each) for each in report["results"]]
        return {(str(result.case), str(result.units), str(result.dtype)): _kernel(result) for result in results}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"report {str(path)!r}", f"it cannot be read: {error!r}") from error


def _kernel(result: Result) -> str:
    """What of a result does not change from run to run."""
    kept = ("errors", "refused", "plan")
    answer: dict[str, Any] = {name: result.answer[name] for name in kept if name in result.answer}
    return f"{result.status} {result.problem or _summary(answer)}".strip()


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
