"""Who judges a package, and that it stays quiet."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import rlx_swift as rlx
from rlx_swift.errors import PackageError, ValidationError
from rlx_swift.interop import rules
from rlx_swift.interop.validate import Judge, validate
from rlx_swift.lower.mil import Lowered, lower
from rlx_swift.lower.package import opened, to_bytes, write_package
from rlx_swift.lower.program import Array, Feature

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted((ROOT / "Tests/MILFormatTests/Fixtures").glob("*.mlpackage"))


def lowered() -> Lowered:
    g = rlx.Graph()
    g.set_outputs({"y": rlx.ops.softmax(g.input("x", (2, 3)))})
    return lower(g)


def test_both_judges_run_on_lowered_graphs_and_on_files(tmp_path: Path) -> None:
    write_package(tmp_path / "m.mlpackage", lowered().model)
    for subject in (lowered(), tmp_path / "m.mlpackage", str(tmp_path / "m.mlpackage")):
        own, coremltools = validate(subject).judges
        assert own == Judge("structural rules", True, f"{len(rules.RULES)} rules")
        assert (coremltools.name, coremltools.ran) == ("coremltools", True)


@pytest.mark.parametrize("path", PACKAGES, ids=lambda p: p.stem)
def test_packages_of_coremltools_break_no_rule(path: Path) -> None:
    assert all(judge.ran for judge in validate(path).judges)


def test_the_absence_of_coremltools_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "coremltools", None)
    report = validate(lowered())
    assert (report.judges[1].name, report.judges[1].ran) == ("coremltools", False)
    assert report.judges[1].note.endswith("pip install coremltools")
    assert "coremltools: not run" in str(report)
    assert "structural rules: passed" in str(report)


def test_what_coremltools_alone_refuses_is_an_error() -> None:
    wrong = lowered()
    (softmax,) = wrong.model.functions["main"].bodies["CoreML7"].operations
    softmax.outputs = [("y", Array("fp16", (2, 3)))]  # of an operand of fp32
    wrong.model.interfaces["main"].outputs = [Feature("y", "array", "fp16", (2, 3))]
    rules.check(opened(to_bytes(wrong.model)))
    with pytest.raises(ValidationError, match=r"coremltools refuses it: .*Mismatch between var types"):
        validate(wrong)


def test_a_file_that_is_no_package_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="cannot be read"):
        validate(tmp_path / "gone.mlpackage")


def test_the_log_level_of_coremltools_is_left_as_it_was() -> None:
    logger = logging.getLogger("coremltools")
    before = logger.level
    validate(lowered())
    assert logger.level == before


def test_nothing_is_printed_and_coremltools_is_imported_only_when_asked() -> None:
    program = """
import sys
import rlx_swift as rlx
from rlx_swift.lower.mil import lower
from rlx_swift.interop.validate import validate
g = rlx.Graph()
g.set_outputs({"y": g.input("x", (2,)) + 1.0})
model = lower(g)
assert "coremltools" not in sys.modules
assert validate(model).judges[1].ran
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
