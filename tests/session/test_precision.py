"""Precision policies: where casts go, what stays f32, and the loss scale."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.dtypes import f16, f32
from rlx_swift.errors import ConfigError, NonFiniteError, SessionError
from rlx_swift.ir.op import registry
from rlx_swift.precision import WIDE, from_data, to_data, with_precision
from tests.training_cases import DEVICES, UPDATES, fed, fed_session, linreg, mlp, mlp_data, snapshot

POLICIES = ("always_f32", "always_f16", "auto_mixed", "auto_mixed_conservative")


def computed(graph):
    """The dtypes that each op's float operands have, by op name."""
    found = {}
    for node in graph.live_nodes():
        for x in node.inputs:
            if x.dtype.is_float and node.op.name != "cast":
                found.setdefault(node.op.name, set()).add(x.dtype)
    return found


def test_casts_go_where_the_policy_says():
    g = mlp(16)
    mixed = computed(with_precision(g, rlx.PrecisionPolicy.AUTO_MIXED))
    assert mixed["matmul"] == {f16} and mixed["add"] == {f16} and mixed["tanh"] == {f16}
    assert mixed["softmax_cross_entropy"] == {f32} and mixed["square"] == {f32}
    careful = computed(with_precision(g, rlx.PrecisionPolicy.AUTO_MIXED_CONSERVATIVE))
    assert careful["matmul"] == {f16} and careful["add"] == {f32} and careful["tanh"] == {f32}
    half = computed(with_precision(g, rlx.PrecisionPolicy.ALWAYS_F16))
    assert set.union(*half.values()) == {f16}
    assert with_precision(g, rlx.PrecisionPolicy.ALWAYS_F32) is g
    own = rlx.PrecisionPolicy.custom({rlx.OpKind.REDUCTION: f16})
    reduced = computed(with_precision(g, own))
    assert reduced["softmax_cross_entropy"] == {f16} and reduced["matmul"] == {f32}


@pytest.mark.parametrize("name", POLICIES)
def test_the_boundary_stays_f32(name):
    from rlx_swift.precision import as_policy

    for g in (mlp(16), linreg()):
        new = with_precision(g, as_policy(name))
        new.verify()
        for table in ("inputs", "params", "buffers", "outputs"):
            assert {n: t.type for n, t in getattr(new, table).items()} == {
                n: t.type for n, t in getattr(g, table).items()
            }


def test_each_value_is_cast_once():
    g = rlx.Graph()
    x, w = g.input("x", (4, 4)), g.param("w", (4, 4), init=1.0)
    g.set_outputs({"loss": (x @ w + w @ x + x @ x).sum()})
    new = with_precision(g, rlx.PrecisionPolicy.AUTO_MIXED)
    down = [node for node in new.live_nodes() if node.op.name == "cast" and node.outputs[0].dtype is f16]
    assert len(down) == 2


def test_half_precision_of_the_users_own_stays():
    g = rlx.Graph()
    x = g.input("x", (4,), f16)
    y = (x * x).astype(f32)
    g.set_outputs({"y": (y * y).sum(), "i": (y > 0.0).astype(rlx.i32)})
    new = with_precision(g, rlx.PrecisionPolicy.AUTO_MIXED_CONSERVATIVE)
    new.verify()
    assert str(new) == str(g)


def test_constants_stay_finite():
    """A mask of -1e9 is the most negative half, not an infinity."""
    g = rlx.Graph()
    x = g.input("x", (3,))
    g.set_outputs({"y": rlx.ops.minimum(x, -1e9), "z": x + np.array([np.inf, -np.inf, 1e9])})
    out = rlx.evaluate(with_precision(g, rlx.PrecisionPolicy.ALWAYS_F16), {"x": np.zeros(3)})
    np.testing.assert_array_equal(out["y"], np.full(3, -65504.0))
    np.testing.assert_array_equal(out["z"], [np.inf, -np.inf, 65504.0])


def test_what_is_wide_exists():
    assert set(registry()) >= WIDE


def test_policies_can_be_pickled():
    for policy in (rlx.PrecisionPolicy.AUTO_MIXED, rlx.PrecisionPolicy.custom({rlx.OpKind.BOUNDARY: rlx.f32})):
        again = pickle.loads(pickle.dumps(policy))
        assert again == policy == copy.deepcopy(policy) and hash(again) == hash(policy)
        assert all(dtype in (rlx.f16, rlx.f32) for dtype in again.dtypes.values())
    assert all(pickle.loads(pickle.dumps(dtype)) is dtype for dtype in (rlx.f16, rlx.f32, rlx.i32, rlx.bool_))


