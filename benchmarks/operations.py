"""Single operations against NumPy: the sample cases of every op of the registry, scaled to about 1 MB, each a program
of one op on the device "cpu", in one process with NumPy and in turn.

    python -m benchmarks.operations                           # all ops, every type that their samples have
    python -m benchmarks.operations --ops sin topk --types f32 --json ops.json

A row is a case: `ours` and `numpy` are the least milliseconds of a call in all rounds, and a ratio below 1 says that we
are ahead. Our call is a whole one: feeds are checked, results are arrays of their own. What such a call costs without
work is that of the null program, told apart, and is part of every ratio. NumPy's side is the interpreter's formula, or
what NUMPY_WAYS has where a user of NumPy would write another one. `differs` marks results that do not agree.

A sample is scaled by one factor for all its sizes, those among its attributes too; SCALED has the cases for which
that is not enough. Ops without a case are listed with the reason, and the operations of MIL that no op of the registry
becomes. Both sides may use two threads. The exit code is 0 whatever the ratios are.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

for _name in ("RLX_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "2")

import numpy as np  # noqa: E402

import rlx_swift as rlx  # noqa: E402
from rlx_swift.interp import node_values  # noqa: E402
from rlx_swift.ir.op import Case, Domain, Mil, Op, OpKind, registry  # noqa: E402
from rlx_swift.lower.opset import signatures  # noqa: E402
from rlx_swift.testing.operands import sample  # noqa: E402

ELEMENTS = 1 << 18  # of the largest operand or result: 1 MB of f32
SIZES = ("shape", "count", "size", "depth", "k")  # attributes that are sizes, or tuples of them
TOLERANCE = 2e-2  # of the largest value: f16 results and sums in another order are the same answer

# Cases that one factor does not scale: the sample whose attributes they take, shapes, changed attributes.
SCALED: dict[str, tuple[tuple[int, tuple[tuple[int, ...], ...], dict[str, Any]], ...]] = {
    "conv": ((1, ((2, 16, 90, 90), (16, 16, 3, 3)), {}), (2, ((2, 16, 90, 90), (16, 8, 3, 3)), {})),
    "conv_transpose": ((1, ((2, 16, 45, 45), (16, 16, 3, 3)), {"size": (90, 90)}),),
    "conv_weight_grad": ((1, ((2, 16, 90, 90), (2, 16, 45, 45)), {}),),
    "mil_conv": ((0, ((2, 16, 90, 90), (16, 16, 3, 3)), {}), (1, ((2, 64, 2048), (64, 32, 3)), {})),
    "mil_conv_transpose": ((0, ((2, 16, 90, 90), (16, 16, 3, 3)), {}), (1, ((2, 64, 1024), (64, 32, 3)), {})),
    "reshape": ((0, ((512, 512),), {"shape": (256, 1024)}), (3, ((1 << 18,),), {"shape": (512, 512)})),
    "slice": (
        (0, ((516, 512),), {"start": (4, 0), "count": (512, 512)}),
        (1, ((512, 1024),), {"start": (0, 1), "count": (512, 511)}),
        (2, ((1024, 512),), {"start": (1023, 511), "count": (512, 512)}),
        (3, ((1 << 19,),), {"start": (9,), "count": (1 << 18,)}),
    ),
    "max_pool_grad": (
        (0, ((8, 8, 64, 64), (8, 8, 32, 32), (8, 8, 32, 32)), {}),
        (1, ((8, 8, 63, 63), (8, 8, 32, 32), (8, 8, 32, 32)), {}),
    ),
    "max_pool_pick": (
        (0, ((8, 8, 64, 64), (8, 8, 32, 32), (8, 8, 64, 64)), {}),
        (1, ((8, 8, 63, 63), (8, 8, 32, 32), (8, 8, 63, 63)), {}),
    ),
    "avg_pool_grad": (
        (0, ((8, 8, 32, 32),), {"size": (64, 64)}),
        (2, ((8, 8, 32, 32),), {"size": (63, 63)}),
    ),
}


@dataclass(frozen=True)
class Timed:
    """One case's line; seconds a call."""

    op: str
    case: str
    type: str
    ours: float
    numpy: float
    agrees: bool

    @property
    def ratio(self) -> float:
        return self.ours / self.numpy


# Scaling


def scaled_cases(op: Op[Any]) -> list[Case]:
    """The op's samples at full size, each once; empty where every sample has rank 0."""
    if op.name in SCALED:
        return [_by_hand(op.cases[index], shapes, changed) for index, shapes, changed in SCALED[op.name]]
    found: dict[str, Case] = {}
    for case in op.cases:
        grown = _grown(op, case)
        if grown is not None:
            found.setdefault(label(grown), grown)
    return list(found.values())


