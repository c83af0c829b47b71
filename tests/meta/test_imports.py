"""The folders' arrows: which room of the package may import which, and which outside modules, read from the source."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "rlx_swift"


def arrows(language: str) -> dict[str, set[str]]:
    """The arrows of docs/architecture.md: what each room may import, besides what those may import in turn."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    rows = (line.split("->") for line in block.splitlines())
    return {room.strip(): {target.strip() for target in targets.split(",") if target.strip()} for room, targets in rows}


ARROWS = arrows("arrows")
OUTSIDE = {
    "_native": {"cffi"},
    "session": {"tqdm"},
    "interop": {"coremltools", "torch", "PIL"},
    "testing": {"hypothesis", "pytest"},
    "demo": {"matplotlib", "sklearn"},
}
EVERYWHERE = {"numpy", "typing_extensions", *sys.stdlib_module_names}


def room(path: Path) -> str:
    """The folder or module directly under the package; "" for its own __init__."""
    first = path.relative_to(PACKAGE).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    """Absolute names of the modules, or of the names in them, that a file imports anywhere."""
    package = ["rlx_swift", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def reach(start: str, along: dict[str, set[str]] = ARROWS) -> set[str]:
    reached, todo = {start}, [start]
    while todo:
        new = along[todo.pop()] - reached
        reached |= new
        todo += new
    return reached


FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "_declarations.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_arrows(path: Path) -> None:
    here = room(path)
    allowed = reach(here) if here else set(ARROWS) | {""}
    for name in imports(path):
        top, *rest = name.split(".")
        if top == "rlx_swift":
            assert rest and rest[0] in allowed, f"{here or 'rlx_swift'} may not import {name}"
        else:
            assert top in EVERYWHERE | OUTSIDE.get(here, set()), f"{here or 'rlx_swift'} may not import {name}"


def test_arrows_make_no_circle() -> None:
    assert not [start for start in ARROWS if any(start in reach(next_room) for next_room in ARROWS[start])]


@pytest.mark.parametrize("target", arrows("swift-arrows"))
def test_swift_imports_follow_the_arrows(target: str) -> None:
    files = [path for path in (ROOT / "Sources" / target).rglob("*") if path.suffix in {".swift", ".c", ".h"}]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    ours = {path.name for path in (ROOT / "Sources").iterdir() if path.is_dir()}
    imported = set(re.findall(r"^(?:package |public |internal |@\w+ )*import (?:\w+ )?(\w+)", text, re.MULTILINE))
    assert imported & ours <= reach(target, arrows("swift-arrows"))
    assert ours == set(arrows("swift-arrows"))


def test_every_room_has_its_arrows() -> None:
    assert {room(path) for path in FILES} - {""} <= set(ARROWS)
