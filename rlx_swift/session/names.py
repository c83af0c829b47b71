"""What the values of a training run are called on the device and at the boundary of its programs."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import GraphError

LOSS_SCALE = "session/loss_scale"
UNSCALE = "session/unscale"
WEIGHT = "session/weight"
TOTAL = "session/total"
FINITE = "session/finite"
_PREFIXES = (
    "accum/", "accum_previous/", "ema/", "gradient/", "hessian/", "next/", "optimizer/", "previous/",
    "previous_gradient/", "probe/", "session/", "state/",
)


def state_name(param: str, slot: str) -> str:
    return f"state/{param}/{slot}"


def average_name(param: str) -> str:
    return f"ema/{param}"


def hessian_name(param: str) -> str:
    return f"hessian/{param}"


def previous_name(param: str) -> str:
    return f"previous/{param}"


def accumulator_name(param: str, previous: bool = False) -> str:
    return f"accum_previous/{param}" if previous else f"accum/{param}"


def gradient_name(param: str, previous: bool = False) -> str:
    return f"previous_gradient/{param}" if previous else f"gradient/{param}"


def next_name(buffer: str) -> str:
    return f"next/{buffer}"


def probe_name(site: str) -> str:
    return f"probe/{site}"


def scalar_name(group: int, scalar: str) -> str:
    return f"optimizer/{group}/{scalar}"


def require_unreserved(names: Iterable[str]) -> None:
    """Raises GraphError when a graph uses a name that could be one of these."""
    for name in names:
        if name.startswith(_PREFIXES):
            prefix = name.partition("/")[0]
            raise GraphError(f"{name!r}", f"names that begin with {prefix}/ are the session's own", "rename it")
