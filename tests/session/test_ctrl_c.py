"""Ctrl-C, and what other signal handlers raise, in the middle of the library's work: at once, nothing is half done."""

from __future__ import annotations

import signal
import sys
import time

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import SessionError
from tests.model_files import convert, tensor
from tests.training_cases import DEVICES, UPDATES

AT_ONCE = 0.4  # seconds of the processor's: to the signal, 20 ms, and an operation
SIZE, LAYERS = 1200, 20


class Alarm(Exception):
    pass


def press(*_):
    signal.raise_signal(signal.SIGINT)


def ring(*_):
    raise Alarm


def ends(call, handler, after, expected=KeyboardInterrupt):
    """`call` ends with `expected`, which `handler` raises `after` so many seconds, at once.

    What is raised in a finalizer or a callback of the garbage collector, Python drops; then the signal comes again.
    """
    before, dropped = signal.signal(signal.SIGALRM, handler), sys.unraisablehook
    sys.unraisablehook = lambda _: signal.setitimer(signal.ITIMER_REAL, 1e-3)
    start = time.thread_time()
    try:
        with pytest.raises(expected):  # noqa: PT012 - the signal may come before the call
            signal.setitimer(signal.ITIMER_REAL, after)
            call()
    finally:
        sys.unraisablehook = dropped
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.thread_time() - start < AT_ONCE


@pytest.fixture(scope="module")
def slow():
    """A session with seconds of work in a step; whose operations are short."""
    g = rlx.Graph("slow")
    h, w = g.input("x", (SIZE, SIZE)), g.param("W", (SIZE, SIZE), np.eye(SIZE))
    for _ in range(LAYERS):
        h = rlx.ops.tanh(h @ w)
    g.set_outputs({"loss": (h**2).mean(), "y": h})
    ts = rlx.TrainingSession(g, device="cpu").with_fused_optimizer()
    ts._trainer.ready(g)
    return ts


BATCH = {"x": np.ones((SIZE, SIZE), np.float32)}
LONG = {
    "step": lambda ts: ts.step(BATCH),
    "run_steps": lambda ts: ts.run_steps([BATCH] * 3),
    "fit": lambda ts: ts.fit([BATCH] * 3, progress=False),
}


@pytest.mark.native
@pytest.mark.parametrize("what", LONG)
def test_a_long_step_ends_with_nothing_changed(slow, what):
    ends(lambda: LONG[what](slow), press, 0.15)
    assert slow.steps == 0
    np.testing.assert_array_equal(slow.param("W"), np.eye(SIZE))


@pytest.mark.native
def test_a_long_prediction_ends(slow, tmp_path):
    slow.export(tmp_path / "slow.mlpackage", outputs=["y"])
    model = rlx.load_model(tmp_path / "slow.mlpackage", device="cpu")
    for handler, expected in ((press, KeyboardInterrupt), (ring, Alarm)):
        ends(lambda: model.predict(BATCH), handler, 0.1, expected)


@pytest.mark.native
@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")  # coremltools leaves folders to the end
def test_an_endless_loop_ends_with_the_state_as_before(tmp_path):
    """The state becomes x; then x is doubled as long as it is not larger than itself."""
    from coremltools.converters.mil import Builder as mb
    from coremltools.converters.mil.mil import types

    def build(x, memory):
        kept = mb.coreml_update_state(state=memory, value=x)
        return mb.while_loop(
            _cond=lambda v: mb.less_equal(x=mb.reduce_sum(x=v), y=mb.reduce_sum(x=v)),
            _body=lambda v: mb.add(x=v, y=v), loop_vars=(kept,),
        )

    state = mb.StateTensorSpec((3,), dtype=types.fp16)
    path = convert(tmp_path / "endless.mlpackage", build, [tensor(3, dtype="fp16"), state], names=("y",))
    model = rlx.load_model(path, device="cpu")
    memory = model.make_state()
    memory.write("memory", [7, 8, 9])
    for _ in range(2):
        ends(lambda: model.predict({"x": np.zeros(3)}, memory), press, 0.1)
        np.testing.assert_array_equal(memory.read("memory"), [7, 8, 9])


MANY = {
    "step": lambda ts, batch: ts.step(batch),
    "run_steps": lambda ts, batch: ts.run_steps([batch] * 5),
    "other batches": lambda ts, batch: ts.step({"x": batch["x"].astype(np.float64)}),
    "windows": lambda ts, batch: ts.step_accumulated() if ts.pending_accumulation else ts.accumulate(batch),
    "gradients": lambda ts, batch: ts.apply_gradients({"W": np.ones(1)}),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
@pytest.mark.parametrize("what", MANY)
def test_updates_and_their_count_agree(what, fused, device):
    """Each update takes 1 from W; signals come at all places."""
    g = rlx.Graph("counted")
    g.set_outputs({"loss": (g.param("W", (1,), np.zeros(1)) * g.input("x", (1,))).sum()})
    ts = rlx.TrainingSession(g, config=rlx.TrainConfig(lr=1.0, optimizer=rlx.SGD()), device=device)
    ts = ts.with_fused_optimizer() if fused else ts
    batch = {"x": np.ones(1, np.float32)}
    MANY[what](ts, batch)

    def forever():
        while True:
            MANY[what](ts, batch)

    for k in range(30):
        ends(forever, press, 2e-4 + 1e-5 * k)
        assert ts.param("W") == -ts.steps
    ts.discard_accumulated()
    assert ts.steps > 10


@pytest.fixture(scope="module")
def squares():
    g = rlx.Graph("squares")
    x = g.input("x", (200, 200))
    g.set_outputs({"y": x @ x})
    return rlx.Session("cpu").compile(g)


ONES = {"x": np.ones((200, 200), np.float32)}


@pytest.mark.native
def test_a_handler_uses_the_library_in_the_middle_of_a_step(slow, squares):
    """Weights are those from before the step and other graphs run; what would have to wait for the step fails."""
    seen = {}

    def handle(*_):
        seen["W"], seen["y"] = slow.param("W"), squares.run(ONES)["y"]
        for call in (lambda: slow.step(BATCH), lambda: slow.set_params({"W": np.zeros((SIZE, SIZE))})):
            with pytest.raises(SessionError, match="a signal came into"):
                call()
        raise Alarm

    ends(lambda: slow.step(BATCH), handle, 0.15, Alarm)
    np.testing.assert_array_equal(seen["W"], np.eye(SIZE))
    np.testing.assert_array_equal(seen["y"], np.full((200, 200), 200))
    assert slow.steps == 0
    np.testing.assert_array_equal(slow.param("W"), np.eye(SIZE))


@pytest.mark.native
def test_a_handler_uses_the_library_in_the_middle_of_a_prediction(slow, squares, tmp_path):
    slow.export(tmp_path / "slow.mlpackage", outputs=["y"])
    squares.save(tmp_path / "squares.mlpackage")
    model, other = (rlx.load_model(tmp_path / f"{name}.mlpackage", device="cpu") for name in ("slow", "squares"))
    seen = []

    def handle(*_):
        seen.append(other.predict(ONES)["y"])
        with pytest.raises(SessionError, match="a signal came into"):
            model.predict(BATCH)
        raise Alarm

    ends(lambda: model.predict(BATCH), handle, 0.15, Alarm)
    np.testing.assert_array_equal(seen, [np.full((200, 200), 200)])
