"""Updates in mixed precision: as exact as in f32 given the gradient, and led about where f32 leads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rlx_swift as rlx
from rlx_swift.optim.base import registry
from rlx_swift.testing import assert_fused_matches_host, strategies
from rlx_swift.testing.contract import mixed_departure
from tests.training_cases import DEVICES, mlp, mlp_data

OWN = {kind.__name__: kind for name, kind in registry().items() if name.startswith("rlx_swift.")}
FUSED = sorted(name for name, kind in OWN.items() if not kind.host_only)
HALF = ("always_f16", "auto_mixed", "auto_mixed_conservative")
few = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", FUSED)
@few
@given(data=st.data())
def test_the_program_updates_as_the_host_does(kind, device, data):
    """From the same state, at each of 8 steps, windows and skips among them."""
    config = data.draw(strategies.configs(data.draw(strategies.optimizers(kind))))
    policy = data.draw(st.sampled_from(HALF))
    batches = [mlp_data(16, n) for n in range(8)]
    batches[data.draw(st.integers(0, 7))]["x"][0, 0] = data.draw(st.sampled_from([1.0, np.inf, np.nan, 6e4]))
    windows = [*batches[:3], batches[3:5], *batches[5:]]
    assert_fused_matches_host(
        lambda: rlx.TrainingSession(mlp(16), config=config, device=device).with_precision_policy(policy), windows
    )


@pytest.mark.parametrize("kind", sorted(OWN))
@few
@given(data=st.data())
def test_they_lead_about_where_f32_leads(kind, data):
    optimizer, lr = data.draw(strategies.optimizers(kind)), data.draw(st.sampled_from([1e-3, 1e-2]))
    assert mixed_departure(optimizer, "numpy", lr) <= optimizer.contract.mixed


@pytest.mark.parametrize("device", DEVICES)
@few
@given(seed=st.integers(0, 2**32), policy=st.sampled_from(HALF))
def test_gradients_are_those_of_f32(seed, policy, device):
    """Within 1% of the largest, whatever the batch."""
    half = rlx.TrainingSession(mlp(16), device=device).with_precision_policy(policy)
    full = rlx.TrainingSession(mlp(16), device=device)
    batch = mlp_data(16, seed)
    for name, expected in full.gradients(batch)[1].items():
        found = half.gradients(batch)[1][name]
        assert np.max(np.abs(found - expected)) <= 0.01 * np.max(np.abs(expected))
