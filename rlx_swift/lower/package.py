"""Models as the files of an .mlpackage. Knows the layout of the directory, not what the model says."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from ..errors import PackageError
from .blobs import chunks
from .encode import encode
from .program import Model

_DATA = Path("Data")
_AUTHOR = "com.apple.CoreML"
_MODEL = "com.apple.CoreML/model.mlmodel"
_WEIGHTS = "com.apple.CoreML/weights"


class Bytes(NamedTuple):
    """The contents of model.mlmodel and of weights/weight.bin, the latter empty without stored constants."""

    model: bytes
    weights: bytes


def to_bytes(model: Model) -> Bytes:
    """A model in memory, as the native library loads it. The same model gives the same bytes."""
    return Bytes(encode(model), b"".join(chunks(model.weights)) if model.weights else b"")


def write_package(path: str | os.PathLike[str], model: Model) -> None:
    """Writes a directory .mlpackage in one step: written beside its place, then moved there.

    A package that is there already is replaced; anything else that is there is a PackageError.
    """
    target = Path(path)
    if target.exists() and not (target / "Manifest.json").is_file():
        raise PackageError(str(target), "something that is no package is there already", "give another path")
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        made, old = beside / "new", beside / "old"
        _write(made, model)
        if target.exists():
            target.rename(old)
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
