"""The model server: one JSON request a line in, one answer a line out, arrays as .npy files; knows no mathematics."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np

from .errors import RlxError, UnsupportedError
from .session.model import Model, State, load_model

Request = Mapping[str, Any]


class _BadRequest(Exception):
    """A request that does not follow the protocol."""


class Server:
    """Models and states under numbers, and the answers to requests. No request ends it."""

    def __init__(self, device: str | None = None) -> None:
        self._device = device
        self._models: dict[int, Model] = {}
        self._states: dict[int, tuple[State, int]] = {}  # with the model's number
        self._last = 0
        self._operations: dict[str, Callable[[Request], dict[str, Any]]] = {
            "load": self._load, "predict": self._predict, "new_state": self._new_state, "unload": self._unload,
            "read_state": self._read_state, "write_state": self._write_state,
        }

    def answer(self, line: str) -> dict[str, Any]:
        """The answer to one line; failures are answers too."""
        try:
            return {"ok": True, **self._perform(line)}
        except UnsupportedError as error:
            return _failure("unsupported", error)
        except (RlxError, _BadRequest, OSError, ValueError, EOFError, MemoryError, RecursionError) as error:
            return _failure("error", error)
        except Exception as error:  # a fault of ours must not take the client's other models along
            return _failure("error", error)

    def _perform(self, line: str) -> dict[str, Any]:
        try:
            request = json.loads(line)
        except ValueError as error:
            raise _BadRequest(f"the line is no JSON ({error})") from None
        if not isinstance(request, dict):
            raise _BadRequest("a request is a JSON object")
        operation = request.get("op")
        if not isinstance(operation, str) or operation not in self._operations:
            raise _BadRequest(f"'op' is {operation!r}, expected one of {', '.join(self._operations)}")
        return self._operations[operation](request)

    # Operations

    def _load(self, request: Request) -> dict[str, Any]:
        function = _text(request, "function", "") or None
        model = load_model(_text(request, "path"), function, self._device)
        self._models[self._next()] = model
        return {"id": self._last}

    def _predict(self, request: Request) -> dict[str, Any]:
        model = self._model(request)
        state = None if request.get("state") is None else self._state(request, model)
        inputs = request.get("inputs")
        if not isinstance(inputs, dict):
            raise _BadRequest("'inputs' is an object from names to .npy paths")
        feeds = {name: _read(_as_text(path, name)) for name, path in inputs.items()}
        folder = Path(_text(request, "outdir"))
        results = model.predict(feeds, state)
        folder.mkdir(parents=True, exist_ok=True)
        files = {name: folder / file_name(name, place) for place, name in enumerate(results)}
        return {"outputs": {name: _written(value, files[name]) for name, value in results.items()}}

    def _new_state(self, request: Request) -> dict[str, Any]:
        state = self._model(request).make_state()
        self._states[self._next()] = (state, request["id"])
        return {"state": self._last}

    def _unload(self, request: Request) -> dict[str, Any]:
        self._model(request)
        del self._models[request["id"]]
        self._states = {number: held for number, held in self._states.items() if held[1] != request["id"]}
        return {}

    def _read_state(self, request: Request) -> dict[str, Any]:
        value = self._state(request).read(_text(request, "name"))
        _save(Path(_text(request, "npy")), value)
        return {}

    def _write_state(self, request: Request) -> dict[str, Any]:
        self._state(request).write(_text(request, "name"), _read(_text(request, "npy")))
        return {}

    # Numbers

    def _next(self) -> int:
        self._last += 1
        return self._last

    def _model(self, request: Request) -> Model:
        number = request.get("id")
        if type(number) is not int or number not in self._models:
            raise _BadRequest(f"no model has the id {number!r}")
        return self._models[number]

    def _state(self, request: Request, model: Model | None = None) -> State:
        number = request.get("state")
        if type(number) is not int or number not in self._states:
            raise _BadRequest(f"there is no state {number!r}")
        state, owner = self._states[number]
        if model is not None and self._models.get(owner) is not model:
            raise _BadRequest(f"the state {number} was made by the model {owner}")
        return state


def _failure(kind: str, error: BaseException) -> dict[str, Any]:
    return {"ok": False, "kind": kind, "message": str(error) or type(error).__name__}


def _text(request: Request, field: str, default: str | None = None) -> str:
    return _as_text(request.get(field, default), field)


def _as_text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise _BadRequest(f"{field!r} is {value!r}, expected a string")
    return value


def _read(path: str) -> np.ndarray:
    array: np.ndarray = np.load(path, allow_pickle=False)
    if not isinstance(array, np.ndarray):  # an .npz archive
        raise _BadRequest(f"{path!r} is no .npy file")
    return array


def file_name(name: str, position: int) -> str:
    """A file name for an output, whatever it is called."""
    return f"{name}.npy" if re.fullmatch(r"\w[\w.-]{0,200}", name, re.ASCII) else f"output_{position}.npy"


def _written(value: Any, file: Path) -> dict[str, Any]:
    """An output as the protocol has it."""
    if isinstance(value, str):
        return {"str": value}
    if isinstance(value, int):
        return {"int": value}
    if isinstance(value, dict):
        finite = {str(label): each if math.isfinite(each) else None for label, each in value.items()}
        return {"dict": finite}  # JSON has no NaN
    _save(file, value)
    return {"npy": str(file)}


def _save(file: Path, value: np.ndarray) -> None:
    little = np.asarray(value).astype(value.dtype.newbyteorder("<"), order="C", copy=False)
    with open(file, "wb") as stream:
        np.save(stream, little, allow_pickle=False)  # version 1.0: all these headers are short


def serve(requests: Iterable[str], answers: TextIO, device: str | None = None) -> None:
    """Answers each line at once, until there are no more."""
    server = Server(device)
    for line in requests:
        if line.strip():
            answers.write(json.dumps(server.answer(line)) + "\n")
            answers.flush()


def serve_process(device: str | None = None) -> None:
    """Serves stdin and stdout of the process; what else would be printed goes to stderr."""
    sys.stdout.flush()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", newline="\n")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(_lines(sys.stdin.buffer), answers, device)


def _lines(stream: BinaryIO) -> Iterable[str]:
    for line in stream:
        yield line.decode("utf-8", "replace")
