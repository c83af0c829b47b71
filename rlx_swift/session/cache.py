"""Lowered training programs in files, by what they were made from, so that the next process need not make them.

An entry's name is a hash of the graph, of the recipe, of this package's files and of the versions below it; what cannot
be told by its content, such as a user's own optimizer or op, has no entry, and nothing has when this package's files
are no longer those that were imported. An entry says its own hash: one that is damaged, or a folder that cannot be read
or written, is as no entry.

RLX_CACHE names the folder; empty or "0" is none. The oldest entries go when all take more than 256 MB.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from pathlib import Path
from types import FunctionType
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
_IMPORTED = time.time_ns()
_is_entry = re.compile(r"[0-9a-f]{64}(\.\w+)?").fullmatch  # what is written first has a suffix


def cached(key: str, make: Callable[[], Artifact]) -> Artifact:
    """The artifact under a key that `source` gave, made where there is none; an empty key is never kept."""
    folder = _folder() if key else None
    if folder is None:
        return make()
    path = folder / key
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, struct.error):
        found = _read(path)
        with contextlib.suppress(OSError):  # of a folder that is only to be read
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
    own = all(map(_is_own, parts)) and all(node.op in ops.OWN for node in forward.nodes)
    code = _fingerprint() if own and _folder() is not None else None
    if code is None:
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
            list(rule.shapes), code,
        ])
    except (RlxError, TypeError, ValueError):
        return ""
    return "" if " at 0x" in text else hashlib.sha256(text.encode()).hexdigest()  # a function is no content


def _is_own(part: object) -> bool:
    """Whether it is data of a class of this package's, whose methods nobody has replaced."""
    classes = type(part).__mro__[:-1]
    methods = (f for kind in classes for name, f in vars(kind).items() if not name.startswith("__"))
    modules = [f.__globals__.get("__name__", "") for f in methods if isinstance(f, FunctionType)]
    return is_dataclass(part) and all(m.startswith("rlx_swift.") for m in (*(k.__module__ for k in classes), *modules))


@functools.cache
def _fingerprint() -> list[Any] | None:
    """Of the code that makes programs; None where the files have changed since, and so do not tell."""
    files = []
    for folder, _, names in os.walk(_PACKAGE):
        for name in names:
            if name.endswith(".py"):
                status = os.stat(os.path.join(folder, name))
                if status.st_ctime_ns > _IMPORTED:
                    return None
                files.append([os.path.join(folder, name), status.st_size, status.st_mtime_ns])
    return [sys.version, np.__version__, sorted(files)]


def _folder() -> Path | None:
    named = os.environ.get("RLX_CACHE")
    if named is not None:
        return Path(named) if named not in ("", "0") else None
    usual = "~/Library/Caches" if sys.platform == "darwin" else os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = os.path.expanduser(usual)
    return Path(folder, "rlx_swift") if os.path.isabs(folder) else None  # who has no home has no cache


def _read(path: Path) -> Artifact:
    data = path.read_bytes()
    if data[:4] != FORMAT or hashlib.sha256(data[36:]).digest() != data[4:36]:
        raise ValueError(path)
    return unpacked(data[36:])


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all, also when others write the same."""
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(FORMAT + hashlib.sha256(data).digest() + data)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _evict(folder: Path) -> None:
    entries = [(x.stat(), x.path) for x in os.scandir(folder) if _is_entry(x.name)]
    total = 0
    for _, size, path in sorted(((s.st_mtime_ns, s.st_size, path) for s, path in entries), reverse=True):
        total += size
        if total > LARGEST:
            os.unlink(path)
