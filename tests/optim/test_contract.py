"""Every optimizer of the registry keeps its contract, and the check finds those that do not."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.optim.base import registry
from rlx_swift.optim.contract import TARGETS, Contract
from rlx_swift.testing import assert_optimizer_contract
from rlx_swift.testing.contract import ContractBroken
from rlx_swift.testing.updates import UpdateMismatch

OWN = {kind.__name__: kind for name, kind in registry().items() if name.startswith("rlx_swift.")}


@pytest.mark.parametrize("kind", sorted(OWN))
def test_on_the_interpreter(kind):
    assert set(OWN[kind].contract.targets) == set(TARGETS)
    assert_optimizer_contract(OWN[kind](), targets=["quadratic", "logistic", "factorisation"])


@pytest.mark.native
@pytest.mark.parametrize("kind", sorted(OWN))
def test_on_the_runtime(kind):
    assert_optimizer_contract(OWN[kind](), device="cpu")


class Base(rlx.Optimizer):
    """Good in itself; the others break one thing each."""

    contract = Contract(targets={"quadratic": (0.01, 200)})

    def init(self, xp, param):
        return {"v": xp.zeros_like(param)}

    def update(self, xp, grad, state, param, **scalars):
        return param - scalars["lr"] * grad, {"v": grad}


class Branching(Base):
    def update(self, xp, grad, state, param, **scalars):
        return (param - scalars["lr"] * grad if xp.sum(grad) > 0 else param), state


class Dividing(Base):
    def update(self, xp, grad, state, param, **scalars):
        return param - scalars["lr"] * grad / xp.sqrt(xp.sum(xp.square(grad))), state


class Baking(Base):
    """Its host form is right, and its program has the first rate for ever."""

    def scalars(self, step, lr):
        return {"lr": lr, "step": float(step)}

    def update(self, xp, grad, state, param, **scalars):
        step = scalars["step"] if isinstance(param, np.ndarray) else 1.0
        return param - scalars["lr"] / step * grad, state


class Slow(Base):
    contract = Contract(targets={"quadratic": (0.01, 3)})


class Losing(Base):
    def update(self, xp, grad, state, param, **scalars):
        return param - scalars["lr"] * grad, {}


def test_a_good_one_passes():
    assert_optimizer_contract(Base())


@pytest.mark.parametrize(("kind", "error", "text"), [
    (Branching, ContractBroken, "fused is False"), (Dividing, ContractBroken, "not finite"),
    (Baking, UpdateMismatch, "after step 2"), (Slow, ContractBroken, "least loss of 'quadratic'"),
    (Losing, ContractBroken, "expected the slots"),
])
def test_what_breaks_is_named(kind, error, text):
    with pytest.raises(error, match=text), np.errstate(all="ignore"):
        assert_optimizer_contract(kind())


class Anchored(Base):
    """Pulls each param back to where it started: the state of a param starts from its value."""

    def init(self, xp, param):
        return {"anchor": param}

    def update(self, xp, grad, state, param, **scalars):
        return param - scalars["lr"] * (grad + param - state["anchor"]), state


@pytest.mark.parametrize("fused", [False, True])
def test_state_may_start_from_the_param(fused):
    g = rlx.Graph()
    g.set_outputs({"loss": g.param("w", (2,), init=[3.0, -1.0]).sum()})
    ts = rlx.TrainingSession(g, config=rlx.TrainConfig(lr=0.5, optimizer=Anchored()), device="numpy")
    ts = ts.with_fused_optimizer() if fused else ts
    assert ts.state("w")["anchor"].tolist() == [3.0, -1.0]
    ts.step({})
    ts.step({})
    assert ts.param("w").tolist() == [2.25, -1.75]
