"""The Swift library as an app's developer meets it: every public symbol has a comment, and the page's code compiles."""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys

import pytest

from tests.session.bundle_driver import driver

LINUX = pytest.mark.skipif(sys.platform == "darwin", reason="names the modules of a build on Linux")
pytestmark = [pytest.mark.native, LINUX]
TARGET = f"{platform.machine()}-unknown-linux-gnu"


@pytest.fixture(scope="module")
def modules():
    """What the compiler needs to find the module RLX of the release build."""
    if not shutil.which("swift"):
        pytest.skip("there is no swift")
    build = driver().parent
    maps = sorted(build.glob("*.build/module.modulemap"))  # of the targets in C
    return ["-I", str(build / "Modules"), *(word for path in maps for word in ("-Xcc", f"-fmodule-map-file={path}"))]


def test_every_public_symbol_is_documented(modules, tmp_path):
    command = ["swift", "symbolgraph-extract", "-module-name", "RLX", "-minimum-access-level", "public", *modules]
    subprocess.run([*command, "-target", TARGET, "-output-dir", tmp_path], check=True)
    symbols = json.loads((tmp_path / "RLX.symbols.json").read_text())["symbols"]
    silent = [
        ".".join(symbol["pathComponents"]) for symbol in symbols
        if "docComment" not in symbol and "::SYNTHESIZED::" not in symbol["identifier"]["precise"]
    ]
    assert len(symbols) > 100 and not silent, silent


def test_the_page_for_apps_compiles(modules, root, tmp_path):
    blocks = re.findall(r"^```swift\n(.*?)^```", (root / "docs/swift.md").read_text(), re.M | re.S)
    assert len(blocks) >= 4
    page = tmp_path / "Page.swift"
    page.write_text("\n".join(blocks))
    command = ["swiftc", "-typecheck", "-parse-as-library", "-swift-version", "6", "-warnings-as-errors", *modules]
    done = subprocess.run([*command, page], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
