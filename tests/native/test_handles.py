"""Programs, stores and sessions through the real library: values, ownership, threads, forks, misuse."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rlx_swift import errors
from rlx_swift._native import Feature, NativeSession, Program, Store, check_device, native
from rlx_swift._native.steps import Steps

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("no_leaks")]

MODEL = (Path(__file__).parent / "fixtures/step.mlmodel").read_bytes()  # new_w = w + x, total = sum, rows = w[ids]
W = np.arange(6, dtype=np.float32).reshape(2, 3)


def step_session(ids: tuple[int, int] = (0, 2), **options: Any) -> tuple[Store, NativeSession]:
    store = Store()
    store.put("w", W)
    with Program.load_memory(MODEL) as program:
        return store, NativeSession(program, store, pairs={"w": "new_w"}, ranges={"ids": ids}, **options)


def test_features() -> None:
    with Program.load_memory(MODEL) as program:
        f32, i32 = np.dtype(np.float32), np.dtype(np.int32)
        assert program.inputs == (Feature("w", f32, (2, 3)), Feature("x", f32, (2, 3)), Feature("ids", i32, (2,)))
        assert program.outputs == (
            Feature("new_w", f32, (2, 3)), Feature("total", f32, (1, 1)), Feature("rows", f32, (2, 3)),
        )


def test_step_changes_the_store_and_shows_results() -> None:
    store, session = step_session()
    x, ids, total, rows = map(session.buffer, ("x", "ids", "total", "rows"))
    x[...] = 1
    ids[...] = 1, 0
    for n in range(1, 4):
        session.run()
        np.testing.assert_array_equal(store.get("w", np.empty_like(W)), W + n)
        np.testing.assert_array_equal(total, [[W.sum() + 6 * n]])
        np.testing.assert_array_equal(rows, (W + n - 1)[::-1])
    assert session.statistics()["runs"] == 3


def test_failed_run_changes_nothing_and_the_session_goes_on() -> None:
    store, session = step_session()
    session.buffer("x")[...] = 1
    ids = session.buffer("ids")
    ids[...] = 0, 2
    with pytest.raises(errors.FeedError) as caught:
        session.run()
    assert caught.value.subject == "ids"
    np.testing.assert_array_equal(store.get("w", np.empty_like(W)), W)
    ids[...] = 0
    session.run()
    np.testing.assert_array_equal(store.get("w", np.empty_like(W)), W + 1)


def test_feeds_lent_for_one_run() -> None:
    store, session = step_session()
    total, rows = map(session.buffer, ("total", "rows"))
    run = session.lending(["ids", "x"])
    ids, x = np.array([1, 0], np.int32), np.arange(6, dtype=np.float32).reshape(3, 2).T
    x.flags.writeable = False
    run([ids, x])
    np.testing.assert_array_equal(store.get("w", np.empty_like(W)), W + x)
    np.testing.assert_array_equal(rows, W[::-1])
    assert total.item() == (W + x).sum()
    session.buffer("ids")[...] = 1
    session.buffer("x")[...] = -x
    session.run()
    np.testing.assert_array_equal(store.get("w", np.empty_like(W)), W)
    with pytest.raises(errors.FeedError, match="ids"):
        run([np.array([0, 2], np.int32), x])
    for bad in (x[:1], np.zeros((2, 4), np.float32), np.zeros((0,), np.float32)):
        with pytest.raises(errors.ShapeError, match="x"):
            run([ids, bad])
    with pytest.raises(ValueError, match="zip"):
        run([ids])
    with pytest.raises(errors.NameNotFoundError, match="nothing"):
        session.lending(["nothing"])([x])
    shown = rows.copy()
    run([ids, rows])  # which the run overwrites
    np.testing.assert_array_equal(store.get("w", np.empty_like(W)), W + shown)
    both, out = session.lending(["ids", "x"], ["rows"]), np.empty_like(rows)
    both([ids, x], [out])
    np.testing.assert_array_equal(out, (W + shown)[ids])
    for wrong in (out[:1], np.empty((3, 3), np.float32)):
        with pytest.raises(errors.ShapeError, match="rows"):
            both([ids, x], [wrong])
    session.close()
    with pytest.raises(errors.SessionError, match="closed"):
        run([ids, x])


def test_calls_from_two_threads_do_not_mix() -> None:
    _store, session = step_session()
    run, ids = Steps(session, ["x", "ids"], {"total": "none"}), np.zeros((1, 2), np.int32)

    def call(value: float, meanwhile: Callable[[], None]) -> float:
        def feeds() -> Iterator[tuple[np.ndarray, None]]:
            yield np.full((1, 2, 3), value, np.float32), None
            meanwhile()
            yield ids, None

        return float(run(1, feeds(), 0)[1]["total"].item())

    other = threading.Thread(target=call, args=(10.0, lambda: None))

    def start() -> None:
        other.start()
        other.join(0.05)

    assert call(1.0, start) == W.sum() + 6
    other.join()


def test_runs_are_told_though_a_signal_comes_as_their_call_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    store, session = step_session()
    run, late = Steps(session, ["x", "ids"], {"total": "none"}), TimeoutError()
    library = run._native

    def run_steps(*arguments: Any) -> None:
        library.lib.rlx_session_run_steps(*arguments)
        raise late

    lib = SimpleNamespace(rlx_session_run_steps=run_steps, rlx_error_destroy=library.lib.rlx_error_destroy)
    errors = SimpleNamespace(pointer=library.errors.pointer)
    monkeypatch.setattr(run, "_native", SimpleNamespace(ffi=library.ffi, lib=lib, errors=errors))
    ones, ids = (np.ones((3, 2, 3), np.float32), None), np.zeros((3, 2), np.int32)
    done, results, raised = run(3, [ones, (ids, None)], 0)
    assert (done, raised) == (3, late)
    np.testing.assert_array_equal(results["total"].ravel(), W.sum() + 6 * np.arange(1, 4))
    assert session.unheard() == 0
    ids[1, 0] = 9  # the second run is refused
    assert run(3, [ones, (ids, None)], 0)[::2] == (1, late)
    ids[0, 0] = 9
    with pytest.raises(TimeoutError):
        run(3, [ones, (ids, None)], 0)
    np.testing.assert_array_equal(store.get("w", np.empty_like(W)), W + 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.bool_])
@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (2, 3, 5)])
def test_round_trip_by_strides(dtype: type, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).integers(0, 9, shape).astype(dtype)
    with Store() as store:
        store.put("t", values.copy(order="F"))
        wide = np.zeros((*shape, 2), dtype)
        assert store.get("t", wide[..., 0]) is not None
        np.testing.assert_array_equal(wide[..., 0], values)
        assert not wide[..., 1].any()
        reverse = (slice(None, None, -1),) * len(shape)
        store.put("t", np.asarray(values[reverse]))
        np.testing.assert_array_equal(store.get("t", np.empty_like(values)), values[reverse])


def test_put_broadcast_view() -> None:
    with Store() as store:
        store.put("t", np.broadcast_to(np.float32(3), (2, 2)))
        np.testing.assert_array_equal(store.get("t", np.empty((2, 2), np.float32)), np.full((2, 2), 3))


def test_wrong_shape_dtype_and_name() -> None:
    with Store() as store:
        store.put("t", W)
        with pytest.raises(errors.ShapeError, match="t"):
            store.put("t", W[:1])
        with pytest.raises(errors.DTypeError, match="t"):
            store.put("t", W.astype(np.float16))
        with pytest.raises(errors.ShapeError, match="t"):
            store.get("t", np.empty((3, 2), np.float32))
        with pytest.raises(errors.NameNotFoundError, match="u"):
            store.get("u", np.empty_like(W))
        for dtype in (np.float64, np.int64, np.complex64, np.dtype(">f4"), object):
            with pytest.raises(errors.DTypeError, match=r"u: expected one of bool, float16, float32, int32, .*, got"):
                store.put("u", W.astype(dtype))
        frozen = np.empty_like(W)
        frozen.flags.writeable = False
        with pytest.raises(errors.ConfigError, match="read-only"):
            store.get("t", frozen)
        np.testing.assert_array_equal(store.get("t", np.empty_like(W)), W)


def test_session_misuse() -> None:
    _, session = step_session()
    with pytest.raises(errors.NameNotFoundError, match="nothing"):
        session.buffer("nothing")
    with Program.load_memory(MODEL) as program, Store() as store:
        with pytest.raises(errors.RlxError, match="nowhere"):
            NativeSession(program, store, pairs={"w": "nowhere"})
        with pytest.raises(errors.ConfigError, match="units"):
            NativeSession(program, store, units="tpu")


@pytest.mark.parametrize("model", [b"", b"\xff" * 64, MODEL[: len(MODEL) // 2]])
def test_bad_packages(model: bytes) -> None:
    with pytest.raises(errors.RlxError):
        Program.load_memory(model)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(errors.PackageError, match=r"gone\.mlpackage"):
        Program.load(tmp_path / "gone.mlpackage")


def test_close_twice_and_use_after() -> None:
    before = native().lib.rlx_live_handles()
    store, session = step_session()
    program = Program.load_memory(MODEL)
    for handle in (store, session, program):
        handle.close()
        handle.close()
    uses = (session.run, lambda: session.buffer("x"), session.statistics, lambda: program.inputs,
            lambda: store.put("w", W), lambda: NativeSession(program, store))
    for use in uses:
        with pytest.raises(errors.SessionError, match="it was closed"):
            use()
    assert native().lib.rlx_live_handles() == before


def test_session_outlives_program_and_store() -> None:
    store, session = step_session()
    store.close()
    session.buffer("x")[...] = 1
    session.run()
    assert session.buffer("total")[0, 0] == W.sum() + 6


def test_arrays_keep_their_memory() -> None:
    _, session = step_session()
    x = session.buffer("x")
    session.close()
    del session
    gc.collect()
    x[...] = 7
    assert native().lib.rlx_live_handles() > 0 and x.sum() == 42
    assert np.shares_memory(x, x[0])


def test_many_threads_one_session() -> None:
    store, session = step_session()
    session.buffer("x")[...] = 1
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(50):
                session.run()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert store.get("w", np.empty_like(W))[0, 0] == 400


def test_errors_of_threads_do_not_mix() -> None:
    sessions = [step_session(ids=(0, high))[1] for high in (1, 2)]
    messages: list[set[str]] = [set(), set()]
    for high, session in enumerate(sessions, 1):
        session.buffer("ids")[...] = high

    def work(index: int) -> None:
        for _ in range(200):
            try:
                sessions[index].run()
            except errors.FeedError as error:
                messages[index].add(error.problem)

    threads = [threading.Thread(target=work, args=(index,)) for index in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(seen) for seen in messages] == [1, 1] and messages[0] != messages[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_runs() -> None:
    store, session = step_session()
    session.buffer("x")[...] = 1
    session.run()
    child = os.fork()
    if child == 0:
        session.run()
        os._exit(int(store.get("w", np.empty_like(W))[0, 0]))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 2
    np.testing.assert_array_equal(store.get("w", np.empty_like(W)), W + 1)


def test_cpu_device_is_present() -> None:
    check_device("cpu")


@pytest.mark.skipif(sys.platform == "darwin", reason="Core ML is present")
def test_coreml_device_says_why_it_is_absent() -> None:
    with pytest.raises(errors.DeviceError, match="Core ML"):
        check_device("coreml")
