"""Models as the files of an .mlpackage. Knows the layout of the directory, not what the model says."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import PackageError, RlxError, UnsupportedError
from .blobs import Data, chunks
from .decode import decode
from .encode import encode
from .program import WEIGHT_FILE, Metadata, Model

_DATA = Path("Data")
_AUTHOR = "com.apple.CoreML"
_MODEL = "com.apple.CoreML/model.mlmodel"
_WEIGHTS = "com.apple.CoreML/weights"
LARGEST_READ = 1 << 30  # bytes; systems read no 2 GiB at once


class Bytes(NamedTuple):
    """The contents of model.mlmodel and of weights/weight.bin, the latter empty without stored constants."""

    model: bytes
    weights: bytes


def to_bytes(model: Model) -> Bytes:
    """A model in memory, as the native library loads it. The same model gives the same bytes."""
    return Bytes(encode(model), b"".join(chunks(model.weights)) if model.weights else b"")


@dataclass(frozen=True)
class Opened:
    """A package that was read: its model, the bytes it was read from, and its weight files by their name in it.

    `weight_file(name)` raises PackageError when the package has no such file. `weights_directory` is where
    they lie on disk, None for a package from memory.
    """

    model: Model
    data: bytes
    weight_file: Callable[[str], Data]
    weights_directory: Path | None = None


def opened(contents: Bytes) -> Opened:
    """A package from memory; raises PackageError when its model is not well formed."""

    def weight_file(name: str) -> memoryview:
        if name != WEIGHT_FILE or not contents.weights:
            raise PackageError(name, "there is no such weight file")
        return memoryview(contents.weights)

    return Opened(decode(contents.model), contents.model, weight_file)


def read_package(path: str | os.PathLike[str]) -> Opened:
    """The .mlpackage directory, or bare model file, at a path. Of weight files is read what is asked for.

    Raises PackageError when something is missing or not well formed, UnsupportedError for a model of another kind.
    """
    file = _model_file(Path(path))

    @cache
    def weight_file(name: str) -> Data:
        prefix, _, inside = name.partition("/")
        if prefix != "@model_path" or not inside or ".." in Path(inside).parts:
            raise PackageError(name, "the name of a weight file begins with @model_path and stays below it")
        return _WeightFile(file.parent / inside)

    data = _read(file)
    with naming(path, (PackageError, UnsupportedError)):
        return Opened(decode(data), data, weight_file, file.parent / "weights")


@contextmanager
def naming(path: str | os.PathLike[str], kinds: tuple[type[RlxError], ...] = (PackageError,)) -> Iterator[None]:
    """Has a PackageError (or errors of these kinds) that tells a place inside a file tell the file too."""
    try:
        yield
    except kinds as error:
        if os.fspath(path) in str(error):
            raise
        named = type(error)(os.fspath(path), f"{error.subject}: {error.problem}", error.hint)
        named.detail = error.detail
        raise named from error


def _model_file(path: Path) -> Path:
    if not path.is_dir():
        return path
    manifest = path / "Manifest.json"
    try:
        content: Any = json.loads(_read(manifest))
        item = str(content["itemInfoEntries"][content["rootModelIdentifier"]]["path"])
    except (ValueError, KeyError, TypeError) as error:
        raise PackageError(str(manifest), f"it names no model ({error!r})") from error
    if ".." in Path(item).parts or Path(item).is_absolute():
        raise PackageError(str(manifest), f"the model lies outside the package, at {item!r}")
    return path / _DATA / item


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise PackageError(str(file), f"it cannot be read ({error.strerror or error})") from error


class _WeightFile:
    """Reads slices of a file. It is not mapped: somebody who shortened it would end the process."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            weakref.finalize(self, os.close, self._descriptor)
            self._size = os.fstat(self._descriptor).st_size
            os.pread(self._descriptor, 1, 0)  # a directory opens, but cannot be read
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from error
        if not self._size:
            raise self._unreadable("it is empty")

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice, /) -> memoryview:
        start, stop, _ = part.indices(self._size)
        pieces: list[bytes] = []
        while start < stop:
            try:
                piece = os.pread(self._descriptor, min(stop - start, LARGEST_READ), start)
            except OSError as error:
                raise self._unreadable(error.strerror or str(error)) from error
            if not piece:
                raise self._unreadable(f"it was shortened from {self._size} bytes while it was in use")
            pieces.append(piece)
            start += len(piece)
        return memoryview(pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def _unreadable(self, why: str) -> PackageError:
        return PackageError(str(self._file), f"it cannot be read ({why})")


def write_package(path: str | os.PathLike[str], model: Model, metadata: Metadata | None = None) -> None:
    """Writes a directory .mlpackage in one step: written beside its place, then moved there.

    `metadata` replaces the model's own. A package that is there already is replaced; anything else that is
    there is a PackageError.
    """
    if metadata is not None:
        model = dataclasses.replace(model, metadata=metadata)
    with whole_directory(path, "Manifest.json", "package") as made:
        _write(made, model)


@contextmanager
def whole_directory(path: str | os.PathLike[str], sign: str, what: str) -> Iterator[Path]:
    """A new directory beside `path` to write in, which then takes that place in one step; gone after an error.

    One that is there already is replaced if it has the file `sign`; anything else is no `what`: a PackageError.
    """
    target = Path(path)
    if target.exists() and not (target / sign).is_file():
        raise PackageError(str(target), f"something that is no {what} is there already", "give another path")
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        made = beside / "new"
        made.mkdir()
        yield made
        if target.exists():
            target.rename(beside / "old")
        made.rename(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _write(directory: Path, model: Model) -> None:
    weights = directory / _DATA / _WEIGHTS
    weights.mkdir(parents=True)  # declared in the manifest, so there even when empty
    data = encode(model)
    digest = hashlib.sha256(data)
    (directory / _DATA / _MODEL).write_bytes(data)
    if model.weights:
        with open(weights / "weight.bin", "wb") as file:
            for chunk in chunks(model.weights):
                digest.update(chunk)
                file.write(chunk)
    (directory / "Manifest.json").write_text(_manifest(digest.hexdigest()), encoding="utf-8")


def _manifest(digest: str) -> str:
    """Item identifiers come from the contents, so that the same model gives the same files."""
    root, weights = _identifier(digest, "model"), _identifier(digest, "weights")
    entries = {
        root: _entry(_MODEL, "model.mlmodel", "CoreML Model Specification"),
        weights: _entry(_WEIGHTS, "weights", "CoreML Model Weights"),
    }
    manifest = {"fileFormatVersion": "1.0.0", "itemInfoEntries": entries, "rootModelIdentifier": root}
    return json.dumps(manifest, indent=4, sort_keys=True) + "\n"


def _identifier(digest: str, item: str) -> str:
    h = hashlib.sha256(f"{digest} {item}".encode()).hexdigest().upper()
    return "-".join((h[:8], h[8:12], h[12:16], h[16:20], h[20:32]))


def _entry(path: str, name: str, description: str) -> dict[str, str]:
    return {"author": _AUTHOR, "description": description, "name": name, "path": path}
