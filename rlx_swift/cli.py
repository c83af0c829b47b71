"""The command `rlx-swift`: arguments in, text or JSON out; knows the public functions and no mathematics."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import errors

Command = Callable[[argparse.Namespace], None]
DEVICES = ("coreml", "cpu", "numpy")
UNITS = ("cpu", "gpu", "ane", "all")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status; errors become one line on stderr."""
    options = _parser().parse_args(arguments)
    command: Command = options.command
    try:
        command(options)
        sys.stdout.flush()
    except (errors.RlxError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # the reader, `head` say, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        print(f"rlx-swift: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rlx-swift", description="On-device training for Core ML.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    devices = _add(
        commands, "devices", _devices, "show what can run programs here, and for what cannot, why",
        "Lists the devices, best first; a session without device= takes the first that is available.",
    )
    _add_json(devices)

    demo = _add(
        commands, "demo", _demo, "train two networks on real images of digits",
        "Trains an MLP and a convolutional network on scikit-learn's digits, prints their accuracy on images that "
        "they have not seen, saves the curve of the loss as loss.png and each network as an .mlpackage, and predicts "
        "with what was saved. Needs the extra [demo].",
    )
    demo.add_argument("--output", type=Path, default=Path("rlx-demo"), metavar="DIR", help="default: %(default)s")
    demo.add_argument("--device", choices=DEVICES, help="default: the best present")
    demo.add_argument("--epochs", type=_positive, default=12, metavar="N", help="default: %(default)s")
    demo.add_argument("--seed", type=int, default=0, metavar="N", help="default: %(default)s")
    _add_json(demo)

    run = _add(
        commands, "run", _run, "predict with a Core ML package",
        "Feeds .npy files to an ML Program and writes each output to NAME.npy. It runs on the best device present, "
        "or on that of --device.",
    )
    run.add_argument("model", type=Path, metavar="MODEL", help="an .mlpackage folder or a bare model file")
    run.add_argument(
        "--input", action="append", default=[], type=_named_file, metavar="NAME=FILE.npy", help="for each input one",
    )
    run.add_argument("--output-dir", type=Path, default=Path(), metavar="DIR", help="default: where you are")
    run.add_argument(
        "--random-inputs", type=_not_negative, metavar="SEED",
        help="draw what --input does not give: normal floats, integers 0 and 1",
    )
    run.add_argument(
        "--compare", type=Path, metavar="FILE.npz",
        help="arrays by the outputs' names; ends with status 1 where an output differs from its array",
    )
    run.add_argument("--atol", type=_tolerance, default=1e-5, metavar="X", help="for --compare, default: %(default)s")
    run.add_argument("--rtol", type=_tolerance, default=1e-4, metavar="X", help="for --compare, default: %(default)s")
    run.add_argument(
        "--profile", type=_positive, nargs="?", const=10, metavar="RUNS",
        help="also tell where the time of the quickest of RUNS predictions (default: 10) goes: time, arithmetic and "
        "memory by operation, and the slowest steps with the names of the values that they make; on the device cpu",
    )
    run.add_argument("--function", metavar="NAME", help="one function of a model that has several")
    run.add_argument("--device", choices=DEVICES, help="default: the best present")
    _add_json(run)

    diff = _add(
        commands, "diff", _diff, "show where two models begin to differ",
        "Runs two models on the same inputs and compares their intermediate values: which is the first that differs, "
        "and which differ most. The second is another package, whose weights, precision and names may differ; or the "
        "same program with f32 for f16 (--precision f32), or interpreted in float64 (--device numpy). Ends with "
        "status 1 where a value differs.",
    )
    diff.add_argument("model", type=Path, metavar="MODEL", help="an .mlpackage folder or a bare model file")
    diff.add_argument("other", type=Path, nargs="?", metavar="OTHER", help="the second package")
    diff.add_argument("--precision", choices=("f32",), help="compare with the same program in f32")
    diff.add_argument("--device", choices=DEVICES, help="compare with this device; but for numpy, the outputs only")
    diff.add_argument(
        "--input", action="append", default=[], type=_named_file, metavar="NAME=FILE.npy",
        help="for each input one; the others are drawn",
    )
    diff.add_argument(
        "--seed", type=_not_negative, default=0, metavar="N", help="of what is drawn; default: %(default)s"
    )
    diff.add_argument(
        "--rtol", type=_tolerance, metavar="X",
        help="a value differs when it is off by more than this share of its largest element; default: 1e-2 where f16 "
        "is involved, else 1e-4",
    )
    diff.add_argument("--atol", type=_tolerance, default=0.0, metavar="X", help="added to it; default: %(default)s")
    diff.add_argument("--function", metavar="NAME", help="one function of models that have several")
    _add_json(diff)

    inspect = _add(
        commands, "inspect", _inspect, "show what a Core ML package holds and where it can run",
        "Shows the interface, functions, operations and weights of an ML Program, and for each device whether it can "
        "run there; if not, what is missing.",
    )
    inspect.add_argument("model", type=Path, metavar="MODEL", help="an .mlpackage folder or a bare model file")
    _add_json(inspect)

    bench = _add(
        commands, "bench", _bench, "time training steps on this machine",
        "Trains four small networks on random data, the AdamW update inside the program, and prints the median time "
        "of a step. The repository's benchmarks/ compares these with other frameworks.",
    )
    bench.add_argument(
        "network", nargs="*", metavar="NETWORK", help="linear_regression, mlp, cnn or transformer; default: all"
    )
    bench.add_argument("--device", choices=DEVICES, help="default: the best present")
    bench.add_argument("--seconds", type=_seconds, default=1.0, metavar="S", help="for each; default: %(default)s")
    _add_json(bench)

    serve = _add(
        commands, "serve-model", _serve, "answer requests to load models and predict, for other programs",
        "Reads one JSON object a line from stdin and writes one answer a line to stdout; arrays travel as .npy files. "
        "It ends when stdin does.",
    )
    serve.add_argument("--device", choices=DEVICES, help="default: the best present")

    validate = _add(
        commands, "validate", _validate, "check a Core ML package",
        "Checks an .mlpackage against the rules of the format and of Core ML, then with coremltools' own loader where "
        "that is installed. Ends with status 1 and the broken rule when it is not valid.",
    )
    validate.add_argument("model", type=Path, metavar="MODEL", help="an .mlpackage folder")
    _add_json(validate)

    doctor = _add(
        commands, "doctor", _doctor, "test Core ML on this system and write a report",
        "Asks Core ML small questions, each in a process of its own on every choice of compute units, compares the "
        "answers with the CPU's and writes one file, to attach to an issue. A crash is a result.",
    )
    doctor.formatter_class = argparse.RawDescriptionHelpFormatter
    doctor.epilog = """\
how to use it:
  rlx-swift doctor                             the usual questions; minutes
  rlx-swift doctor --full                      large models and thousands of predictions too
  rlx-swift doctor --only 'conv/*' --units gpu part of them
  rlx-swift doctor --compare OLD NEW           how two reports differ: two systems, two versions

Each line shows how a process ended, the units and dtype, the case, and what it found:
  ok       Core ML answered; "ulps" is the largest error in units of the last place, times are in us and ms
  error    Core ML or the library said why not
  crash    the process was ended by a signal; what it had said before stays in the report
  timeout  it took longer than --seconds

The file begins with "text", the report for people: the system and each question of the checklist with what went
wrong. "results" has all numbers: load and prediction times, errors by output, bits ("hash"), and the processor
that Core ML plans for each operation ("plan"). A machine without a Neural Engine, as in most clouds, may hang
with --units ane and all: give --units cpu --units gpu there."""
    file = Path("rlx-doctor.json")
    doctor.add_argument("--output", type=Path, default=file, metavar="FILE", help="default: %(default)s")
    doctor.add_argument("--only", action="append", default=[], metavar="PATTERN", help='only cases such as "conv/*"')
    doctor.add_argument("--units", action="append", choices=UNITS, help="default: each of them")
    doctor.add_argument("--seconds", type=float, default=60.0, metavar="S", help="limit of a case; default: 60")
    doctor.add_argument("--full", action="store_true", help="ask what takes minutes too")
    doctor.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="show how two reports differ")
    doctor.add_argument("--list", action="store_true", help="print the names of the cases and end")
    _add_json(doctor)
    return parser


