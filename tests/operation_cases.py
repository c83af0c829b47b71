"""The cases of the Swift tests of operations, read as programs; their values are NumPy's. Runs nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rlx_swift.lower.program import OPSETS, Array, Block, Feature, Function, Interface, Literal, Model, Operation

_FOLDER = Path(__file__).resolve().parents[1] / "Tests/MILRuntimeTests/Cases"
NUMPY = {"fp32": "float32", "fp16": "float16"}


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """All cases, each with a name to find it by."""
    for file in sorted(_FOLDER.glob("*.json")):
        yield from ((f"{file.stem}[{index}]", case) for index, case in enumerate(json.loads(file.read_text())))


def array(said: dict[str, Any]) -> np.ndarray:
    dtype = NUMPY.get(said["type"], said["type"])
    return np.frombuffer(base64.b64decode(said["data"]), dtype).reshape(said["shape"])


def constant(said: Any) -> Literal:
    if isinstance(said, str):
        return Literal(Array("string", ()), (said,))
    return Literal(Array(said["type"], tuple(said["shape"])), base64.b64decode(said["data"]))


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def model(case: dict[str, Any], opset: int) -> tuple[Model, dict[str, np.ndarray], list[str]]:
    """The case as a program of one operation, with its feeds and the names of its outputs."""
    feeds: dict[str, np.ndarray] = {}
    types: dict[str, Array] = {}
    bound: dict[str, list[Any]] = {name: [constant(s) for s in listed(v)] for name, v in case["constants"].items()}
    for parameter, value in case["inputs"].items():
        bound[parameter] = []
        for said in listed(value):
            if isinstance(said, str):
                bound[parameter].append(constant(said))
                continue
            name = f"in{len(feeds)}"
            feeds[name], types[name] = array(said), Array(said["type"], tuple(said["shape"]))
            bound[parameter].append(name)
    names = [f"out{i}" for i in range(len(case["outputs"]))]
    outputs = [(n, Array(said["type"], tuple(said["shape"]))) for n, said in zip(names, case["outputs"], strict=True)]
    compressed = case["op"].startswith("constexpr_") and opset < 8
    operation = Operation(
        case["op"], {} if compressed else bound, outputs,
        {name: values[0] for name, values in bound.items()} if compressed else {},
    )
    described = [[Feature(n, "array", "fp32", t.shape) for n, t in side] for side in (types.items(), outputs)]
    name = f"CoreML{opset}"
    function = Function(list(types.items()), name, {name: Block([], [operation], names)})
    return Model(OPSETS[name], {"main": function}, {"main": Interface(*described)}), feeds, names
