"""The self-test: each kind of end of a process, the report, and its cases on our own module in Core ML's place."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from rlx_swift import cli, dtypes, interp
from rlx_swift.doctor import Options, run
from rlx_swift.doctor.cases import cases
from rlx_swift.doctor.measure import difference
from rlx_swift.doctor.report import Result, in_child, names
from rlx_swift.errors import ConfigError


def ends(code: str, seconds: float = 20.0) -> Result:
    return in_child("case", "cpu", "f32", seconds, (sys.executable, "-c", code))


def test_a_crash_is_a_result():
    result = ends("import os, sys; print('BNNS: no', file=sys.stderr); sys.stderr.flush(); os.abort()")
    assert (result.status, result.problem, result.lines) == ("crash", "SIGABRT", ["BNNS: no"])


def test_other_ends_of_a_process():
    assert ends("print('{\"x\": 1}')").answer == {"x": 1}
    assert ends("import time; time.sleep(60)", 0.2).status == "timeout"
    error = ends("print('{\"error\": \"no such op\"}')")
    assert (error.status, error.problem) == ("error", "no such op")
    assert "ValueError: bad" in ends("raise ValueError('bad')").problem
    assert ends("print('no json')").status == "error"
    assert ends("import os, json; print(json.dumps(os.environ['RLX_COREML_UNITS']))").status == "error"


@pytest.mark.parametrize("name", cases())
def test_cases_are_graphs_that_run(name):
    """Finite where the inputs are, apart from the special values and sums that f16 cannot hold."""
    case = cases()[name]
    if case.full:
        pytest.skip("takes long")
    for dtype in case.dtypes:
        graph, feeds = case.build(dtypes.parse(dtype))
        graph.verify()
        outputs = interp.evaluate(graph, feeds)
        if "special" not in name:
            assert all(np.isfinite(value).all() for value in outputs.values())


def test_differences():
    got, expected = np.array([1.0, np.nan, np.inf, 2.0], np.float32), np.array([1.0, 3.0, 5.0, 2.0], np.float32)
    got[3] = np.nextafter(np.float32(2), np.float32(3))
    found = difference(got, expected)
    assert (found["ulps"], found["nan_differs"], found["infinite_differs"]) == (1, 1, 1)
    assert found["absolute"] == float(got[3]) - 2.0
    assert difference(np.float32([-0.0]), np.float32([0.0]))["ulps"] == 0
    assert difference(np.float16([-1e-7]), np.float16([1e-7]))["ulps"] == 4
    assert difference(np.int32([1, 2]), np.int32([1, 3])) == {"wrong": 1}
    assert "expected" in difference(np.int32([1]), np.float32([1]))["type"]


@pytest.mark.native
def test_the_report(tmp_path, monkeypatch, capsys):
    """The program as users run it, against our own module."""
    monkeypatch.setenv("RLX_COREML_ON_LINUX", "1")
    file = tmp_path / "report.json"
    arguments = ["doctor", "--output", str(file), "--units", "cpu", "--seconds", "60"]
    for pattern in ("io/rank 0", "matmul/rank 3", "refusal/reshape*", "training/2 layers", "index/gather"):
        arguments += ["--only", pattern]
    assert cli.main(arguments) == 0
    assert "8 ok" in capsys.readouterr().out
    report = json.loads(file.read_text())
    assert report["format"] == 1 and report["summary"] == {"ok": 8}
    assert set(report["system"]) >= {"rlx_swift", "os", "build", "chip"}
    results = {(each["case"], each["dtype"]): each["answer"] for each in report["results"]}
    for dtype in ("f32", "f16"):
        answer = results["matmul/rank 3", dtype]
        assert answer["errors"]["y0"]["ulps"] == 0 and answer["same_again"] and answer["median_us"] > 0
    assert "shape is [5, 5]" in results["refusal/reshape to another size", "f32"]["refused"]
    assert results["training/2 layers", "f32"]["largest_relative_error"] == 0


@pytest.mark.native
def test_no_case(tmp_path, monkeypatch):
    monkeypatch.setenv("RLX_COREML_ON_LINUX", "1")
    with pytest.raises(ConfigError, match="no case matches"):
        run(Options(tmp_path / "report.json", only=["nothing"]))


@pytest.mark.native
@pytest.mark.skipif(sys.platform == "darwin", reason="there is Core ML")
def test_no_core_ml(tmp_path, root):
    """As a user meets it."""
    environment = {name: value for name, value in os.environ.items() if name != "RLX_COREML_ON_LINUX"}
    command = [sys.executable, "-m", "rlx_swift.cli", "doctor", "--output", str(tmp_path / "report.json")]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "Apple" in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_list(capsys):
    assert cli.main(["doctor", "--list"]) == 0
    assert capsys.readouterr().out.splitlines() == list(names())
