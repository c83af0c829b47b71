"""Every op of the registry takes a batch as a loop over its values would. An op is covered by being declared."""

from __future__ import annotations

import itertools

import numpy as np

import rlx_swift as rlx
from rlx_swift.testing import assert_close, sample
from tests.contracts.cases import WITHIN_F64, every_case

SIZE = 3


def subsets(names: list[str]) -> list[tuple[str, ...]]:
    return [chosen for n in range(1, len(names) + 1) for chosen in itertools.combinations(names, n)]


def batches(op, case):
    """The case's graph, and for each choice of batched operands the feeds of each value."""
    drawn = [sample(op, case, seed) for seed in range(SIZE)]
    first = drawn[0]
    chosen = subsets(list(first.feeds))
    if case.prepare:  # what is consistent together stays together
        chosen = chosen[-1:]
    for names in chosen:
        yield names, [{**first.feeds, **{n: s.feeds[n] for n in names}} for s in drawn]


@every_case
def test_a_batch_equals_a_loop(op, case):
    graph = sample(op, case).graph
    for names, rows in batches(op, case):
        batched = rlx.vmap(graph, names, SIZE)
        batched.verify()
        assert {n for n, t in batched.inputs.items() if t.shape != graph.inputs[n].shape} == set(names)
        feeds = {n: np.stack([row[n] for row in rows]) if n in names else rows[0][n] for n in graph.inputs}
        actual = rlx.evaluate(batched, feeds, np.float64)
        each = [rlx.evaluate(graph, row, np.float64) for row in rows]
        for name, value in actual.items():
            assert_close(value, np.stack([one[name] for one in each]), WITHIN_F64, f"{name} batched by {names}")

