"""How costs grow: what a transformer costs before it runs, by its depth, and what recomputation saves of the memory of
a step; the time of a step by batch, depth and threads; the memory of a process beside what the step must keep.

Run: python -m benchmarks.scaling [times | memory | steps | threads | peak]
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
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
BATCHES, HIDDEN_LAYERS, HIDDEN = (32, 64, 128, 256), (2, 4, 8, 16), 512
MATMUL_ROWS = ("mnist_mlp_h128", "mnist_mlp_h4096", "mlp_adamw_h1024", "lm_adamw")
PEAK_ROWS = ("mnist_mlp_h4096", "mlp_adamw_h1024", "cnn_adam", "lm_adamw", "opt_adam_1m")


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
    print("layers  nodes    ops   milliseconds: forward  gradient  simplify  lowering   loading and planning")
    for layers in DEPTHS:
        forward, building = seconds(transformer, layers)
        gradient, deriving = seconds(rlx.grad_with_loss, forward)
        simple, simplifying = seconds(rlx.simplify, gradient)
        plain, decomposing = seconds(decompose, simple)
        lowered, naming = seconds(lower, plain)
        model, writing = seconds(to_bytes, lowered.model)
        _, planning = seconds(plan, model)
        blocks = [block for function in lowered.model.functions.values() for block in function.bodies.values()]
        parts = [building, deriving, simplifying, decomposing + naming + writing, planning]
        times = " ".join(f"{1e3 * part:9.1f}" for part in parts)
        print(f"{layers:6} {len(gradient.nodes):6} {sum(len(b.operations) for b in blocks):6} {'':13} {times}")


def plan(package: tuple[bytes, bytes]) -> None:
    """Loads a program and plans it, with all inputs fed."""
    from rlx_swift._native import NativeSession, Program, Store

    NativeSession(Program.load_memory(package[0], package[1] or None), Store())


def print_steps() -> None:
    print("\nhidden layers  batch   ms a step   us a sample and layer")
    cases = [(HIDDEN_LAYERS[1], batch) for batch in BATCHES] + [(layers, BATCHES[2]) for layers in HIDDEN_LAYERS]
    for layers, batch in cases:
        time = step_time(*network(layers, batch))
        print(f"{layers:13} {batch:6} {1e3 * time:11.3f} {1e6 * time / (batch * layers):16.3f}")


def network(layers: int, batch: int) -> tuple[rlx.TrainingSession, list[dict[str, np.ndarray]]]:
    """A deep classifier whose layers are of one width, and a batch."""
    g, rng = rlx.Graph("network"), np.random.default_rng(0)
    x = g.input("x", (batch, HIDDEN))
    for i in range(layers):
        w = g.param(f"w{i}", (HIDDEN, HIDDEN), nn.init.normal(HIDDEN**-0.5))
        x = ops.relu(x @ w + g.param(f"b{i}", (HIDDEN,), 0.0))
    g.set_outputs({"loss": ops.cross_entropy(x, g.input("y", (batch,), rlx.i32))})
    config = rlx.TrainConfig(lr=1e-3, optimizer=rlx.SGD(momentum=0.9))
    data = {"x": rng.standard_normal((batch, HIDDEN), np.float32), "y": rng.integers(0, 10, batch).astype(np.int32)}
    return rlx.TrainingSession(g, config=config, device="cpu").with_fused_optimizer(), [data]


def step_time(ts: rlx.TrainingSession, batches: list[Any], kind: str = "train") -> float:
    """The least seconds a step takes, in blocks of about 0.1 s."""
    step = ts.step if kind == "train" else ts.apply_gradients
    step(batches[0])
    start = time.perf_counter()
    step(batches[0])
    count, least = max(1, int(0.1 / (time.perf_counter() - start))), float("inf")
    for _ in range(2 * ROUNDS):
        start = time.perf_counter()
        for i in range(count):
            step(batches[i % len(batches)])
        least = min(least, (time.perf_counter() - start) / count)
    return least


def workload(name: str) -> Any:
    """A row of the peers' benchmark as a session that has not begun."""
    here = str(Path(__file__).parent)
    if here not in sys.path:
        sys.path.insert(0, here)
    import peers_api

    return peers_api.load("rlx_swift").build(name, 0)


def print_threads() -> None:
    print("\nrow                 ms a step: 1 thread  2 threads   ratio")
    for name in MATMUL_ROWS:
        times = []
        for threads in ("1", "2"):
            os.environ["RLX_NUM_THREADS"] = threads
            run = workload(name)
            times.append(step_time(run.ts, run.batches))
        print(f"{name:20} {1e3 * times[0]:18.3f} {1e3 * times[1]:10.3f} {times[0] / times[1]:7.2f}")


def print_peak() -> None:
    """Each row in a process of its own: memory above what importing and the data take."""
    print("\nrow                 MB: weights and state  planned   peak   ratio")
    for name in PEAK_ROWS:
        subprocess.run([sys.executable, "-m", "benchmarks.scaling", "peak", name], check=True)


def print_peak_of(name: str) -> None:
    run = workload("linreg")  # the library and the modules that a session loads
    run.step()
    sys.modules["workloads"].make(name, 0)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # so that a session does not live in what the data gave back
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew
    before = memory("VmRSS")
    run = workload(name)
    for _ in range(ROUNDS):
        run.step()
    peak = memory("VmHWM") - before
    ts = run.ts
    kept = sum(value.nbytes for value in ts.params().values())
    kept += sum(value.nbytes for param in ts.trainable for value in ts.state(param).values())
    family = ts._trainer._families["given" if run.wl.kind == "opt" else "train"]
    planned = family.statistics()["arena_bytes"]
    print(f"{name:20} {kept / 1e6:21.1f} {planned / 1e6:8.1f} {peak / 1e6:6.1f} {peak / (kept + planned):7.2f}")


def memory(field: str) -> int:
    """Bytes, by a field of /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


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


PRINTS = {
    "times": print_times, "memory": print_memory, "steps": print_steps, "threads": print_threads, "peak": print_peak,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["peak"] and len(sys.argv) == 3:
        print_peak_of(sys.argv[2])
    else:
        for name in sys.argv[1:] or PRINTS:
            PRINTS[name]()
