"""Hypothesis strategies for optimizers and settings of training runs; needs hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from .. import optim
from ..optim import Clip, Optimizer, ParamGroups
from ..session.config import TrainConfig

_FRACTION = st.sampled_from([0.0, 0.5, 0.9, 0.99])
_DECAY = st.sampled_from([0.0, 0.01, 0.3])
_EPS = st.sampled_from([1e-8, 1e-3])
_BETAS = {"beta1": _FRACTION, "beta2": st.sampled_from([0.5, 0.9, 0.999]), "eps": _EPS, "weight_decay": _DECAY}

_FUSED: dict[str, st.SearchStrategy[Optimizer]] = {
    "SGD": st.builds(optim.SGD, momentum=_FRACTION, dampening=_FRACTION, weight_decay=_DECAY)
    | st.builds(optim.SGD, momentum=st.sampled_from([0.5, 0.9]), nesterov=st.just(True), weight_decay=_DECAY),
    "Adam": st.builds(optim.Adam, **_BETAS, amsgrad=st.booleans()),
    "AdamW": st.builds(optim.AdamW, **_BETAS, amsgrad=st.booleans()),
    "NAdamW": st.builds(optim.NAdamW, **_BETAS, momentum_decay=st.sampled_from([0.0, 0.004, 1.0])),
    "RAdam": st.builds(optim.RAdam, **_BETAS, threshold=st.sampled_from([4.0, 5.0])),
    "QHAdamW": st.builds(optim.QHAdamW, **_BETAS, nu1=st.floats(0, 1), nu2=st.sampled_from([0.3, 0.7, 1.0])),
    "LAMB": st.builds(optim.LAMB, **_BETAS),
    "Adafactor": st.builds(
        optim.Adafactor, lr=st.none() | st.just(0.01), beta1=st.sampled_from([0.0, 0.9]), weight_decay=_DECAY
    ),
    "Lion": st.builds(optim.Lion, beta1=_FRACTION, beta2=_FRACTION, weight_decay=_DECAY),
    "Muon": st.builds(
        optim.Muon, momentum=_FRACTION, nesterov=st.booleans(), weight_decay=_DECAY,
        scale=st.sampled_from(["original", "match_rms_adamw"]),
    ),
    "SophiaH": st.builds(optim.SophiaH, beta1=_FRACTION, beta2=_FRACTION, weight_decay=_DECAY, every=st.integers(1, 4)),
    "MARS": st.builds(optim.MARS, **_BETAS, gamma=st.sampled_from([0.0, 0.025, 0.5]), exact=st.booleans()),
    "Stiefel": st.builds(optim.Stiefel, momentum=_FRACTION),
}
_HOST: dict[str, st.SearchStrategy[Optimizer]] = {
    "SOAP": st.builds(optim.SOAP, **_BETAS, every=st.integers(1, 3)),
    "KronPSGD": st.builds(optim.KronPSGD, beta1=_FRACTION, weight_decay=_DECAY, every=st.integers(1, 3)),
}


def optimizers(kind: str | None = None, fused: bool = True) -> st.SearchStrategy[Optimizer]:
    """Optimizers of this package with drawn hyperparameters: of one class by its name, or of all.

    With `fused` only such as can be part of a device program.
    """
    known = _FUSED if fused else {**_FUSED, **_HOST}
    return {**_FUSED, **_HOST}[kind] if kind is not None else st.sampled_from(sorted(known)).flatmap(known.__getitem__)


def clips() -> st.SearchStrategy[Clip | None]:
    """No clip, or one of the three with a drawn limit."""
    limit = st.sampled_from([0.01, 1.0, 100.0])
    kinds = (optim.clip_by_global_norm, optim.clip_by_norm, optim.clip_by_value)
    return st.none() | st.one_of(*(st.builds(kind, limit) for kind in kinds))


@dataclass(frozen=True)
class _Halving:
    """A schedule that is a function, as a user's own."""

    lr: float

    def __call__(self, n: int) -> float:
        return self.lr / (1 + n)


def schedules() -> st.SearchStrategy[Any]:
    """Learning rates: numbers, schedules, and a function."""
    lr = st.sampled_from([1e-4, 1e-2, 0.3])
    named = optim.schedules
    return st.one_of(
        lr, st.builds(named.Step, lr=lr, every=st.integers(1, 4)),
        st.builds(named.Exponential, lr=lr, factor=st.floats(0.5, 1)),
        st.builds(named.Cosine, lr=lr, total=st.integers(6, 20), warmup=st.integers(0, 5)),
        st.builds(named.OneCycle, lr=lr, total=st.integers(4, 20)), st.builds(named.Plateau, lr=lr),
        lr.map(_Halving),
    )


@st.composite
def configs(draw: st.DrawFn, optimizer: Optimizer | ParamGroups | None = None, fused: bool = True) -> TrainConfig:
    """Settings of a run, with the given optimizer or a drawn one."""
    return TrainConfig(
        lr=draw(schedules()), optimizer=optimizer or draw(optimizers(fused=fused)), clip=draw(clips()),
        loss_scale=draw(st.sampled_from(["auto", "dynamic", None, 8.0])),
        ema=draw(st.sampled_from([None, 0.0, 0.9])), seed=draw(st.integers(0, 2**40)),
    )
