"""What single operations mean: the runtime's cases, whose expected values are NumPy's formulas, read as graphs."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import UnsupportedError
from tests.helpers import same
from tests.lift.programs import lifted, model, operation, type_of

CASES = Path(__file__).resolve().parents[2] / "Tests/MILRuntimeTests/Cases"
NUMPY = {"fp32": "<f4", "fp16": "<f2", "bool": "?"}
# What is left out, since converters do not write it for networks that are trained: the operation, and its reason.
NOT_LIFTED = (
    "local_response_norm .* no such operation", "l2_pool .* no such operation", "reshape_like .* no such operation",
    "(gather|gather_nd) .* batch dimensions",
    "(reverse_sequence|space_to_batch|batch_to_space) .* no such operation", ".* the mode '(mul|div)'",
    "(pow|matmul|exp2) .* got i32",
    "(rnn|gru|lstm|random_.*|resample|affine|crop_resize) .* no such operation",
    "(non_zero|non_maximum_suppression) .* no such operation", "constexpr_lut_to_.* tables of vectors",
)


def value(saved: Any) -> Any:
    """Text, an array, or a list of them."""
    if isinstance(saved, list):
        return [value(each) for each in saved]
    if isinstance(saved, str):
        return saved
    dtype = NUMPY.get(saved["type"], saved["type"])
    return np.frombuffer(base64.b64decode(saved["data"]), dtype).reshape(saved["shape"])


def cases() -> list[Any]:
    files = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(CASES.glob("*.json"))}
    saved = [(f"{file}-{i}-{case['op']}", case) for file, several in files.items() for i, case in enumerate(several)]
    return [pytest.param(case, id=name) for name, case in saved]


def arrays(case: dict[str, Any]) -> dict[str, np.ndarray]:
    fed: dict[str, np.ndarray] = {}
    for name, saved in case["inputs"].items():
        given = value(saved)
        fed.update({f"{name}{i}": v for i, v in enumerate(given)} if isinstance(given, list) else {name: given})
    return fed


@pytest.mark.parametrize("case", cases())
def test_values(case):
    fed, expected = arrays(case), [value(saved) for saved in case["outputs"]]
    bound = {
        name: [f"%{name}{i}" for i in range(len(saved))] if isinstance(saved, list) else f"%{name}"
        for name, saved in case["inputs"].items()
    }
    outputs = {f"y{i}": type_of(e) for i, e in enumerate(expected)}
    made = operation(case["op"], outputs, **bound, **{name: value(c) for name, c in case["constants"].items()})
    program = model({name: type_of(a) for name, a in fed.items()}, [made], list(outputs), f"CoreML{case['opset']}")
    try:
        graph = lifted(program)
    except UnsupportedError as error:
        if not any(re.match(reason, str(error)) for reason in NOT_LIFTED):
            raise
        return
    for result, e in zip(rlx.evaluate(graph, fed).values(), expected, strict=True):
        same(result, e, rtol=case["tolerance"], atol=case["tolerance"])
