"""A short run over damaged packages; a long one is `python -m tests.fuzz.driver 200000`."""

from __future__ import annotations

import sys

import pytest

import rlx_swift as rlx

from .driver import run
from .mutants import mutant
from .seeds import seeds

pytestmark = [
    pytest.mark.skipif(
        not next(status for status in rlx.devices() if status.name == "cpu").available, reason="no native library"
    ),
    pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it"),
]


def test_mutants_repeat() -> None:
    assert [len(kind) for kind in seeds()] > [20, 150, 3]
    assert mutant(7) == mutant(7) != mutant(8)


def test_no_damaged_package_does_harm() -> None:
    found = run(600)
    assert not found.faults
    assert {"PackageError", "UnsupportedError", "predicted"} <= found.outcomes.keys()
