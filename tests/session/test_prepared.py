"""The short way of a common step is the long way without detours: the same bits, the same errors."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import ConfigError, DTypeError, FeedError
from rlx_swift.session.snapshot import capture
from tests.training_cases import mlp, mlp_data

pytestmark = pytest.mark.native


class Other(dict):
    """A batch that only the long way takes."""


def session(rows="B", **config):
    return rlx.TrainingSession(mlp(rows), config=rlx.TrainConfig(**config), device="cpu").with_fused_optimizer()


def same(a, b):
    (arrays, data), (others, more) = capture(a), capture(b)
    assert data == more
    assert {n: v.tobytes() for n, v in arrays.items()} == {n: v.tobytes() for n, v in others.items()}


GROUPS = rlx.ParamGroups([rlx.Group("w*", rlx.Muon()), rlx.Group("*", rlx.SGD(momentum=0.9, dampening=0.5))])


@pytest.mark.parametrize("config", [
    {}, {"optimizer": rlx.Adam(), "lr": rlx.optim.schedules.Cosine(0.1, 9, 3), "ema": 0.5},
    {"optimizer": GROUPS, "clip": rlx.optim.clip_by_norm(0.1), "lr": lambda n: 0.1 / (n + 1)},
    {"optimizer": rlx.MARS(exact=True)}, {"optimizer": rlx.SophiaH(every=2)}, {"loss_scale": "dynamic"},
], ids=range(6))
def test_both_ways_are_one(config):
    """Also with other sizes, windows, new rates and frozen params between."""
    short, long = session(**config), session(**config)
    for n, rows in enumerate((8, 8, 8, 5, 8, 5, 5, 8, 8)):
        batch = mlp_data(rows, n)
        left, right = short.step(batch), long.step(Other(batch))
        assert left == right and left == short.last_report
        if n == 4:
            for ts in (short, long):
                ts.lr = 0.01
                ts.accumulate(batch)
                ts.step_accumulated()
        if n == 6:
            for ts in (short, long):
                ts.set_trainable(["w1", "b2"])
    same(short, long)
    usual = "loss_scale" not in config and not isinstance(config.get("optimizer"), rlx.SophiaH)
    assert (short._trainer.prepared is not None) == usual


@pytest.mark.parametrize("rows", [4096, 100_000])
def test_large_batches(rows):
    """Which the program reads where they are: each step its own, also of arrays that are not in C order."""
    short, long = session(), session()
    for n in range(4):
        batch = mlp_data(rows, n)
        assert short.step(batch) == long.step(Other(batch))
        turned = {"x": np.asfortranarray(-batch["x"]), "y": batch["y"]}
        assert short.step(turned) == long.step(Other(turned))
    same(short, long)
    assert short._trainer.prepared is not None


def test_what_is_not_as_expected_goes_the_long_way():
    short, long = session(8), session(8)
    batch = mlp_data(8)
    short.step(batch)
    long.step(Other(batch))
    for other in (
        {"x": batch["x"].tolist(), "y": batch["y"]}, {"x": batch["x"].astype(float), "y": batch["y"].astype(np.int64)},
        {"y": batch["y"], "x": np.asfortranarray(batch["x"])}, {"x": np.repeat(batch["x"], 2, 0)[::2], "y": batch["y"]},
    ):
        assert short.step(other).loss == long.step(Other(batch)).loss
    same(short, long)


@pytest.mark.parametrize(("change", "error"), [
    ({"x": np.zeros((7, 4), np.float32)}, FeedError), ({"z": np.zeros(1)}, FeedError),
    ({"y": np.full(8, 3, np.int32)}, FeedError), ({"y": np.zeros(8, np.float32)}, DTypeError),
    ({"x": None}, DTypeError),
])
def test_what_is_wrong_is_said_as_ever_and_changes_nothing(change, error):
    ts = session(8, optimizer=rlx.Adam())
    batch = mlp_data(8)
    with pytest.raises(error) as before:
        ts.step({**batch, **change})
    ts.step(batch)
    state = capture(ts)
    with pytest.raises(error) as after:
        ts.step({**batch, **change})
    assert str(after.value) == str(before.value)
    assert state[1] == capture(ts)[1] and all(np.array_equal(v, capture(ts)[0][n]) for n, v in state[0].items())
    ts.lr = lambda n: float("nan")
    with pytest.raises(ConfigError, match="for update 1"):
        ts.step(batch)
    assert state[1] == capture(ts)[1]