def _by_hand(case: Case, shapes: tuple[tuple[int, ...], ...], changed: dict[str, Any]) -> Case:
    return dataclasses.replace(case, shapes=shapes, attrs=dataclasses.replace(case.attrs, **changed))


def _grown(op: Op[Any], case: Case) -> Case | None:
    """The case by the largest factor at which nothing is larger than ELEMENTS."""
    if _largest(op, case) < 2 or _largest(op, _times(op, case, 2)) == _largest(op, case):
        return None
    low, high = 1, ELEMENTS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _largest(op, _times(op, case, middle)) <= ELEMENTS else (low, middle)
    return _times(op, case, low)


def _times(op: Op[Any], case: Case, factor: int) -> Case:
    def grown(size: Any) -> Any:
        if isinstance(size, tuple):
            return tuple(map(grown, size))
        return size * factor if isinstance(size, int) and size > 1 else size

    fields = {f.name: getattr(case.attrs, f.name) for f in dataclasses.fields(case.attrs)}
    attrs = dataclasses.replace(case.attrs, **{n: grown(v) for n, v in fields.items() if n in SIZES})
    domains = case.domains or (op.domain,) * len(case.shapes)
    if (op.kind is not OpKind.ELEMENTWISE and len(case.shapes) > 1) or op.index_bounds is not None:
        kinds = [t.dtype.numpy.kind for t in case.types()]
        domains = tuple(_spread(d, factor) if k == "i" else d for d, k in zip(domains, kinds, strict=True))
    return dataclasses.replace(case, shapes=grown(case.shapes), attrs=attrs, domains=domains)


def _spread(domain: Domain, factor: int) -> Domain:
    """Of indices: those of each old element become `factor` of them."""
    return dataclasses.replace(domain, low=math.ceil(domain.low) * factor, high=(int(domain.high) + 1) * factor - 1)


def _largest(op: Op[Any], case: Case) -> int:
    types = case.types()
    return max(math.prod(t.shape) for t in (*types, *op.result_types(types, case.attrs)))


def label(case: Case) -> str:
    shapes = " ".join("x".join(map(str, shape)) or "1" for shape in case.shapes)
    dtypes = " ".join(t.dtype.name for t in case.types())
    attrs = ", ".join(f"{f.name}={_plain(getattr(case.attrs, f.name))}" for f in dataclasses.fields(case.attrs))
    return " ".join(filter(None, (shapes, dtypes if len(set(dtypes.split())) > 1 else "", attrs)))


def _plain(value: Any) -> Any:
    return getattr(value, "name", value)


def type_of(op: Op[Any], case: Case) -> str:
    """The type that a case is about: of its floats the narrowest, else of its first operand or result."""
    types = case.types() or op.result_types((), case.attrs)
    floats = sorted((t.dtype.name for t in types if t.dtype.is_float), key=lambda name: int(name[1:]))
    return floats[0] if floats else types[0].dtype.name


# Timing


def measure(op: Op[Any], case: Case, options: argparse.Namespace) -> Timed:
    drawn = sample(op, case)
    compiled = rlx.Session("cpu").compile(drawn.graph)
    node = drawn.results[0].producer
    arrays = list(drawn.feeds.values())
    way = NUMPY_WAYS.get(op.name)

    def ours() -> Any:
        return compiled.run(drawn.feeds)

    def theirs() -> Any:
        return way(*arrays, case.attrs) if way else node_values(node, arrays)

    with np.errstate(all="ignore"):
        agrees = _agree(list(ours().values()), theirs())
        best = _least((ours, theirs), options.rounds, options.seconds)
    return Timed(op.name, label(case), type_of(op, case), best[0], best[1], agrees)


def _least(sides: tuple[Callable[[], Any], ...], rounds: int, seconds: float) -> list[float]:
    """The least seconds a call of each side, of blocks of calls in turn."""
    best = [math.inf] * len(sides)
    for _ in range(rounds):
        for index, side in enumerate(sides):
            now = time.perf_counter()
            end = now + seconds
            while now < end:
                start, _, now = now, side(), time.perf_counter()
                best[index] = min(best[index], now - start)
    return best


