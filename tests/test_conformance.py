"""Every operation of MIL on our runtime: which run, with which types, in which opsets; docs/conformance.md says so.

The cases are those of the Swift tests, whose values NumPy's formulas gave; the same formulas on values of the other
types that coremltools' registry allows; and for what goes by values programs that coremltools builds. Run this file as
a program to write the document anew.
"""

from __future__ import annotations

import functools
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import PackageError, UnsupportedError
from rlx_swift.lower.opset import signatures
from rlx_swift.lower.package import write_package
from tests.model_files import convert, tensor
from tests.operation_cases import NUMPY, array, cases, listed, model
from tests.operation_variants import variants

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs/conformance.md"
TYPES = ("fp32", "fp16", "int32", "int16", "uint16", "int8", "uint8", "bool")
TRIED = 2  # cases of an operation and type that are tried in opsets other than their own
# Whose cases have values that are no formulas, or other types than their first operand's.
LITERAL = ("cast", "log", "reduce_log_sum_exp", "non_maximum_suppression", "random_bernoulli", "random_categorical",
           "random_normal", "random_uniform")
VARIADIC = ("concat", "stack")  # the registry has no types for lists of values
ELSEWHERE = {"const": "all", "custom_layer": "", "conv_quantized": ""}

pytestmark = [
    pytest.mark.skipif(
        not next(status for status in rlx.devices() if status.name == "cpu").available, reason="no native library"
    ),
    # coremltools leaves temporary directories to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]


def type_of(case: dict[str, Any]) -> str:
    """The type that a case is about: that of its first operand, or of its result."""
    operands = [said for value in case["inputs"].values() for said in listed(value) if isinstance(said, dict)]
    if case["op"] in ("select",):
        operands = [case["inputs"]["a"]] if "a" in case["inputs"] else operands
    found: str = (operands or case["outputs"])[0]["type"]
    return found


def difference(got: np.ndarray, said: dict[str, Any], tolerance: float) -> str:
    """What is wrong with a result, or nothing."""
    want = array(said)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"got {got.dtype} {got.shape}, expected {want.dtype} {want.shape}"
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore"):
        agrees = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= tolerance * np.maximum(1, np.abs(b)))
    return "" if agrees.all() else f"got {a[~agrees][0]}, expected {b[~agrees][0]}"


def outcome(case: dict[str, Any], opset: int, folder: Path) -> str:
    """"pass", "unsupported", "refused" (the program breaks a rule of that opset) or what is wrong."""
    program, feeds, names = model(case, opset)
    path = folder / "case.mlpackage"
    write_package(path, program)
    try:
        results = rlx.load_model(path, device="cpu").predict(feeds)
    except UnsupportedError:
        return "unsupported"
    except PackageError as error:
        return f"refused: {error}"
    faults = [difference(results[n], said, case["tolerance"]) for n, said in zip(names, case["outputs"], strict=True)]
    return next(filter(None, faults), "pass")


@functools.cache
def table() -> tuple[dict[tuple[str, str], set[int]], list[str]]:
    """For each operation and type the opsets in which it gave right values, and all that was wrong."""
    passed: dict[tuple[str, str], set[int]] = defaultdict(set)
    wrong: list[str] = []
    tried: dict[tuple[str, str, int], int] = defaultdict(int)
    with tempfile.TemporaryDirectory() as folder:
        for label, case in cases():
            key = (case["op"], type_of(case))
            own = case["opset"]
            for opset in range(5, 10):
                signature = signatures(opset).get(case["op"])
                given = {*case["inputs"], *case["constants"]}
                if signature is None or not given <= signature.known:
                    continue
                if opset != own and tried[(*key, opset)] >= TRIED:
                    continue
                tried[(*key, opset)] += 1
                result = outcome(case, opset, Path(folder))
                if result == "pass":
                    passed[key].add(opset)
                elif opset == own or not result.startswith("refused"):
                    wrong.append(f"{label} {case['op']} {key[1]} CoreML{opset}: {result}")
        for dtype in TYPES[1:]:
            for label, case in variants(dtype):
                key = (case["op"], dtype)
                for opset in _open_cells(key, case, tried, passed):
                    tried[(*key, opset)] += 1
                    result = outcome(case, opset, Path(folder))
                    if result == "pass":
                        passed[key].add(opset)
                    else:
                        wrong.append(f"{label} {case['op']} CoreML{opset}: {result}")
        for opset in range(5, 10):
            for dtype in ("fp32", "fp16"):
                for op, fault in by_value(opset, dtype, Path(folder)):
                    if fault:
                        wrong.append(f"{op} {dtype} CoreML{opset}: {fault}")
                    else:
                        passed[(op, dtype)].add(opset)
    return passed, wrong


def _open_cells(
    key: tuple[str, str], case: dict[str, Any], tried: dict[tuple[str, str, int], int],
    passed: dict[tuple[str, str], set[int]],
) -> list[int]:
    """The opsets that allow a case's type and have none yet; the operation means there what it means in its own."""
    if case["op"] in LITERAL:
        return []
    found = []
    for opset in range(5, 10):
        signature = signatures(opset).get(case["op"])
        if signature is None or not {*case["inputs"], *case["constants"]} <= signature.known or tried[(*key, opset)]:
            continue
        if opset not in passed.get(key, ()) and allows(opset, case, key[1]):
            found.append(opset)
    return found


@functools.cache
def _domains(opset: int) -> dict[str, dict[str, set[str]]]:
    """For each operation the types that its parameters may have, where coremltools says so."""
    from coremltools.converters.mil.mil import types
    from coremltools.converters.mil.mil.ops.registry import SSAOpRegistry

    found = {}
    for op, versions in SSAOpRegistry.core_ops.items():
        known = [target for target in versions if target.value <= min(opset, 8) + 1]
        if not known:
            continue
        cls = versions[max(known, key=lambda target: target.value)]
        named = {domain: set(map(types.builtin_to_string, of)) for domain, of in cls.type_domains.items()}
        parameters = cls.input_spec.input_types.items()
        found[op] = {name: named.get(getattr(type, "type_domain_id", None), set()) for name, type in parameters}
    return found