def test_policies_are_checked_and_data():
    with pytest.raises(ConfigError, match="boundary stays f32"):
        rlx.PrecisionPolicy.custom({rlx.OpKind.BOUNDARY: f16})
    with pytest.raises(ConfigError, match="expected f16 or f32"):
        rlx.PrecisionPolicy.custom({rlx.OpKind.COMPUTE: rlx.i32})
    with pytest.raises(ConfigError, match="expected one of always_f32"):
        rlx.TrainingSession(mlp(16), device="numpy").with_precision_policy("mixed")
    for policy in (rlx.PrecisionPolicy.AUTO_MIXED, rlx.PrecisionPolicy.custom({rlx.OpKind.COMPUTE: f16})):
        assert from_data(to_data(policy)) == policy


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
@pytest.mark.parametrize("policy", POLICIES)
def test_gradients_come_without_scale_and_in_f32(policy, fused, device):
    ts = rlx.TrainingSession(mlp(16), device=device).with_precision_policy(policy)
    ts = ts.with_fused_optimizer() if fused else ts
    plain = rlx.TrainingSession(mlp(16), device=device)
    batch = mlp_data(16)
    loss, gradients = ts.gradients(batch)
    expected_loss, expected = plain.gradients(batch)
    assert loss == pytest.approx(expected_loss, rel=5e-3)
    for name, value in expected.items():
        assert gradients[name].dtype == np.float32
        np.testing.assert_allclose(gradients[name], value, rtol=0.02, atol=0.002)
    assert ts.loss_scale == (1.0 if policy == "always_f32" else 4096.0)
    assert ts.evaluate(batch) == pytest.approx(loss, rel=1e-3)
    assert ts.predict(batch)["logits"].dtype == np.float32
    report = ts.step(batch)
    assert report.loss == pytest.approx(loss, rel=1e-6) and not report.skipped
    with pytest.raises(SessionError):
        ts.with_precision_policy("always_f32")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
def test_small_gradients_survive_half_precision(fused, device):
    """1e-8 is 0 in f16: only a scale carries it through. loss = sum(w * (x W2)) * 1e-8 / rows."""
    def gradient(**config):
        g = rlx.Graph()
        x, w = g.input("x", (8, 4)), g.param("w", (4, 4), init=0.5)
        g.set_outputs({"loss": (x @ w).sum() * 1e-8})
        ts = rlx.TrainingSession(g, device=device, config=rlx.TrainConfig(**config)).with_precision_policy("auto_mixed")
        ts = ts.with_fused_optimizer() if fused else ts
        return ts.gradients({"x": np.ones((8, 4))})[1]["w"]

    np.testing.assert_allclose(gradient(), np.full((4, 4), 8e-8), rtol=2e-3)
    np.testing.assert_array_equal(gradient(loss_scale=None), np.zeros((4, 4)))
    np.testing.assert_allclose(gradient(loss_scale=1024.0), np.full((4, 4), 8e-8), rtol=0.05)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
def test_weights_move_by_less_than_half_precision_can_hold(fused, device):
    """1 - 1e-4 is 1 in f16."""
    g = rlx.Graph()
    w = g.param("w", (3,), init=1.0)
    g.set_outputs({"loss": w.sum()})
    config = rlx.TrainConfig(lr=1e-4, optimizer=rlx.Adam())
    ts = rlx.TrainingSession(g, device=device, config=config).with_precision_policy("always_f16")
    ts = ts.with_fused_optimizer() if fused else ts
    for _ in range(5):
        ts.step({})
    np.testing.assert_allclose(ts.param("w"), 1 - 5e-4, rtol=1e-6)
    assert {value.dtype for value in ts.state("w").values()} == {np.dtype(np.float32)}


