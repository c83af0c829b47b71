"""Writes the networks beside this file with coremltools 9.0, and what they do by jax in double precision."""

import json
import pathlib

import coremltools as ct
import jax
import jax.numpy as jnp
import numpy as np
from coremltools.models import datatypes
from coremltools.models.neural_network import AdamParams, NeuralNetworkBuilder, SgdParams

jax.config.update("jax_enable_x64", True)
HERE = pathlib.Path(__file__).parent
RANDOM = np.random.default_rng(7)


def normal(*shape):
    return (RANDOM.standard_normal(shape) * 0.5).astype(np.float32)


def array(*shape):
    return datatypes.Array(*shape)


def dense(builder, name, weights, bias, source, target):
    out, into = weights.shape
    builder.add_inner_product(name, weights, bias, into, out, bias is not None, source, target)


def conv(builder, name, weights, bias, source, target, **options):
    out, into, rows, columns = weights.shape
    groups = options.get("groups", 1)
    builder.add_convolution(
        name, into, out, rows, columns, options.get("stride", 1), options.get("stride", 1), options.get("mode", "same"),
        groups, np.transpose(weights, (2, 3, 1, 0)), bias, bias is not None, input_name=source, output_name=target,
    )


def doubled(weights):
    return {k: jnp.asarray(v, jnp.float64) for k, v in weights.items()}


def save(builder, name, updatable=True):
    spec = builder.spec
    if updatable:
        assert spec.isUpdatable
    ct.utils.save_spec(spec, str(HERE / f"{name}.mlmodel"))


def optimizer(builder, kind, batch, epochs):
    if kind == "adam":
        builder.set_adam_optimizer(AdamParams(lr=0.05, batch=batch, beta1=0.9, beta2=0.999, eps=1e-8))
    else:
        builder.set_sgd_optimizer(SgdParams(lr=0.1, batch=batch, momentum=0.9 if kind == "momentum" else 0.0))
    builder.set_epochs(epochs, [1, 2, 3, 5, 50])


def train(forward, loss, weights, x, y, kind, batch, epochs):
    """Losses of all mini-batches and the weights after them."""
    value = jax.jit(jax.value_and_grad(lambda w, a, b: loss(forward(w, a), b)))
    weights = {k: jnp.asarray(v, jnp.float64) for k, v in weights.items()}
    first = {k: jnp.zeros_like(v) for k, v in weights.items()}
    second = {k: jnp.zeros_like(v) for k, v in weights.items()}
    losses, count = [], 0
    for _ in range(epochs):
        for start in range(0, len(x), batch):
            here, grads = value(weights, x[start : start + batch], y[start : start + batch])
            losses.append(float(here))
            count += 1
            for k, g in grads.items():
                if kind == "adam":
                    first[k] = 0.9 * first[k] + 0.1 * g
                    second[k] = 0.999 * second[k] + 0.001 * g * g
                    step = 0.05 * (first[k] / (1 - 0.9**count)) / (jnp.sqrt(second[k] / (1 - 0.999**count)) + 1e-8)
                else:
                    first[k] = (0.9 if kind == "momentum" else 0.0) * first[k] + g
                    step = 0.1 * first[k]
                weights[k] = weights[k] - step
    return losses, weights


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1))


def squared_error(values, targets):
    return jnp.mean((values - targets) ** 2)


def record(name, inputs, targets, predictions, losses, weights):
    flat = {k: np.asarray(v, np.float64).ravel().tolist() for k, v in weights.items()}
    content = {
        "inputs": np.asarray(inputs).reshape(len(inputs), -1).tolist(),
        "targets": np.asarray(targets).reshape(len(targets), -1).tolist(),
        "predictions": np.asarray(predictions).reshape(len(inputs), -1).tolist(), "losses": losses, "weights": flat,
    }
    (HERE / f"{name}.json").write_text(json.dumps(content))


def mlp(name, kind, exact):
    """Two dense layers and cross entropy, by index."""
    weights = {"hidden.weights": normal(8, 4), "hidden.biases": normal(8), "out.weights": normal(3, 8)}
    weights["out.biases"] = normal(3)
    builder = NeuralNetworkBuilder(
        [("x", array(4))], [("probabilities", array(3))], disable_rank5_shape_mapping=exact
    )
    dense(builder, "hidden", weights["hidden.weights"], weights["hidden.biases"], "x", "h")
    builder.add_activation("act", "TANH", "h", "a")
    dense(builder, "out", weights["out.weights"], weights["out.biases"], "a", "logits")
    builder.add_softmax("softmax", "logits", "probabilities")
    builder.make_updatable(["hidden", "out"])
    builder.set_categorical_cross_entropy_loss("loss", "probabilities")
    optimizer(builder, kind, 4, 3)
    builder.spec.neuralNetwork.updateParams.shuffle.defaultValue = False
    save(builder, name)

    def forward(w, x):
        h = jnp.tanh(x @ w["hidden.weights"].T + w["hidden.biases"])
        return h @ w["out.weights"].T + w["out.biases"]

    x, y = normal(10, 4), RANDOM.integers(0, 3, 10)
    losses, after = train(forward, cross_entropy, weights, x, y, kind, 4, 3)
    record(name, x, y, jax.nn.softmax(forward(doubled(weights), x.astype(np.float64))), losses, after)


