"""What a transformer costs before it runs, by its depth, and what recomputation saves of the memory of a step.

Run: python -m benchmarks.scaling
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import rlx_swift as rlx
from rlx_swift import nn, ops
from rlx_swift.lower.mil import lower
from rlx_swift.lower.package import to_bytes
from rlx_swift.passes.decompose import decompose

DEPTHS = (2, 4, 8, 12, 16)
WIDTH, HEADS, VOCABULARY, BATCH, LENGTH = 256, 4, 1000, 8, 64
ROUNDS = 3


def transformer(layers: int, remat: bool = False) -> rlx.Graph:
    """Pre-norm decoder with a tied head and the mean cross-entropy."""
    g = rlx.Graph("transformer")
    ids, labels = g.input("ids", (BATCH, LENGTH), rlx.i32), g.input("labels", (BATCH, LENGTH), rlx.i32)
    table = nn.Embedding(VOCABULARY, WIDTH)
    x = table(ids) + g.param("positions", (LENGTH, WIDTH), nn.init.normal(0.02))
    for _ in range(layers):
        block = nn.TransformerBlock(HEADS, 4 * WIDTH, causal=True)
        x = rlx.remat(block)(x) if remat else block(x)
    g.set_outputs({"loss": ops.cross_entropy(table.attend(nn.LayerNorm()(x)), labels)})
    return g


def seconds(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """The result, and the least of several processor times."""
    least = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        start = time.process_time()
        result = function(*arguments)
        least = min(least, time.process_time() - start)
    return result, least


def print_times() -> None:
    print("layers  nodes    ops   milliseconds: forward  gradient  simplify  lowering (decompose, program, bytes)")
    for layers in DEPTHS:
        forward, building = seconds(transformer, layers)
        gradient, deriving = seconds(rlx.grad_with_loss, forward)
        simple, simplifying = seconds(rlx.simplify, gradient)
        plain, decomposing = seconds(decompose, simple)
        lowered, naming = seconds(lower, plain)
        _, writing = seconds(to_bytes, lowered.model)
        blocks = [block for function in lowered.model.functions.values() for block in function.bodies.values()]
        parts = [building, deriving, simplifying, decomposing + naming + writing]
        times = " ".join(f"{1e3 * part:9.1f}" for part in parts)
        print(f"{layers:6} {len(gradient.nodes):6} {sum(len(b.operations) for b in blocks):6} {'':13} {times}")


def arena(graph: rlx.Graph) -> tuple[int, float]:
    """The memory planned for the values inside one run, and the seconds that a run takes."""
    compiled = rlx.Session(device="cpu").compile(rlx.simplify(graph))
    rng = np.random.default_rng(0)
    for name, param in graph.params.items():
        compiled.set_param(name, 0.02 * rng.standard_normal(param.shape))
    ids = rng.integers(0, VOCABULARY, (2, BATCH, LENGTH)).astype(np.int32)
    feeds = {"ids": ids[0], "labels": ids[1], "d_output": 1.0}
    compiled.run(feeds)
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        compiled.run(feeds)
        times.append(time.perf_counter() - start)
    return compiled.statistics["arena_bytes"], min(times)


def print_memory() -> None:
    print("\nlayers  MB planned: kept  recomputed    ms a gradient: kept  recomputed")
    for layers in DEPTHS[:3]:
        (kept, fast), (again, slow) = (arena(rlx.grad_with_loss(transformer(layers, remat))) for remat in (False, True))
        print(f"{layers:6} {kept / 1e6:16.1f} {again / 1e6:11.1f} {1e3 * fast:22.1f} {1e3 * slow:11.1f}")


if __name__ == "__main__":
    print_times()
    print_memory()