def allows(opset: int, case: dict[str, Any], dtype: str) -> bool:
    """Whether the registry lets some parameter of the case have the type, and none that has it forbids it."""
    domains = _domains(opset).get(case["op"], {})
    given = {**case["inputs"], **case["constants"]}
    having = [
        domains.get(name, set()) for name, value in given.items()
        if any(isinstance(said, dict) and said["type"] == dtype for said in listed(value))
    ]
    stated = [domain for domain in having if domain]
    return all(dtype in domain for domain in stated) and bool(stated or case["op"] in VARIADIC)


TARGETS = {5: "iOS15", 6: "iOS16", 7: "iOS17", 8: "iOS18", 9: "iOS26"}


def by_value(opset: int, dtype: str, folder: Path) -> list[tuple[str, str]]:
    """Operations that go by values, and what is wrong with each."""
    from coremltools.converters.mil import Builder as mb

    kind = getattr(np, NUMPY[dtype])
    x = np.array([1, 2, 3], kind)

    def branch(x: Any) -> Any:
        positive = mb.greater(x=mb.reduce_sum(x=x), y=kind(0))
        return mb.cond(
            pred=positive, _true_fn=lambda: mb.add(x=x, y=kind(1)), _false_fn=lambda: mb.sub(x=x, y=kind(1))
        )

    def loop(x: Any) -> Any:
        return mb.while_loop(
            _cond=lambda a: mb.less(x=mb.reduce_sum(x=a), y=kind(40)), _body=lambda a: mb.mul(x=a, y=kind(2)),
            loop_vars=(x,),
        )

    def lists(x: Any) -> Any:
        made = mb.make_list(init_length=1, dtype=dtype, elem_shape=(3,))
        made = mb.list_write(ls=made, index=2, value=x)
        made = mb.list_scatter(ls=made, indices=np.int32([0]), value=mb.expand_dims(x=mb.square(x=x), axes=[0]))
        both = mb.list_gather(ls=made, indices=np.int32([0, 1, 2]))
        return mb.add(x=mb.add(x=mb.reduce_sum(x=both, axes=[0]), y=mb.list_read(ls=made, index=2)),
                      y=mb.cast(x=mb.list_length(ls=made), dtype=dtype))

    def state(x: Any, s: Any) -> Any:
        return mb.coreml_update_state(state=s, value=mb.add(x=mb.read_state(input=s), y=x))

    programs: list[tuple[str, Any, np.ndarray]] = [
        ("cond", branch, x + 1), ("while_loop", loop, x * 8),
        ("make_list list_write list_scatter list_gather list_read list_length", lists, x * x + 2 * x + 3),
    ]
    specs = [tensor(3, dtype=dtype)]
    results = []
    for names, build, expected in programs:
        if opset == 5 and dtype == "fp16":  # no fp16 at the boundary
            continue
        path = convert(folder / "values.mlpackage", build, specs, TARGETS[opset])
        results += _outcomes(names, path, x, expected)
    if opset >= 8 and dtype == "fp16":
        from coremltools.converters.mil.mil import types

        held = mb.StateTensorSpec((3,), dtype=types.fp16)
        path = convert(folder / "values.mlpackage", state, [*specs, held], TARGETS[opset])
        results += _outcomes("read_state write_state", path, x, x)
    return results


def _outcomes(names: str, path: str, x: np.ndarray, expected: np.ndarray) -> list[tuple[str, str]]:
    (got,) = rlx.load_model(path, device="cpu").predict({"x": x}).values()
    fault = "" if got.dtype == expected.dtype and np.allclose(got, expected, atol=1e-3) else f"got {got}"
    return [(name, fault) for name in names.split()]


def document() -> str:
    """docs/conformance.md."""
    passed, _ = table()
    known = sorted({op for opset in range(5, 10) for op in signatures(opset)})
    lines = [
        "# Operations of MIL on the runtime", "",
        "Made by `python -m tests.test_conformance`, which runs each operation with each type in each opset (CoreML5",
        "to CoreML9) and compares the values with those of independent formulas; a test holds this page to it. A cell",
        "lists the opsets that pass. Types are those of the first operand. Where a cell is empty, the operation does",
        "not have the type, or no case is there.", "",
        "| operation | " + " | ".join(TYPES) + " |", "| --- |" + " --- |" * len(TYPES),
    ]
    for op in known:
        if op in ELSEWHERE or op == "classify":
            continue
        cells = [spans(passed.get((op, dtype), set())) for dtype in TYPES]
        if not any(cells):
            cells[0] = "unsupported"
        lines.append(f"| {op} | " + " | ".join(cells) + " |")
    lines += [
        "", "Classifiers (`classify`) are tested with the interfaces of models. `conv_quantized`, which no converter",
        "writes, and `custom_layer` are not supported.", "",
    ]
    return "\n".join(lines)


def spans(opsets: set[int]) -> str:
    """5-7, 9"""
    parts: list[list[int]] = []
    for opset in sorted(opsets):
        if parts and parts[-1][1] == opset - 1:
            parts[-1][1] = opset
        else:
            parts.append([opset, opset])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def test_values_are_right() -> None:
    _, wrong = table()
    assert not wrong, "\n".join(wrong[:20])


def test_the_document_tells_the_truth() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run: python -m tests.test_conformance"


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
    print("\n".join(table()[1]))
    sys.exit(bool(table()[1]))
