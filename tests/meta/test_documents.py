"""The documents tell the truth: code in them runs, files they name exist, their lists are complete."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md")]


def blocks(document: Path, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(code: str, folder: Path, path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=folder, env=os.environ | {"PYTHONPATH": str(path)},
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_example_of_the_readme(tmp_path: Path) -> None:
    (example,) = blocks(ROOT / "README.md", "python")
    printed = run(example, tmp_path, ROOT)
    loss, *weights = map(float, printed.replace("[", " ").replace("]", " ").split())
    assert loss < 1e-10
    assert weights == pytest.approx([1, -2, 0.5], abs=1e-5)
    assert (tmp_path / "linreg.mlpackage/Manifest.json").is_file()


@pytest.fixture
def extended(tmp_path: Path) -> Path:
    """A copy of the package after following CONTRIBUTING.md."""
    shutil.copytree(ROOT / "rlx_swift", tmp_path / "rlx_swift", ignore=shutil.ignore_patterns("__pycache__", "lib*"))
    for block in blocks(ROOT / "CONTRIBUTING.md", "python"):
        name, code = re.fullmatch(r"# (\S+)\n(.*)", block, re.DOTALL).groups()
        with (tmp_path / name).open("a") as file:
            file.write(code)
    return tmp_path


def test_following_how_to_add_an_op(extended: Path) -> None:
    code = """
import numpy as np
import rlx_swift as rlx
from rlx_swift.ir.op import registry
from rlx_swift.lower.mil import lower
from rlx_swift.lower.package import to_bytes
g = rlx.Graph()
g.set_outputs({"y": rlx.ops.gaussian(g.input("x", (2, 3))).sum()})
x = np.float32([[1, -3, 0], [0.5, 2, -1]])
assert "gaussian" in registry()
np.testing.assert_allclose(rlx.evaluate(g, {"x": x})["y"], np.exp(-x * x).sum(), rtol=1e-6)
rlx.check_grads(g, {"x": x + 0.1}, ["x"], order=2)
assert b"exp" in to_bytes(lower(g).model)[0]
"""
    run(code, extended, extended)


def test_following_how_to_add_an_optimizer(extended: Path) -> None:
    code = """
import rlx_swift as rlx
g = rlx.Graph()
g.set_outputs({"loss": ((g.param("w", (2,), init=[3.0, -4.0]) - g.input("t", (2,))) ** 2).sum()})
config = rlx.TrainConfig(lr=0.5, optimizer=rlx.optim.SignSGD())
for fused in (False, True):
    ts = rlx.TrainingSession(g, config=config, device="numpy")
    ts = ts.with_fused_optimizer() if fused else ts
    for _ in range(4):
        ts.step({"t": [0.0, 0.0]})
    assert ts.fused_active is fused
    assert ts.param("w").tolist() == [1.0, -2.0]
"""
    run(code, extended, extended)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_named_files_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link]
    assert not [link for link in links if not (document.parent / link).exists()]
    new = {re.match(r"# (\S+)", block)[1] for block in blocks(document, "python") if block.startswith("# ")}
    named = re.findall(r"\b((?:scripts|tests|Sources|docs|rlx_swift)/[\w./]*\w)", text)
    exists = {name for name in named if (ROOT / name).exists() or (ROOT / f"{name}.py").exists()}
    assert not set(named) - exists - new


def test_commands_of_the_readme_can_be_run() -> None:
    commands = re.findall(r"^(scripts/\w+)", "\n".join(blocks(ROOT / "README.md", "bash")), re.MULTILINE)
    assert len(commands) == 2
    assert all(os.access(ROOT / command, os.X_OK) for command in commands)


def test_folders_of_the_architecture_are_all_of_them() -> None:
    (folders,) = (block for block in blocks(ROOT / "docs/architecture.md", "") if block.startswith("Sources/CRLX"))
    named = set(re.findall(r"^(?:Sources|rlx_swift)/(\w+)", folders, re.MULTILINE))
    swift = {path.name for path in (ROOT / "Sources").iterdir() if path.is_dir()}
    python = {path.parent.name for path in (ROOT / "rlx_swift").glob("*/__init__.py")}
    assert swift | python <= named


def test_licence_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text and "END OF TERMS AND CONDITIONS" in text


def test_only_the_project_is_spoken_of() -> None:
    words = ("work" + "place", "work" + "tree", "/" + "work/", "/tmp/" + "wt", "AI " + "assistant",
             "shared/" + "design", "style-" + "anchors", "reference/" + "mil-format", "language " + "model wrote")
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    for name in files:
        path = ROOT / name
        if path.suffix in {".py", ".swift", ".c", ".h", ".md", ".toml", ".yaml", ""} and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace").lower()
            assert not [word for word in words if word.lower() in text], name
