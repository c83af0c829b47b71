"""Writes the expected values of operation tests, computed by NumPy formulas alone. Run: python generate.py"""

import base64
import json
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent
TYPES = {"float32": "fp32", "float16": "fp16", "int32": "int32", "bool": "bool", "int8": "int8", "uint8": "uint8",
         "int16": "int16", "uint16": "uint16"}
rng = np.random.default_rng(7)


def f32(*values, shape=None):
    a = np.array(values[0] if len(values) == 1 else values, np.float32)
    return a if shape is None else a.reshape(shape)


def normal(*shape, dtype=np.float32):
    return (rng.standard_normal(shape) * 2).astype(dtype)


def integers(low, high, *shape):
    return np.asarray(rng.integers(low, high, shape), np.int32)


def tensor(a):
    if isinstance(a, str):
        return a
    if isinstance(a, list):
        return [tensor(x) for x in a]
    if isinstance(a, bool):
        a = np.array(a)
    if isinstance(a, int):
        a = np.array(a, np.int32)
    if isinstance(a, float):
        a = np.array(a, np.float32)
    if isinstance(a, tuple):
        a = np.array(a, np.int32)
    data = base64.b64encode(a.astype(a.dtype.newbyteorder("<")).tobytes()).decode()
    return {"type": TYPES[a.dtype.name], "shape": list(a.shape), "data": data}


class Cases:
    """The cases of one file: `add` takes the operation, its expected outputs, run-time inputs and constants.

    With `folds`, the operation must give the same when its inputs are constants too.
    """

    def __init__(self, name):
        self.name, self.list = name, []

    def add(self, op, expected, inputs, constants=None, opset=7, tolerance=1e-6, folds=True):
        outputs = expected if isinstance(expected, (list, tuple)) else [expected]
        self.list.append({
            "op": op, "opset": opset, "tolerance": tolerance, "folds": folds,
            "inputs": {k: tensor(v) for k, v in inputs.items()},
            "constants": {k: tensor(v) for k, v in (constants or {}).items()},
            "outputs": [tensor(np.asarray(o)) for o in outputs],
        })

    def save(self):
        lines = ",\n".join(json.dumps(case) for case in self.list)
        (HERE / f"{self.name}.json").write_text(f"[\n{lines}\n]\n")


def main():
    import families
    for family in families.ALL:
        cases = Cases(family.__name__)
        with np.errstate(all="ignore"):
            family(cases)
        cases.save()


if __name__ == "__main__":
    main()
