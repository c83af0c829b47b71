"""The command `rlx-swift`: arguments in, text or JSON out; knows the public functions and no mathematics."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import errors

Command = Callable[[argparse.Namespace], None]


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
    demo.add_argument("--device", choices=("coreml", "cpu", "numpy"), help="default: the best present")
    demo.add_argument("--epochs", type=_positive, default=12, metavar="N", help="default: %(default)s")
    demo.add_argument("--seed", type=int, default=0, metavar="N", help="default: %(default)s")
    _add_json(demo)

    validate = _add(
        commands, "validate", _validate, "check a Core ML package",
        "Checks an .mlpackage against the rules of the format and of Core ML, then with coremltools' own loader where "
        "that is installed. Ends with status 1 and the broken rule when it is not valid.",
    )
    validate.add_argument("model", type=Path, metavar="MODEL", help="an .mlpackage folder")
    _add_json(validate)
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
        again = "not read back, which needs the native library"
        if result.package_accuracy is not None:
            again = f"read back, test accuracy {result.package_accuracy:.1%}"
        print(f"  {result.package}: {again}")
    print(f"The losses are drawn in {options.output / 'loss.png'}")


def _validate(options: argparse.Namespace) -> None:
    from .interop.validate import validate

    report = validate(options.model)
    print(json.dumps({"model": str(options.model), **asdict(report)}) if options.json else report)


if __name__ == "__main__":
    sys.exit(main())
