"""Core ML's plan for a model, asked for through the library."""

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift._native.placement import Placement
from rlx_swift.errors import ConfigError, DeviceError

pytestmark = pytest.mark.native


def test_each_operation_has_a_device(monkeypatch, tmp_path):
    graph = rlx.Graph("plan")
    x = graph.input("x", (2, 3))
    graph.set_outputs({"y": ops.tanh(x @ graph.param("w", (3, 4), init=np.ones((3, 4), np.float32)))})
    path = tmp_path / "plan.mlpackage"
    rlx.Session(device="numpy").compile(graph).save(path)
    monkeypatch.delenv("RLX_COREML_ON_LINUX", raising=False)
    with pytest.raises(DeviceError):
        Placement.load(path)
    monkeypatch.setenv("RLX_COREML_ON_LINUX", "1")
    with pytest.raises(ConfigError):
        Placement.load(path, units="npu")
    report = Placement.load(path, units="cpu").report
    assert report["units"] == 0
    assert {step["operation"].split(".")[1] for step in report["steps"]} >= {"matmul", "tanh"}
    assert report["counts"] == {"cpu": len(report["steps"])}
