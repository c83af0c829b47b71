"""A short run over damaged packages; a long one is `python -m tests.fuzz.driver 200000`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import rlx_swift as rlx
from rlx_swift.errors import PackageError
from rlx_swift.lower.decode import decode
from rlx_swift.lower.encode import encode
from rlx_swift.lower.program import Array

from .driver import run
from .mutants import mutant
from .seeds import MANIFEST, Files, seeds

pytestmark = [
    pytest.mark.skipif(
        not next(status for status in rlx.devices() if status.name == "cpu").available, reason="no native library"
    ),
    pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it"),
]


def test_mutants_repeat() -> None:
    assert [len(kind) for kind in seeds()] > [20, 150, 3]
    assert mutant(7) == mutant(7) != mutant(8)


@pytest.mark.parametrize("shape", [(1 << 40, 0, 1 << 40), (0, 7, 1 << 31, 1 << 20, 1 << 20), (1 << 62, 2, 0)])
def test_sizes_that_overflow_beside_a_zero(shape: tuple[int, ...], tmp_path: Path) -> None:
    """Such a tensor has no elements, but its strides are products of the other sizes."""
    model = decode(next(iter(seeds()[2])).model)
    for function in model.functions.values():
        function.inputs = [(name, Array("fp32", shape)) for name, _ in function.inputs]
    Files(MANIFEST.encode(), encode(model), b"").write(tmp_path / "wide.mlpackage")
    with pytest.raises(PackageError):
        rlx.load_model(tmp_path / "wide.mlpackage", device="cpu")


def test_no_damaged_package_does_harm() -> None:
    found = run(600)
    assert not found.faults
    assert {"PackageError", "UnsupportedError", "predicted"} <= found.outcomes.keys()
