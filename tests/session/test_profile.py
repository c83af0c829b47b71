"""Where the time of a prediction goes: what the steps are, their arithmetic, and what cannot be told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import cli
from rlx_swift.errors import FeedError, UnsupportedError

TESTS = Path(__file__).resolve().parents[1]
LINEAR = TESTS.parent / "Tests/MILFormatTests/Fixtures/linear32.mlpackage"
CONTROL = TESTS.parent / "Tests/MILFormatTests/Fixtures/control.mlpackage"
RESNET = TESTS / "networks/stored/resnet18_f32.mlpackage"

pytestmark = pytest.mark.skipif(
    not next(status for status in rlx.devices() if status.name == "cpu").available, reason="no native library"
)


def test_a_product_is_counted() -> None:
    model = rlx.load_model(LINEAR, device="cpu")
    profile = model.profile({"x": np.ones((2, 4))}, runs=3)
    assert 0 < sum(step.seconds for step in profile.steps) <= profile.seconds and profile.between >= 0
    # (2, 4) @ (4, 6): 2 * 2 * 6 * 4 for the product, and 12 additions of the bias.
    assert sum(step.flops for step in profile.steps) == 96 + 12
    assert any("y" in step.values for step in profile.steps)
    assert sum(step.bytes for step in profile.steps) >= 4 * (8 + 24 + 12)
    assert all(step.calls == 1 for step in profile.steps)


def test_convolutions_keep_their_name() -> None:
    model = rlx.load_model(RESNET, device="cpu")
    profile = model.profile({name: np.ones(type.shape) for name, type in model.inputs.items()}, runs=1)
    kinds = {total.kind: total for total in profile.by_kind()}
    assert kinds["conv"].steps >= 20 and kinds["conv"].flops > 0.9 * sum(step.flops for step in profile.steps)
    assert "relu" not in kinds
    text = str(profile)
    assert "conv" in text and "GFLOP/s" in text and profile.slowest(1)[0].values[-1] in text


def test_a_loop_counts_its_rounds() -> None:
    model = rlx.load_model(CONTROL, device="cpu")
    profile = model.profile({"x": np.ones(3), "n": np.int32([5])}, runs=1)
    assert max(step.calls for step in profile.steps) >= 5


def test_what_has_no_times(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="only our own runtime"):
        rlx.load_model(LINEAR, device="numpy").profile({"x": np.ones((2, 4))})
    with pytest.raises(FeedError):
        rlx.load_model(LINEAR, device="cpu").profile({})


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", str(LINEAR), "--random-inputs", "0", "--output-dir", str(tmp_path), "--device", "cpu"]
    assert cli.main([*arguments, "--profile"]) == 0
    printed = capsys.readouterr().out
    assert "slowest steps" in printed and "matmul" in printed
    assert cli.main([*arguments, "--profile", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["profile"]
    assert {"operations", "values", "calls", "seconds", "flops", "bytes"} == set(said["steps"][0])
    assert said["by_kind"][0]["kind"]
