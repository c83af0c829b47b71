"""The loss scale: what gradients are multiplied by on their way through half precision, and how it moves."""

from __future__ import annotations

from dataclasses import dataclass

START, LOWEST, HIGHEST, PATIENCE = 2.0**12, 1.0, 2.0**15, 2000


@dataclass
class LossScale:
    """Attributes:
    active: whether gradients are scaled, and an update with a non-finite gradient is skipped.
    dynamic: whether the scale moves.
    scale: the factor, a power of two when it moves, so that scaling rounds nothing.
    good: updates since it last moved.
    """

    active: bool = False
    dynamic: bool = False
    scale: float = 1.0
    good: int = 0

    def observe(self, finite: bool) -> None:
        """Takes note of one update, applied or skipped."""
        if not self.dynamic:
            return
        if not finite:
            self.scale, self.good = max(self.scale / 2, LOWEST), 0
        elif self.good + 1 == PATIENCE:
            self.scale, self.good = min(self.scale * 2, HIGHEST), 0
        else:
            self.good += 1


def loss_scale(setting: str | float | None, half: bool) -> LossScale:
    """The scale for `TrainConfig.loss_scale`; `half` says whether the policy computes anything in f16."""
    if setting == "dynamic" or (setting == "auto" and half):
        return LossScale(True, True, START)
    if setting is None or setting == "auto":
        return LossScale()
    return LossScale(True, False, float(setting))
