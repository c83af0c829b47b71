"""Builds the native library into wheels, editable installs and checkouts; knows SwiftPM and hatchling, not rlx_swift.

RLX_NATIVE says what a build does about the library: "auto" (the default) builds it where Swift is found and makes a
pure Python wheel elsewhere, "require" fails elsewhere, "off" never builds it. `python hatch_build.py` builds it in
place, `--portable` so that it runs where there is no Swift; `--why-not` tells why it cannot be built here, if so.
"""

from __future__ import annotations

import os
import platform
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script, which needs no hatchling
    BuildHookInterface = object  # type: ignore[assignment, misc]

ROOT = Path(__file__).resolve().parent
NATIVE = ROOT / "rlx_swift/_native"
LIBRARY = "libRLXBridge.dylib" if sys.platform == "darwin" else "libRLXBridge.so"
STAGED = (LIBRARY, "rlx.h", "_declarations.py")  # all git-ignored
PACKAGE = (ROOT / "Package.swift").read_text(encoding="utf-8")


def mode() -> str:
    """RLX_NATIVE."""
    value = os.environ.get("RLX_NATIVE", "auto")
    if value not in ("auto", "require", "off"):
        raise SystemExit(f"RLX_NATIVE: expected auto, require or off, got {value!r}")
    return value


def why_not() -> str:
    """Why the library cannot be built here, or nothing."""
    needed = re.search(r"swift-tools-version: *([\d.]+)", PACKAGE)
    swift = shutil.which("swift")
    if needed is None or swift is None:
        return "there is no swift on PATH"
    printed = subprocess.run([swift, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"Swift version ([\d.]+)", printed)
    if found is None or _numbers(found[1]) < _numbers(needed[1]):
        return f"{swift} is {found[0] if found else 'broken'}, and {needed[1]} or newer is needed"
    return ""


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part]


def build(portable: bool) -> Path:
    """Runs SwiftPM and returns the library; a portable one needs no Swift where it runs."""
    command = ["swift", "build", "--package-path", str(ROOT), "-c", "release", "--product", "RLXBridge"]
    if portable and sys.platform == "linux":  # on Apple systems the Swift runtime is the system's
        # A folder of its own: changed flags would rebuild everything, here and in the next `swift build`.
        command += ["--scratch-path", str(ROOT / ".build/wheel"), "-Xswiftc", "-static-stdlib", "-Xlinker", "-s"]
    print("rlx_swift:", " ".join(command), file=sys.stderr)
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        raise SystemExit("rlx_swift: swift build failed; RLX_NATIVE=off installs without the native library")
    shown = subprocess.run([*command, "--show-bin-path"], capture_output=True, text=True, check=True).stdout
    return Path(shown.strip()) / LIBRARY


def stage(library: Path | None) -> None:
    """Puts the header, its parsed form and the library where the package looks; without one, an old one goes."""
    header = (ROOT / "Sources/CRLX/include/rlx.h").read_text(encoding="utf-8")
    declarations = NATIVE / "_declarations.py"
    if not declarations.exists() or (NATIVE / "rlx.h").read_text(encoding="utf-8") != header:
        reader = runpy.run_path(str(NATIVE / "header.py"))
        reader["write_module"](reader["declarations"](header), declarations)
        (NATIVE / "rlx.h").write_text(header, encoding="utf-8")  # last: with it the other is complete
    if library is None:
        (NATIVE / LIBRARY).unlink(missing_ok=True)
        return
    beside = NATIVE / f"{LIBRARY}.new"
    shutil.copy2(library, beside)
    beside.replace(NATIVE / LIBRARY)  # never written over: a running process may have it mapped


def prepare(portable: bool) -> Path | None:
    """Does what RLX_NATIVE says; the library that was built, or None after a line that says why there is none."""
    reason = "RLX_NATIVE=off" if mode() == "off" else why_not()
    if reason and mode() == "require":
        raise SystemExit(f"rlx_swift: RLX_NATIVE=require, but {reason}")
    library = None if reason else build(portable)
    stage(library)
    if library is None:
        print(f"rlx_swift: no native library ({reason}); the device is numpy", file=sys.stderr)
    return library


def platform_tag(library: Path) -> str:
    """The wheel's platform: what the library asks of the system, whatever system built it."""
    machine = platform.machine()
    if sys.platform == "darwin":
        deployment = re.search(r"\.macOS\(\.v(\d+)\)", PACKAGE)
        return f"macosx_{deployment[1] if deployment else 14}_0_{machine}"
    versions = re.findall(rb"\0GLIBC_2\.(\d+)(?:\.\d+)?(?=\0)", library.read_bytes())
    return f"manylinux_2_{max(map(int, versions))}_{machine}"


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """hatchling calls this before it collects the files of a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        library = prepare(portable=version != "editable")
        build_data["artifacts"] += [f"rlx_swift/_native/{name}" for name in STAGED if library or name != LIBRARY]
        if library is not None:
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag(library)}"


if __name__ == "__main__":
    if "--why-not" in sys.argv[1:]:
        print(why_not())
    else:
        prepare(portable="--portable" in sys.argv[1:])