def everything(ts):
    from rlx_swift.session.snapshot import capture

    arrays, data = capture(ts)
    return {n: v.tobytes() for n, v in arrays.items()}, data


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_skipped_step_changes_the_scale_and_nothing_else(bad, fused, device):
    g = rlx.Graph()
    x, w, seen = g.input("x", (2,)), g.param("w", (2,), init=1.0), g.buffer("seen", (2,))
    g.assign(seen, seen + x)
    g.set_outputs({"loss": (w * x).sum()})
    config = rlx.TrainConfig(lr=lambda n: 0.1 / (n + 1), optimizer=rlx.Adam(), loss_scale="dynamic", ema=0.9)
    ts = rlx.TrainingSession(g, device=device, config=config)
    ts = ts.with_fused_optimizer() if fused else ts
    ts.step({"x": [1.0, 2.0]})
    before, data = everything(ts)
    report = ts.step({"x": [1.0, bad]})
    after, new = everything(ts)
    assert report.skipped and ts.last_report is report
    assert after == before
    assert (ts.steps, ts.lr, ts.loss_scale) == (1, 0.05, 2048.0)
    assert {**new, "scale": 0, "counters": {**new["counters"], "skips": 0}} == {**data, "scale": 0}
    assert not ts.step({"x": [1.0, 2.0]}).skipped
    assert ts.compile_count == 1


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
def test_one_bad_micro_batch_skips_its_window(fused, device):
    g = rlx.Graph()
    x, w, seen = g.input("x", (2,)), g.param("w", (2,), init=1.0), g.buffer("seen", (2,))
    g.assign(seen, seen + x)
    g.set_outputs({"loss": (w * x).sum()})
    config = rlx.TrainConfig(lr=0.1, optimizer=rlx.SGD(momentum=0.9), loss_scale="dynamic")
    ts = rlx.TrainingSession(g, device=device, config=config)
    ts = ts.with_fused_optimizer() if fused else ts
    ts.step({"x": [1.0, 1.0]})
    before, data = everything(ts)
    for x in ([1.0, 2.0], [np.inf, 1.0], [3.0, 1.0]):
        ts.accumulate({"x": x})
    assert ts.step_accumulated() == 3
    assert ts.last_report.skipped and ts.pending_accumulation == 0
    after, new = everything(ts)
    assert after == before
    assert new["counters"]["steps"] == 1 and new["counters"]["micro_batches"] == data["counters"]["micro_batches"]
    for x in ([1.0, 2.0], [3.0, 1.0]):
        ts.accumulate({"x": x})
    ts.step_accumulated()
    assert not ts.last_report.skipped
    np.testing.assert_allclose(ts.param("w"), 0.9 - 0.1 * (0.9 + np.array([2.0, 1.5])), rtol=1e-6)
    assert ts.apply_gradients({"w": [np.nan, 0.0]}) is False


def test_without_a_scale_nothing_is_skipped():
    ts = fed_session({"p": [1.0]}, loss_scale=None)
    assert not ts.step(fed({"p": [np.inf]})).skipped
    assert ts.param("p") == -np.inf and ts.steps == 1


def test_the_scale_falls_rises_and_has_limits():
    ts = fed_session({"p": [1.0]}, loss_scale="dynamic", lr=0.0)
    assert ts.loss_scale == 2.0**12
    for n in range(1, 15):
        ts.step(fed({"p": [np.nan]}))
        assert ts.loss_scale == max(2.0 ** (12 - n), 1.0)
    scale = ts._trainer.scale
    for expected in (2.0, 4.0):
        scale.good = 1998
        ts.step(fed({"p": [1.0]}))
        assert (ts.loss_scale, scale.good) == (expected / 2, 1999)
        ts.step(fed({"p": [1.0]}))
        assert (ts.loss_scale, scale.good) == (expected, 0)
    scale.scale, scale.good = 2.0**15, 1999
    ts.step(fed({"p": [1.0]}))
    assert ts.loss_scale == 2.0**15
    fixed = fed_session({"p": [1.0]}, loss_scale=128.0)
    fixed.step(fed({"p": [np.nan]}))
    assert fixed.loss_scale == 128.0 and fixed.steps == 0


@pytest.mark.parametrize("fused", UPDATES)
def test_scale_and_clip_and_adam_meet_the_plain_gradient(fused):
    """Unscaled before clipping and before any optimizer: the update is the one without scale."""
    for optimizer in (rlx.SGD(momentum=0.9), rlx.Adam(), rlx.Lion()):
        config = {"optimizer": optimizer, "clip": rlx.optim.clip_by_global_norm(1.0), "lr": 0.1}
        scaled = fed_session({"p": [1.0, 2.0]}, "numpy", fused, loss_scale=1024.0, **config)
        plain = fed_session({"p": [1.0, 2.0]}, "numpy", fused, **config)
        for gradient in ([3.0, 4.0], [1e-5, -1e-5]):
            scaled.step(fed({"p": gradient}))
            plain.step(fed({"p": gradient}))
        np.testing.assert_array_equal(scaled.param("p"), plain.param("p"))


