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
    before = capture(host)
    for number, batch in enumerate(batches, 1):
        parts = [batch] if isinstance(batch, Mapping) else list(batch)
        restore(fused, *before)
        gradients = _mean_gradients(host, parts)
        for ts in (host, fused):
            _step(ts, parts)
        after, fused_after = capture(host), capture(fused)[0]
        if host.last_report.skipped != fused.last_report.skipped:  # type: ignore[union-attr]
            raise UpdateMismatch(f"step {number}", f"host {host.last_report}, fused {fused.last_report}")
        expected = {name: after[0][name] for name in sorted(after[0], key=lambda name: not name.startswith("hessian/"))}
        if any(expected[name].tobytes() != fused_after[name].tobytes() for name in expected):
            slack = _slack(host, {**before[0], **_estimates(expected)}, gradients, ulps)
            for name, value in expected.items():
                _compare(f"{name} after step {number}", fused_after[name], value, slack.get(name), host)
        before = after


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


def _estimates(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The Hessian estimates, which the update found already made."""
    return {name: value for name, value in values.items() if name.startswith("hessian/")}


def _slack(
    host: TrainingSession, before: Mapping[str, np.ndarray], gradients: Mapping[str, np.ndarray], ulps: float | None
) -> dict[str, np.ndarray]:
    """How far each new value may be from the host's, by its name in a checkpoint; nothing where it was skipped."""
    if host.last_report.skipped:  # type: ignore[union-attr]
        return {}
    rule = host._trained.rule
    numbers = rule.scalars(host.steps - 1, host._trainer.schedule(host.steps - 1), rule.due(host.steps - 1))

    def updated(shift: float, of: Callable[[np.ndarray], np.ndarray] = np.asarray) -> dict[str, Any]:
        def read(name: str) -> np.ndarray:
            return of(before[f"param/{name}" if name in rule.shapes else name])

        moved = {n: of(g + shift * allowed[n] * _ulp(_largest(g))) for n, g in gradients.items()}
        with np.errstate(all="ignore"):
            previous = {n: moved[n] for n in rule.previous}
            return rule.apply(NUMPY, moved, previous, numbers, read, lambda name, new, old: new)

    allowed = {n: ulps or each.optimizer.contract.ulps for each in rule.assignments for n in each.params}
    low, middle, high = updated(-1.0), updated(0.0, Recorded.of), updated(1.0)
    owner = {name: param for param in rule.shapes for name in (param, *rule.resident(param))}
    slack = {}
    for name, value in middle.items():
        spread = np.maximum(np.abs(np.subtract(high[name], value)), np.abs(np.subtract(low[name], value)))
        scale = Recorded.largest(value)
        key = f"param/{name}" if name in rule.shapes else name
        slack[key] = np.asarray(spread, np.float64) + allowed[owner[name]] * _ulp(scale)
    return slack


def _largest(x: np.ndarray) -> Any:
    """The largest finite magnitude."""
    return np.max(np.abs(x[np.isfinite(x)]), initial=0.0)


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
        problem = f"the host has {e[at]:.9g}, the program {a[at]:.9g}, and {allowed:.3g} is allowed"
        error = UpdateMismatch(what, f"element {list(at)}: {problem}")
        error.detail = f"{ts.config}\n{sample(ts.graph)}"
        raise error
