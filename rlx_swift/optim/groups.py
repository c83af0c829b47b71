"""Which optimizer updates which param."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..errors import ConfigError
from .base import POSITIVE, Optimizer, ParamInfo, require, require_ranges

Predicate = Callable[[ParamInfo], bool]


@dataclass(frozen=True)
class Group:
    """The params that `select` chooses, with an optimizer of their own.

    Attributes:
        select: a name, a pattern ("*.bias"), or a function of a `ParamInfo` (name, shape, ndim, gathered).
        optimizer: an optimizer.
        lr_scale: a factor of the session's learning rate.
    """

    select: str | Predicate
    optimizer: Optimizer
    lr_scale: float = 1.0

    def __post_init__(self) -> None:
        require_ranges(self, lr_scale=POSITIVE)
        require("Group select", isinstance(self.select, str) or callable(self.select), "a pattern or a function",
                self.select)
        require("Group optimizer", isinstance(self.optimizer, Optimizer), "an optimizer", self.optimizer)

    def takes(self, param: ParamInfo) -> bool:
        """Whether the group would have the param."""
        if isinstance(self.select, str):
            return self.select == param.name or fnmatchcase(param.name, self.select)
        return bool(self.select(param))


@dataclass(frozen=True)
class ParamGroups:
    """Groups in order: a param belongs to the first that takes it."""

    groups: Sequence[Group]

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", tuple(self.groups))
        good = self.groups and all(isinstance(group, Group) for group in self.groups)
        require("ParamGroups", bool(good), "a list of rlx.Group", self.groups)


@dataclass(frozen=True)
class Assignment:
    """One optimizer with its params.

    Attributes:
        since: how many updates had been applied when its params joined; its own updates count from there.
    """

    optimizer: Optimizer
    params: tuple[str, ...]
    lr_scale: float = 1.0
    since: int = 0


def assign(
    optimizer: Optimizer | ParamGroups, params: Sequence[ParamInfo], known: Sequence[ParamInfo]
) -> list[Assignment]:
    """The optimizers with the params that they train.

    Raises ConfigError for a param in no group, and for a pattern that takes none of all `known` params.
    """
    if isinstance(optimizer, Optimizer):
        return _split(optimizer, 1.0, params)
    left, assignments = list(params), []
    for group in optimizer.groups:
        if isinstance(group.select, str) and not any(group.takes(param) for param in known):
            names = ", ".join(param.name for param in known)
            raise ConfigError(f"group {group.select!r}", "no param matches", f"the graph has {names}")
        taken = [param for param in left if group.takes(param)]
        left = [param for param in left if param not in taken]
        assignments += _split(group.optimizer, group.lr_scale, taken)
    if left:
        raise ConfigError(f"param {left[0].name!r}", "it is in no group", 'end with Group("*", ...)')
    return assignments


def _split(optimizer: Optimizer, lr_scale: float, params: Sequence[ParamInfo]) -> list[Assignment]:
    parts = optimizer.split(params) if params else []
    return [Assignment(part, tuple(names), lr_scale * scale) for part, scale, names in parts if names]
