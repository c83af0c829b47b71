"""The table of docs/optimizers.md is what the contracts say; `python -m tests.optim.test_documents` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from rlx_swift.optim.arrays import NUMPY
from rlx_swift.optim.base import registry
from rlx_swift.optim.contract import TARGETS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "optimizers.md"
BEGIN, END = "<!-- contracts -->\n", "<!-- end of contracts -->"


def table() -> str:
    head = ["optimizer", "state of a 4x3 weight", "in the program", "ulps", "mixed", *TARGETS]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, kind in sorted(registry().items(), key=lambda item: item[1].__name__.lower()):
        if name.startswith("rlx_swift."):
            optimizer, contract = kind(), kind.contract
            state = optimizer.init(NUMPY, np.zeros((4, 3), np.float32))
            slots = ", ".join(f"{slot} {'x'.join(map(str, value.shape))}" for slot, value in state.items()) or "none"
            targets = [f"{steps} at {lr:g}" for lr, steps in (contract.targets[target] for target in TARGETS)]
            bounds = [f"{contract.ulps:g}", f"{contract.mixed:g}"]
            cells = [kind.__name__, slots, "no" if kind.host_only else "yes", *bounds, *targets]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def test_the_table_is_that_of_the_contracts():
    (written,) = re.findall(re.escape(BEGIN) + "(.*?)" + re.escape(END), DOCUMENT.read_text("utf-8"), re.DOTALL)
    assert written == table()


def test_its_examples_run():
    names = {}
    for code in re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        exec(code, names)
    assert names["config"].lr(0) == 3e-5


if __name__ == "__main__":
    text = DOCUMENT.read_text("utf-8")
    DOCUMENT.write_text(text[: text.index(BEGIN) + len(BEGIN)] + table() + text[text.index(END) :], "utf-8")
