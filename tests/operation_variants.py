"""The formulas of the operations' cases on values of another type that holds all of them exactly. Runs nothing."""

from __future__ import annotations

import base64
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.operation_cases import array, listed

_FOLDER = Path(__file__).resolve().parents[1] / "Tests/MILRuntimeTests/Cases"
_NUMPY = {"fp16": "float16", "bool": "bool", **{name: name for name in ("int32", "int16", "uint16", "int8", "uint8")}}
_WITHIN = 2e-3  # of f16


def variants(dtype: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The f32 cases with that type in the place of f32, where it holds all their values, each with a name.

    What is drawn is rounded to the type before the formulas see it; so they compute from exact values in a wider type,
    and the result is rounded once.
    """
    for name, case in _cases(dtype):
        made = _converted(case, dtype)
        if made is not None:
            yield f"{name} as {dtype}", made


def _cases(dtype: str) -> Iterator[tuple[str, dict[str, Any]]]:
    sys.path.insert(0, str(_FOLDER))
    try:
        generate, families = importlib.import_module("generate"), importlib.import_module("families")
    finally:
        sys.path.remove(str(_FOLDER))
    kept = dict(vars(families))
    drawing = _Drawing(dtype)

    def f32(*values: Any, shape: Any = None) -> np.ndarray:
        return _rounded(generate.f32(*values, shape=shape), dtype)

    changed = {"rng": drawing, "normal": drawing.normal, "f32": f32, "EDGES": f32(kept["EDGES"])}
    vars(families).update(changed)
    try:
        for family in kept["ALL"]:
            cases = generate.Cases(family.__name__)
            with np.errstate(all="ignore"):
                family(cases)
            yield from ((f"{family.__name__}[{index}]", case) for index, case in enumerate(cases.list))
    finally:
        vars(families).update(kept)


class _Drawing:
    """Stands for the generator of the cases: floats are of the type, or small whole numbers."""

    def __init__(self, dtype: str) -> None:
        self._rng, self._dtype = np.random.default_rng(7), dtype
        self.integers, self.permutation, self.choice = self._rng.integers, self._rng.permutation, self._rng.choice

    def normal(self, *shape: int, dtype: Any = np.float32) -> np.ndarray:
        return self.standard_normal(shape, 2).astype(dtype)

    def standard_normal(self, shape: Any = (), scale: float = 1) -> np.ndarray:
        return _rounded(self._rng.standard_normal(shape) * scale, self._dtype)

    def uniform(self, low: float, high: float, shape: Any = ()) -> np.ndarray:
        return _rounded(self._rng.uniform(low, high, shape), self._dtype)


def _rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """The nearest values, as f32, that the type holds: of integers those from 0 to 9, of bools 0 and 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype == "fp16":
            return values.astype(np.float16).astype(np.float32)
        whole = np.abs(np.rint(np.nan_to_num(values, posinf=9, neginf=9))).clip(0, 9).astype(np.float32)
    return np.minimum(whole, 1) if dtype == "bool" else whole


def _converted(case: dict[str, Any], dtype: str) -> dict[str, Any] | None:
    """The case with the type in the place of every f32; None where it has none, or a value does not fit."""
    made = {**case, "tolerance": _WITHIN if dtype == "fp16" else 0.0}
    found = False
    for part in ("inputs", "constants"):
        made[part] = {}
        for name, value in case[part].items():
            values = [_as(said, dtype, exact=True) for said in listed(value)]
            if any(said is None for said in values):
                return None
            found = found or values != listed(value)
            made[part][name] = values if isinstance(value, list) else values[0]
    made["outputs"] = [_as(said, dtype, exact=dtype != "fp16") for said in case["outputs"]]
    return made if found and None not in made["outputs"] else None


def _as(said: Any, dtype: str, exact: bool) -> Any:
    if isinstance(said, str) or said["type"] != "fp32":
        return said
    values = array(said)
    with np.errstate(over="ignore", invalid="ignore"):
        cast = values.astype(_NUMPY[dtype])
    # A number of the program, 0.1 say, is what the type makes of it.
    if exact and values.shape != () and not np.array_equal(cast.astype(np.float32), values, equal_nan=True):
        return None
    if dtype != "fp16" and not np.array_equal(cast.astype(np.float32), values):
        return None
    return {"type": dtype, "shape": said["shape"], "data": base64.b64encode(cast.tobytes()).decode()}
