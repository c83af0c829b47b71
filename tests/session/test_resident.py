"""Many updates in one call are the updates one by one: the same bits, reports and errors, wherever they end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rlx_swift as rlx
from rlx_swift.errors import ConfigError, FeedError, NonFiniteError, SessionError
from rlx_swift.optim import schedules
from rlx_swift.session.snapshot import capture
from rlx_swift.session.staging import StagedList
from rlx_swift.testing import strategies
from tests.training_cases import DEVICES, LINREG_BATCH, linreg_session, mlp, mlp_data


class Watch(rlx.Callback):
    """Looks between two updates, so that they are made one by one."""

    def on_step(self, ts, report):
        return None


def session(device="cpu", rows="B", **config):
    return rlx.TrainingSession(mlp(rows), config=rlx.TrainConfig(**config), device=device).with_fused_optimizer()


def same(left, right):
    (arrays, data), (others, more) = capture(left), capture(right)
    assert data == more
    assert {n: v.tobytes() for n, v in arrays.items()} == {n: v.tobytes() for n, v in others.items()}


@pytest.fixture
def counted(monkeypatch):
    """The number of updates of each call of the device."""
    from rlx_swift.session import native_device
    from rlx_swift.session.resident import Resident

    made: list[int] = []
    monkeypatch.setattr(native_device, "CALL_NANOSECONDS", 10**12)  # however busy the machine is
    real = Resident.__call__

    def counting(self, batches, count):
        taken = real(self, batches, count)
        made.append(len(taken.losses) if taken else 0)
        return taken

    monkeypatch.setattr(Resident, "__call__", counting)
    return made


def fitted(ts, batches, **options):
    """What a fit tells, but for its times."""
    try:
        history = ts.fit(batches, progress=False, **options)
    except NonFiniteError as error:
        return str(error)
    return repr((history.losses, [{**log, "seconds": 0} for log in history.epochs]))


def batch_list(rows, bad=()):
    batches = [mlp_data(n, seed) for seed, n in enumerate(rows)]
    for k in bad:
        batches[k]["x"][0, 0] = np.inf
    return batches


def one_by_one(ts, batches):
    return [ts.step(batch) for batch in batches]


def joined(batches):
    return rlx.batches({name: np.concatenate([b[name] for b in batches]) for name in batches[0]}, 8, shuffle=False)


RATES = st.sampled_from([0.05, schedules.Cosine(0.1, 30, 3), schedules.Exponential(0.1, 0.9)])


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Lets sessions share what they lower."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("RLX_CACHE", str(tmp_path_factory.mktemp("kept")))
        yield


@pytest.mark.native
@pytest.mark.usefixtures("kept")
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_runs_are_steps(data):
    config = {
        "optimizer": data.draw(strategies.optimizers()), "lr": data.draw(RATES), "clip": data.draw(strategies.clips()),
        "loss_scale": data.draw(st.sampled_from([None, "dynamic", 8.0])),
        "ema": data.draw(st.sampled_from([None, 0.5])),
    }
    rows = data.draw(st.lists(st.sampled_from([8, 8, 8, 5]), min_size=3, max_size=24))
    bad = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=2)) if config["loss_scale"] else ()
    batches = batch_list(rows, bad)
    batches += batches[: data.draw(st.integers(0, 3))]
    many, single = session(**config), session(**config)
    assert repr(list(many.run_steps(batches))) == repr(one_by_one(single, batches))
    assert repr(many.last_report) == repr(single.last_report)
    same(many, single)

    arrays = mlp_data(data.draw(st.integers(20, 50)), 99)
    shuffle, accumulate = data.draw(st.booleans()), data.draw(st.sampled_from([1, 1, 2]))
    runs = [
        fitted(ts, rlx.batches(arrays, 8, shuffle, seed=3), epochs=2, callbacks=watching, accumulate=accumulate)
        for ts, watching in ((many, [rlx.Callback()]), (single, [Watch()]))
    ]
    assert runs[0] == runs[1]
    same(many, single)


@pytest.mark.native
def test_a_call_makes_many(counted):
    ts = session(optimizer=rlx.Adam())
    assert ts.resident_reason == ""
    reports = ts.run_steps(batch_list([8] * 40 + [5] * 3))
    assert reports.losses == [report.loss for report in reports]
    assert reports[-1] == ts.last_report == reports[42] and reports[3:5] == [reports[3], reports[4]]
    with pytest.raises(IndexError):
        reports[43]
    assert sum(counted) == 43 and len(counted) < 6
    counted.clear()
    ts.fit(rlx.batches(mlp_data(8 * 40 + 5), 8), progress=False)
    assert sum(counted) == 40 and len(counted) < 4  # the last is shorter and alone
    assert ts.compile_count == 2


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("config", "reason"), [
    ({}, None), ({"optimizer": rlx.SophiaH(every=2)}, "Hessian"),
])
def test_whoever_cannot_goes_one_by_one_and_says_so(device, config, reason):
    many, single = session(device, **config), session(device, **config)
    batches = batch_list([8, 8, 8, 5])
    assert list(many.run_steps(iter(batches))) == one_by_one(single, batches)
    same(many, single)
    if device == "numpy" or reason:
        assert (reason or "the numpy device makes one update a call") in many.resident_reason
    else:
        assert many.resident_reason == ""
    host = linreg_session(device)
    assert "fused_reason" in host.resident_reason
    assert host.run_steps([LINREG_BATCH])[0].loss == linreg_session(device).step(LINREG_BATCH).loss


@pytest.mark.native
def test_sizes_that_alternate_are_steps_by_the_short_way(monkeypatch):
    """None of them is looked up again, and few are looked at for what follows them."""
    from rlx_swift.session.trainer import Trainer

    batches = batch_list([8, 5] * 40 + [8] * 100)
    left, right = session(), session()
    one_by_one(left, batches)
    for batch in batches[:2]:
        right.step(batch)
    long, looks = [], []
    monkeypatch.setattr(Trainer, "step", lambda *_: long.append(1))
    real = StagedList.series
    monkeypatch.setattr(StagedList, "series", lambda *given: looks.append(1) or real(*given))
    right.run_steps(batches[2:])
    same(left, right)
    assert not long and len(looks) < 20


@pytest.mark.native
def test_dropout_is_drawn_for_each_batch():
    g = rlx.Graph("dropped")
    h = rlx.ops.dropout(g.input("x", (8, 16)), 0.5) @ g.param("W", (16, 4), np.full((16, 4), 0.1))
    g.set_outputs({"loss": (h**2).mean()})
    many, single = (rlx.TrainingSession(g, device="cpu").with_fused_optimizer() for _ in range(2))
    assert "random numbers" in many.resident_reason
    batches = [{"x": np.full((8, 16), k, np.float32)} for k in range(4)]
    assert list(many.run_steps(batches)) == one_by_one(single, batches)


@pytest.mark.native
def test_arrays_of_other_types_and_order():
    """Which the epoch converts whole, once, or leaves to the batches when a row does not fit."""
    arrays = mlp_data(50)
    other = {"x": np.asfortranarray(arrays["x"].astype(np.float64) * np.pi), "y": arrays["y"].astype(np.int64)}
    many, single = session(), session()
    many.fit(rlx.batches(other, 8, shuffle=False), 2, progress=False)
    single.fit(list(rlx.batches(other, 8, shuffle=False)) * 2, callbacks=[Watch()], progress=False)
    same(many, single)
    other["y"][33] = 2**40
    for ts in (many, single):
        with pytest.raises(rlx.errors.DTypeError, match="expected integers that fit i32"):
            ts.fit(rlx.batches(other, 8, shuffle=False), callbacks=[Watch()] if ts is single else [], progress=False)
    assert many.steps == single.steps == 14 + 4
    same(many, single)


@pytest.mark.native
@pytest.mark.parametrize("form", [list, iter, joined])
def test_what_is_before_an_error_stands(form):
    """A label out of its range, in the middle of a call."""
    batches = batch_list([8] * 12)
    batches[7]["y"][2] = 3
    many, single = session(optimizer=rlx.Adam()), session(optimizer=rlx.Adam())
    with pytest.raises(FeedError) as expected:
        one_by_one(single, batches)
    with pytest.raises(FeedError) as got:
        many.run_steps(form(batches))
    assert str(got.value) == str(expected.value)
    assert many.steps == 7 and many.last_report == single.last_report
    same(many, single)


@pytest.mark.native
def test_batches_of_a_class_of_ones_own_are_what_it_makes():
    class Halved(rlx.Batches):
        def __iter__(self):
            return ({**batch, "x": batch["x"] / 2} for batch in super().__iter__())

    many, single = session(), session()
    arrays = mlp_data(40)
    many.run_steps(Halved(arrays, 8, True, 0, False))
    one_by_one(single, Halved(arrays, 8, True, 0, False))
    same(many, single)


@pytest.mark.native
def test_batches_are_made_when_their_turn_comes():
    """By a generator that looks at the run and writes to the same memory again."""
    def stream(ts):
        batch = mlp_data(8)
        for _ in range(6):
            batch["x"][:] = ts.steps + ts.param("w1")[0, 0]
            yield batch

    many, single = session(), session()
    many.run_steps(stream(many))
    one_by_one(single, stream(single))
    same(many, single)
    assert many.steps == 6


@pytest.mark.native
def test_buffers_that_are_only_written_are_as_after_the_last(counted):
    g = rlx.Graph("written")
    y = g.input("x", (8, 4)) @ g.param("w", (4, 2), init=0.1)
    g.assign(g.buffer("mean", (2,)), y.mean(axis=0))
    g.set_outputs({"loss": (y**2).sum()})
    many, single = (rlx.TrainingSession(g, device="cpu").with_fused_optimizer() for _ in range(2))
    batches = [{"x": batch["x"]} for batch in batch_list([8] * 5)]
    assert list(many.run_steps(batches)) == one_by_one(single, batches)
    same(many, single)
    assert many.resident_reason == "" and counted == [5]


def test_a_call_looks_no_further_than_it_reaches():
    class Watched(list):
        def __getitem__(self, k):
            looked.append(k)
            return super().__getitem__(k)

    looked: list[int] = []
    count, series = StagedList(Watched(batch_list([8, 8, 5, *[8] * 20]))).series(mlp(8), 0, 4096)
    assert count == 2 and len(series["x"].values) == 2
    assert set(looked) == {0, 1, 2}


@pytest.mark.native
def test_a_schedule_that_fails_fails_at_its_update():
    @dataclass
    class Short:
        def __call__(self, n):
            return 0.1 if n < 5 else float("nan")

    ts = session(lr=Short())
    with pytest.raises(ConfigError, match="for update 5"):
        ts.run_steps(batch_list([8] * 9))
    assert ts.steps == 5


@pytest.mark.native
def test_a_run_that_left_the_finite_numbers_ends_where_it_did():
    bad = batch_list([8] * 20, bad=(4, 9, 10, 11))
    ends = []
    for callbacks in ([], [Watch()]):
        ts = session()
        with pytest.raises(NonFiniteError, match="3 losses in a row"):
            ts.fit(bad, callbacks=callbacks, progress=False)
        ends.append(ts)
    assert ends[0].steps == ends[1].steps
    same(*ends)


@pytest.mark.native
def test_labels_that_a_graph_replaces():
    """Ranges with an ignored value are checked by the host."""
    def model(x, y, w):
        kept = rlx.ops.where(y != -1, y, 0)
        losses = rlx.ops.softmax_cross_entropy_with_logits(x @ w, kept)
        return {"loss": (losses * rlx.ops.cast(y != -1, rlx.f32)).mean()}

    g = rlx.trace(
        model, x=rlx.spec((8, 4)), y=rlx.spec((8,), rlx.i32), w=rlx.param_spec((4, 3), init=0.1)
    )
    batches = batch_list([8] * 9)
    for batch in batches:
        batch["y"][3] = -1
    many, single = (rlx.TrainingSession(g, device="cpu").with_fused_optimizer() for _ in range(2))
    assert list(many.run_steps(batches)) == one_by_one(single, batches)
    batches[5]["y"][1] = 3
    for run in (many.run_steps, lambda b: one_by_one(single, b)):
        with pytest.raises(FeedError, match=r"expected indices from 0 to 2 or -1, got 3 at \(1,\)"):
            run(batches)
    assert many.steps == single.steps == 14
    same(many, single)


@pytest.mark.native
def test_what_is_no_list_of_batches():
    ts = session()
    assert list(ts.run_steps([])) == []
    with pytest.raises(ConfigError, match="a single dict"):
        ts.run_steps(mlp_data(8))
    with pytest.raises(FeedError, match="expected a dict"):
        ts.run_steps([mlp_data(8), 3])
    assert ts.steps == 1
    ts.accumulate(mlp_data(8))
    with pytest.raises(SessionError, match="pending"):
        ts.run_steps([mlp_data(8)] * 3)
