"""Run by scripts/check-wheel in an empty environment: what was installed trains, with Swift nowhere in sight."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

import rlx_swift as rlx
from rlx_swift._native import native

wheel = sys.argv[1]
has_native = not wheel.endswith("-none-any.whl")
assert shutil.which("swift") is None
assert Path(rlx.__file__).is_relative_to(sys.prefix)
cpu = next(status for status in rlx.devices() if status.name == "cpu")
assert cpu.available is has_native, cpu
device = "cpu" if has_native else "numpy"

x = np.random.default_rng(0).uniform(-1, 1, (8, 3))
graph = rlx.Graph("linreg")
prediction = graph.input("x", (8, 3)) @ graph.param("W", (3, 1), init=np.zeros((3, 1)))
graph.set_outputs({"loss": ((prediction - graph.input("target", (8, 1))) ** 2).sum(), "prediction": prediction})
session = rlx.TrainingSession(graph, config=rlx.TrainConfig(lr=0.1), device=device).with_fused_optimizer()
losses = [session.step({"x": x, "target": x @ [[1.0], [-2.0], [0.5]]}).loss for _ in range(60)]
assert abs(losses[0] - 19.15) < 0.01 and losses[-1] < 1e-10, losses
np.testing.assert_allclose(session.param("W").ravel(), [1, -2, 0.5], atol=1e-5)

with tempfile.TemporaryDirectory() as folder:
    package = Path(folder, "linreg.mlpackage")
    session.export(package)
    model = rlx.load_model(package)
    assert model.device == device
    np.testing.assert_allclose(model.predict({"x": x})["prediction"], x @ [[1.0], [-2.0], [0.5]], atol=1e-5)

if has_native:
    library = native()
    assert library.ffi.string(library.lib.rlx_version()).decode() == importlib.metadata.version("rlx-swift")
    if sys.platform == "linux":
        assert "lib/swift" not in Path("/proc/self/maps").read_text()

print(f"{wheel}: trains on the device {device} where there is no Swift")
