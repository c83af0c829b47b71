"""Clipping: values, order, and agreement of host and fused."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from tests.training_cases import DEVICES, UPDATES, fed, fed_session

G = {"a": [3.0, 4.0], "b": [[0.3], [-0.4]], "c": -12.0}
NORM = float(np.sqrt(25 + 0.25 + 144))

CASES = [
    (rlx.optim.clip_by_global_norm(1.0), {n: np.array(g) / NORM for n, g in G.items()}),
    (rlx.optim.clip_by_global_norm(100.0), G),
    (rlx.optim.clip_by_norm(1.0), {"a": [0.6, 0.8], "b": G["b"], "c": -1.0}),
    (rlx.optim.clip_by_value(0.35), {"a": [0.35, 0.35], "b": [[0.3], [-0.35]], "c": -0.35}),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
@pytest.mark.parametrize(("clip", "clipped"), CASES, ids=lambda x: repr(x) if isinstance(x, rlx.optim.Clip) else "")
def test_values(clip, clipped, fused, device):
    ts = fed_session({n: np.zeros_like(g, np.float32) for n, g in G.items()}, device, fused, lr=1.0, clip=clip)
    ts.step(fed(G))
    for name, expected in clipped.items():
        np.testing.assert_allclose(-ts.param(name), expected, rtol=1e-6)


@pytest.mark.parametrize("fused", UPDATES)
def test_clips_the_mean_of_accumulated_gradients(fused):
    """Not each of them: two opposite large gradients cancel."""
    ts = fed_session({"p": [0.0, 0.0]}, "numpy", fused, lr=1.0, clip=rlx.optim.clip_by_global_norm(1.0))
    for gradient in ([30.0, 40.0], [-30.0, -40.0], [0.9, 1.2]):
        ts.accumulate(fed({"p": gradient}))
    ts.step_accumulated()
    np.testing.assert_allclose(ts.param("p"), [-0.3, -0.4], rtol=1e-5)


@pytest.mark.parametrize("fused", UPDATES)
def test_a_gradient_of_zeros_or_nan_goes_through(fused):
    for clip in (rlx.optim.clip_by_global_norm(1.0), rlx.optim.clip_by_norm(1.0), rlx.optim.clip_by_value(1.0)):
        ts = fed_session({"p": [1.0, 2.0]}, "numpy", fused, lr=1.0, clip=clip)
        ts.step(fed({"p": [0.0, 0.0]}))
        np.testing.assert_array_equal(ts.param("p"), [1.0, 2.0])
        ts.step(fed({"p": [np.nan, 0.0]}))
        assert np.isnan(ts.param("p")[0])


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan"), "1"])
def test_a_limit_that_is_no_limit_is_an_error(limit):
    with pytest.raises(rlx.errors.ConfigError, match="limit: expected a finite number above 0"):
        rlx.optim.clip_by_norm(limit)
