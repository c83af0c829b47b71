"""For suites of tests: strategies, and checks of ops, optimizers and models. Needs hypothesis only where it draws.

    from rlx_swift.testing import assert_devices_agree, assert_fused_matches_host, assert_optimizer_contract, strategies
"""

from __future__ import annotations

import importlib
from typing import Any

from .compare import Tolerance, assert_close, tolerance
from .contract import assert_optimizer_contract
from .devices import assert_devices_agree
from .operands import Sample, sample, sample_operands
from .updates import assert_fused_matches_host

__all__ = [
    "Sample", "Tolerance", "assert_close", "assert_devices_agree", "assert_fused_matches_host",
    "assert_optimizer_contract", "sample", "sample_operands", "strategies", "tolerance",
]


def __getattr__(name: str) -> Any:
    if name == "strategies":
        return importlib.import_module(".strategies", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
