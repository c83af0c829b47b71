"""Graphs as updatable NeuralNetwork models: what coremltools reads in them, and why other graphs have none."""

import coremltools as ct
import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import nn, ops
from rlx_swift.lower.updatable import Reason, network_of
from rlx_swift.lower.updatable_encoding import Rule, encode

RANDOM = np.random.default_rng(3)


def values_of(graph):
    return {name: RANDOM.standard_normal(p.shape).astype(np.float32) for name, p in graph.params.items()}


def dense(x):
    return nn.Dense(3, name="out")(x)


def classifier(head=dense, loss=None, labels=rlx.i32):
    graph = rlx.Graph("classifier")
    x, y = graph.input("x", (8, 4)), graph.input("labels", (8,), labels)
    logits = head(ops.relu(nn.Dense(5, name="hidden")(x)))
    graph.set_outputs({"loss": (loss or ops.cross_entropy)(logits, y)})
    return graph


def images():
    graph = rlx.Graph("images")
    x, y = graph.input("x", (6, 2, 9, 8)), graph.input("y", (6, 1))
    h = ops.tanh(nn.Conv(4, (3, 2), strides=(2, 1), padding=((1, 0), (1, 1)), groups=2, name="c")(x))
    h = ops.avg_pool2d(h, (2, 3), 2, padding=1, count_padding=False)
    h = ops.max_pool2d(h, 2, 1)
    h = ops.reshape(h, (6, -1))
    y_hat = ops.sigmoid(nn.Dense(1, bias=False, name="d")(h))
    graph.set_outputs({"loss": ops.mse_loss(y_hat, y)})
    return graph


def spec_of(graph, rule, trainable=None):
    network = network_of(graph, "loss", trainable or list(graph.params))
    values = values_of(graph)
    data = encode(network, rule, values)
    spec = ct.proto.Model_pb2.Model()
    spec.ParseFromString(data)
    assert spec.SerializeToString(deterministic=True)
    ct.models.MLModel(spec, skip_model_load=True)
    return spec, values


def test_dense_layers_and_cross_entropy():
    spec, values = spec_of(classifier(), Rule(0.1, 8, 3, momentum=0.5))
    assert spec.isUpdatable and spec.specificationVersion == 4
    network = spec.neuralNetwork
    kinds = [layer.WhichOneof("layer") for layer in network.layers]
    assert kinds == ["innerProduct", "activation", "innerProduct", "softmax"]
    first = network.layers[0].innerProduct
    assert (first.inputChannels, first.outputChannels) == (4, 5)
    weight = np.array(first.weights.floatValue, np.float32).reshape(5, 4)
    np.testing.assert_array_equal(weight, values["hidden.weight"].T)
    np.testing.assert_array_equal(np.array(first.bias.floatValue, np.float32), values["hidden.bias"])
    assert first.weights.isUpdatable and first.bias.isUpdatable and network.layers[0].isUpdatable
    loss = network.updateParams.lossLayers[0].categoricalCrossEntropyLossLayer
    assert loss.input == network.layers[3].output[0] and loss.target == spec.description.trainingInput[1].name
    target = spec.description.trainingInput[1].type.multiArrayType
    assert list(target.shape) == [1] and target.dataType == ct.proto.FeatureTypes_pb2.ArrayFeatureType.INT32
    sgd = network.updateParams.optimizer.sgdOptimizer
    assert (sgd.learningRate.defaultValue, sgd.momentum.defaultValue, sgd.miniBatchSize.defaultValue) == (0.1, 0.5, 8)
    assert network.updateParams.epochs.defaultValue == 3 and not network.updateParams.shuffle.defaultValue


def test_the_builder_of_coremltools_reads_it():
    spec, _ = spec_of(classifier(), Rule(0.01, 8, 1, betas=(0.8, 0.99), eps=1e-7))
    builder = ct.models.neural_network.NeuralNetworkBuilder(spec=spec)
    assert builder.layers == [layer.name for layer in spec.neuralNetwork.layers]
    adam = spec.neuralNetwork.updateParams.optimizer.adamOptimizer
    assert [adam.learningRate.defaultValue, adam.beta1.defaultValue, adam.beta2.defaultValue] == [0.01, 0.8, 0.99]
    assert adam.eps.defaultValue == 1e-7 and adam.beta1.range.maxValue == 1


def test_convolutions_pools_and_squared_error():
    spec, values = spec_of(images(), Rule(0.1, 6, 1), ["c.weight", "c.bias"])
    layers = spec.neuralNetwork.layers
    kinds = [layer.WhichOneof("layer") for layer in layers]
    assert kinds == ["convolution", "activation", "pooling", "pooling", "flatten", "innerProduct", "activation"]
    conv = layers[0].convolution
    assert list(conv.kernelSize) == [3, 2] and list(conv.stride) == [2, 1] and conv.nGroups == 2
    assert (conv.outputChannels, conv.kernelChannels) == (4, 1)
    edges = [(e.startEdgeSize, e.endEdgeSize) for e in conv.valid.paddingAmounts.borderAmounts]
    assert edges == [(1, 0), (1, 1)]
    np.testing.assert_array_equal(np.array(conv.weights.floatValue, np.float32), values["c.weight"].ravel())
    assert layers[2].pooling.avgPoolExcludePadding and not layers[3].pooling.avgPoolExcludePadding
    assert layers[2].pooling.type == 1 and layers[3].pooling.type == 0
    assert layers[0].isUpdatable and not layers[5].isUpdatable
    assert not layers[5].innerProduct.hasBias
    assert spec.neuralNetwork.updateParams.lossLayers[0].meanSquaredErrorLossLayer.input == layers[6].output[0]


def test_the_same_model_has_the_same_bytes():
    graph = classifier()
    values = values_of(graph)
    network = network_of(graph, "loss", list(graph.params))
    assert encode(network, Rule(0.1, 8, 1), values) == encode(network, Rule(0.1, 8, 1), values)


def refused(graph, trainable=None):
    with pytest.raises(Reason) as caught:
        network_of(graph, "loss", trainable or list(graph.params))
    return str(caught.value)


def linear_output():
    graph = rlx.Graph()
    x, y = graph.input("x", (4, 3)), graph.input("y", (4, 2))
    graph.set_outputs({"loss": ops.mse_loss(nn.Dense(2)(x), y)})
    return graph


def shared():
    graph = rlx.Graph()
    x, y = graph.input("x", (4, 3)), graph.input("y", (4,), rlx.i32)
    dense = nn.Dense(3)
    graph.set_outputs({"loss": ops.cross_entropy(dense(ops.relu(dense(x))), y)})
    return graph


@pytest.mark.parametrize(("graph", "reason"), [
    (linear_output(), "linear output"),
    (shared(), "used by two layers"),
    (classifier(loss=lambda z, y: ops.sum(ops.softmax_cross_entropy_with_logits(z, y))), "made by sum"),
    (classifier(loss=lambda z, y: ops.mean(ops.abs(z))), "loss is a abs"),
    (classifier(head=lambda x: nn.Dense(3)(ops.gelu(x))), "gelu"),
    (classifier(head=lambda x: nn.Dense(3)(x) + x[:, :3]), "not the bias"),
    (classifier(head=lambda x: x @ np.ones((5, 3), np.float32)), "no param"),
], ids=["linear", "shared", "sum", "loss", "gelu", "residual", "constant"])
def test_what_stands_in_the_way(graph, reason):
    assert reason in refused(graph)


def test_only_one_of_weight_and_bias_is_trained():
    assert "only one is trained" in refused(classifier(), ["out.weight", "hidden.weight", "hidden.bias"])