def test_fit_ends_when_nothing_is_finite_any_more():
    ts = fed_session({"p": [1.0]}, lr=1.0)
    bad = fed({"p": [np.nan]})
    with pytest.raises(NonFiniteError, match="3 losses in a row"):
        ts.fit([fed({"p": [1.0]}), bad, bad, bad, bad], progress=False)
    assert ts.steps == 4
    scaled = fed_session({"p": [1.0]}, loss_scale="dynamic")
    with pytest.raises(NonFiniteError, match="50 updates in a row"):
        scaled.fit([fed({"p": [1.0]})] + [bad] * 60, progress=False)
    assert scaled.steps == 1 and scaled.param("p") == np.float32(0.99)
    for scale, losses in ((None, 3), ("dynamic", 50)):  # also where each epoch has fewer
        ts = fed_session({"p": [1.0]}, loss_scale=scale)
        with pytest.raises(NonFiniteError, match=f"{losses} "):
            ts.fit([bad], epochs=60, progress=False)
    other = fed_session({"p": [1.0]}, loss_scale="dynamic")
    good = fed({"p": [1.0]})
    history = other.fit(([bad] * 49 + [good]) * 2, progress=False)
    assert other.steps == 2 and len(history.losses) == 100
    assert history.epochs[0]["loss"] == pytest.approx(0.995)  # the mean of what was not skipped
    assert np.isnan(other.fit([bad], progress=False).epochs[0]["loss"])


def test_an_injected_infinity_loses_exactly_its_step():
    def run(batches):
        ts = rlx.TrainingSession(mlp(16), device="numpy", config=rlx.TrainConfig(lr=0.05, optimizer=rlx.AdamW()))
        ts = ts.with_precision_policy("auto_mixed").with_fused_optimizer()
        reports = [ts.step(batch) for batch in batches]
        return ts, reports

    clean = [mlp_data(16, n) for n in range(8)]
    poisoned = {**clean[0], "x": np.full((16, 4), np.inf)}
    ts, reports = run([*clean[:4], poisoned, *clean[4:]])
    other, _ = run(clean)
    assert [r.skipped for r in reports] == [False] * 4 + [True] + [False] * 4
    left, right = snapshot(ts), snapshot(other)
    assert left.keys() == right.keys()
    for name in left:
        if name.startswith(("param", "state")):
            np.testing.assert_allclose(
                np.frombuffer(left[name], np.float32), np.frombuffer(right[name], np.float32), rtol=2e-3, atol=1e-4
            )


def test_a_report_draws_what_is_not_fed():
    g = rlx.Graph()
    g.set_outputs({"loss": rlx.ops.dropout(g.input("x", (4, 2)), 0.3).sum()})
    report = rlx.precision_report(g, {"x": np.ones((4, 2))})
    assert report.first_nonfinite is None and len(report.ops) == 2


def test_a_report_names_the_worst_and_the_first_not_finite():
    g = rlx.Graph()
    x = g.input("x", (4,))
    y = x * 2.0
    big = rlx.ops.exp(y)
    g.set_outputs({"small": y + 1.0, "log": rlx.ops.log(big), "diff": (y + 1000.0) - 1000.0})
    report = rlx.precision_report(g, {"x": [0.1, 0.2, 0.3, 6.0]})
    assert report.first_nonfinite.op.split(" = ")[1].startswith("exp(")
    assert not report.ops[0].finite and report.ops[0].error == np.inf
    by_op = {each.op.split(" = ")[1].split("(")[0]: each for each in report.ops}
    assert by_op["sub"].error > 0.01 > by_op["add"].error  # the difference of numbers near 1000, which f16 holds to 0.5
    assert 0 < by_op["mul"].own < 1e-3
    assert [each.error for each in report.ops if each.finite] == sorted(
        (each.error for each in report.ops if each.finite), reverse=True
    )
    assert "first op that is not finite" in str(report)
    assert rlx.precision_report(g, {"x": [0.1, 0.2, 0.3, 6.0]}, "auto_mixed").first_nonfinite is None
    exact = rlx.precision_report(mlp("B"), {**mlp_data(5), **{n: np.ones(s.shape) for n, s in mlp("B").params.items()}},
                                 "always_f32")
    assert {each.error for each in exact.ops} == {0.0}


@pytest.mark.parametrize("name", sorted(registry()))
@pytest.mark.parametrize("policy", POLICIES[1:])
def test_every_op_takes_a_policy(name, policy):
    """Whatever op a graph has: casts fit, and outputs keep their types."""
    from rlx_swift.precision import as_policy

    op = registry()[name]
    for case in op.cases:
        g = rlx.Graph()
        operands = tuple(g.input(f"x{i}", t.shape, t.dtype) for i, t in enumerate(case.types()))
        results = g.apply(op, operands, case.attrs)
        g.set_outputs({f"y{i}": t for i, t in enumerate(results)})
        new = with_precision(g, as_policy(policy))
        new.verify()
        assert {n: t.type for n, t in new.outputs.items()} == {n: t.type for n, t in g.outputs.items()}
