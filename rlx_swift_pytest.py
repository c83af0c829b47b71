"""The pytest plugin: `--rlx-device` and the fixture `rlx_device`.

A module of its own, so that pytest loads nothing of rlx_swift until the fixture is used.

    def test_my_model(rlx_device):
        ts = rlx.TrainingSession(graph, device=rlx_device)
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("rlx_swift").addoption(
        "--rlx-device", action="append", metavar="DEVICE", default=[],
        help="run tests that use the fixture rlx_device on this device (numpy, cpu, coreml; may be given again, "
        "and all is every device present). Default: the best present",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "rlx_device" not in metafunc.fixturenames:
        return
    from rlx_swift import devices

    present = [status.name for status in devices() if status.available]
    asked = metafunc.config.getoption("--rlx-device") or present[:1]
    names = [name for given in asked for name in (present if given == "all" else [given])]
    metafunc.parametrize("rlx_device", list(dict.fromkeys(names)), indirect=True)


@pytest.fixture
def rlx_device(request: pytest.FixtureRequest) -> str:
    """The name of a device; the test is skipped with the reason where the device is absent."""
    from rlx_swift import devices

    name: str = request.param
    found = {status.name: status for status in devices()}
    if name not in found:
        pytest.fail(f"--rlx-device {name}: expected one of {', '.join(found)}, or all", pytrace=False)
    if not found[name].available:
        pytest.skip(f"device {name}: {found[name].reason}")
    return name
