"""The model server: its protocol line by line, and that no request ends it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.server import Server, _written
from tests.helpers import same
from tests.model_files import ROW, classifier, halves, recurrence, scalar

ROOT = Path(__file__).resolve().parents[1]
pytestmark = [
    pytest.mark.skipif(
        not next(status for status in rlx.devices() if status.name == "cpu").available, reason="no native library"
    ),
    # coremltools leaves temporary directories to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]


def ask(server, **request):
    return server.answer(json.dumps(request))


@pytest.fixture
def server():
    return Server("cpu")


@pytest.fixture
def npy(tmp_path):
    def write(value, name="x.npy"):
        np.save(tmp_path / name, value)
        return str(tmp_path / name)

    return write


def test_outputs_keep_their_types(server, npy, tmp_path):
    loaded = ask(server, op="load", path=halves(tmp_path), function="")
    assert loaded == {"ok": True, "id": loaded["id"]}
    answer = ask(
        server, op="predict", id=loaded["id"], state=None, inputs={"x": npy(np.float16([[1, 2, 3]]))},
        outdir=str(tmp_path / "made/here"),
    )
    assert answer["ok"] and set(answer["outputs"]) == {"doubled", "total"}
    doubled, total = (np.load(answer["outputs"][name]["npy"]) for name in ("doubled", "total"))
    assert doubled.dtype == np.float16 and total.dtype == np.float16 and total.shape == ()
    same(doubled, [[2, 4, 6]])
    assert total == 6
    with open(answer["outputs"]["doubled"]["npy"], "rb") as file:
        assert file.read(8) == b"\x93NUMPY\x01\x00"


def test_rank_0_and_the_callers_order(server, npy, tmp_path):
    number = ask(server, op="load", path=scalar(tmp_path))["id"]
    inputs = {"y": npy(np.float32([[3.0]]), "y.npy"), "x": npy(np.asfortranarray(np.float32([[5.0]])))}
    answer = ask(server, op="predict", id=number, inputs=inputs, outdir=str(tmp_path))
    assert np.load(answer["outputs"]["difference"]["npy"]) == 2.0


def test_classes(server, npy, tmp_path):
    for labels, kind in ((["cat", "dog", "owl"], "str"), ([7, 8, 9], "int")):
        number = ask(server, op="load", path=classifier(tmp_path, labels))["id"]
        answer = ask(server, op="predict", id=number, inputs={"x": npy(np.float32([[1, 3, 2]]))}, outdir=str(tmp_path))
        assert answer["outputs"]["label"] == {kind: labels[1]}
        expected = np.exp([1, 3, 2]) / np.exp([1, 3, 2]).sum()
        (got,) = (value["dict"] for value in answer["outputs"].values() if "dict" in value)
        assert list(got) == [str(label) for label in labels]
        same(np.array(list(got.values())), expected, rtol=1e-5, atol=1e-6)


def test_states(server, npy, tmp_path):
    number = ask(server, op="load", path=recurrence(tmp_path))["id"]
    one, other = (ask(server, op="new_state", id=number)["state"] for _ in range(2))
    request = {"op": "predict", "id": number, "inputs": {"x": npy(np.float16(ROW))}, "outdir": str(tmp_path)}
    for times, state in ((1, one), (2, one), (1, other), (1, None)):
        answer = server.answer(json.dumps({**request, "state": state}))
        same(np.load(answer["outputs"]["sum"]["npy"]), times * np.float16(ROW))
    target = str(tmp_path / "state.npy")
    assert ask(server, op="read_state", state=one, name="memory", npy=target) == {"ok": True}
    assert np.load(target).dtype == np.float16
    same(np.load(target), 2 * np.float16(ROW))
    nines = npy(np.float16([9] * 4), "m.npy")
    assert ask(server, op="write_state", state=one, name="memory", npy=nines) == {"ok": True}
    answer = server.answer(json.dumps({**request, "state": one}))
    same(np.load(answer["outputs"]["sum"]["npy"]), np.float16(ROW) + 9)
    assert ask(server, op="unload", id=number) == {"ok": True}
    assert not ask(server, op="read_state", state=one, name="memory", npy=target)["ok"]


BAD_LINES = [
    "", "{", "[]", "1", "null", "{}", '{"op":1}', '{"op":"dance"}', '{"op":"load"}', '{"op":"load","path":3}',
    '{"op":"predict"}', '{"op":"predict","id":true}', '{"op":"predict","id":99,"inputs":{},"outdir":"x"}',
    '{"op":"new_state","id":99}', '{"op":"unload","id":"a"}', '{"op":"read_state","state":4,"name":"s","npy":"x"}',
    '{"op":"load","path":"/there/is/nothing"}', '{"op":"load","path":"\\u0000"}', "\ud800", "[" * 100_000,
]


@pytest.mark.parametrize("line", BAD_LINES, ids=range(len(BAD_LINES)))
def test_bad_lines(server, line):
    answer = server.answer(line)
    assert answer["ok"] is False and answer["kind"] == "error" and answer["message"]


def test_bad_feeds(server, npy, tmp_path):
    number = ask(server, op="load", path=halves(tmp_path))["id"]
    notes = tmp_path / "notes.npy"
    notes.write_text("no array")
    archive = tmp_path / "archive.npz"
    np.savez(archive, x=np.ones(3))
    wrong = [
        {}, {"z": npy(np.ones((1, 3)))}, {"x": npy(np.ones((2, 3)))}, {"x": npy(np.array(["a", "b"]))},
        {"x": str(notes)}, {"x": str(archive)}, {"x": "nowhere.npy"}, {"x": 3}, [],
    ]
    for inputs in wrong:
        answer = ask(server, op="predict", id=number, inputs=inputs, outdir=str(tmp_path))
        assert answer["ok"] is False and answer["kind"] == "error" and answer["message"], inputs
    state = ask(server, op="new_state", id=ask(server, op="load", path=recurrence(tmp_path))["id"])["state"]
    right = {"x": npy(np.ones((1, 3)))}
    assert not ask(server, op="predict", id=number, inputs=right, outdir=str(tmp_path), state=state)["ok"]
    assert not ask(server, op="write_state", state=state, name="memory", npy=npy(np.ones(3), "m.npy"))["ok"]
    assert not ask(server, op="read_state", state=state, name="other", npy=str(tmp_path / "s.npy"))["ok"]
    assert ask(server, op="predict", id=number, inputs=right, outdir=str(tmp_path))["ok"]


def test_what_is_missing_is_told_apart(server, tmp_path):
    answer = ask(server, op="load", path=halves(tmp_path, operation="frobnicate"))
    assert answer["kind"] == "unsupported" and "frobnicate" in answer["message"] and "doubled" in answer["message"]


def test_the_process(npy, tmp_path):
    lines = ["no json", json.dumps({"op": "load", "path": halves(tmp_path)})]
    lines.append(json.dumps({"op": "predict", "id": 1, "inputs": {"x": npy(np.ones((1, 3)))}, "outdir": str(tmp_path)}))
    done = subprocess.run(
        [sys.executable, "-m", "rlx_swift.cli", "serve-model"], input="\n".join(lines) + "\n", text=True,
        capture_output=True, cwd=ROOT, timeout=60, check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["ok"] for answer in answers] == [False, True, True]


def test_no_answer_holds_what_json_has_not(tmp_path):
    assert _written({"cat": float("nan"), 7: 0.5}, tmp_path / "p.npy") == {"dict": {"cat": None, "7": 0.5}}
