"""Ten updates as PyTorch and optax computed them in float64; `tests/goldens/make_optim.py` made the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rlx_swift as rlx
from tests.goldens.optim_cases import CASES, LR, SHAPES, gradients, start
from tests.training_cases import DEVICES, UPDATES, fed, fed_session

GOLDENS = np.load(Path(__file__).parents[1] / "goldens" / "optim.npz")
OURS = {
    "sgd": rlx.SGD(), "sgd-momentum": rlx.SGD(momentum=0.9), "sgd-dampening": rlx.SGD(momentum=0.9, dampening=0.5),
    "sgd-nesterov": rlx.SGD(momentum=0.9, nesterov=True), "sgd-decay": rlx.SGD(momentum=0.9, weight_decay=0.1),
    "adam": rlx.Adam(), "adam-decay": rlx.Adam(beta1=0.8, beta2=0.95, eps=1e-4, weight_decay=0.1),
    "adam-amsgrad": rlx.Adam(amsgrad=True), "adamw": rlx.AdamW(weight_decay=0.1),
    "nadamw": rlx.NAdamW(weight_decay=0.1), "radam": rlx.RAdam(threshold=5.0),
    "radam-decay": rlx.RAdam(beta2=0.99, weight_decay=0.1, threshold=5.0),
    "lion": rlx.Lion(), "lamb": rlx.LAMB(), "muon": rlx.Muon(nesterov=False, fallback=rlx.AdamW(weight_decay=0.0)),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
@pytest.mark.parametrize("name", CASES)
def test_ten_updates(name, fused, device):
    begin = {f"p{i}": start(i) for i in range(len(SHAPES))}
    ts = fed_session(begin, device, fused, optimizer=OURS[name], lr=LR)
    for n in range(10):
        ts.step(fed({f"p{i}": gradients(i)[n] for i in range(len(SHAPES))}))
    rtol = 1e-4 if name == "muon" else 3e-6
    for i in range(len(SHAPES)):
        np.testing.assert_allclose(ts.param(f"p{i}"), GOLDENS[f"{name}/{i}"], rtol=rtol, atol=rtol / 10)
