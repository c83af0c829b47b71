"""Optimizers against float64 oracles and published numbers, on the host and inside the device program."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from tests.oracles_optim import ORACLES, run
from tests.training_cases import DEVICES, UPDATES, fed, fed_session

FORMS = [
    rlx.SGD(), rlx.SGD(weight_decay=0.1), rlx.SGD(momentum=0.9), rlx.SGD(momentum=0.9, dampening=0.5),
    rlx.SGD(momentum=0.9, nesterov=True), rlx.SGD(momentum=0.8, dampening=0.3, weight_decay=0.05),
    rlx.Adam(), rlx.Adam(beta1=0.8, beta2=0.95, eps=1e-4, weight_decay=0.1), rlx.Adam(amsgrad=True),
    rlx.Adam(beta1=0.0), rlx.AdamW(), rlx.AdamW(weight_decay=0.3, amsgrad=True),
    rlx.NAdamW(), rlx.NAdamW(momentum_decay=1.0, beta2=0.9, weight_decay=0.2), rlx.RAdam(),
    rlx.RAdam(beta2=0.9, weight_decay=0.1), rlx.RAdam(beta2=0.5), rlx.RAdam(threshold=5.0), rlx.QHAdamW(),
    rlx.QHAdamW(nu1=0.2, nu2=0.4, beta1=0.9), rlx.LAMB(), rlx.LAMB(weight_decay=0.0), rlx.Adafactor(),
    rlx.Adafactor(lr=0.1, beta1=0.9, weight_decay=0.1, clip=0.5), rlx.Lion(), rlx.Lion(weight_decay=0.0), rlx.Muon(),
    rlx.Muon(scale="match_rms_adamw", nesterov=False, weight_decay=0.1), rlx.MARS(), rlx.MARS(gamma=0.5, beta1=0.5),
    rlx.Stiefel(), rlx.Stiefel(momentum=0.0, fallback=rlx.Adam()), rlx.SOAP(every=2), rlx.SOAP(longest=3),
    rlx.KronPSGD(), rlx.KronPSGD(every=3, weight_decay=0.1),
    *(kind(eps=0.1) for kind in (rlx.Adam, rlx.NAdamW, rlx.RAdam, rlx.QHAdamW, rlx.LAMB, rlx.MARS, rlx.SOAP)),
]
LOOSE = {"Muon": 5e-5, "Stiefel": 1e-5, "SOAP": 3e-4, "KronPSGD": 1e-4, "LAMB": 1e-5, "Adafactor": 1e-5}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
@pytest.mark.parametrize("optimizer", FORMS, ids=repr)
def test_follows_the_oracle(optimizer, fused, device):
    rng = np.random.default_rng(7)
    if fused and optimizer.host_only:
        pytest.skip("runs on the host only")
    shapes = {"a": (3, 4), "b": (), "c": (1,), "d": (5, 2), "e": (6,), "f": (2, 3, 2)}
    if isinstance(optimizer, rlx.SOAP):  # eigenvectors of a null space of two dimensions are nobody's in particular
        shapes |= {"d": (4, 4), "f": (2, 3, 1)}
    start = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    steps = [{name: rng.normal(size=value.shape) * 10.0**-k for name, value in start.items()} for k in range(6)]
    ts = fed_session(start, device, fused, optimizer=optimizer, lr=0.05)
    for gradients in steps:
        ts.step(fed(gradients))
    for name, value in start.items():
        expected = run(optimizer, np.float32(value), [np.float32(g[name]) for g in steps], 0.05)
        rtol = LOOSE.get(type(optimizer).__name__, 2e-6)
        np.testing.assert_allclose(ts.param(name), expected, rtol=rtol, atol=rtol / 10, err_msg=name)


def after(optimizer, start, gradients, fused, device, **config):
    """The values of one param of rank 0 after each update."""
    ts = fed_session({"p": start}, device, fused, optimizer=optimizer, **{"lr": 0.1, **config})
    values = []
    for gradient in gradients:
        ts.step(fed({"p": gradient}))
        values.append(float(ts.param("p")))
    return values


# (optimizer, start, gradients, config, values after each update): well-known small cases with their right values.
KNOWN = [
    pytest.param(rlx.Adam(), 1.0, [1.0, 1.0], {}, [0.9, 0.8], id="adam corrects its bias"),
    pytest.param(rlx.Adam(), 0.0, [1e-8], {"lr": 1.0}, [-0.5], id="eps is outside the root of the corrected v"),
    pytest.param(rlx.Adam(weight_decay=0.1), 1.0, [0.0], {}, [0.9], id="adam with L2"),
    pytest.param(rlx.AdamW(weight_decay=0.1), 1.0, [0.0], {}, [0.99], id="adamw decays alone"),
    pytest.param(rlx.AdamW(weight_decay=0.1), 1.0, [1.0], {}, [0.89], id="adamw decays the old weight"),
    pytest.param(rlx.SGD(momentum=0.9), 0.0, [1.0, 1.0], {}, [-0.1, -0.29], id="momentum"),
    pytest.param(rlx.SGD(momentum=0.9, dampening=0.5), 0.0, [1.0, 1.0], {}, [-0.1, -0.24], id="dampening"),
    pytest.param(rlx.SGD(momentum=0.9, nesterov=True), 0.0, [1.0, 1.0], {}, [-0.19, -0.461], id="nesterov"),
    pytest.param(
        rlx.SGD(momentum=0.9), 0.0, [1.0, 1.0], {"lr": lambda n: [0.1, 0.01][n]}, [-0.1, -0.119],
        id="the rate is outside the velocity",
    ),
    pytest.param(rlx.SGD(), 1.0, [2.0], {"lr": 0.0}, [1.0], id="a rate of 0 changes nothing"),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", UPDATES)
@pytest.mark.parametrize(("optimizer", "start", "gradients", "config", "values"), KNOWN)
def test_known_values(optimizer, start, gradients, config, values, fused, device):
    np.testing.assert_allclose(after(optimizer, start, gradients, fused, device, **config), values, rtol=1e-6)


@pytest.mark.parametrize("fused", UPDATES)
def test_zero_gradients_and_infinities_do_what_the_rule_says(fused):
    for optimizer in (rlx.SGD(momentum=0.9), rlx.Adam(), rlx.AdamW(weight_decay=0.0)):
        assert after(optimizer, 2.0, [0.0, 0.0], fused, "numpy") == [2.0, 2.0]
        assert np.isnan(after(optimizer, 2.0, [np.nan], fused, "numpy")).all()


@pytest.mark.parametrize("fused", UPDATES)
def test_what_is_not_used_may_overflow(fused):
    """RAdam's first updates divide by nothing, so that a second moment past the range of f32 does no harm."""
    assert after(rlx.RAdam(), 0.0, [1e20], fused, "numpy") == [np.float32(-1e19)]


