"""From a converted network to a trained one and back: lifted, given a loss, trained, exported, loaded again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rlx_swift as rlx
from tests.helpers import same
from tests.training_cases import DEVICES, UPDATES

GOLDENS = Path(__file__).parent / "goldens"


def toy_task(shape: tuple[int, ...], classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples whose class a linear map of them decides."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(24, *shape)).astype(np.float32)
    return x, (x.reshape(24, -1) @ rng.normal(size=(int(np.prod(shape)), classes))).argmax(1).astype(np.int32)


def trained(graph, x, labels, device, fused, trainable=None, epochs=8, rows=2, lr=1e-2):
    config = rlx.TrainConfig(lr=lr, optimizer=rlx.Adam())
    ts = rlx.TrainingSession(graph, trainable=trainable, config=config, device=device)
    ts = ts.with_fused_optimizer() if fused else ts
    batches = [{"x": x[i : i + rows], "labels": labels[i : i + rows]} for i in range(0, len(x), rows)]
    before = np.mean([ts.evaluate(batch) for batch in batches])
    for _ in range(epochs):
        for batch in batches:
            ts.step(batch)
    return ts, before, np.mean([ts.evaluate(batch) for batch in batches])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
@pytest.mark.parametrize("name", ["encoder_recent_single", "classifier_recent_half"])
def test_a_classifier(name, device, fused, tmp_path):
    """It ends in a softmax; one is an ML Program of f16 and a classifier with labels."""
    graph = rlx.lift(GOLDENS / f"{name}.mlpackage")
    (probabilities,) = graph.outputs
    rows = graph.inputs["x"].shape[0]
    x, labels = toy_task((5, 16), 3)
    ts, before, after = trained(
        graph.with_loss("softmax_cross_entropy", probabilities), x, labels, device, fused, epochs=4, rows=rows
    )
    assert after < 0.5 * before
    ts.export(tmp_path / "tuned.mlpackage")
    model = rlx.load_model(tmp_path / "tuned.mlpackage", device=device)
    within = 1e-5 if name.endswith("single") else 4e-3
    for i in range(0, 8, rows):
        expected = ts.predict({"x": x[i : i + rows]})[probabilities]
        same(model.predict({"x": x[i : i + rows]})[probabilities], expected, rtol=within, atol=within)
    again = rlx.lift(tmp_path / "tuned.mlpackage")
    for name in ("head_weight", "projections_0_weight", "downs_1_weight"):
        assert np.array_equal(again.params[name].producer.value, ts.param(name))
        assert not np.array_equal(ts.param(name), graph.params[name].producer.value)


@pytest.mark.parametrize("device", DEVICES)
def test_a_head_alone(device):
    graph = rlx.lift(GOLDENS / "images_oldest_single.mlpackage").with_loss("softmax_cross_entropy", "y")
    x, labels = toy_task((3, 12, 10), 4)
    ts, before, after = trained(graph, x, labels, device, True, trainable=["head*"], epochs=6, lr=3e-2)
    assert ts.trainable == ("head_weight", "head_bias")
    assert after < before
    assert np.array_equal(ts.param("stem_weight"), graph.params["stem_weight"].producer.value)
    assert np.array_equal(ts.param("stem_norm_running_var"), graph.buffers["stem_norm_running_var"].producer.value)


@pytest.mark.parametrize("device", DEVICES)
def test_adapters_and_their_merged_export(device, tmp_path):
    graph = rlx.lift(GOLDENS / "encoder_recent_single.mlpackage")
    adapted = rlx.lora(graph, ["projections*", "head_weight"], rank=2).with_loss("softmax_cross_entropy", "y")
    x, labels = toy_task((5, 16), 3)
    ts, before, after = trained(adapted, x, labels, device, True, rlx.lora_params(adapted), epochs=4)
    assert after < 0.8 * before
    merged = rlx.merge_lora(adapted, ts.params())
    merged.outputs = {"y": merged.outputs["y"]}
    rlx.Session(device="numpy").compile(rlx.inference(merged)).save(tmp_path / "merged.mlpackage")
    model = rlx.load_model(tmp_path / "merged.mlpackage", device=device)
    assert set(rlx.lift(tmp_path / "merged.mlpackage").params) == set(graph.params)
    same(model.predict({"x": x[:2]})["y"], ts.predict({"x": x[:2]})["y"], rtol=1e-4, atol=1e-5)