def regression(name, kind):
    """A sigmoid output and squared error; only the last layer is updatable."""
    weights = {"hidden.weights": normal(5, 3), "out.weights": normal(2, 5), "out.biases": normal(2)}
    builder = NeuralNetworkBuilder([("x", array(3))], [("y", array(2))])
    dense(builder, "hidden", weights["hidden.weights"], None, "x", "h")
    builder.add_activation("elu", "ELU", "h", "a", 0.7)
    dense(builder, "out", weights["out.weights"], weights["out.biases"], "a", "linear")
    builder.add_activation("sigmoid", "SIGMOID", "linear", "y")
    builder.make_updatable(["out"])
    builder.set_mean_squared_error_loss("loss", ("y", array(2)))
    optimizer(builder, kind, 3, 2)
    builder.spec.neuralNetwork.updateParams.shuffle.defaultValue = False
    save(builder, name)
    fixed = jnp.asarray(weights.pop("hidden.weights"), jnp.float64)

    def forward(w, x):
        a = jax.nn.elu(x @ fixed.T, 0.7)
        return jax.nn.sigmoid(a @ w["out.weights"].T + w["out.biases"])

    x, y = normal(7, 3), RANDOM.random((7, 2))
    losses, after = train(forward, squared_error, weights, x, y, kind, 3, 2)
    record(name, x, y, forward(doubled(weights), x.astype(np.float64)), losses, after)


