"""The update inside the device program against the update on the host, from equal states; knows sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import RlxError, SessionError
from ..ir.symbolic import sample
from ..optim.arrays import NUMPY
from ..session.snapshot import capture, restore
from ..session.training import TrainingSession
from .recording import Recorded

Batch = Mapping[str, Any]


class UpdateMismatch(RlxError, AssertionError):
    """Two ways of updating disagree: the first param or slot, its element, the step, the numbers."""


def assert_fused_matches_host(
    make_session: Callable[[], TrainingSession], batches: Iterable[Batch | Sequence[Batch]], ulps: float | None = None
) -> None:
    """Raises UpdateMismatch unless the fused update gives what the host's gives, at every step from the host's state.

    `make_session` makes equal sessions that update on the host. Each of `batches` is one step, or a list of
    micro-batches that are accumulated for one. Before each step the host's state is copied into the fused session.

    A new value may be off by `ulps` units in the last place of the largest intermediate value of the rule, plus
    what the rule makes of gradients that differ by as much: so a sign may differ where its argument is that close
    to 0. By default `ulps` is what the optimizer's contract says.
    """
    host, fused = make_session(), make_session().with_fused_optimizer()
    if not fused.fused_active:
        raise SessionError("assert_fused_matches_host", "the update cannot be fused", fused.fused_reason)
    for number, batch in enumerate(batches, 1):
        parts = [batch] if isinstance(batch, Mapping) else list(batch)
        restore(fused, *capture(host))
        gradients = _mean_gradients(host, parts)
        before, _ = capture(host)
        for ts in (host, fused):
            _step(ts, parts)
        after, fused_after = capture(host)[0], capture(fused)[0]
        if host.last_report.skipped != fused.last_report.skipped:  # type: ignore[union-attr]
            raise UpdateMismatch(f"step {number}", f"host {host.last_report}, fused {fused.last_report}")
        estimates = {name: value for name, value in after.items() if name.startswith("hessian/")}
        skipped = host.last_report.skipped  # type: ignore[union-attr]
        slack = {} if skipped else _slack(host, {**before, **estimates}, gradients, ulps)
        for name, expected in after.items():
            _compare(f"{name} after step {number}", fused_after[name], expected, slack.get(name), host)


def _step(ts: TrainingSession, parts: Sequence[Batch]) -> None:
    if len(parts) == 1:
        ts.step(parts[0])
        return
    for part in parts:
        ts.accumulate(part)
    ts.step_accumulated()


def _mean_gradients(ts: TrainingSession, parts: Sequence[Batch]) -> dict[str, np.ndarray]:
    found = [ts.gradients(part)[1] for part in parts]
    return {name: np.asarray(np.mean([g[name] for g in found], axis=0), np.float32) for name in found[0]}


def _slack(
    host: TrainingSession, before: Mapping[str, np.ndarray], gradients: Mapping[str, np.ndarray], ulps: float | None
) -> dict[str, np.ndarray]:
    """How far each new value may be from the host's, by its name in a checkpoint."""
    rule = host._trained.rule
    numbers = rule.scalars(host.steps - 1, host._trainer.schedule(host.steps - 1), rule.due(host.steps - 1))

    def updated(shift: float) -> dict[str, Any]:
        def read(name: str) -> Recorded:
            return Recorded.of(before[f"param/{name}" if name in rule.shapes else name])

        moved = {n: Recorded.of(g + shift * allowed[n] * _ulp(np.max(np.abs(g)))) for n, g in gradients.items()}
        with np.errstate(all="ignore"):
            previous = {n: moved[n] for n in rule.previous}
            return rule.apply(NUMPY, moved, previous, numbers, read, lambda name, new, old: new)

    allowed = {n: ulps or each.optimizer.contract.ulps for each in rule.assignments for n in each.params}
    low, middle, high = (updated(shift) for shift in (-1.0, 0.0, 1.0))
    slack = {}
    for name, value in middle.items():
        owner = next((n for n in rule.shapes if name == n or name.split("/", 1)[-1].startswith(n)), name)
        spread = np.maximum(np.abs(np.subtract(high[name], value)), np.abs(np.subtract(low[name], value)))
        scale = Recorded.largest(value)
        key = f"param/{name}" if name in rule.shapes else name
        slack[key] = np.asarray(spread, np.float64) + allowed.get(owner, 4.0) * _ulp(scale)
    return slack


def _ulp(x: Any) -> Any:
    return np.spacing(np.maximum(np.abs(x), np.finfo(np.float32).tiny).astype(np.float32)).astype(np.float64)


def _compare(
    what: str, actual: np.ndarray, expected: np.ndarray, slack: np.ndarray | None, ts: TrainingSession
) -> None:
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    same = (a == e) | (np.isnan(a) & np.isnan(e))
    with np.errstate(invalid="ignore"):
        good = same if slack is None else same | (np.abs(a - e) <= slack)
    if not np.all(good):
        at = tuple(int(i) for i in np.argwhere(~np.asarray(good))[0])
        allowed = 0.0 if slack is None else float(np.broadcast_to(slack, a.shape)[at])
        raise UpdateMismatch(
            what, f"element {list(at)}: the host has {e[at]!r}, the program {a[at]!r}, and {allowed:.3g} is allowed",
            f"{ts.config}\n{sample(ts.graph)}",
        )
