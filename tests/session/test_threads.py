"""Runs of one graph from several threads, and arrays that are fed, received and kept: nothing reaches another run."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import rlx_swift as rlx
from tests.training_cases import DEVICES

LARGE, SMALL = (96, 96), (3,)  # read and written where the caller's arrays are, and through the session's own memory


@pytest.fixture(params=DEVICES)
def doubled(request):
    g = rlx.Graph("doubled")
    x, y = g.input("x", LARGE), g.input("y", SMALL)
    g.set_outputs({"x": x, "twice": x * 2.0, "again": x * 2.0, "small": y * 2.0})
    return rlx.Session(request.param).compile(g)


def test_threads_share_a_graph(doubled):
    wrong = []

    def work(thread):
        for value in range(1000 * thread, 1000 * thread + 60):
            results = doubled.run({"x": np.full(LARGE, value), "y": np.full(SMALL, value)})
            wrong.extend(name for name in ("twice", "small") if (results[name] != 2 * value).any())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_results_are_arrays_of_their_own(doubled):
    x, y = np.random.default_rng(0).standard_normal(LARGE).astype(np.float32), np.ones(SMALL, np.float32)
    first = doubled.run({"x": x, "y": y})
    kept = {name: array.copy() for name, array in first.items()}
    second = doubled.run({"x": first["twice"], "y": first["small"]})
    for name, array in first.items():
        np.testing.assert_array_equal(array, kept[name])
        np.testing.assert_array_equal(second[name], 2 * array)
    arrays = [x, y, *first.values(), *second.values()]
    assert not any(np.may_share_memory(a, b) for n, a in enumerate(arrays) for b in arrays[:n])


@pytest.mark.parametrize("view", [
    lambda x: x.T, lambda x: x[::-1, ::-1], lambda x: np.broadcast_to(x[:1], LARGE), lambda x: x.astype(">f4"),
    lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(LARGE),
], ids=["transposed", "reversed", "broadcast", "big-endian", "misaligned and read-only"])
def test_any_array_can_be_fed(doubled, view):
    x = view(np.random.default_rng(0).standard_normal(LARGE).astype(np.float32))
    np.testing.assert_array_equal(doubled.run({"x": x, "y": np.ones(SMALL)})["twice"], 2 * x)
