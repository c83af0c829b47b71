"""What every optimizer must do, also a user's own; knows optimizers only through their base class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import RlxError
from ..ir.graph import Graph
from ..optim import Optimizer
from ..optim.contract import Contract
from ..session.config import TrainConfig
from ..session.training import TrainingSession
from .targets import TARGETS, classifier
from .updates import assert_fused_matches_host

_SHAPES = ((3, 4), (), (1,), (5,), (1, 1), (4, 2), (2, 3, 2))
_STEPS = 8


class ContractBroken(RlxError, AssertionError):
    """An optimizer does not do what every optimizer must."""


def assert_optimizer_contract(
    optimizer: Optimizer, device: str | None = "numpy", targets: Sequence[str] | None = None, seed: int = 0
) -> None:
    """Raises ContractBroken, or UpdateMismatch, unless the optimizer keeps its contract.

    It updates params of any rank, also of one element, and keeps shapes, slots and f32; zero gradients give finite
    values; the second step compiles nothing; the update inside the program agrees with the one on the host, or
    `host_only` says why there is none; mixed precision leads about where f32 does; and it minimises the targets that
    its contract names within the steps given.
    """
    _check_structure(optimizer, device, seed)
    if not optimizer.host_only:
        assert_fused_matches_host(
            lambda: _session(fed_gradients(_SHAPES), optimizer, device), _gradients(_SHAPES, seed, _STEPS)
        )
    contract: Contract = optimizer.contract
    _check_mixed(optimizer, device)
    for name in contract.targets if targets is None else targets:
        _check_target(optimizer, name, *contract.targets[name], device)


def fed_gradients(shapes: Sequence[tuple[int, ...]]) -> Graph:
    """A graph with params p0, p1, ... whose gradients are what is fed as g0, g1, ...: loss = sum of p * g."""
    g = Graph("fed_gradients")
    rng = np.random.default_rng(len(shapes))
    terms = []
    for i, shape in enumerate(shapes):
        p = g.param(f"p{i}", shape, init=np.asarray(rng.normal(size=shape), np.float32))
        terms.append((p * g.input(f"g{i}", shape)).sum())
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    g.set_outputs({"loss": total})
    return g


def _session(graph: Graph, optimizer: Optimizer, device: str | None, lr: float = 0.01) -> TrainingSession:
    return TrainingSession(graph, config=TrainConfig(lr=lr, optimizer=optimizer), device=device)


def _gradients(shapes: Sequence[tuple[int, ...]], seed: int, steps: int) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.integers(-3, 2, steps)
    return [
        {f"g{i}": np.asarray(scale * rng.normal(size=shape), np.float32) for i, shape in enumerate(shapes)}
        for scale in scales
    ]


def _check_structure(optimizer: Optimizer, device: str | None, seed: int) -> None:
    name = type(optimizer).__name__
    ts = _session(fed_gradients(_SHAPES), optimizer, device).with_fused_optimizer()
    if ts.fused_active == bool(optimizer.host_only):
        problem = f"fused is {ts.fused_active}, but host_only is {optimizer.host_only!r}"
        raise ContractBroken(name, problem, ts.fused_reason)
    slots = {p: {slot: a.shape for slot, a in ts.state(p).items()} for p in ts.trainable}
    ts.step(_gradients(_SHAPES, seed, 1)[0])
    compiled = ts.compile_count
    zeros = {f"g{i}": np.zeros(shape, np.float32) for i, shape in enumerate(_SHAPES)}
    for batch in (*_gradients(_SHAPES, seed + 1, 2), zeros, zeros):
        ts.step(batch)
    if ts.compile_count != compiled:
        raise ContractBroken(name, f"steps after the first compiled {ts.compile_count - compiled} programs")
    for i, shape in enumerate(_SHAPES):
        values = {"the param": ts.param(f"p{i}"), **ts.state(f"p{i}")}
        if {slot: a.shape for slot, a in ts.state(f"p{i}").items()} != slots[f"p{i}"]:
            raise ContractBroken(name, f"the slots of a param of shape {shape} were {slots[f'p{i}']} and have changed")
        for what, value in values.items():
            if value.dtype != np.float32 or not np.isfinite(value).all():
                raise ContractBroken(name, f"{what} of a param of shape {shape} is not finite f32: {value!r}")
    still = _session(fed_gradients(_SHAPES), optimizer, device)
    for _ in range(2):
        still.step(zeros)
    if not all(np.isfinite(value).all() for value in still.params().values()):
        raise ContractBroken(name, "zero gradients from the first update on give values that are not finite")


def mixed_departure(optimizer: Optimizer, device: str | None, lr: float = 0.01) -> float:
    """How far 8 updates of the small classifier under "auto_mixed" lead from where they lead in f32, over the way."""
    target = classifier()
    start = {name: np.asarray(x.producer.value) for name, x in target.graph.params.items()}  # type: ignore[union-attr]
    ways = []
    for policy in ("always_f32", "auto_mixed"):
        ts = _session(target.graph, optimizer, device, lr).with_precision_policy(policy)
        for _ in range(_STEPS):
            ts.step(target.batch)
        ways.append(np.concatenate([(value - start[name]).ravel() for name, value in ts.params().items()]))
    return float(np.linalg.norm(ways[1] - ways[0]) / np.linalg.norm(ways[0]))


def _check_mixed(optimizer: Optimizer, device: str | None) -> None:
    part = mixed_departure(optimizer, device)
    if not part <= optimizer.contract.mixed:
        problem = f"under auto_mixed it went {part:.3g} of the way off, expected {optimizer.contract.mixed} at most"
        raise ContractBroken(type(optimizer).__name__, problem)


def _check_target(optimizer: Optimizer, name: str, lr: float, steps: int, device: str | None) -> None:
    target = TARGETS[name]()
    ts = _session(target.graph, optimizer, device, lr)
    if not optimizer.host_only:
        ts = ts.with_fused_optimizer()
    least = np.inf
    for _ in range(steps):
        least = min(least, ts.step(target.batch).loss)
        if least < target.solved:
            return
    raise ContractBroken(
        type(optimizer).__name__, f"after {steps} steps with lr {lr} the least loss of {name!r} was {least:.4g}, "
        f"expected below {target.solved:.4g}",
    )
