"""Bounds on gradients, written in the same namespace as the optimizers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .arrays import Array, Namespace
from .base import POSITIVE, require_ranges

Gradients = dict[str, Array]


@dataclass(frozen=True)
class Clip:
    """Base of all clips: a pure function from gradients to gradients, by param name."""

    limit: float

    def __post_init__(self) -> None:
        require_ranges(self, limit=POSITIVE)

    def apply(self, xp: Namespace, gradients: Mapping[str, Array]) -> Gradients:
        raise NotImplementedError


@dataclass(frozen=True)
class ClipByGlobalNorm(Clip):
    """g limit / max(norm, limit), with the norm over all gradients together (Pascanu et al. 2013)."""

    def apply(self, xp: Namespace, gradients: Mapping[str, Array]) -> Gradients:
        if not gradients:
            return {}
        norm = global_norm(xp, gradients)
        factor = self.limit / xp.maximum(norm, self.limit)
        return {name: g * factor for name, g in gradients.items()}


@dataclass(frozen=True)
class ClipByNorm(Clip):
    """As `ClipByGlobalNorm`, for each param by itself."""

    def apply(self, xp: Namespace, gradients: Mapping[str, Array]) -> Gradients:
        one = ClipByGlobalNorm(self.limit)
        return {name: one.apply(xp, {name: g})[name] for name, g in gradients.items()}


@dataclass(frozen=True)
class ClipByValue(Clip):
    """Each element into [-limit, limit]."""

    def apply(self, xp: Namespace, gradients: Mapping[str, Array]) -> Gradients:
        return {name: xp.maximum(xp.minimum(g, self.limit), -self.limit) for name, g in gradients.items()}


def global_norm(xp: Namespace, gradients: Mapping[str, Array]) -> Array:
    """sqrt(sum of squares) over all gradients together."""
    total = None
    for gradient in gradients.values():
        part = xp.sum(xp.square(gradient))
        total = part if total is None else total + part
    return xp.sqrt(total)


def clip_by_global_norm(limit: float) -> Clip:
    """Scales all gradients so that their joint norm is at most `limit`."""
    return ClipByGlobalNorm(limit)


def clip_by_norm(limit: float) -> Clip:
    """Scales each param's gradient so that its norm is at most `limit`."""
    return ClipByNorm(limit)


def clip_by_value(limit: float) -> Clip:
    """Moves each element of the gradients into [-limit, limit]."""
    return ClipByValue(limit)
