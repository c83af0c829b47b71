"""The process of one case: `python -m rlx_swift.doctor.child CASE DTYPE UNITS` prints its answers as lines of JSON.

What is known is printed at once, so that it is not lost when the next question ends the process.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def main(arguments: Sequence[str]) -> int:
    """Measures, asks for the plan and prints; an error of the library is an answer like any other."""
    from ..errors import RlxError
    from ..session.native_device import UNITS
    from .measure import measure, plan

    case, dtype, units = arguments

    def say(problem: str, ask: Callable[[str, str, str], Mapping[str, Any]]) -> None:
        try:
            answer = ask(case, dtype, UNITS[units])
        except RlxError as error:
            answer = {problem: str(error)}
        print(json.dumps(_spelled(answer), allow_nan=False), flush=True)

    say("error", measure)
    say("plan_error", plan)
    return 0


def _spelled(value: Any) -> Any:
    """JSON has no words for numbers that are not finite: they become text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _spelled(each) for key, each in value.items()}
    return [_spelled(each) for each in value] if isinstance(value, (list, tuple)) else value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
