"""Lowered training programs in files, by what they were made from, so that the next process need not make them.

An entry's name is a hash of the graph, of the recipe, of this package's files and of the versions below it; what cannot
be told by its content, such as a user's own optimizer or op, has no entry. An entry says its own hash: one that is
damaged, or a folder that cannot be read or written, is as no entry.

RLX_CACHE names the folder; empty or "0" is none. The oldest entries go when all take more than 256 MB.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import struct
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..errors import RlxError
from ..ir.graph import Graph
from .artifact import Artifact, packed, unpacked

if TYPE_CHECKING:
    from .programs import Recipe

FORMAT = b"rlx1"
LARGEST = 1 << 28  # bytes of all entries
LARGEST_HASHED = 1 << 22  # bytes of a graph's constants
_PACKAGE = Path(__file__).resolve().parents[1]


def cached(key: str, make: Callable[[], Artifact]) -> Artifact:
    """The artifact under a key that `source` gave, made where there is none; an empty key is never kept."""
    folder = _folder() if key else None
    if folder is None:
        return make()
    path = folder / key
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, struct.error):
        found = _read(path)
        os.utime(path)  # it was of use: others go first
        return found
    made = make()
    with contextlib.suppress(OSError):
        _write(path, packed(made))
        _evict(folder)
    return made


def source(kind: str, recipe: Recipe, forward: Graph) -> str:
    """What stands for a program of this kind; empty when its making depends on code that no hash here covers."""
    rule = recipe.rule
    parts: list[Any] = [each.optimizer for each in rule.assignments] + [recipe.policy]
    if rule.clip is not None:
        parts.append(rule.clip)
    own = all(type(part).__module__.startswith("rlx_swift.") and is_dataclass(part) for part in parts)
    if not own or any(node.op.name not in ops.OWN for node in forward.nodes) or _folder() is None:
        return ""
    if sum(t.producer.value.nbytes for t in forward.constants) > LARGEST_HASHED:  # type: ignore[union-attr]
        return ""
    policy = recipe.policy
    dtypes = sorted((kind.name, dtype.name) for kind, dtype in policy.dtypes.items())
    try:
        text = json.dumps([
            kind, forward.to_json(), recipe.loss, recipe.scaled, dtypes, sorted(policy.wide), rule.ema, repr(rule.clip),
            [[type(each.optimizer).__qualname__, repr(asdict(each.optimizer)), each.params, each.lr_scale]
             for each in rule.assignments],
            list(rule.shapes), _fingerprint(),
        ])
    except (RlxError, TypeError, ValueError):
        return ""
    return "" if " at 0x" in text else hashlib.sha256(text.encode()).hexdigest()  # a function is no content


@functools.cache
def _fingerprint() -> list[Any]:
    """Of the code that makes programs."""
    files = []
    for folder, _, names in os.walk(_PACKAGE):
        for name in names:
            if name.endswith(".py"):
                status = os.stat(os.path.join(folder, name))
                files.append([os.path.join(folder, name), status.st_size, status.st_mtime_ns])
    return [sys.version, np.__version__, sorted(files)]


def _folder() -> Path | None:
    named = os.environ.get("RLX_CACHE")
    if named is not None:
        return Path(named) if named not in ("", "0") else None
    if sys.platform == "darwin":
        return Path("~/Library/Caches/rlx_swift").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "rlx_swift"


def _read(path: Path) -> Artifact:
    data = path.read_bytes()
    if data[:4] != FORMAT or hashlib.sha256(data[36:]).digest() != data[4:36]:
        raise ValueError(path)
    return unpacked(data[36:])


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all, also when others write the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(FORMAT + hashlib.sha256(data).digest() + data)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _evict(folder: Path) -> None:
    entries = sorted(((x.stat().st_mtime_ns, x.stat().st_size, x.path) for x in os.scandir(folder)), reverse=True)
    total = 0
    for _, size, path in entries:
        total += size
        if total > LARGEST:
            os.unlink(path)
