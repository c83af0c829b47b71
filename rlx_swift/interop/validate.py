"""Judges Core ML packages: our structural rules, then coremltools' own loader."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import PackageError, ValidationError
from ..lower.mil import Lowered
from ..lower.package import Opened, opened, read_package, to_bytes
from ..lower.program import WEIGHT_FILE
from . import rules


@dataclass(frozen=True)
class Judge:
    """One judge of a package: whether it ran, and its version or why it did not."""

    name: str
    ran: bool
    note: str


@dataclass(frozen=True)
class Report:
    """Who judged a package that broke no rule."""

    judges: tuple[Judge, ...]

    def __str__(self) -> str:
        return "; ".join(f"{j.name}: {'passed' if j.ran else 'not run'} ({j.note})" for j in self.judges)


def validate(subject: str | os.PathLike[str] | Lowered) -> Report:
    """Judges a package on disk, or a lowered graph as the bytes it becomes.

    Raises ValidationError with the rule and the place, and PackageError for files that cannot be read.
    """
    package = opened(to_bytes(subject.model)) if isinstance(subject, Lowered) else read_package(subject)
    rules.check(package)
    own = Judge("structural rules", True, f"{len(rules.RULES)} rules")
    return Report((own, _ask_coremltools(package)))


def _ask_coremltools(package: Opened) -> Judge:
    try:
        version = _coremltools().__version__
    except ImportError as error:
        return Judge("coremltools", False, f"{error}; pip install coremltools")
    try:
        load_with_coremltools(package)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise ValidationError("program", f"coremltools refuses it: {problem}") from error
    return Judge("coremltools", True, f"version {version}")


def _coremltools() -> Any:
    with _quiet():
        import coremltools

    return coremltools


def load_with_coremltools(package: Opened) -> Any:
    """coremltools' own Program, types inferred and constants folded; raises whatever it raises."""
    spec: Any = _coremltools().proto.Model_pb2.Model.FromString(package.data)
    from coremltools.converters.mil.frontend.milproto import load

    with _quiet(), _weight_directory(package) as directory, _plain_bools(load):
        return load.load(spec, spec.specificationVersion, directory)


@contextlib.contextmanager
def _plain_bools(load: Any) -> Iterator[None]:
    """Makes its loader give bools of Python: NumPy's reductions, by which it folds, take no numpy.bool."""
    original = load._load_value

    def value(*arguments: Any) -> Any:
        result = original(*arguments)
        return bool(result) if isinstance(result, np.bool_) else result

    load._load_value = value
    try:
        yield
    finally:
        load._load_value = original


@contextlib.contextmanager
def _weight_directory(package: Opened) -> Iterator[str]:
    """Where coremltools finds the weight files by the last part of their names."""
    if package.weights_directory is not None:
        yield str(package.weights_directory)
        return
    with tempfile.TemporaryDirectory() as directory:
        with contextlib.suppress(PackageError):  # a package without stored constants has no such file
            Path(directory, "weight.bin").write_bytes(package.weight_file(WEIGHT_FILE)[:])
        yield directory


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps what coremltools says of itself, at its import above all, off the user's terminal."""
    import logging  # slow, and this module comes with every import of rlx_swift

    logger = logging.getLogger("coremltools")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
