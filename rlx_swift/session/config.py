"""The settings of a training run, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import ConfigError
from ..optim import SGD, Clip, Optimizer, ParamGroups
from ..optim.base import UNIT, Range, require_counts, require_ranges
from ..optim.schedule import Schedule, as_schedule

SCALE = Range('"auto", "dynamic", None or a finite number above 0', low_too=False)


@dataclass(frozen=True)
class TrainConfig:
    """Attributes:
    lr: a number, or a function of the number of updates applied so far; see `rlx.optim.schedules`.
    optimizer: an `rlx.optim` optimizer, a user's own, or `rlx.ParamGroups`.
    clip: a bound on the gradients, such as `rlx.optim.clip_by_global_norm(1.0)`.
    loss_scale: "auto" scales dynamically where the precision policy computes in f16; "dynamic" always does; a
        number is a fixed scale; None is none. Under a scale an update with a non-finite gradient is skipped.
    ema: the decay of a running average of the weights, such as 0.999, or None.
    seed: for initializers and everything random.
    update_path: "mlupdatetask" trains by Core ML's own update tasks, where `mlupdatetask_eligibility()` allows it;
        None lets the session choose between its own ways.
    """

    lr: float | Schedule = 1e-2
    optimizer: Optimizer | ParamGroups = field(default_factory=SGD)
    clip: Clip | None = None
    loss_scale: str | float | None = "auto"
    ema: float | None = None
    seed: int = 0
    update_path: str | None = None

    def __post_init__(self) -> None:
        as_schedule(self.lr)
        if not isinstance(self.optimizer, (Optimizer, ParamGroups)):
            hint = "write SGD() with parentheses" if isinstance(self.optimizer, type) else ""
            problem = f"expected an rlx.Optimizer or rlx.ParamGroups, got {self.optimizer!r}"
            raise ConfigError("optimizer", problem, hint)
        if self.clip is not None and not isinstance(self.clip, Clip):
            raise ConfigError("clip", f"expected a clip such as rlx.optim.clip_by_global_norm(1.0), got {self.clip!r}")
        if self.loss_scale not in ("auto", "dynamic", None):
            require_ranges(self, loss_scale=SCALE)
        if self.ema is not None:
            require_ranges(self, ema=UNIT)
        require_counts(self, seed=0)
        if self.update_path not in (None, "mlupdatetask"):
            raise ConfigError("update_path", f"expected None or 'mlupdatetask', got {self.update_path!r}")
