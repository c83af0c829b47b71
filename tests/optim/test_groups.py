"""Which optimizer updates which param: patterns, predicates, rates, and optimizers that leave some to others."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import ConfigError
from tests.training_cases import UPDATES, fed, fed_session, mlp, mlp_data

START = {"a.weight": np.ones((2, 2)), "a.bias": np.ones(2), "b.weight": np.ones((3, 1))}
GRADIENT = {name: np.ones_like(value) for name, value in START.items()}


def moved(optimizer, fused, **config):
    ts = fed_session(START, "numpy", fused, optimizer=optimizer, **{"lr": 0.1, **config})
    ts.step(fed(GRADIENT))
    return {name: 1 - float(ts.param(name).flat[0]) for name in START}, ts


@pytest.mark.parametrize("fused", UPDATES)
def test_the_first_match_wins(fused):
    groups = rlx.ParamGroups([
        rlx.Group("*.bias", rlx.SGD(), lr_scale=0.5), rlx.Group(lambda p: p.shape == (3, 1), rlx.SGD(), lr_scale=3.0),
        rlx.Group("*", rlx.Lion(weight_decay=0.0), lr_scale=2.0),
    ])
    steps, ts = moved(groups, fused)
    assert steps == pytest.approx({"a.bias": 0.05, "b.weight": 0.3, "a.weight": 0.2})
    assert list(ts.state("a.weight")) == ["m"] and ts.state("a.bias") == {}


@pytest.mark.parametrize("fused", UPDATES)
def test_decay_and_rate_by_group_with_a_schedule(fused):
    groups = rlx.ParamGroups([
        rlx.Group("*bias", rlx.AdamW(weight_decay=0.0)), rlx.Group("*", rlx.AdamW(weight_decay=0.1), lr_scale=0.1)
    ])
    steps, ts = moved(groups, fused, lr=lambda n: 0.1 / (n + 1))
    assert steps == pytest.approx({"a.bias": 0.1, "a.weight": 0.011, "b.weight": 0.011}, rel=1e-5)
    ts.step(fed(GRADIENT))
    assert ts.param("a.bias")[0] == pytest.approx(0.85, rel=1e-5)
    assert ts.compile_count == 1


@pytest.mark.parametrize(("groups", "text"), [
    (lambda: [rlx.Group("a*", rlx.SGD())], "param 'b.weight': it is in no group"),
    (lambda: [rlx.Group("c*", rlx.SGD()), rlx.Group("*", rlx.SGD())], r"group 'c\*': no param matches"),
    (list, "ParamGroups: expected a list of rlx.Group"),
    (lambda: ["*"], "ParamGroups: expected a list of rlx.Group"),
    (lambda: [rlx.Group("*", rlx.SGD)], "Group optimizer: expected an optimizer"),
    (lambda: [rlx.Group(3, rlx.SGD())], "Group select"),
    (lambda: [rlx.Group("*", rlx.SGD(), lr_scale=0.0)], "Group lr_scale"),
])
def test_groups_that_make_no_sense(groups, text):
    with pytest.raises(ConfigError, match=text):
        fed_session(START, optimizer=rlx.ParamGroups(groups()))


def test_the_norm_is_that_of_all_groups():
    groups = rlx.ParamGroups([rlx.Group("a*", rlx.SGD()), rlx.Group("*", rlx.SGD(), lr_scale=2.0)])
    steps, _ = moved(groups, False, lr=1.0, clip=rlx.optim.clip_by_global_norm(1.5))
    assert steps == pytest.approx({"a.weight": 0.5, "a.bias": 0.5, "b.weight": 1.0})


def language_model():
    """An embedding table, hidden matrices, a bias and a head."""
    g = rlx.Graph()
    ids, labels = g.input("ids", (6,), rlx.i32), g.input("labels", (6,), rlx.i32)
    rng = np.random.default_rng(0)

    def param(name, *shape):
        return g.param(name, shape, init=rng.normal(0, 0.3, shape))

    h = rlx.ops.gather(param("table", 7, 4), ids, 0)
    h = rlx.ops.tanh(h @ param("w1", 4, 8) + param("bias", 8)) @ param("w2", 8, 4)
    logits = h @ param("lm_head", 4, 7)
    g.set_outputs({"loss": rlx.ops.softmax_cross_entropy_with_logits(logits, labels).mean()})
    return g


@pytest.mark.parametrize("fused", UPDATES)
def test_muon_takes_hidden_matrices_only(fused):
    ts = rlx.TrainingSession(
        language_model(), device="numpy", config=rlx.TrainConfig(lr=0.01, optimizer=rlx.Muon(fallback=rlx.Adam()))
    )
    ts = ts.with_fused_optimizer() if fused else ts
    slots = {name: sorted(ts.state(name)) for name in ts.trainable}
    assert slots == {"table": ["m", "v"], "w1": ["m"], "bias": ["m", "v"], "w2": ["m"], "lm_head": ["m", "v"]}
    batch = {"ids": [0, 1, 2, 3, 4, 5], "labels": [1, 2, 3, 4, 5, 6]}
    first = ts.step(batch).loss
    for _ in range(60):
        last = ts.step(batch).loss
    assert last < 0.5 * first


def test_a_rate_of_its_own_for_what_muon_leaves():
    ts = rlx.TrainingSession(mlp(16), device="numpy", config=rlx.TrainConfig(
        lr=0.02, optimizer=rlx.Muon(fallback=rlx.SGD(), fallback_lr_scale=10.0)))
    batch = mlp_data(16)
    gradient, before = ts.gradients(batch)[1], ts.params()
    ts.step(batch)
    np.testing.assert_allclose(ts.param("b1"), before["b1"] - 0.2 * gradient["b1"], rtol=1e-5)
