"""Choosing params by name and pattern."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

from ..errors import ConfigError, NameNotFoundError


def matching(patterns: Sequence[str] | str | None, params: Iterable[str], subject: str = "trainable") -> list[str]:
    """The params that the names and patterns ("*.weight") select, in their own order; None selects all.

    Raises NameNotFoundError for a pattern that selects none, ConfigError when nothing is selected.
    """
    names = list(params)
    given = ["*"] if patterns is None else [patterns] if isinstance(patterns, str) else list(patterns)
    for pattern in given:
        if not isinstance(pattern, str):
            raise ConfigError(subject, f"expected names or patterns, got {pattern!r}")
        if patterns is not None and not any(selects(pattern, name) for name in names):
            known = ", ".join(names) or "none"
            raise NameNotFoundError(f"{subject} {pattern!r}", "no param matches", f"the graph has {known}")
    chosen = [name for name in names if any(selects(pattern, name) for pattern in given)]
    if not chosen:
        raise ConfigError(subject, "there is no param to train")
    return chosen


def selects(pattern: str, name: str) -> bool:
    """Whether a pattern is the name or matches it."""
    return pattern == name or fnmatch.fnmatchcase(name, pattern)
