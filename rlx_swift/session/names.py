"""What the values of a training run are called on the device and at the boundary of its programs."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import GraphError

LOSS_SCALE = "session/loss_scale"
UNSCALE = "session/unscale"
WEIGHT = "session/weight"
TOTAL = "session/total"
FINITE = "session/finite"
_PREFIXES = ("accum/", "gradient/", "next/", "optimizer/", "session/", "state/")


def state_name(param: str, slot: str) -> str:
    return f"state/{param}/{slot}"


def accumulator_name(param: str) -> str:
    return f"accum/{param}"


def gradient_name(param: str) -> str:
    return f"gradient/{param}"


def next_name(buffer: str) -> str:
    return f"next/{buffer}"


def scalar_name(group: int, scalar: str) -> str:
    return f"optimizer/{group}/{scalar}"


def require_unreserved(names: Iterable[str]) -> None:
    """Raises GraphError when a graph uses a name that could be one of these."""
    for name in names:
        if name.startswith(_PREFIXES):
            prefix = name.partition("/")[0]
            raise GraphError(f"{name!r}", f"names that begin with {prefix}/ are the session's own", "rename it")
