"""What lowering costs an op: decomposition, program and bytes, on graphs shaped like those of training steps.

Run: python -m benchmarks.lowering [--profile]
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time

import rlx_swift as rlx
from rlx_swift.lower.mil import lower
from rlx_swift.lower.package import to_bytes
from rlx_swift.passes.decompose import decompose

ROUNDS = 7


def training_like(layers: int) -> rlx.Graph:
    """Layers with normalisation, attention-like softmax, products in both directions and an update rule."""
    g = rlx.Graph("benchmark")
    x, lr = g.input("x", (32, 64)), g.input("lr", ())
    outputs = {}
    for i in range(layers):
        w, b = g.param(f"layers.{i}.w", (64, 64)), g.param(f"layers.{i}.b", (64,))
        z = rlx.ops.layer_norm(x) @ w + b
        p = rlx.ops.softmax(z)
        back = p * (z - (p * z).sum(-1, keepdims=True))
        grad = rlx.ops.matmul(x, rlx.ops.gelu(back), transpose_x=True)
        bias = rlx.ops.where(z > 0.0, back, 0.0).mean(0)
        outputs[f"w{i}"] = w - lr * grad / (rlx.ops.sqrt(grad * grad) + 1e-8)
        outputs[f"b{i}"] = b - lr * bias
        x = x + back
    g.set_outputs({"loss": rlx.ops.log_softmax(x).sum(), **outputs})
    return g


def median_seconds(function, *arguments) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        function(*arguments)
        times.append(time.process_time() - start)
    return sorted(times)[ROUNDS // 2]


def main() -> None:
    for layers in (2, 20, 60, 200):
        graph = training_like(layers)
        plain = decompose(graph)
        lowered = lower(graph)
        count = sum(len(body.operations) for f in lowered.model.functions.values() for body in f.bodies.values())
        parts = [
            median_seconds(decompose, graph), median_seconds(lower, plain), median_seconds(to_bytes, lowered.model)
        ]
        each = [1e6 * seconds / count for seconds in parts]
        print(
            f"{count:6} ops: decompose {each[0]:5.1f}, program {each[1]:5.1f}, bytes {each[2]:5.1f}, "
            f"together {sum(each):5.1f} us an op"
        )
    if "--profile" in sys.argv:
        graph = training_like(200)
        profile = cProfile.Profile()
        profile.runcall(lambda: to_bytes(lower(graph).model))
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
