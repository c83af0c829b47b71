"""docs/ops.md lists the ops that there are, docs/derivatives.md runs; `python -m tests.ops.test_documents` writes."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np

from rlx_swift import ops
from rlx_swift.ir.op import NotDifferentiable, Stopped, registry

DOCS = Path(__file__).resolve().parents[2] / "docs"
LIST = DOCS / "ops.md"
BEGIN, END = "<!-- ops -->\n", "<!-- end of ops -->"


def call(name: str) -> str:
    """The function with its arguments, without their types."""
    parameters = inspect.signature(getattr(ops, name)).parameters.values()
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    return f"{name}{inspect.Signature(plain)}"


def slope(name: str) -> str:
    """Why an op has no derivative; nothing where it has one."""
    rule = registry()[name].vjp if name in registry() else None
    if isinstance(rule, NotDifferentiable):
        return f" No derivative: {rule.reason}."
    return " To derivatives a constant." if isinstance(rule, Stopped) else ""


def table() -> str:
    lines = ["| call | gives |", "|---|---|"]
    for name in sorted(ops.__all__):
        paragraph = inspect.getdoc(getattr(ops, name)).split("\n\n")[0]
        text = " ".join(paragraph.split()).replace("|", "\\|")
        lines.append(f"| `{call(name)}` | {text}{slope(name)} |")
    return "\n".join(lines) + "\n"


def test_the_list_is_that_of_the_functions():
    (written,) = re.findall(re.escape(BEGIN) + "(.*?)" + re.escape(END), LIST.read_text("utf-8"), re.DOTALL)
    assert written == table()


def test_the_examples_of_the_derivatives_run():
    names = {}
    text = (DOCS / "derivatives.md").read_text("utf-8")
    for code in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        exec(code, names)
    assert names["norms"].shape == (8,) and (names["norms"] > 0).all()
    np.testing.assert_allclose(names["rows"], names["rows"].T, rtol=1e-5)
    for linked in re.findall(r"\]\(([^)]+)\)", text):
        assert (DOCS / linked).exists(), linked


if __name__ == "__main__":
    text = LIST.read_text("utf-8")
    LIST.write_text(text[: text.index(BEGIN) + len(BEGIN)] + table() + text[text.index(END) :], "utf-8")
