"""Networks that coremltools converted from PyTorch give PyTorch's outputs; make_networks.py made the stored files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rlx_swift as rlx

HERE = Path(__file__).parent
LISTED = json.loads((HERE / "networks.json").read_text())
WITHIN = {"f32": 1e-4, "f16": 2e-2}

pytestmark = pytest.mark.skipif(
    not next(status for status in rlx.devices() if status.name == "cpu").available, reason="no native library"
)


def near(got: np.ndarray, expected: np.ndarray, within: float) -> None:
    assert got.shape == expected.shape and np.isfinite(got).all()
    np.testing.assert_allclose(got.astype(np.float64), expected, rtol=within, atol=within * np.abs(expected).max())


@pytest.mark.parametrize("precision", WITHIN)
@pytest.mark.parametrize("name", [name for name in LISTED if name != "gpt2"])
def test_outputs(name: str, precision: str) -> None:
    model = rlx.load_model(HERE / f"stored/{name}_{precision}.mlpackage", device="cpu")
    saved = np.load(HERE / f"stored/{name}_{precision}.npz")
    assert model.outputs["y"].dtype is rlx.f32
    for _ in range(2):
        near(model.predict({key: saved[key] for key in model.inputs})["y"], saved["y"], WITHIN[precision])


def test_a_decoder_with_a_cache() -> None:
    """A prompt, then tokens one at a time: each call has its own shapes, and the state holds what was before."""
    model = rlx.load_model(HERE / "stored/gpt2_f16.mlpackage", device="cpu")
    saved = np.load(HERE / "stored/gpt2_f16.npz")
    for state in (model.make_state(), model.make_state()):
        for call in range(4):
            feeds = {"ids": saved[f"ids{call}"], "mask": saved[f"mask{call}"]}
            near(model.predict(feeds, state)["y"], saved[f"y{call}"], WITHIN["f16"])
