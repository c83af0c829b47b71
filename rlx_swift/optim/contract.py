"""What an optimizer promises to tests and to the documentation; plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TARGETS = ("quadratic", "rosenbrock", "logistic", "factorisation")


@dataclass(frozen=True)
class Contract:
    """How close the two ways of running a rule are, and how fast it minimises.

    Attributes:
        ulps: how far an update inside the device program may be from one on the host, in units in the last
            place of the largest intermediate value.
        mixed: how far 8 updates of a small classifier under "auto_mixed" may lead from where they lead in f32, as a
            part of the way. A rule that takes signs, or divides by what is small, goes off further.
        targets: for each standard target of `rlx_swift.testing`, the learning rate and the number of updates
            within which it is minimised. A target that is left out is not promised.
    """

    ulps: float = 4.0
    mixed: float = 0.02
    targets: Mapping[str, tuple[float, int]] = field(default_factory=dict)
