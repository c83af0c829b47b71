"""The command line: what each command prints, its JSON, and errors on stderr with a non-zero status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
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


def test_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(8).reshape(2, 4)
    np.save(tmp_path / "x.npy", x)
    arguments = ["run", str(FIXTURES / "linear16.mlpackage"), "--input", f"x={tmp_path / 'x.npy'}"]
    assert cli.main([*arguments, "--output-dir", str(tmp_path / "out"), "--device", "numpy"]) == 0
    y = np.load(tmp_path / "out/y.npy")
    assert y.dtype == np.float16 and np.allclose(y, x @ (np.arange(24).reshape(4, 6) - 7.5) / 4)
    assert capsys.readouterr().out == f"y: float16[2, 6] -> {tmp_path / 'out/y.npy'}\n"


def test_run_with_random_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = []
    for seed in (1, 1, 2):
        arguments = ["run", str(FIXTURES / "swap.mlpackage"), "--random-inputs", str(seed), "--device", "numpy"]
        assert cli.main([*arguments, "--json", "--output-dir", str(tmp_path)]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert printed["device"] == "numpy" and set(printed["outputs"]) == {"a_next", "b_next", "ids_next"}
        described = printed["outputs"]["a_next"]
        values.append(np.load(described["npy"]))
        assert (described["dtype"], tuple(described["shape"])) == ("float32", values[-1].shape)
    assert np.array_equal(values[0], values[1]) and not np.array_equal(values[0], values[2])


def test_run_of_one_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", str(FIXTURES / "functions.mlpackage"), "--random-inputs", "0", "--device", "numpy"]
    assert cli.main([*arguments, "--function", "first", "--output-dir", str(tmp_path)]) == 0
    assert "y: float16[2, 6]" in capsys.readouterr().out
    assert cli.main([*arguments, "--function", "third", "--output-dir", str(tmp_path)]) == 1
    assert "function 'third'" in capsys.readouterr().err


def test_run_and_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(8).reshape(2, 4)
    np.save(tmp_path / "x.npy", x)
    y = x @ (np.arange(24).reshape(4, 6) - 7.5) / 4 + 0.5
    arguments = ["run", str(FIXTURES / "linear32.mlpackage"), "--input", f"x={tmp_path / 'x.npy'}", "--device", "numpy"]
    arguments += ["--output-dir", str(tmp_path), "--compare", str(tmp_path / "expected.npz")]
    for expected, said in (
        ({"y": y}, ""), ({"y": y + 1}, "y differs by up to 1"), ({"y": y[:1]}, "y has shape"),
        ({"z": y}, "z is no output"), ({"y": y * np.nan}, "y differs by up to nan"),
        ({"y": y.astype(str)}, "y is compared with an array of <U"), ({"y": y.astype(object)}, "no .npz file"),
    ):
        np.savez(tmp_path / "expected.npz", **expected)
        assert cli.main(arguments) == (1 if said else 0)
        assert said in capsys.readouterr().err
        assert cli.main([*arguments, "--json"]) == (1 if said else 0)
        printed = capsys.readouterr().out
        if "no .npz file" not in said:
            assert bool(json.loads(printed)["differences"]) == bool(said)
    (tmp_path / "expected.npz").write_bytes(b"PK\x03\x04 no archive")
    assert cli.main(arguments) == 1 and "no .npz file" in capsys.readouterr().err
    assert cli.main([*arguments[:-1], str(tmp_path / "x.npy")]) == 1 and "no .npz file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["run", "--random-inputs", "-1"], ["diff", "--seed", "-1"], ["diff", "--rtol", "nan"]]
)
def test_numbers_that_make_no_sense(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([*arguments, str(FIXTURES / "linear32.mlpackage")])
    assert "expected at least 0" in capsys.readouterr().err


def test_run_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(FIXTURES / "linear32.mlpackage")
    (tmp_path / "text.npy").write_text("no array")
    np.save(tmp_path / "wide.npy", np.zeros((2, 5)))
    np.savez(tmp_path / "some.npz", x=np.zeros((2, 4)))
    for arguments, said in (
        ([model], "input 'x': no value was given"), ([model, "--input", f"x={tmp_path / 'text.npy'}"], "no .npy file"),
        ([model, "--input", f"x={tmp_path / 'gone.npy'}"], "gone.npy"),
        ([model, "--input", f"x={tmp_path / 'some.npz'}"], "no .npy file"),
        ([model, *["--input", f"x={tmp_path / 'wide.npy'}"] * 2], "input 'x': it is given twice"),
        ([model, "--input", f"x={tmp_path / 'wide.npy'}"], "expected shape (2, 4), got (2, 5)"),
        ([str(tmp_path / "gone.mlpackage")], "gone.mlpackage"), ([str(FIXTURES / "control.mlpackage")], "while_loop"),
    ):
        assert cli.main(["run", *arguments, "--device", "numpy", "--output-dir", str(tmp_path / "out")]) == 1
        printed = capsys.readouterr()
        assert printed.out == "" and printed.err.startswith("rlx-swift: error: ") and said in printed.err
    assert not (tmp_path / "out").exists()


def test_inspect(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", str(FIXTURES / "functions.mlpackage")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("functions.mlpackage: ML Program, specification version 9")
    assert "function second (CoreML8, the default)" in lines and "  input    x: fp16[2, 4]" in lines
    assert "  2 operations: constexpr_blockwise_shift_scale 1, matmul 1" in lines
    assert lines.count("  numpy: runs") == 2
    assert lines[-3:] == [
        "2 weights: fp16 48 B, int4 20 B", "       48 B  y_y_1: fp16[4, 6]", "       20 B  dense_data: int4[5, 8]",
    ]


def test_inspect_says_what_cannot_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", str(FIXTURES / "control.mlpackage")]) == 0
    printed = capsys.readouterr().out
    assert "  numpy: does not run: function 'main': 2 operations are in the way:" in printed
    assert "while_loop ('loop_0', operation 2 of 'main')" in printed and "cond ('y', operation 7" in printed
    assert "less 1" in printed  # inside the loop


def test_inspect_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", "--json", str(FIXTURES / "flexible.mlpackage")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["specification"] == 8 and found["default_function"] == "main"
    (function,) = found["functions"]
    (x,), (y,) = function["inputs"], function["outputs"]
    assert x == {"name": "x", "kind": "array", "dtype": "fp32", "shape": [2, 4], "flexible": True}
    assert y["shape"] == [None, 4] and y["flexible"] is True
    assert function["operations"] == {"relu": 1} and function["runs"]["numpy"] == ""


@pytest.mark.parametrize("name", ["neural.mlmodel", "README.md", "gone.mlpackage"])
def test_inspect_of_what_is_no_program(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", str(FIXTURES / name)]) == 1
    assert capsys.readouterr().err.startswith("rlx-swift: error: ")


@pytest.mark.parametrize("arguments", [["demo", "--epochs", "0"], ["demo", "--device", "gpu"], ["nothing"], [],
                                       ["run"], ["run", "m", "--input", "x"], ["inspect"]])
def test_wrong_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: rlx-swift")


def test_bench(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--seconds", "0", "--device", "numpy"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.startswith("network")
    assert [row.split()[:3] for row in rows] == [
        ["linear_regression", "numpy", "3"], ["mlp", "numpy", "101,770"], ["cnn", "numpy", "20,490"],
        ["transformer", "numpy", "470,528"],
    ]


def test_bench_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "linear_regression", "--seconds", "0", "--device", "numpy", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["batch"] == 8 and row["step"] > 0 and row["first_step"] > 0
    assert row["samples_per_second"] == row["batch"] / row["step"]


def test_bench_of_no_network(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "rnn"]) == 1
    assert "network 'rnn': expected one of linear_regression, mlp, cnn, transformer" in capsys.readouterr().err


def test_demo_on_numpy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    arguments = ["demo", "--device", "numpy", "--epochs", "1", "--json", "--output", str(tmp_path)]
    assert cli.main(arguments) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["device"] == "numpy"
    assert {result["name"]: result["accuracy"] > 0.6 for result in printed["results"]} == {"MLP": True, "CNN": True}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["digits_cnn.mlpackage", "digits_mlp.mlpackage", "loss.png"]


@pytest.mark.parametrize("command", [[], ["devices"], ["demo"], ["validate"], ["run"], ["inspect"]])
def test_help_imports_nothing_heavy(command: list[str]) -> None:
    code = (
        "import sys; from rlx_swift import cli\n"
        f"try: cli.main({[*command, '--help']!r})\nexcept SystemExit as end: assert not end.code\n"
        "print({'sklearn', 'matplotlib', 'coremltools', 'cffi', 'tqdm'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: rlx-swift") and done.stdout.endswith("set()\n")
