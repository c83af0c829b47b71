"""The rule inside the device program against the rule on the host, over drawn params, settings and gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rlx_swift as rlx
from tests.training_cases import DEVICES, fed, fed_session

SHAPES = st.lists(st.integers(1, 5), max_size=4).map(tuple)
FRACTION = st.floats(0, 0.999)
DECAY = st.sampled_from([0.0, 0.01, 0.3])
OPTIMIZERS = st.one_of(
    st.builds(rlx.SGD, momentum=FRACTION, dampening=FRACTION, weight_decay=DECAY),
    st.builds(rlx.SGD, momentum=st.floats(0.1, 0.99), nesterov=st.just(True), weight_decay=DECAY),
    *(
        st.builds(kind, beta1=FRACTION, beta2=FRACTION, eps=st.sampled_from([1e-8, 1e-3]), weight_decay=DECAY,
                  amsgrad=st.booleans())
        for kind in (rlx.Adam, rlx.AdamW)
    ),
)
CLIPS = st.one_of(
    st.none(),
    *(st.builds(clip, st.sampled_from([0.01, 1.0, 100.0]))
      for clip in (rlx.optim.clip_by_global_norm, rlx.optim.clip_by_norm, rlx.optim.clip_by_value)),
)


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_over_eight_updates(data, device):
    shapes = data.draw(st.dictionaries(st.sampled_from("abcd"), SHAPES, min_size=1))
    config = {"optimizer": data.draw(OPTIMIZERS), "clip": data.draw(CLIPS), "lr": data.draw(st.floats(1e-4, 0.5))}
    windows = data.draw(st.lists(st.integers(1, 3), min_size=8, max_size=8))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    start = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    host, fused = fed_session(start, device, False, **config), fed_session(start, device, True, **config)
    for window in windows:
        scale = 10.0 ** rng.integers(-4, 3)
        batches = [fed({n: scale * rng.normal(size=shape) for n, shape in shapes.items()}) for _ in range(window)]
        for ts in (host, fused):
            for batch in batches:
                ts.step(batch) if window == 1 else ts.accumulate(batch, weight=0.5 + len(batches))
            ts.step_accumulated()
        for name in shapes:
            np.testing.assert_allclose(fused.param(name), host.param(name), rtol=2e-6, atol=1e-7)
            for slot, value in host.state(name).items():
                np.testing.assert_allclose(fused.state(name)[slot], value, rtol=2e-6, atol=1e-7 * scale)
                assert fused.state(name)[slot].dtype == np.float32
    assert host.steps == fused.steps == 8
