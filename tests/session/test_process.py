"""What concerns the process: Ctrl-C, fork, memory, threads. Each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tests.training_cases import DEVICES

pytestmark = pytest.mark.parametrize("device", DEVICES)


def script(body: str, device: str) -> list[str]:
    """A program that has `ts`, a fused session, and `batch`."""
    head = f"""
        import os, sys, time
        import numpy as np
        import rlx_swift as rlx
        g = rlx.Graph()
        x, w = g.input("x", (8, 3)), g.param("W", (3, 1), init=0.5)
        g.set_outputs({{"loss": ((x @ w) ** 2).sum()}})
        ts = rlx.TrainingSession(g, device="{device}", config=rlx.TrainConfig(lr=1e-4, optimizer=rlx.Adam()))
        ts = ts.with_fused_optimizer()
        batch = {{"x": np.ones((8, 3), np.float32)}}
    """
    return [sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(body)]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


WAITING = {
    "training": "forever = iter(lambda: batch, None)",
    "the data": "forever = (time.sleep(60) or batch for _ in range(9))",
    "batches in memory": "forever = rlx.batches({'x': np.ones((80000, 3))}, 8); options = {'epochs': 10**9}",
    "a window": "forever = iter(lambda: batch, None); options = {'accumulate': 10**9}",
}


@pytest.mark.parametrize("waiting", WAITING)
def test_ctrl_c_stops_fit_at_a_step_boundary(waiting, device):
    body = f"""
        ts.step(batch)
        options = {{}}
        {WAITING[waiting]}
        print("ready", flush=True)
        try:
            ts.fit(forever, progress=False, **options)
        except KeyboardInterrupt:
            stopped = time.time()
        steps = ts.steps
        ts.step(batch)
        assert ts.steps == steps + 1 and ts.pending_accumulation == 0
        assert np.isfinite(ts.param("W")).all()
        try:
            print(stopped, flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            print("default handler")
    """
    with subprocess.Popen(
        script(body, device), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.4)
        pressed = time.time()
        child.send_signal(signal.SIGINT)
        stopped = float(child.stdout.readline() or child.stderr.read())
        assert stopped - pressed < 0.2
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=20)
        assert (out, err) == ("default handler\n", "")


def test_a_forked_child_goes_on_by_itself(device):
    body = """
        ts.step(batch)
        before = ts.param("W")
        pid = os.fork()
        if pid == 0:
            for _ in range(3):
                ts.step(batch)
            new = rlx.TrainingSession(g, device=ts.device)
            new.step(batch)
            os._exit(0 if ts.steps == 4 and not np.array_equal(ts.param("W"), before) else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert ts.steps == 1 and np.array_equal(ts.param("W"), before)
        ts.step(batch)
    """
    subprocess.run(script(body, device), env=environment(), check=True, timeout=60)


def test_memory_does_not_grow(device):
    body = """
        import resource, gc
        def rss():
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * resource.getpagesize()
        for n in range(10_000):
            ts.step(batch)
            if n == 100:
                gc.collect()
                early = rss()
        gc.collect()
        assert rss() - early <= 2**20, (early, rss())
    """
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("reads /proc")
    subprocess.run(script(body, device), env=environment(), check=True, timeout=120)


def test_sessions_in_threads(device):
    body = """
        from concurrent.futures import ThreadPoolExecutor
        def train(seed):
            s = rlx.TrainingSession(g, device=ts.device, config=rlx.TrainConfig(lr=1e-3, optimizer=rlx.Adam()))
            s = s.with_fused_optimizer()
            s.fit([batch] * 50, progress=False)
            return s.param("W").tobytes()
        with ThreadPoolExecutor(4) as pool:
            assert len(set(pool.map(train, range(8)))) == 1
    """
    subprocess.run(script(body, device), env=environment(), check=True, timeout=60)
