"""The command line: what each command prints, its JSON, and errors on stderr with a non-zero status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rlx_swift import cli

FIXTURES = Path(__file__).resolve().parents[1] / "Tests/MILFormatTests/Fixtures"


def test_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["devices"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["coreml", "cpu", "numpy"]
    assert all(line.split()[1] in ("available", "absent") for line in lines)


def test_devices_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["devices", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert all(set(row) == {"name", "available", "reason"} and row["reason"] for row in rows)
    assert rows[-1]["name"] == "numpy" and rows[-1]["available"] is True


def test_validate(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["validate", str(FIXTURES / "linear32.mlpackage")]) == 0
    assert "structural rules: passed" in capsys.readouterr().out


def test_validate_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["validate", "--json", str(FIXTURES / "linear32.mlpackage")]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["judges"][0] == {"name": "structural rules", "ran": True, "note": report["judges"][0]["note"]}


def test_validate_of_a_missing_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["validate", str(tmp_path / "gone.mlpackage")]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("rlx-swift: error: ") and "gone.mlpackage" in printed.err


@pytest.mark.parametrize("arguments", [["demo", "--epochs", "0"], ["demo", "--device", "gpu"], ["nothing"], []])
def test_wrong_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: rlx-swift")


def test_demo_on_numpy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    arguments = ["demo", "--device", "numpy", "--epochs", "1", "--json", "--output", str(tmp_path)]
    assert cli.main(arguments) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["device"] == "numpy"
    assert {result["name"]: result["accuracy"] > 0.6 for result in printed["results"]} == {"MLP": True, "CNN": True}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["digits_cnn.mlpackage", "digits_mlp.mlpackage", "loss.png"]


@pytest.mark.parametrize("command", [[], ["devices"], ["demo"], ["validate"]])
def test_help_imports_nothing_heavy(command: list[str]) -> None:
    code = (
        "import sys; from rlx_swift import cli\n"
        f"try: cli.main({[*command, '--help']!r})\nexcept SystemExit as end: assert not end.code\n"
        "print({'sklearn', 'matplotlib', 'coremltools', 'cffi', 'tqdm'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: rlx-swift") and done.stdout.endswith("set()\n")
