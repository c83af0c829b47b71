"""Building the gradient graph of a deep network, simplifying and lowering it take time in proportion to its depth."""

from __future__ import annotations

import itertools
import time

import rlx_swift as rlx
from rlx_swift import nn, ops
from rlx_swift.lower.mil import lower
from rlx_swift.lower.package import to_bytes


def transformer(layers: int, width: int = 256, vocabulary: int = 1000, length: int = 64) -> rlx.Graph:
    g = rlx.Graph("transformer")
    ids, labels = g.input("ids", (8, length), rlx.i32), g.input("labels", (8, length), rlx.i32)
    table = nn.Embedding(vocabulary, width)
    x = table(ids) + g.param("positions", (length, width))
    for _ in range(layers):
        x = nn.TransformerBlock(4, 4 * width, causal=True)(x)
    g.set_outputs({"loss": ops.cross_entropy(table.attend(nn.LayerNorm()(x)), labels)})
    return g


def derive(graph: rlx.Graph) -> object:
    return rlx.grad_with_loss(graph).verify()


def write(gradient: rlx.Graph) -> object:
    return to_bytes(lower(gradient).model)


def seconds(function, graph: rlx.Graph) -> float:
    times = []
    for _ in range(3):
        start = time.process_time()
        function(graph)
        times.append(time.process_time() - start)
    return min(times)


def test_twelve_layers_are_derived_in_two_seconds_and_lowered_in_half_a_second():
    graph = transformer(12)
    assert seconds(derive, graph) < 2
    assert seconds(write, rlx.grad_with_loss(graph)) < 0.5


def test_nodes_and_time_grow_in_proportion_to_the_depth():
    counts = [len(rlx.grad_with_loss(transformer(n)).nodes) for n in (2, 4, 8, 16)]
    steps = [b - a for a, b in itertools.pairwise(counts)]
    assert steps[1] == 2 * steps[0] and steps[2] == 4 * steps[0]
    shallow, deep = transformer(4), transformer(16)
    assert seconds(derive, deep) < 8 * seconds(derive, shallow)  # 4 when linear, 16 when quadratic
    shallow, deep = rlx.grad_with_loss(shallow), rlx.grad_with_loss(deep)
    for function in (rlx.simplify, write):
        assert seconds(function, deep) < 8 * seconds(function, shallow)
