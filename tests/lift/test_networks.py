"""Networks that coremltools converted from PyTorch: lifted, they compute what PyTorch computed (goldens/)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.dtypes import f16, f32
from rlx_swift.errors import FeedError
from rlx_swift.lift import Lifting
from rlx_swift.lower.mil import lower
from rlx_swift.lower.package import opened, to_bytes
from rlx_swift.testing import Tolerance, assert_close, assert_devices_agree

GOLDENS = Path(__file__).parent / "goldens"
NAMES = sorted(path.stem for path in GOLDENS.glob("*.npz"))
NAMED = {
    "perceptron": "first_weight", "images": "wide_weight", "language": "mixers_1_qkv_weight", "cached": "q_weight",
    "encoder": "projections_7_bias", "classifier": "head_weight", "flexible": "second_bias",
}
every_network = pytest.mark.parametrize("name", NAMES)


def golden(name: str) -> tuple[rlx.Graph, dict[str, np.ndarray], np.ndarray, Tolerance]:
    """The network lifted, feeds, PyTorch's output, and how near to it the precision comes."""
    saved = np.load(GOLDENS / f"{name}.npz")
    graph = rlx.lift(GOLDENS / f"{name}.mlpackage")
    y = saved["y"]
    within = Tolerance(1e-4, 1e-5) if name.endswith("single") else Tolerance(2e-2, 2e-3 * float(np.abs(y).max()))
    return graph, {n: saved[n] for n in graph.inputs}, y, within


def test_there_are_networks() -> None:
    assert len(NAMES) == 11


@every_network
def test_values_are_pytorchs(name: str) -> None:
    graph, feeds, expected, within = golden(name)
    graph.verify()
    (result,) = rlx.evaluate(graph, feeds).values()
    assert_close(result, expected, within)


@every_network
def test_weights_have_the_networks_own_names(name: str) -> None:
    graph, *_ = golden(name)
    assert not [n for n in graph.params if "fp16" in n]
    assert all(t.dtype is f32 for t in graph.params.values())
    assert NAMED[name.partition("_")[0]] in graph.params


@every_network
def test_what_is_lowered_again_has_the_same_values(name: str) -> None:
    graph, feeds, expected, within = golden(name)
    values = {n: t.producer.value for n, t in {**graph.params, **graph.buffers}.items()}
    again = lower(rlx.inference(graph), baked=values)
    back = Lifting(opened(to_bytes(again.model))).graph()
    (result,) = rlx.evaluate(back, {again.inputs[n]: v for n, v in feeds.items()}).values()
    assert_close(result, expected, within)


@pytest.mark.native
@every_network
def test_the_runtime_computes_the_same_from_the_graph(name: str) -> None:
    graph, feeds, _, within = golden(name)
    assert_devices_agree(graph, feeds, within=within)


def test_halves_are_computed_in_half() -> None:
    graph, *_ = golden("perceptron_oldest_half")
    products = [node for node in graph.nodes if node.op.name == "matmul"]
    assert len(products) == 3 and all(node.outputs[0].dtype is f16 for node in products)
    assert graph.inputs["x"].dtype is f32


def test_averages_are_buffers_and_masks_are_constants() -> None:
    graph, *_ = golden("images_oldest_single")
    kinds = [f"{layer}_norm_running_{what}" for layer in ("stem", "depthwise") for what in ("mean", "var")]
    assert list(graph.buffers) == kinds
    graph, *_ = golden("language_oldest_single")
    assert [t.shape for t in graph.constants if t.shape == (6, 6)] and not [
        n for n, t in graph.params.items() if t.shape == (6, 6)
    ]


def test_a_state_is_a_buffer_that_the_graph_assigns() -> None:
    name = "cached_newest_half"
    graph, feeds, expected, within = golden(name)
    assert list(graph.buffers) == list(graph.assigns) == ["cache"]
    compiled = rlx.Session(device="numpy").compile(graph)
    again = np.load(GOLDENS / f"{name}.npz")["again"]
    for wanted in (expected, again):
        assert_close(compiled.run(feeds)["y"], wanted, within)
    assert not np.array_equal(again, expected)


def test_another_size_of_a_flexible_input() -> None:
    name = "flexible_recent_single"
    path = GOLDENS / f"{name}.mlpackage"
    _, feeds, expected, within = golden(name)
    graph = rlx.lift(path, shapes={"x": (6, 3, 4)})
    result = rlx.evaluate(graph, {"x": np.concatenate([feeds["x"]] * 3)})["y"]
    assert_close(result, np.concatenate([expected] * 3), within)
    for wrong in ((2, 3, 5), (2, 12), (2, -3, 4)):
        with pytest.raises((FeedError, rlx.errors.ShapeError), match="'x'"):
            rlx.lift(path, shapes={"x": wrong})
    with pytest.raises(FeedError, match=r"'z'.*no input"):
        rlx.lift(path, shapes={"z": (2,)})


@every_network
def test_gradients_of_all_params(name: str) -> None:
    graph, feeds, *_ = golden(name)
    (output,) = graph.outputs.values()
    graph.set_outputs({"loss": rlx.ops.sum(rlx.ops.square(rlx.ops.cast(output, f32)))})
    gradients = rlx.evaluate(rlx.grad(rlx.inference(graph), list(graph.params)), {**feeds, "d_output": np.float32(1)})
    assert all(np.isfinite(g).all() for g in gradients.values())
    moved = [n for n, g in gradients.items() if np.abs(g).max() > 0]
    assert len(moved) >= len(gradients) - 4  # keys' biases move no softmax
