"""The rule inside the device program against the rule on the host, over drawn params, settings and gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rlx_swift as rlx
from rlx_swift.optim.base import registry
from rlx_swift.testing import assert_fused_matches_host, strategies
from rlx_swift.testing.contract import fed_gradients
from rlx_swift.testing.updates import UpdateMismatch
from tests.training_cases import DEVICES

OWN = {kind.__name__: kind for name, kind in registry().items() if name.startswith("rlx_swift.")}
FUSED = sorted(name for name, kind in OWN.items() if not kind.host_only)
SHAPES = st.lists(st.lists(st.integers(1, 4), max_size=4).map(tuple), min_size=1, max_size=3)


def batches(shapes, seed, windows):
    """A window of batches for each update, with gradients of changing size, some of them zero."""
    rng = np.random.default_rng(seed)

    def batch(scale):
        return {f"g{i}": np.asarray(scale * rng.normal(size=shape), np.float32) for i, shape in enumerate(shapes)}

    return [[batch(rng.choice([0.0, 1e-4, 1.0, 30.0])) for _ in range(size)] for size in windows]


def maker(shapes, config, device):
    graph = fed_gradients(shapes)
    return lambda: rlx.TrainingSession(graph, config=config, device=device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", FUSED)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_optimizer(kind, device, data):
    shapes = data.draw(SHAPES)
    config = data.draw(strategies.configs(data.draw(strategies.optimizers(kind))))
    windows = data.draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=8, max_size=8))
    assert_fused_matches_host(maker(shapes, config, device), batches(shapes, data.draw(st.integers(0, 99)), windows))


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_groups_of_optimizers(device, data):
    shapes = data.draw(SHAPES)
    groups = [
        rlx.Group(select, data.draw(strategies.optimizers()), lr_scale=data.draw(st.sampled_from([1.0, 0.1])))
        for select in ("p0", lambda p: p.ndim == 2, "*")
    ]
    config = data.draw(strategies.configs(rlx.ParamGroups(groups)))
    drawn = batches(shapes, data.draw(st.integers(0, 99)), [1, 2, 1, 1])
    assert_fused_matches_host(maker(shapes, config, device), drawn)


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_skipped_updates(device, data):
    """Under a loss scale, windows with an infinity or NaN anywhere change nothing, host and fused alike."""
    shapes = data.draw(SHAPES)
    config = rlx.TrainConfig(
        optimizer=data.draw(strategies.optimizers()), clip=data.draw(strategies.clips()), loss_scale="dynamic", ema=0.5
    )
    windows = batches(shapes, 3, data.draw(st.lists(st.sampled_from([1, 2]), min_size=6, max_size=6)))
    for number in data.draw(st.sets(st.integers(0, 5), min_size=1)):
        bad = data.draw(st.sampled_from([np.inf, -np.inf, np.nan, 3e38]))
        windows[number][-1]["g0"] = np.full(shapes[0], bad, np.float32)
    assert_fused_matches_host(maker(shapes, config, device), windows)


class Tilted(rlx.SGD):
    """Host and program differ by one part in a million."""

    def update(self, xp, grad, state, param, **scalars):
        lr = scalars["lr"] * (1.0 if isinstance(param, np.ndarray) else 1.000001)
        return super().update(xp, grad, state, param, lr=lr)


def test_a_small_difference_is_found_and_named():
    config = rlx.TrainConfig(optimizer=Tilted(), lr=1.0)
    feeds = [{"g0": np.float32([[0.0, 9.0]])}]
    with pytest.raises(UpdateMismatch, match=r"param/p0 after step 1: element \[0, 1\].*is allowed") as caught:
        assert_fused_matches_host(maker([(1, 2)], config, "numpy"), feeds)
    assert "graph fed_gradients" in str(caught.value) and "Tilted" in str(caught.value)
    assert_fused_matches_host(maker([(1, 2)], config, "numpy"), feeds, ulps=100)


def test_what_cannot_be_fused_is_said():
    config = rlx.TrainConfig(optimizer=rlx.SOAP())
    with pytest.raises(rlx.errors.SessionError, match="QR decomposition"):
        assert_fused_matches_host(maker([(2, 2)], config, "numpy"), [])
