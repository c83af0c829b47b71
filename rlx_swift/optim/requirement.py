"""What an update may ask for beyond the gradient."""

from __future__ import annotations

from dataclasses import dataclass

from .base import require, require_counts


@dataclass(frozen=True)
class HessianDiag:
    """An estimate of the diagonal of the loss's Hessian, made by an extra program every so many updates.

    `update` gets it as `hessian_diag`, of the param's shape, and the number `hessian_fresh`: 1.0 where it is
    new, 0.0 where it is the last one again.

    Attributes:
        every: the updates from one estimate to the next; the first is made for the first update.
        estimator: "hutchinson" (u * Hu with random signs u; Hutchinson 1989), or "gnb", the Gauss-Newton-Bartlett
            estimate of Liu et al. 2023, which samples labels from the model's own logits.
    """

    every: int
    estimator: str

    def __post_init__(self) -> None:
        require_counts(self, every=1)
        require("hessian_diag estimator", self.estimator in ("hutchinson", "gnb"), '"hutchinson" or "gnb"',
                self.estimator)


@dataclass(frozen=True)
class PreviousGradient:
    """The gradient of this batch at the weights of before the last update, from a second pass in the same program.

    `update` gets it as `previous_gradient`. At the first update it is the gradient itself.
    """


Requirement = HessianDiag | PreviousGradient


def hessian_diag(every: int, estimator: str = "hutchinson") -> HessianDiag:
    """Asks for an estimate of the Hessian's diagonal every so many updates."""
    return HessianDiag(every, estimator)


previous_gradient = PreviousGradient()
