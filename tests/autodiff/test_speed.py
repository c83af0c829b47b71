"""Building the gradient graph of a deep network is fast and takes time in proportion to its depth."""

from __future__ import annotations

import itertools
import time

import rlx_swift as rlx
from rlx_swift import nn, ops


def transformer(layers: int, width: int = 256, vocabulary: int = 1000, length: int = 64) -> rlx.Graph:
    g = rlx.Graph("transformer")
    ids, labels = g.input("ids", (8, length), rlx.i32), g.input("labels", (8, length), rlx.i32)
    table = nn.Embedding(vocabulary, width)
    x = table(ids) + g.param("positions", (length, width))
    for _ in range(layers):
        x = nn.TransformerBlock(4, 4 * width, causal=True)(x)
    g.set_outputs({"loss": ops.cross_entropy(table.attend(nn.LayerNorm()(x)), labels)})
    return g


def seconds(layers: int) -> float:
    graph = transformer(layers)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        rlx.grad_with_loss(graph).verify()
        times.append(time.perf_counter() - start)
    return min(times)


def test_twelve_layers_take_less_than_two_seconds():
    start = time.perf_counter()
    rlx.grad_with_loss(transformer(12))
    assert time.perf_counter() - start < 2


def test_nodes_and_time_grow_in_proportion_to_the_depth():
    counts = [len(rlx.grad_with_loss(transformer(n)).nodes) for n in (2, 4, 8, 16)]
    steps = [b - a for a, b in itertools.pairwise(counts)]
    assert steps[1] == 2 * steps[0] and steps[2] == 4 * steps[0]
    assert seconds(16) < 8 * seconds(4)  # 4 when linear, 16 when quadratic
