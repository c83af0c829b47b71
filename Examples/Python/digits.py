"""A convolutional network on scikit-learn's digits: train, test, export. Needs `pip install scikit-learn`."""

import numpy as np
from sklearn.datasets import load_digits

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.nn import init

images, labels = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(images))
x = (images[order] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
y = labels[order].astype(np.int32)
train, test = {"x": x[360:], "y": y[360:]}, {"x": x[:360], "y": y[:360]}


def network(x, y, k1, c1, k2, c2, w, b):
    h = ops.max_pool2d(ops.relu(ops.conv2d(x, k1, c1, padding="same")), 2)
    h = ops.max_pool2d(ops.relu(ops.conv2d(h, k2, c2, padding="same")), 2)
    logits = h.reshape(x.shape[0], 128) @ w + b
    loss = ops.softmax_cross_entropy_with_logits(logits, y).mean()
    return {"loss": loss, "probabilities": ops.softmax(logits)}


he = init.he_normal()
graph = rlx.trace(
    network, x=rlx.spec(("B", 1, 8, 8)), y=rlx.spec(("B",), rlx.i32),
    k1=rlx.param_spec((16, 1, 3, 3), init=he), c1=rlx.param_spec(16, init=0.0),
    k2=rlx.param_spec((32, 16, 3, 3), init=he), c2=rlx.param_spec(32, init=0.0),
    w=rlx.param_spec((128, 10), init=he), b=rlx.param_spec(10, init=0.0),
)

ts = rlx.TrainingSession(graph, config=rlx.TrainConfig(lr=3e-3, optimizer=rlx.AdamW())).with_fused_optimizer()
ts.fit(rlx.batches(train, 64, shuffle=True, seed=0), epochs=12, validation=test)

predicted = ts.predict({"x": test["x"]})["probabilities"].argmax(1)
print(f"test accuracy on {ts.device}: {np.mean(predicted == test['y']):.1%}")
ts.export("digits.mlpackage")
print("saved digits.mlpackage")
