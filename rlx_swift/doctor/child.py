"""The process of one case: `python -m rlx_swift.doctor.child CASE DTYPE UNITS` prints one line of JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Measures and prints; an error of the library is a result like any other."""
    from ..errors import RlxError
    from ..session.native_device import UNITS
    from .measure import measure

    case, dtype, units = arguments
    try:
        answer = measure(case, dtype, UNITS[units])
    except RlxError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
