"""Linear regression by gradient descent, with the update inside the device program."""

import numpy as np

import rlx_swift as rlx

true_w = np.array([[1.0], [-2.0], [0.5]])
x = np.random.default_rng(0).uniform(-1, 1, (8, 3))
batch = {"x": x, "target": x @ true_w}

g = rlx.Graph("linear_regression")
prediction = g.input("x", (8, 3)) @ g.param("W", (3, 1), init=0.0)
g.set_outputs({"loss": ((prediction - g.input("target", (8, 1))) ** 2).sum(), "prediction": prediction})

ts = rlx.TrainingSession(g, config=rlx.TrainConfig(lr=0.1)).with_fused_optimizer()
print(f"training on {ts.device}, update path: {ts.update_path.value}")
for step in range(60):
    report = ts.step(batch)
    if step % 10 == 0:
        print(f"step {step:2}: loss {report.loss:.6f}")
print("W =", ts.param("W").ravel(), "true W =", true_w.ravel())
