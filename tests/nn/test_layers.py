"""Layers: what their params are called, that they are made once, what they compute, and that they train."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import nn, ops
from rlx_swift.errors import ConfigError, ShapeError
from tests.helpers import same

RNG = np.random.default_rng(0)


def built(layer, *shape, dtype=rlx.f32, call=lambda layer, x: layer(x)):
    g = rlx.Graph()
    y = call(layer, g.input("x", shape, dtype))
    y = y[0] if isinstance(y, tuple) else y
    g.set_outputs({"y": y})
    g.verify()
    return g


LAYERS = {
    "dense": (lambda: nn.Dense(4), (2, 3), {"dense.weight": (3, 4), "dense.bias": (4,)}),
    "dense-plain": (lambda: nn.Dense(4, bias=False, name="head"), (2, 5, 3), {"head.weight": (3, 4)}),
    "conv1d": (lambda: nn.Conv(4, 3), (2, 3, 7), {"conv.weight": (4, 3, 3), "conv.bias": (4,)}),
    "conv2d": (lambda: nn.Conv(4, (3, 2), groups=2), (2, 6, 5, 5), {"conv.weight": (4, 3, 3, 2), "conv.bias": (4,)}),
    "conv3d": (lambda: nn.Conv(2, 2, padding=1, bias=False), (1, 3, 4, 4, 4), {"conv.weight": (2, 3, 2, 2, 2)}),
    "up": (lambda: nn.ConvTranspose(4, 2, 2, groups=2), (1, 6, 3, 3),
     {"convtranspose.weight": (6, 2, 2, 2), "convtranspose.bias": (4,)}),
    "layer": (nn.LayerNorm, (2, 3), {"layernorm.weight": (3,), "layernorm.bias": (3,)}),
    "rms": (nn.RMSNorm, (2, 3), {"rmsnorm.weight": (3,)}),
    "group": (lambda: nn.GroupNorm(2), (2, 4, 3), {"groupnorm.weight": (4,), "groupnorm.bias": (4,)}),
    "instance": (nn.InstanceNorm, (2, 4, 3), {"instancenorm.weight": (4,), "instancenorm.bias": (4,)}),
    "batch": (nn.BatchNorm, (2, 4, 3),
     {"batchnorm.weight": (4,), "batchnorm.bias": (4,), "batchnorm.mean": (4,), "batchnorm.var": (4,)}),
    "lstm": (lambda: nn.LSTM(5), (2, 3, 4), {"lstm.weight_ih": (4, 20), "lstm.weight_hh": (5, 20), "lstm.bias": (20,)}),
    "gru": (lambda: nn.GRU(5), (2, 3, 4),
     {"gru.weight_ih": (4, 15), "gru.weight_hh": (5, 15), "gru.bias_ih": (15,), "gru.bias_hh": (15,)}),
    "attention": (
        lambda: nn.Attention(2, bias=False, kv_heads=1), (2, 3, 8),
        {"attention.query.weight": (8, 8), "attention.key.weight": (8, 4), "attention.value.weight": (8, 4),
      "attention.out.weight": (8, 8)},
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_params_have_names_shapes_and_values(name):
    make, shape, wanted = LAYERS[name]
    g = built(make(), *shape)
    assert {n: t.shape for n, t in {**g.params, **g.buffers}.items()} == wanted
    compiled = rlx.Session(device="numpy").compile(g)
    assert np.isfinite(compiled.run({"x": RNG.standard_normal(shape)})["y"]).all()


@pytest.mark.parametrize("name", LAYERS)
def test_half_precision_in_and_out(name):
    make, shape, _ = LAYERS[name]
    if name in ("lstm", "gru"):
        pytest.skip("recurrent layers take their params' dtype")
    assert built(make(), *shape, dtype=rlx.f16).outputs["y"].dtype is rlx.f16


def test_a_layer_called_again_shares_its_params():
    dense = nn.Dense(3)
    g = built(dense, 2, 3, call=lambda layer, x: layer(layer(x)))
    assert list(g.params) == ["dense.weight", "dense.bias"]


def test_layers_of_one_class_are_numbered_in_each_graph():
    first, second = nn.Dense(3), nn.Dense(3)
    for _ in range(2):
        g = built(first, 2, 3, call=lambda layer, x: second(layer(x)))
        assert list(g.params) == ["dense.weight", "dense.bias", "dense_1.weight", "dense_1.bias"]


def test_layers_inside_layers_carry_their_names():
    model = nn.Sequential(nn.Dense(4), ops.relu, nn.Sequential(nn.Dense(2), name="head"), name="model")
    g = built(model, 2, 3)
    assert list(g.params) == ["model.0.weight", "model.0.bias", "model.head.0.weight", "model.head.0.bias"]


def test_a_block_names_all_its_parts():
    g = built(nn.TransformerBlock(2, 16, name="block"), 2, 3, 8)
    assert len(g.params) == 16
    assert {n.split(".")[1] for n in g.params} == {"norm1", "attention", "norm2", "up", "down"}


def test_a_traced_function_builds_the_same_params_for_each_size():
    model = nn.Sequential(nn.Dense(4, activation=ops.tanh), nn.Dense(1))
    g = rlx.trace(lambda x: {"y": model(x)}, x=rlx.spec(("B", 3)))
    compiled = rlx.Session(device="numpy").compile(g)
    x = RNG.standard_normal((5, 3))
    whole = compiled.run({"x": x})["y"]
    same(compiled.run({"x": x[:2]})["y"], whole[:2], 1e-6)


def test_dense_computes_x_times_weight_plus_bias():
    g = built(nn.Dense(2, activation=ops.relu), 3, 2)
    x, w, b = RNG.standard_normal((3, 2)), RNG.standard_normal((2, 2)), RNG.standard_normal(2)
    out = rlx.evaluate(g, {"x": x, "dense.weight": w, "dense.bias": b}, np.float64)["y"]
    same(out, np.maximum(x @ w + b, 0), 1e-12)


def test_a_tied_embedding_reads_and_writes_one_table():
    emb = nn.Embedding(5, 4)
    g = rlx.Graph()
    logits = emb.attend(emb(g.input("ids", (2, 3), rlx.i32)))
    g.set_outputs({"loss": ops.mean(ops.square(logits))})
    assert list(g.params) == ["embedding.weight"]
    table = RNG.standard_normal((5, 4))
    rlx.check_grads(g, {"ids": np.int32([[0, 1, 1], [4, 0, 2]]), "embedding.weight": table})


def test_attention_to_a_context():
    g = rlx.Graph()
    layer = nn.Attention(2, rotary=True)
    g.set_outputs({"y": layer(g.input("x", (2, 3, 8)), g.input("c", (2, 5, 6)))})
    assert g.params["attention.key.weight"].shape == (6, 8) and g.outputs["y"].shape == (2, 3, 8)


def test_dropout_draws_noise_and_not_when_predicting():
    g = built(nn.Sequential(nn.Dense(4), nn.Dropout(0.5)), 2, 3)
    assert "noise/0" in g.inputs and "noise/0" not in rlx.inference(g).inputs


def test_initial_values_have_their_spread():
    rng = np.random.default_rng(0)
    assert abs(nn.init.he_normal()(rng, (200, 100)).std() - np.sqrt(2 / 200)) < 2e-3
    uniform = nn.init.glorot_uniform()(rng, (200, 100))
    assert abs(uniform).max() <= np.sqrt(6 / 300) and abs(uniform.std() - np.sqrt(2 / 300)) < 2e-3
    cut = nn.init.truncated_normal(0.5)(rng, (1000,))
    assert abs(cut).max() <= 1.0 and 0.4 < cut.std() < 0.5
    assert nn.init.fans((8, 4, 3, 3)) == (36, 72)
    first, again = (nn.init.he_normal()(np.random.default_rng(3), (4, 5)) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_a_network_of_layers_learns():
    x = RNG.standard_normal((64, 1, 6, 6)).astype(np.float32)
    y = (x.mean((1, 2, 3)) > 0).astype(np.int32)
    model = nn.Sequential(
        nn.Conv(4, 3), nn.BatchNorm(), ops.relu, lambda x: ops.max_pool2d(x, 2), lambda x: x.reshape(x.shape[0], -1),
        nn.Dropout(0.1), nn.Dense(2),
    )
    g = rlx.Graph()
    g.set_outputs({"loss": ops.cross_entropy(model(g.input("x", x.shape)), g.input("y", y.shape, rlx.i32))})
    ts = rlx.TrainingSession(g, config=rlx.TrainConfig(lr=1e-2, optimizer=rlx.Adam()), device="numpy")
    losses = [ts.step({"x": x, "y": y}).loss for _ in range(40)]
    assert losses[-1] < 0.5 * losses[0]
    assert ts.evaluate({"x": x, "y": y}) < losses[0]


@pytest.mark.parametrize(
    ("make", "shape", "error"),
    [
        (lambda: nn.Dense(3), (), ShapeError), (lambda: nn.Conv(3, 3), (2, 3), ShapeError),
        (lambda: nn.Conv(3, 3, groups=2), (1, 3, 5, 5), ShapeError), (lambda: nn.Conv(3, 0), (1, 3, 5, 5), ConfigError),
        (lambda: nn.ConvTranspose(3, 3), (2, 3), ShapeError), (lambda: nn.Attention(3), (2, 3, 8), ConfigError),
        (lambda: nn.GroupNorm(3), (2, 4, 3), ShapeError), (lambda: nn.Dropout(2), (2,), ConfigError),
    ],
)
def test_refused(make, shape, error):
    with pytest.raises(error):
        built(make(), *shape)
