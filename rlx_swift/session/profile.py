"""Where the time of a prediction goes, as data and as text. Measures nothing itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_LISTED = 10  # steps that the text names, slowest first
_NAMED = 3  # values of a step that the text names


@dataclass(frozen=True)
class ProfileStep:
    """One call of a kernel, or a few that belong together; the numbers are of all its calls in one prediction.

    Attributes:
        operations: the operations of MIL that it does together.
        values: what these make, by the names in the program.
        flops: multiplications, additions and other arithmetic on elements; what sorts, pools, samples or only moves
            counts none.
        bytes: memory that must be read and written.
    """

    operations: tuple[str, ...]
    values: tuple[str, ...]
    calls: int
    seconds: float
    flops: float
    bytes: int

    @property
    def kind(self) -> str:
        """The operation that names the step: of several the one that works most, else the first."""
        heavy = [each for each in self.operations if each in _HEAVY]
        return (heavy or list(self.operations) or ["copy"])[0]


_HEAVY = ("conv", "conv_transpose", "linear", "matmul", "einsum", "scaled_dot_product_attention", "lstm", "gru", "rnn")


@dataclass(frozen=True)
class KindTotal:
    """All steps of one kind."""

    kind: str
    steps: int
    seconds: float
    flops: float
    bytes: int


@dataclass(frozen=True)
class Profile:
    """The quickest of some predictions.

    Attributes:
        seconds: of the whole prediction.
        steps: in the order in which they first ran.
    """

    seconds: float
    steps: tuple[ProfileStep, ...]

    @property
    def between(self) -> float:
        """Seconds that no step accounts for: planning for new shapes, copies between stretches, control flow."""
        return max(self.seconds - sum(step.seconds for step in self.steps), 0.0)

    def by_kind(self) -> tuple[KindTotal, ...]:
        """The steps summed by kind, slowest first."""
        kinds: dict[str, list[ProfileStep]] = {}
        for step in self.steps:
            kinds.setdefault(step.kind, []).append(step)
        totals = [_total(kind, steps) for kind, steps in kinds.items()]
        return tuple(sorted(totals, key=lambda total: -total.seconds))

    def slowest(self, count: int = _LISTED) -> tuple[ProfileStep, ...]:
        return tuple(sorted(self.steps, key=lambda step: -step.seconds)[:count])

    def __str__(self) -> str:
        lines = [f"{_time(self.seconds)} a prediction, {_time(self.between)} of it between the steps", ""]
        lines.append(f"{'operation':28} {'steps':>6} {_HEADER}")
        lines += [f"{t.kind:28} {t.steps:6} {self._numbers(t)}" for t in self.by_kind()]
        lines += ["", f"{'slowest steps':28} {'calls':>6} {_HEADER}  makes"]
        lines += [f"{_joined(s.operations, 28)} {s.calls:6} {self._numbers(s)}  {_names(s)}" for s in self.slowest()]
        return "\n".join(lines)

    def _numbers(self, part: ProfileStep | KindTotal) -> str:
        share = part.seconds / self.seconds if self.seconds else 0.0
        rates = [amount / part.seconds / 1e9 if part.seconds else 0.0 for amount in (part.flops, part.bytes)]
        return (
            f"{_time(part.seconds):>10} {share:6.1%} {part.flops / 1e6:11.3f} {part.bytes / 2**20:9.3f}"
            f" {rates[0]:8.1f} {rates[1]:7.1f}"
        )


_HEADER = f"{'time':>10} {'share':>6} {'MFLOP':>11} {'MiB':>9} {'GFLOP/s':>8} {'GB/s':>7}"


def profile_of(said: Mapping[str, Any]) -> Profile:
    """A profile from the text that the native library gives."""
    return Profile(said["nanoseconds"] / 1e9, tuple([_step(step) for step in said["steps"]]))


def _total(kind: str, steps: Sequence[ProfileStep]) -> KindTotal:
    seconds, flops = sum(step.seconds for step in steps), sum(step.flops for step in steps)
    return KindTotal(kind, len(steps), seconds, flops, sum(step.bytes for step in steps))


def _step(said: Mapping[str, Any]) -> ProfileStep:
    operations: Sequence[Mapping[str, str]] = said["operations"]
    return ProfileStep(
        tuple([each["type"] for each in operations]), tuple([each["output"] for each in operations]),
        said["calls"], said["nanoseconds"] / 1e9, said["flops"], said["bytes"],
    )


def _joined(operations: Sequence[str], width: int) -> str:
    text = "+".join(operations) or "copy"
    return f"{text if len(text) <= width else text[: width - 3] + '...':{width}}"


def _names(step: ProfileStep) -> str:
    names = [name for name in step.values if name]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[-_NAMED:]) + more


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.1f} us"