def convnet(name, kind, pool):
    """Two convolutions, a pool, flatten, dense, and cross entropy on string labels."""
    weights = {
        "first.weights": normal(4, 1, 3, 3), "first.biases": normal(4), "second.weights": normal(6, 2, 3, 3),
        "out.weights": normal(3, 24), "out.biases": normal(3),
    }
    inputs = [("image", array(1, 8, 8))]
    builder = NeuralNetworkBuilder(inputs, [("probabilities", None)], mode="classifier")
    conv(builder, "first", weights["first.weights"], weights["first.biases"], "image", "c1")
    builder.add_activation("relu", "RELU", "c1", "r1")
    conv(builder, "second", weights["second.weights"], None, "r1", "c2", groups=2, stride=2, mode="same")
    builder.add_activation("relu2", "RELU", "c2", "r2")
    builder.add_pooling("pool", 2, 2, 2, 2, pool, "VALID", "r2", "p")
    builder.add_flatten("flatten", 0, "p", "f")
    dense(builder, "out", weights["out.weights"], weights["out.biases"], "f", "logits")
    builder.add_softmax("softmax", "logits", "probabilities")
    builder.set_class_labels(["cat", "dog", "élan"], "animal", "probabilities")
    builder.make_updatable(["first", "second", "out"])
    builder.set_categorical_cross_entropy_loss("loss", "probabilities")
    optimizer(builder, kind, 5, 2)
    builder.spec.neuralNetworkClassifier.updateParams.shuffle.defaultValue = False
    save(builder, name)

    def convolve(x, w, stride, groups):
        total = max((-(-x.shape[2] // stride) - 1) * stride + 3 - x.shape[2], 0)
        pads = [(total // 2, total - total // 2)] * 2
        return jax.lax.conv_general_dilated(x, w, (stride, stride), pads, feature_group_count=groups)

    def forward(w, x):
        r = jax.nn.relu(convolve(x, w["first.weights"], 1, 1) + w["first.biases"][:, None, None])
        r = jax.nn.relu(convolve(r, w["second.weights"], 2, 2))
        windows = r.reshape(len(r), 6, 2, 2, 2, 2)
        p = windows.max(axis=(3, 5)) if pool == "MAX" else windows.mean(axis=(3, 5))
        return p.reshape(len(p), -1) @ w["out.weights"].T + w["out.biases"]

    x, y = normal(9, 1, 8, 8) * 2, RANDOM.integers(0, 3, 9)
    losses, after = train(forward, cross_entropy, weights, x.astype(np.float64), y, kind, 5, 2)
    record(name, x, y, jax.nn.softmax(forward(doubled(weights), x.astype(np.float64))), losses, after)


def refused():
    """Models that Core ML does not compile, each for one reason."""
    def model(name, build, loss, layers=("d",), spoil=None):
        builder = NeuralNetworkBuilder([("x", array(3))], [("y", array(2))])
        build(builder)
        builder.make_updatable(list(layers))
        loss(builder)
        optimizer(builder, "sgd", 2, 1)
        if spoil:
            spoil(builder.spec)
        save(builder, f"refused_{name}")

    def squared(builder):
        builder.set_mean_squared_error_loss("loss", ("y", array(2)))

    def entropy(builder):
        builder.set_categorical_cross_entropy_loss("loss", "y")

    def linear(builder):
        dense(builder, "d", normal(2, 3), normal(2), "x", "y")

    def activated(builder, kind="SIGMOID", *parameters):
        dense(builder, "d", normal(2, 3), normal(2), "x", "h")
        builder.add_activation("a", kind, "h", "y", *parameters)

    def softmax(builder):
        dense(builder, "d", normal(2, 3), normal(2), "x", "h")
        builder.add_softmax("s", "h", "y")

    def no_loss(spec):
        del spec.neuralNetwork.updateParams.lossLayers[:]

    def two_losses(spec):
        losses = spec.neuralNetwork.updateParams.lossLayers
        losses.add().CopyFrom(losses[0])

    def frozen_bias(spec):
        spec.neuralNetwork.layers[0].innerProduct.bias.isUpdatable = False

    def zero_batch(spec):
        spec.neuralNetwork.updateParams.optimizer.sgdOptimizer.miniBatchSize.defaultValue = 0

    def wild_rate(spec):
        spec.neuralNetwork.updateParams.optimizer.sgdOptimizer.learningRate.defaultValue = 7

    def old(spec):
        spec.specificationVersion = 3

    model("linear_squared", linear, squared)
    model("softplus", lambda b: activated(b, "SOFTPLUS"), squared)
    for name, spoil in (
        ("no_loss", no_loss), ("two_losses", two_losses), ("frozen_bias", frozen_bias), ("zero_batch", zero_batch),
        ("wild_rate", wild_rate), ("old", old),
    ):
        model(name, softmax, entropy, spoil=spoil)


def activations():
    """Every activation without weights, one after the other, and all kinds of pools; not updatable."""
    builder = NeuralNetworkBuilder([("x", array(2, 6, 6))], [("y", array(2, 3, 3))], disable_rank5_shape_mapping=True)
    chain = [
        ("LINEAR", [1.5, -0.25]), ("LEAKYRELU", [0.3]), ("SCALED_TANH", [1.2, 0.8]), ("SIGMOID_HARD", [0.4, 0.5]),
        ("SOFTSIGN", None), ("SOFTPLUS", None), ("THRESHOLDEDRELU", 0.1), ("ELU", 0.5), ("RELU", None),
        ("TANH", None), ("SIGMOID", None),
    ]
    functions = [
        lambda x: 1.5 * x - 0.25, lambda x: np.where(x < 0, 0.3 * x, x), lambda x: 1.2 * np.tanh(0.8 * x),
        lambda x: np.clip(0.4 * x + 0.5, 0, 1), lambda x: x / (1 + np.abs(x)), lambda x: np.log1p(np.exp(x)),
        lambda x: np.where(x >= 0.1, x, 0), lambda x: np.where(x < 0, 0.5 * np.expm1(x), x),
        lambda x: np.maximum(x, 0), np.tanh, lambda x: 1 / (1 + np.exp(-x)),
    ]
    source = "x"
    for index, (kind, parameters) in enumerate(chain):
        builder.add_activation(f"a{index}", kind, source, f"v{index}", parameters)
        source = f"v{index}"
    builder.add_pooling("l2", 2, 2, 2, 2, "L2", "VALID", source, "pooled")
    builder.add_pooling("average", 3, 3, 1, 1, "AVERAGE", "SAME", "pooled", "y", exclude_pad_area=True)
    save(builder, "activations", updatable=False)
    x = normal(3, 2, 6, 6) * 3
    value = x.astype(np.float64)
    for function in functions:
        value = function(value)
    pooled = np.sqrt((value.reshape(3, 2, 3, 2, 3, 2) ** 2).sum(axis=(3, 5)))
    padded = np.pad(pooled, ((0, 0), (0, 0), (1, 1), (1, 1)))
    ones = np.pad(np.ones_like(pooled), ((0, 0), (0, 0), (1, 1), (1, 1)))
    total = sum(padded[:, :, i : i + 3, j : j + 3] for i in range(3) for j in range(3))
    count = sum(ones[:, :, i : i + 3, j : j + 3] for i in range(3) for j in range(3))
    record("activations", x, np.zeros(3), total / count, [], {})


if __name__ == "__main__":
    mlp("mlp_sgd", "sgd", exact=False)
    mlp("mlp_exact", "adam", exact=True)
    regression("regression", "momentum")
    convnet("convnet_max", "sgd", "MAX")
    convnet("convnet_average", "adam", "AVERAGE")
    refused()
    activations()
