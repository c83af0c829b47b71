"""What every test shares: the judges of lowered programs, the count of native handles that each module gives back, the
marker `native`, which skips without the native library or fails where it must be, and hypothesis profiles, of which
HYPOTHESIS_PROFILE chooses one.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from rlx_swift._native import native, native_status

ROOT = Path(__file__).resolve().parents[1]
_SLOW_TO_DRAW = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile("dev", max_examples=60, deadline=None, suppress_health_check=_SLOW_TO_DRAW)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.register_profile("nightly", settings.get_profile("dev"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

_not_run: Counter[str] = Counter()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("native") is None:
        return
    status = native_status()
    if status.available:
        return
    if os.environ.get("RLX_REQUIRE_NATIVE") == "1":
        pytest.fail(f"RLX_REQUIRE_NATIVE=1, but: {status.reason}", pytrace=False)
    _not_run[status.reason] += 1
    pytest.skip(status.reason)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Lets go of a test's arguments, which would outlive the module's last fixture."""
    if isinstance(item, pytest.Function):
        item.funcargs.clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reason, count in _not_run.items():
        terminalreporter.write_line(f"{count} native tests not run: {reason}", yellow=True)


@pytest.fixture(autouse=True, scope="session")
def _judged_programs() -> Iterator[None]:
    """Every program that a test lowers is judged by our rules and by coremltools."""
    from tests.programs import judge_all

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("RLX_CACHE", "")  # what is read from a cache is not judged
        judge_all(monkeypatch)
        yield


@pytest.fixture(autouse=True, scope="module")
def _no_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails where handles that a module's tests made are alive after the last of them.

    A failed test's traceback holds what the test made, so a module with failures is not asked.
    """
    if not native_status().available:
        yield
        return
    before, failed = native().lib.rlx_live_handles(), request.session.testsfailed
    yield
    if native().lib.rlx_live_handles() > before and request.session.testsfailed == failed:
        gc.collect()
        assert native().lib.rlx_live_handles() <= before, "native handles were not given back"


@pytest.fixture(params=["numpy", pytest.param("cpu", marks=pytest.mark.native)])
def each_device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Lets `value` and `gradients` of tests/helpers.py run on each device in turn."""
    monkeypatch.setattr("tests.helpers.device", request.param)
    return request.param


@pytest.fixture
def root() -> Path:
    """The checkout."""
    return ROOT