def _agree(got: list[np.ndarray], want: Any) -> bool:
    wanted = want if isinstance(want, (list, tuple)) else [want]
    for a, b in zip(got, map(np.asarray, wanted), strict=True):
        x, y = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(y)
        largest = np.abs(y[finite]).max(initial=1e-30)
        if x.shape != y.shape or not np.allclose(x, y, rtol=TOLERANCE, atol=TOLERANCE * largest, equal_nan=True):
            return False
    return True


def null_call(options: argparse.Namespace) -> tuple[float, float]:
    """A program that copies one number, and NumPy's copy of one."""
    graph = rlx.Graph("null")
    graph.set_outputs({"y": rlx.ops.identity(graph.input("x", (1,)))})
    compiled, feeds = rlx.Session("cpu").compile(graph), {"x": np.ones(1, np.float32)}
    ours, theirs = _least((lambda: compiled.run(feeds), feeds["x"].copy), options.rounds, options.seconds)
    return ours, theirs


# What a user of NumPy writes where the interpreter's formula is not that

NUMPY_WAYS: dict[str, Callable[..., Any]] = {
    # Views become arrays of their own, as our results are.
    "reshape": lambda x, attrs: x.reshape(attrs.shape).copy(),
    "expand_dims": lambda x, attrs: np.expand_dims(x, attrs.axes).copy(),
    "squeeze": lambda x, attrs: np.squeeze(x, attrs.axes).copy(),
    "transpose": lambda x, attrs: np.transpose(x, attrs.perm).copy(),
}


# Output


def work(options: argparse.Namespace) -> Iterator[tuple[Op[Any], Case]]:
    for name, op in registry().items():
        if options.ops and name not in options.ops:
            continue
        yield from ((op, case) for case in scaled_cases(op) if not options.types or type_of(op, case) in options.types)


def table(rows: list[Timed]) -> Iterator[str]:
    yield "| op | case | type | ours ms | NumPy ms | ratio |"
    yield "|---|---|---|--:|--:|--:|"
    for row in rows:
        mark = "" if row.agrees else " (differs)"
        yield (
            f"| {row.op} | {row.case} | {row.type} | {1e3 * row.ours:.4f} | {1e3 * row.numpy:.4f} "
            f"| {row.ratio:.2f}{mark} |"
        )


def summary(rows: list[Timed], null: tuple[float, float]) -> Iterator[str]:
    behind = [row for row in rows if row.ratio > 1]
    mean = math.exp(sum(math.log(row.ratio) for row in rows) / len(rows))
    yield (
        f"{len(rows)} cases of {len({row.op for row in rows})} ops: {len(behind)} cases of "
        f"{len({row.op for row in behind})} ops are behind; the geometric mean of the ratios is {mean:.2f}."
    )
    yield f"A call of the null program takes {1e6 * null[0]:.1f} us (NumPy's copy of a number: {1e6 * null[1]:.1f} us)."


def without_case() -> Iterator[str]:
    small = [name for name, op in registry().items() if not scaled_cases(op)]
    if small:
        yield f"Without a case, since their samples have one element: {', '.join(small)}."
    reached = {op.lower.op for op in registry().values() if isinstance(op.lower, Mil)}
    beyond = sorted({name for opset in range(5, 10) for name in signatures(opset)} - reached)
    yield f"Not reached, since no op of the registry becomes them as they are: {', '.join(beyond)}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", nargs="+", choices=sorted(registry()), metavar="OP", help="only these")
    parser.add_argument("--types", nargs="+", choices=["f32", "f16", "i32", "bool"], help="only cases about these")
    parser.add_argument("--rounds", type=int, default=5, help="blocks of calls of each side")
    parser.add_argument("--seconds", type=float, default=0.01, help="of a block; one call at least")
    parser.add_argument("--worst", type=int, help="print so many rows only")
    parser.add_argument("--json", metavar="FILE", help="also write all numbers, in seconds")
    options = parser.parse_args()
    todo = list(work(options))
    null = null_call(options)
    rows: list[Timed] = []
    for done, (op, case) in enumerate(todo, 1):
        if sys.stderr.isatty():
            print(f"\r{done}/{len(todo)} {op.name:24}", end="", file=sys.stderr, flush=True)
        rows.append(measure(op, case, options))
    if sys.stderr.isatty():
        print(file=sys.stderr)
    rows.sort(key=lambda row: -row.ratio)
    print("\n".join([*table(rows[: options.worst]), "", *summary(rows, null), *without_case()]))
    if options.json:
        saved = {"null": null, "rows": [{**dataclasses.asdict(row), "ratio": row.ratio} for row in rows]}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(saved, file, indent=1)


if __name__ == "__main__":
    main()
