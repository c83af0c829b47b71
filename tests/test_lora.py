"""Low-rank adapters: what they add by formula, that fresh ones add nothing, training, merging, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.errors import ConfigError, NameNotFoundError, ShapeError
from tests.helpers import same
from tests.training_cases import DEVICES

GOLDENS = Path(__file__).parent / "lift/goldens"
RNG = np.random.default_rng(4)
X = RNG.normal(size=(5, 4)).astype(np.float32)
W = RNG.normal(size=(4, 3)).astype(np.float32)

# How a product may read a weight W [4, 3] or its transpose, and how that weight is stored.
LAYOUTS = {
    "x @ W": (lambda x, w: x @ w, False),
    "x @ W'": (lambda x, w: ops.matmul(x, w, transpose_y=True), True),
    "x @ transpose(W)": (lambda x, w: x @ ops.transpose(w), True),
    "W' @ x'": (lambda x, w: ops.transpose(ops.matmul(w, x, True, True)), False),
    "W @ x'": (lambda x, w: ops.transpose(ops.matmul(w, x, transpose_y=True)), True),
    "x'' @ W": (lambda x, w: ops.matmul(ops.transpose(x), w, transpose_x=True), False),
    "batches @ W": (lambda x, w: ops.reshape(ops.reshape(x, (5, 1, 4)) @ w, (5, 3)), False),
}
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


def product(layout, dtype=rlx.f32):
    function, turned = LAYOUTS[layout]
    g = rlx.Graph()
    x, w = g.input("x", (5, 4)), g.param("W", (3, 4) if turned else (4, 3), W.T if turned else W)
    y = function(ops.cast(x, dtype), ops.cast(w, dtype))
    g.set_outputs({"y": ops.cast(y, rlx.f32) + g.param("b", (3,), 0.5)})
    return g


def values_of(adapted):
    """Values for an adapter: neither factor zero."""
    return {n: RNG.normal(size=adapted.params[n].shape).astype(np.float32) for n in rlx.lora_params(adapted)}


@every_layout
@pytest.mark.parametrize("dtype", [rlx.f32, rlx.f16], ids=str)
def test_a_fresh_adapter_changes_nothing(layout, dtype):
    g = product(layout, dtype)
    adapted = rlx.lora(g, ["W"], rank=2)
    adapted.verify()
    assert rlx.lora_params(adapted) == ["W.lora_A", "W.lora_B"]
    assert (adapted.params["W.lora_A"].shape, adapted.params["W.lora_B"].shape) == ((2, 4), (3, 2))
    ts = {"x": X, "W.lora_A": RNG.normal(size=(2, 4))}
    assert np.array_equal(rlx.evaluate(adapted, ts)["y"], rlx.evaluate(g, {"x": X})["y"])
    assert list(g.params) == ["W", "b"]


@every_layout
def test_the_formula_and_the_merged_weight(layout):
    g = product(layout)
    adapted = rlx.lora(g, "W", rank=2, alpha=3)
    values = values_of(adapted)
    a, b = (values[f"W.lora_{part}"].astype(np.float64) for part in "AB")
    expected = X @ W + 1.5 * (X @ a.T) @ b.T + 0.5
    same(rlx.evaluate(adapted, {"x": X, **values})["y"], expected, rtol=1e-5, atol=1e-5)
    merged = rlx.merge_lora(adapted, values)
    merged.verify()
    assert list(merged.params) == ["W", "b"] and not merged.buffers
    assert [n.op.name for n in merged.nodes] == [n.op.name for n in g.live_nodes()]
    same(rlx.evaluate(merged, {"x": X})["y"], expected, rtol=1e-5, atol=1e-5)


def test_gradients():
    g = rlx.lora(product("x @ W'"), "W", rank=2)
    g.set_outputs({"loss": ops.sum(ops.square(g.outputs["y"]))})
    rlx.check_grads(g, {"x": X, **values_of(g)}, ["W.lora_A", "W.lora_B", "x"])


def test_a_weight_that_two_products_read():
    """Once as it is and once transposed: one adapter serves both."""
    g = rlx.Graph()
    x, w = g.input("x", (5, 4)), g.param("W", (4, 3), W)
    g.set_outputs({"y": ops.matmul(ops.tanh(x @ w), w, transpose_y=True)})
    adapted = rlx.lora(g, "W", rank=1, alpha=1)
    assert len(rlx.lora_params(adapted)) == 2
    values = values_of(adapted)
    whole = W + (values["W.lora_B"] @ values["W.lora_A"]).T
    expected = np.tanh(X @ whole) @ whole.T
    same(rlx.evaluate(adapted, {"x": X, **values})["y"], expected, rtol=1e-4, atol=1e-5)
    same(rlx.evaluate(rlx.merge_lora(adapted, values), {"x": X})["y"], expected, rtol=1e-4, atol=1e-5)


def test_patterns_leave_out_what_is_no_weight():
    g = rlx.Graph()
    x = g.input("x", (5, 4))
    h = x @ g.param("q_proj.weight", (4, 4), 0.1) + g.param("q_proj.bias", (4,), 0.0)
    g.set_outputs({"y": h @ g.param("head.weight", (4, 2), 0.1)})
    assert rlx.lora_params(rlx.lora(g, ["q_proj*"])) == ["q_proj.weight.lora_A", "q_proj.weight.lora_B"]
    assert len(rlx.lora_params(rlx.lora(g, ["*"]))) == 4
    assert len(rlx.lora_params(rlx.lora(rlx.lora(g, "q_proj*"), "head*"))) == 4


@pytest.mark.parametrize("device", DEVICES)
def test_training_moves_the_adapters_alone_and_merging_keeps_what_was_learned(device):
    g = product("x @ W'").with_loss("mse", "y", "target")
    g = rlx.lora(g, "W", rank=3)
    config = rlx.TrainConfig(lr=0.02, optimizer=rlx.Adam())
    ts = rlx.TrainingSession(g, trainable=rlx.lora_params(g), config=config, device=device)
    target = X @ RNG.normal(size=(4, 3)).astype(np.float32)
    before = {name: ts.param(name) for name in ("W", "b")}
    losses = [ts.step({"x": X, "target": target}).loss for _ in range(150)]
    assert losses[-1] < 0.1 * losses[0]
    assert all(np.array_equal(ts.param(name), value) for name, value in before.items())
    merged = rlx.merge_lora(g, ts.params())
    same(rlx.evaluate(merged, {"x": X, "target": target})["y"], ts.predict({"x": X})["y"], rtol=1e-4, atol=1e-5)


def test_an_adapter_is_switched_off_by_its_scale():
    g = rlx.lora(product("x @ W").with_loss("mse"), "W", rank=2)
    ts = rlx.TrainingSession(g, trainable=rlx.lora_params(g), device="numpy")
    ts.set_params(values_of(g))
    on = ts.predict({"x": X})["y"]
    ts.set_params({"W.lora_scale": 0.0})
    same(ts.predict({"x": X})["y"], X @ W + 0.5, rtol=1e-6)
    assert not np.allclose(on, X @ W + 0.5)


def test_a_converted_language_model():
    path = GOLDENS / "language_recent_half.mlpackage"
    g = rlx.lift(path)
    feeds = {"ids": np.load(GOLDENS / "language_recent_half.npz")["ids"]}
    adapted = rlx.lora(g, ["*qkv*", "ups*"], rank=2)
    assert len(rlx.lora_params(adapted)) == 8
    with pytest.raises(ConfigError, match="'token_weight' is not read by matrix products alone"):
        rlx.lora(g, "token_weight")
    adapted = adapted.with_loss("softmax_cross_entropy", "y")
    config = rlx.TrainConfig(lr=0.02, optimizer=rlx.Adam())
    ts = rlx.TrainingSession(adapted, trainable=rlx.lora_params(adapted), config=config, device="numpy")
    same(ts.predict(feeds)["y"], rlx.evaluate(g, feeds)["y"])
    batch = {**feeds, "labels": np.roll(feeds["ids"], -1, 1)}
    losses = [ts.step(batch).loss for _ in range(12)]
    assert losses[-1] < 0.6 * losses[0]


def test_graphs_with_a_named_dimension():
    specs = {"x": rlx.spec(("B", 4)), "w": rlx.param_spec((4, 3), init=W)}
    g = rlx.trace(lambda x, w: {"loss": ops.mean(ops.square(x @ w))}, **specs)
    adapted = rlx.lora(g, "w", rank=2)
    ts = rlx.TrainingSession(adapted, trainable=rlx.lora_params(adapted), device="numpy")
    assert all(np.isfinite(ts.step({"x": X[:n]}).loss) for n in (5, 3, 5))
    assert rlx.merge_lora(adapted, ts.params()).bind({"B": 2}).params["w"].shape == (4, 3)


def tied():
    g = rlx.Graph()
    w = g.param("W", (4, 4), 0.1)
    g.set_outputs({"y": g.input("x", (5, 4)) @ w + ops.sum(w)})
    return g


def both():
    g = rlx.Graph()
    g.set_outputs({"y": g.param("U", (2, 4), 0.1) @ g.param("W", (4, 3), W)})
    return g


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda: rlx.lora(product("x @ W"), ["V*"]), NameNotFoundError, r"lora target 'V\*'.*the graph has W, b"),
    (lambda: rlx.lora(product("x @ W"), ["b"]), ConfigError, "'b' is not read by matrix products alone"),
    (lambda: rlx.lora(tied(), ["W"]), ConfigError, "'W' is not read by matrix products alone"),
    (lambda: rlx.lora(both(), ["*"]), ConfigError, "'U': it is multiplied by another target, 'W'"),
    (lambda: rlx.lora(rlx.lora(product("x @ W"), "W"), "W"), ConfigError, "'W': it has an adapter already"),
    (lambda: rlx.lora(product("x @ W"), []), ConfigError, "at least one"),
    (lambda: rlx.lora(product("x @ W"), [1]), ConfigError, "names or patterns, got 1"),
    (lambda: rlx.lora(product("x @ W"), "W", rank=0), ConfigError, "lora rank.*got 0"),
    (lambda: rlx.lora(product("x @ W"), "W", alpha=float("nan")), ConfigError, "lora alpha"),
    (lambda: rlx.lora_params(product("x @ W")), ConfigError, "no adapters"),
    (lambda: rlx.merge_lora(product("x @ W")), ConfigError, "no adapters"),
    (lambda: rlx.merge_lora(rlx.lora(product("x @ W"), "W")), ConfigError, "'W.lora_A': it has no value"),
    (lambda: rlx.merge_lora(rlx.lora(product("x @ W"), "W"), {"V": W}), NameNotFoundError, "'V'"),
    (lambda: rlx.merge_lora(rlx.lora(product("x @ W"), "W"), {"W": W.T}), ShapeError, r"\(4, 3\), got \(3, 4\)"),
], ids=["no param", "bias", "read elsewhere", "two targets", "twice", "none", "number", "rank", "alpha", "no adapters",
        "nothing to merge", "no value", "unknown value", "shape"])
def test_what_is_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()