def _add(commands: Any, name: str, command: Command, summary: str, text: str) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=text)
    added.set_defaults(command=command)
    return added


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for other programs")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {value}")
    return value


def _not_negative(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"expected at least 0, got {value}")
    return value


def _tolerance(text: str) -> float:
    value = float(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"expected at least 0, got {text}")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"expected 0 to 3600 seconds, got {text}")
    return value


def _named_file(text: str) -> tuple[str, Path]:
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise argparse.ArgumentTypeError(f"expected NAME=FILE.npy, got {text!r}")
    return name, Path(file)


def _devices(options: argparse.Namespace) -> None:
    from .session.device import devices

    found = devices()
    print(json.dumps([asdict(status) for status in found], indent=2) if options.json else "\n".join(map(str, found)))


def _demo(options: argparse.Namespace) -> None:
    from . import demo
    from .session.device import devices

    present = devices()
    device = options.device or next(status.name for status in present if status.available)
    if not options.json:
        cpu = next(status for status in present if status.name == "cpu")
        why = "" if options.device or device != "numpy" else f", since cpu is absent: {cpu.reason}"
        print(f"Training on the device {device}{why}")
    results = demo.run(options.output, device, options.epochs, options.seed, progress=not options.json)
    if options.json:
        print(json.dumps({"device": device, "results": [asdict(result) for result in results]}, default=str))
        return
    for result in results:
        loss, seconds = result.losses[-1], result.seconds
        print(f"{result.name}: test accuracy {result.accuracy:.1%}, last loss {loss:.4f}, {seconds:.1f} s")
        print(f"  {result.package}: read back, test accuracy {result.package_accuracy:.1%}")
    print(f"The losses are drawn in {options.output / 'loss.png'}")


