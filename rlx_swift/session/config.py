"""The settings of a training run, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import ConfigError
from ..optim import SGD, Clip, Optimizer
from ..optim.schedule import Schedule, as_schedule


@dataclass(frozen=True)
class TrainConfig:
    """Attributes:
    lr: a number, or a function of the number of updates applied so far.
    optimizer: an `rlx.optim` optimizer or a user's own.
    clip: a bound on the gradients, such as `rlx.optim.clip_by_global_norm(1.0)`.
    seed: for initializers and everything random.
    """

    lr: float | Schedule = 1e-2
    optimizer: Optimizer = field(default_factory=SGD)
    clip: Clip | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        as_schedule(self.lr)
        if not isinstance(self.optimizer, Optimizer):
            hint = "write SGD() with parentheses" if isinstance(self.optimizer, type) else ""
            raise ConfigError("optimizer", f"expected an rlx.Optimizer, got {self.optimizer!r}", hint)
        if self.clip is not None and not isinstance(self.clip, Clip):
            raise ConfigError("clip", f"expected a clip such as rlx.optim.clip_by_global_norm(1.0), got {self.clip!r}")
        if not isinstance(self.seed, int) or self.seed < 0:
            raise ConfigError("seed", f"expected an integer of at least 0, got {self.seed!r}")
