"""Optimizers of matrices and of curvature: published values, constraints, estimates."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.optim.arrays import NUMPY
from rlx_swift.optim.muon import orthogonalised
from tests.oracles_optim import run
from tests.training_cases import DEVICES, UPDATES, fed, fed_session, mlp, mlp_data

# Five quintic steps in exact arithmetic: singular values of x / |x| through 3.4445 s - 4.775 s^3 + 2.0315 s^5.
ORTHOGONALISED = [
    (np.eye(2), np.eye(2) * 1.10811), ([[1.0]], [[0.696437]]), (np.diag([3.0, 4.0]), np.diag([0.72288, 1.11920])),
    (np.zeros((2, 3)), np.zeros((2, 3))), (1e-30 * np.eye(2), np.zeros((2, 2))),
]


@pytest.mark.parametrize(("x", "expected"), ORTHOGONALISED)
def test_newton_schulz_values(x, expected):
    x = np.asarray(x, np.float32)
    np.testing.assert_allclose(orthogonalised(NUMPY, x, 5), expected, rtol=1e-5, atol=1e-6)


def test_tall_is_the_transpose_of_wide():
    x = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    np.testing.assert_allclose(orthogonalised(NUMPY, x, 5), orthogonalised(NUMPY, x.T, 5).T, rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
@pytest.mark.parametrize(("shape", "scale", "expected"), [
    ((2, 2), "original", -1.10811), ((4, 1), "original", -0.696437 * 2), ((4, 1), "match_rms_adamw", -0.696437 * 0.4),
    ((4, 2), "original", -1.10811 * 2**0.5), ((4, 2), "match_rms_adamw", -1.10811 * 0.4),
    ((2, 4), "original", -1.10811), ((2, 4), "match_rms_adamw", -1.10811 * 0.4),
])
def test_a_step_of_muon_on_an_eye(shape, scale, expected, fused, device):
    ts = fed_session({"p": np.zeros(shape)}, device, fused, lr=1.0, optimizer=rlx.Muon(scale=scale))
    ts.step(fed({"p": np.eye(*shape)}))
    np.testing.assert_allclose(ts.param("p"), np.eye(*shape) * expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (4, 4), (5, 1), (1, 5), (1, 1)])
def test_stiefel_stays_on_the_manifold(shape, fused, device):
    rng = np.random.default_rng(1)
    ts = fed_session({"p": rng.normal(size=shape)}, device, fused, lr=0.3, optimizer=rlx.Stiefel())
    for _ in range(20):
        p = ts.param("p").astype(float)
        gram = p.T @ p if shape[0] >= shape[1] else p @ p.T
        np.testing.assert_allclose(gram, np.eye(len(gram)), atol=2e-6)
        ts.step(fed({"p": rng.normal(size=shape)}))


def test_stiefel_finds_the_leading_eigenvectors():
    """Minimising -trace(W' A W) over orthonormal W."""
    rng = np.random.default_rng(2)
    basis = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    values = np.array([5.0, 4.0, 2.0, 1.0, 0.5, 0.1])
    g = rlx.Graph()
    w = g.param("w", (6, 2), init=rng.normal(size=(6, 2)))
    g.set_outputs({"loss": -(w * (g.constant((basis * values) @ basis.T) @ w)).sum()})
    ts = rlx.TrainingSession(g, config=rlx.TrainConfig(lr=0.02, optimizer=rlx.Stiefel()), device="numpy")
    for _ in range(150):
        loss = ts.with_fused_optimizer().step({}).loss if not ts.steps else ts.step({}).loss
    assert loss == pytest.approx(-9.0, abs=1e-4)


def bowl():
    """0.5 w'Hw for H = [[2, 1], [1, 8]]."""
    g = rlx.Graph()
    w = g.param("w", (2,), init=np.array([1.0, -1.0]))
    h = g.constant(np.array([[2.0, 1.0], [1.0, 8.0]]))
    g.set_outputs({"loss": 0.5 * (w * (h @ w)).sum()})
    return g


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
def test_hutchinson_estimates_the_diagonal(fused, device):
    """With random signs u, u * Hu is [3, 9] or [1, 7]; the mean of the two is the diagonal, [2, 8]."""
    optimizer = rlx.SophiaH(beta2=0.0, every=1, weight_decay=0.0)
    ts = rlx.TrainingSession(bowl(), config=rlx.TrainConfig(lr=0.0, optimizer=optimizer), device=device)
    ts = ts.with_fused_optimizer() if fused else ts
    seen = []
    for _ in range(64):
        ts.step({})
        seen.append(tuple(ts.state("w")["h"]))
    assert set(seen) == {(3.0, 9.0), (1.0, 7.0)}
    np.testing.assert_allclose(np.mean(seen, axis=0), [2.0, 8.0], atol=0.5)
    assert ts.programs["hessian_hutchinson"] == 1


@pytest.mark.parametrize("fused", UPDATES)
def test_sophia_follows_the_oracle(fused):
    """Where the Hessian is diagonal, the estimate is exact whatever the signs."""
    h = np.array([4.0, 0.5, 0.0, -1.0, 100.0])
    g = rlx.Graph()
    w, slope = g.param("w", (5,), init=1.0), g.input("g", (5,))
    g.set_outputs({"loss": (w * slope).sum() + 0.5 * (g.constant(h) * w * w).sum()})
    optimizer = rlx.SophiaH(every=3, gamma=0.2)
    ts = rlx.TrainingSession(g, config=rlx.TrainConfig(lr=0.1, optimizer=optimizer), device="numpy")
    ts = ts.with_fused_optimizer() if fused else ts
    rng, gradients = np.random.default_rng(0), []
    for _ in range(8):
        feeds = {"g": rng.normal(size=5) - h * ts.param("w")}
        gradients.append(np.float32(feeds["g"]) + np.float32(h) * ts.param("w"))
        ts.step(feeds)
    expected = run(optimizer, np.ones(5, np.float32), gradients, 0.1, hessian=h)
    np.testing.assert_allclose(ts.param("w"), expected, rtol=2e-5)


def test_estimates_come_at_their_updates_only():
    ts = rlx.TrainingSession(
        mlp(16), device="numpy", config=rlx.TrainConfig(lr=0.01, optimizer=rlx.SophiaH(every=3))
    )
    changed, before = [], ts.state("w1")["h"]
    for _ in range(7):
        ts.step(mlp_data(16))
        changed.append(not np.array_equal(before, ts.state("w1")["h"]))
        before = ts.state("w1")["h"]
    assert changed == [True, False, False, True, False, False, True]
    again = rlx.TrainingSession(
        mlp(16), device="numpy", config=rlx.TrainConfig(lr=0.01, optimizer=rlx.SophiaH(every=3))
    )
    for _ in range(2):
        again.accumulate(mlp_data(16))
    again.step_accumulated()
    assert again.state("w1")["h"].any()
    again.apply_gradients({name: np.zeros_like(value) for name, value in again.params().items()})


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
def test_an_estimate_of_a_skipped_update_leaves_nothing_behind(fused, device):
    """Not even where the next update has no estimate of its own."""
    g = rlx.Graph()
    x, w = g.input("x", (2,)), g.param("w", (2,), init=1.0)
    g.set_outputs({"loss": (x * w * w).sum()})
    config = rlx.TrainConfig(lr=0.1, loss_scale="dynamic", optimizer=rlx.SophiaH(weight_decay=0.0))
    ts = rlx.TrainingSession(g, config=config, device=device)
    ts = ts.with_fused_optimizer() if fused else ts
    assert ts.step({"x": [np.inf, 1.0]}).skipped
    assert ts.apply_gradients({"w": [1.0, -1.0]})
    np.testing.assert_allclose(ts.param("w"), [0.9, 1.1], rtol=1e-6)
    assert not ts.state("w")["h"].any()


def test_gauss_newton_bartlett_has_the_right_mean():
    """Its mean is the diagonal of the mean of J'(diag p - pp')J: for logits = w x that is x^2 p (1 - p)."""
    g = rlx.Graph()
    x, y, w = g.input("x", (4, 3)), g.input("y", (4,), rlx.i32), g.param("w", (3, 3), init=0.3)
    w0 = np.random.default_rng(5).normal(size=(3, 3)).astype(np.float32)
    g.set_outputs({"loss": rlx.ops.softmax_cross_entropy_with_logits(x @ w, y).mean()})
    optimizer = rlx.SophiaH(estimator="gnb", beta2=0.0, every=1, weight_decay=0.0)
    ts = rlx.TrainingSession(
        g, initial={"w": w0}, config=rlx.TrainConfig(lr=0.0, optimizer=optimizer), device="numpy"
    ).with_fused_optimizer()
    features = np.random.default_rng(6).normal(size=(4, 3)).astype(np.float32)
    total = 0.0
    for _ in range(3000):
        ts.step({"x": features, "y": [0, 1, 2, 0]})
        total = total + ts.state("w")["h"].astype(float)
    scores = np.exp(features.astype(float) @ w0)
    p = scores / scores.sum(1, keepdims=True)
    expected = np.einsum("bi,bj->ij", features.astype(float) ** 2, p * (1 - p)) / 4
    np.testing.assert_allclose(total / 3000, expected, rtol=0.15)


def test_gauss_newton_bartlett_needs_labels():
    optimizer = rlx.SophiaH(estimator="gnb")
    ts = rlx.TrainingSession(bowl(), config=rlx.TrainConfig(optimizer=optimizer), device="numpy")
    with pytest.raises(rlx.errors.ConfigError, match="'gnb': the graph has no softmax_cross_entropy"):
        ts.step({})
    assert ts.steps == 0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
def test_exact_mars_uses_this_batch_at_the_weights_before(fused, device):
    """On loss = a w^2 / 2 with another a in each batch: g = a w, and the gradient before is a w_before."""
    g = rlx.Graph()
    a, w = g.input("a", ()), g.param("w", (), init=0.5)
    g.set_outputs({"loss": 0.5 * a * w * w})
    optimizer = rlx.MARS(exact=True, gamma=0.5, weight_decay=0.0)
    ts = rlx.TrainingSession(g, config=rlx.TrainConfig(lr=0.1, optimizer=optimizer), device=device)
    ts = ts.with_fused_optimizer() if fused else ts
    w_now = w_before = 0.5
    m = v = 0.0
    for t, a_t in enumerate((1.0, 0.7, 1.3, 0.9, 1.1), 1):
        ts.step({"a": a_t})
        c = a_t * w_now + (0.5 * 0.95 / 0.05 * (a_t * w_now - a_t * w_before) if t > 1 else 0.0)
        c = c / max(1.0, abs(c))
        m, v = 0.95 * m + 0.05 * c, 0.99 * v + 0.01 * c * c
        w_before, w_now = w_now, w_now - 0.1 * m / (1 - 0.95**t) / (np.sqrt(v / (1 - 0.99**t)) + 1e-8)
        assert float(ts.param("w")) == pytest.approx(w_now, rel=1e-5)
    assert set(ts.state("w")) == {"m", "v"}


@pytest.mark.parametrize("kind", [rlx.SOAP, rlx.KronPSGD])
def test_what_core_ml_cannot_express_runs_on_the_host(kind):
    ts = rlx.TrainingSession(mlp(16), config=rlx.TrainConfig(optimizer=kind(), lr=0.01), device="numpy")
    ts = ts.with_fused_optimizer()
    assert not ts.fused_active and ts.update_path is rlx.UpdatePath.GRADIENT
    assert ts.fused_reason.startswith(f"{kind.__name__}: ") and "Core ML" in ts.fused_reason
    assert ts.step(mlp_data(16)).loss > ts.step(mlp_data(16)).loss
