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
from rlx_swift.doctor import report as report_module
from rlx_swift.doctor.cases import cases
from rlx_swift.doctor.checklist import CHECKLIST, unasked
from rlx_swift.doctor.measure import difference, measure
from rlx_swift.doctor.programs import programs
from rlx_swift.doctor.report import Result, compare, in_child, names
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


def test_what_was_said_before_the_end_is_kept():
    crash = ends("import os; print('{\"load_ms\": 3.0}', flush=True); print('noise', flush=True); os.abort()")
    assert (crash.status, crash.answer) == ("crash", {"load_ms": 3.0})
    hang = ends("import time; print('{\"hash\": \"a\"}', flush=True); time.sleep(60)", 1.0)
    assert (hang.status, hang.answer) == ("timeout", {"hash": "a"})


def test_every_question_is_asked_and_every_case_asks_one():
    assert not unasked(names())
    for name in names():
        assert any(question.asks(name) for question in CHECKLIST[:-1]), name


@pytest.mark.native
def test_a_run_goes_on_after_a_crash_and_a_hang(tmp_path, monkeypatch):
    monkeypatch.setenv("RLX_COREML_ON_LINUX", "1")
    code = """if True:
        import json, os, sys, time
        case = sys.argv[1]
        if case == "io/rank 0": os.abort()
        if case == "io/one element": time.sleep(60)
        print(json.dumps({"hash": str(os.getpid())}))
    """
    monkeypatch.setattr(report_module, "CHILD", (sys.executable, "-c", code))
    file = tmp_path / "report.json"
    only = ["io/rank 0", "io/one element", "matmul/256 cubed"]
    report = run(Options(file, only=only, units=["ane"], dtypes=["f32"], seconds=1.5))
    assert json.loads(json.dumps(report)) == json.loads(file.read_text())
    assert report["summary"] == {"crash": 1, "timeout": 1, "ok": 1}
    text = "\n".join(report["text"])
    assert "SIGABRT" in text and "more than 1.5 s" in text and "[x] Products of two inputs" in text
    assert "[ ] Each operation of backward graphs alone.\n    not asked in this run" in text
    assert report["results"][-1]["answer"]["same_in_another_process"] is False
    other = tmp_path / "other.json"
    other.write_text(file.read_text().replace("SIGABRT", "SIGSEGV"))
    assert compare(file, other) == ["io/rank 0 ane f32: crash SIGABRT -> crash SIGSEGV"]
    assert compare(file, file) == []
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other.json", "report.json"]


@pytest.mark.parametrize("text", [
    "{}", "[]", "no json", '{"results": 3}', '{"results": [{"case": "a"}]}',
    '{"results": [{"case": "a", "units": "cpu", "dtype": "f32", "status": "ok", "answer": {"errors": {"y": 3}}}]}',
])
def test_what_is_no_report_is_an_error(text, tmp_path):
    (tmp_path / "good.json").write_text('{"results": []}')
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(ConfigError, match="cannot be read"):
        compare(tmp_path / "good.json", tmp_path / "bad.json")


@pytest.mark.native
def test_a_report_without_a_place_is_said_before_any_case(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RLX_COREML_ON_LINUX", "1")
    monkeypatch.setattr(report_module, "in_child", lambda *_: pytest.fail("a case ran"))
    (tmp_path / "file").touch()
    for output in (tmp_path, tmp_path / "none" / "report.json", tmp_path / "file" / "report.json"):
        assert cli.main(["doctor", "--only", "io/rank 0", "--output", str(output)]) == 1
        assert "it cannot be written" in capsys.readouterr().err


@pytest.mark.native
def test_a_report_is_whole_when_a_write_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("RLX_COREML_ON_LINUX", "1")
    monkeypatch.setattr(report_module, "in_child", lambda case, units, dtype, _: Result(case, units, dtype, "ok"))
    file = tmp_path / "report.json"
    options = Options(file, only=["io/rank 0"], units=["cpu"], dtypes=["f32"])
    run(options)
    before = file.read_text()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report_module.os, "replace", full)
    with pytest.raises(ConfigError, match="No space left"):
        run(options)
    assert file.read_text() == before


def test_an_interrupt_ends_the_case_too(monkeypatch):
    processes = []

    def interrupted(self, timeout=None):
        processes.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ends("import time; time.sleep(60)")
    assert processes[0].wait(10) < 0


@pytest.mark.native
@pytest.mark.parametrize("name", programs())
def test_programs_are_answered(name, monkeypatch):
    """Core ML's place computes or refuses as our own runtime does."""
    monkeypatch.setenv("RLX_COREML_ON_LINUX", "1")
    for dtype in programs()[name].dtypes:
        answer = measure(name, dtype, "cpu")
        assert ("ours" in answer) == ("refused" in answer), answer
        for error in answer.get("errors", {}).values():
            assert not error.get("ulps") and not error.get("wrong") and not error.get("nan_differs"), answer


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
    for pattern in ("io/rank 0", "matmul/rank 3", "refusal/reshape*", "training/2 layers", "index/gather",
                    "states/2 of f32"):
        arguments += ["--only", pattern]
    assert cli.main(arguments) == 0
    assert "9 ok" in capsys.readouterr().out
    report = json.loads(file.read_text())
    assert report["format"] == 1 and report["summary"] == {"ok": 9}
    assert set(report["system"]) >= {"rlx_swift", "os", "build", "chip"}
    results = {(each["case"], each["dtype"]): each["answer"] for each in report["results"]}
    for dtype in ("f32", "f16"):
        answer = results["matmul/rank 3", dtype]
        assert answer["errors"]["y0"]["ulps"] == 0 and answer["same_again"] and answer["median_us"] > 0
    assert "shape is [5, 5]" in results["refusal/reshape to another size", "f32"]["refused"]
    assert results["training/2 layers", "f32"]["largest_relative_error"] == 0
    assert results["matmul/rank 3", "f32"]["plan"] == {"cpu": {"ios17.matmul": 1}}
    assert results["states/2 of f32", "f32"].keys() & {"plan", "refused"}


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
