"""The build hook: what RLX_NATIVE asks for, which Swift will do, and the tag of a wheel."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

import hatch_build


def install_swift(folder: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    """Puts a `swift` on PATH, alone, that answers --version."""
    swift = folder / "swift"
    swift.write_text(f"#!/bin/sh\necho '{says}'\n")
    swift.chmod(swift.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize("says", ["Swift version 6.3 (swift-6.3-RELEASE)", "Apple Swift version 6.10.1 (swiftlang-6)"])
def test_swift_that_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    install_swift(tmp_path, monkeypatch, says)
    assert hatch_build.why_not() == ""


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        ("Swift version 6.2.3 (swift-6.2.3-RELEASE)", "is Swift version 6.2.3, and 6.3 or newer is needed"),
        ("swift: cannot open libfoo.so", "is broken, and 6.3 or newer is needed"),
    ],
)
def test_swift_that_will_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, reason: str) -> None:
    install_swift(tmp_path, monkeypatch, says)
    assert hatch_build.why_not() == f"{tmp_path}/swift {reason}"


def test_no_swift(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert hatch_build.why_not() == "there is no swift on PATH"
    monkeypatch.setenv("RLX_NATIVE", "require")
    with pytest.raises(SystemExit, match="RLX_NATIVE=require, but there is no swift on PATH"):
        hatch_build.prepare(portable=True)


def test_unknown_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLX_NATIVE", "always")
    with pytest.raises(SystemExit, match="RLX_NATIVE: expected auto, require or off, got 'always'"):
        hatch_build.mode()


def test_tag_is_what_the_library_asks_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "lib"
    library.write_bytes(b"\0GLIBC_2.2.5\0GLIBC_2.35\0GLIBC_2.9\0GLIBCXX_3.4.30\0not GLIBC_2.99 at all\0")
    monkeypatch.setattr(hatch_build.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(hatch_build.sys, "platform", "linux")
    assert hatch_build.platform_tag(library) == "manylinux_2_35_aarch64"
    monkeypatch.setattr(hatch_build.sys, "platform", "darwin")
    monkeypatch.setattr(hatch_build.platform, "machine", lambda: "arm64")
    assert hatch_build.platform_tag(library) == "macosx_14_0_arm64"
