"""What a session tells its user; plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class UpdatePath(Enum):
    """How a step updated the weights.

    GRADIENT: the device computed gradients, the host applied the optimizer. FUSED: the optimizer ran inside
    the device program. MLUPDATETASK: Core ML's own training of NeuralNetwork models.
    """

    GRADIENT = "gradient"
    FUSED = "fused"
    MLUPDATETASK = "mlupdatetask"


@dataclass(slots=True)
class StepReport:
    """One update: `loss` as it was before it, and the graph's other outputs of rank 0 in `outputs`.

    A skipped step changed nothing.
    """

    loss: float
    path: UpdatePath
    skipped: bool = False
    outputs: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Eligible:
    """The graph can be trained by Core ML's MLUpdateTask."""

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True)
class Unsupported:
    """MLUpdateTask cannot train the graph, and why."""

    reason: str

    def __bool__(self) -> bool:
        return False