def _run(options: argparse.Namespace) -> None:
    import numpy as np

    from .server import file_name
    from .session.model import load_model

    model = load_model(options.model, options.function, options.device)
    feeds = _feeds(model, options.input, options.random_inputs)
    results = model.predict(feeds)
    profile = model.profile(feeds, options.profile) if options.profile else None
    options.output_dir.mkdir(parents=True, exist_ok=True)
    arrays = [name for name, value in results.items() if isinstance(value, np.ndarray)]
    files = {name: options.output_dir / file_name(name, place) for place, name in enumerate(arrays)}
    for name, file in files.items():
        np.save(file, results[name])
    differences = _differences(results, options) if options.compare else {}
    if options.json:
        outputs = {
            name: {"npy": str(files[name]), "dtype": value.dtype.name, "shape": value.shape} if name in files else value
            for name, value in results.items()
        }
        answer = {"model": str(options.model), "device": model.device, "outputs": outputs}
        if options.compare:
            answer["differences"] = differences
        if profile:
            answer["profile"] = {**asdict(profile), "by_kind": [asdict(total) for total in profile.by_kind()]}
        print(json.dumps(_finite(answer), allow_nan=False))
    else:
        for name, value in results.items():
            print(f"{name}: {value.dtype}{list(value.shape)} -> {files[name]}" if name in files else f"{name}: {value}")
        if profile:
            print(f"\n{profile}")
    if differences:
        text = "; ".join(f"{name} {problem}" for name, problem in differences.items())
        raise errors.ValidationError(str(options.compare), f"the outputs are not those in it: {text}")


def _feeds(model: Any, given: Sequence[tuple[str, Path]], seed: int | None) -> dict[str, Any]:
    """What was given, and with a seed drawn values for the other inputs."""
    import numpy as np

    feeds = {name: _array(file) for name, file in given}
    if len(feeds) < len(given):
        names = [name for name, _ in given]
        twice = next(name for name in names if names.count(name) > 1)
        raise errors.FeedError(f"input {twice!r}", "it is given twice")
    if seed is None:
        return feeds
    rng = np.random.default_rng(seed)
    return {**{name: _drawn(rng, type) for name, type in model.inputs.items()}, **feeds}


def _differences(results: Any, options: argparse.Namespace) -> dict[str, str]:
    """What is wrong with each output that is not near its array in the file of --compare."""
    import numpy as np

    expected = _read(options.compare, ".npz")
    found = {}
    for name, want in expected.items():
        got = results.get(name)
        if not isinstance(got, np.ndarray):
            found[name] = "is no output" if got is None else "is no array"
        elif want.dtype.kind not in "biuf":
            found[name] = f"is compared with an array of {want.dtype}"
        elif got.shape != want.shape:
            found[name] = f"has shape {got.shape}, not {want.shape}"
        elif not np.allclose(got, want, rtol=options.rtol, atol=options.atol, equal_nan=True):
            other = (got != want) & ~(np.isnan(got) & np.isnan(want))
            error = np.abs(got[other].astype(np.float64) - want[other].astype(np.float64))
            found[name] = f"differs by up to {np.max(error):.3g}"
    return found