# What the papers, or where they give none PyTorch and the authors' code, take; Group, clip and rates are apart.
DEFAULTS = {
    "SGD": {"momentum": 0.0, "dampening": 0.0, "nesterov": False, "weight_decay": 0.0},
    "Adam": {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0, "amsgrad": False},
    "AdamW": {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01, "amsgrad": False},
    "NAdamW": {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01, "momentum_decay": 0.004},
    "RAdam": {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0, "threshold": 4.0},
    "QHAdamW": {"beta1": 0.995, "beta2": 0.999, "nu1": 0.7, "nu2": 1.0, "eps": 1e-8, "weight_decay": 0.01},
    "LAMB": {"beta1": 0.9, "beta2": 0.999, "eps": 1e-6, "weight_decay": 0.01},
    "Adafactor": {"lr": None, "decay_power": -0.8, "clip": 1.0, "eps1": 1e-30, "eps2": 1e-3, "beta1": 0.0,
                  "weight_decay": 0.0},
    "Lion": {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.01},
    "Muon": {"momentum": 0.95, "nesterov": True, "ns_steps": 5, "weight_decay": 0.0, "scale": "original",
             "fallback": rlx.AdamW(), "fallback_lr_scale": 1.0, "heads": ("*head*", "*embed*")},
    "SophiaH": {"beta1": 0.965, "beta2": 0.99, "weight_decay": 0.1, "gamma": 0.01, "eps": 1e-12, "every": 10,
                "estimator": "hutchinson"},
    "MARS": {"beta1": 0.95, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0.01, "gamma": 0.025, "exact": False},
    "SOAP": {"beta1": 0.95, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.01, "every": 10, "longest": 10000},
    "KronPSGD": {"beta1": 0.9, "precond_lr": 0.1, "weight_decay": 0.0, "every": 1, "clip": 1.1},
    "Stiefel": {"momentum": 0.9, "iterations": 8, "fallback": rlx.SGD(momentum=0.9), "fallback_lr_scale": 1.0},
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name):
    assert vars(getattr(rlx, name)()) == DEFAULTS[name]


def test_every_optimizer_has_an_oracle():
    from rlx_swift.optim.base import registry

    names = {c.__name__ for key, c in registry().items() if key.startswith("rlx_swift.")}
    assert names == set(ORACLES) == set(DEFAULTS)