def _array(file: Path) -> Any:
    return _read(file, ".npy")


def _read(file: Path, kind: str) -> Any:
    """The array of a .npy file, or those of an .npz file by name."""
    import zipfile

    import numpy as np

    try:
        with open(file, "rb") as stream:
            read = np.load(stream, allow_pickle=False)
            if isinstance(read, np.ndarray) == (kind == ".npy"):
                return read if kind == ".npy" else dict(read)
    except (ValueError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        raise errors.FeedError(str(file), f"it is no {kind} file ({error})") from error
    raise errors.FeedError(str(file), f"it is no {kind} file")


def _drawn(rng: Any, type: Any) -> Any:
    return rng.standard_normal(type.shape) if type.dtype.is_float else rng.integers(0, 2, type.shape)


def _diff(options: argparse.Namespace) -> None:
    from .session.difference import diff_models
    from .session.model import load_model

    feeds = _feeds(load_model(options.model, options.function, "cpu"), options.input, options.seed)
    found = diff_models(
        options.model, options.other, feeds, precision=options.precision, device=options.device,
        function=options.function, rtol=options.rtol, atol=options.atol,
    )
    if options.json:
        first = None if found.first is None else asdict(found.first)
        said = {**asdict(found), "first": first, "differ": sum(value.differs for value in found.compared)}
        print(json.dumps(_finite(said), allow_nan=False))
    else:
        print(found)
    if found.first:
        raise errors.ValidationError(str(options.model), f"its value {found.first.name!r} is the first that differs")


def _finite(value: Any) -> Any:
    """The same data as JSON can say it: null for what is no finite number."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _inspect(options: argparse.Namespace) -> None:
    from .session.inspection import inspect_model

    found = inspect_model(options.model)
    print(json.dumps(asdict(found), indent=2) if options.json else found)


def _bench(options: argparse.Namespace) -> None:
    from . import bench

    if unknown := [name for name in options.network if name not in bench.NETWORKS]:
        raise errors.NameNotFoundError(f"network {unknown[0]!r}", f"expected one of {', '.join(bench.NETWORKS)}")
    timings = bench.run(options.device, options.seconds, options.network)
    if options.json:
        rows = [{**asdict(timing), "samples_per_second": timing.samples_per_second} for timing in timings]
        print(json.dumps(rows, indent=2))
        return
    print(f"{'network':18} {'device':7} {'params':>8} {'batch':>5} {'first step':>11} {'a step':>11} {'samples/s':>11}")
    for t in timings:
        print(
            f"{t.network:18} {t.device:7} {t.params:8,} {t.batch:5} {t.first_step * 1e3:8.0f} ms {t.step * 1e3:8.3f} ms"
            f" {t.samples_per_second:11,.0f}"
        )


def _serve(options: argparse.Namespace) -> None:
    from .server import serve_process

    serve_process(options.device)


def _validate(options: argparse.Namespace) -> None:
    from .interop.validate import validate

    report = validate(options.model)
    print(json.dumps({"model": str(options.model), **asdict(report)}) if options.json else report)


def _doctor(options: argparse.Namespace) -> None:
    from . import doctor
    from .doctor.report import compare, names

    if options.list:
        print("\n".join(names()))
        return
    if options.compare:
        differences = compare(*options.compare)
        print(json.dumps(differences) if options.json else "\n".join(differences))
        return
    settings = doctor.Options(
        options.output, only=options.only, units=options.units or UNITS, seconds=options.seconds, full=options.full
    )
    report = doctor.run(settings, show=(lambda result: None) if options.json else print)
    if options.json:
        print(json.dumps({"report": str(options.output), "system": report["system"], "summary": report["summary"]}))
        return
    print(f"{', '.join(f'{count} {status}' for status, count in report['summary'].items())}: {options.output}")


if __name__ == "__main__":
    sys.exit(main())
