"""A Core ML package loaded for prediction by the native runtime."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import FeedError
from ..ir.types import TensorType
from . import feeds as feeding


class Model:
    """A loaded ML Program with fixed shapes.

    Attributes:
        inputs, outputs: shape and dtype of each feature by name.
    """

    def __init__(self, path: str | os.PathLike[str], function: str | None = None) -> None:
        from .._native.handles import NativeSession, Program, Store

        program = Program.load(os.fspath(path), function)
        self.inputs = {f.name: _type(f) for f in program.inputs}
        self.outputs = {f.name: _type(f) for f in program.outputs}
        self._session = NativeSession(program, Store())
        self._feeds = {name: self._session.buffer(name) for name in self.inputs}
        self._results = {name: self._session.buffer(name) for name in self.outputs}

    def predict(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The outputs by name; raises FeedError or DTypeError for feeds that do not fit the inputs."""
        if not isinstance(feeds, Mapping):
            raise FeedError("predict", f"expected a dict of input names, got {type(feeds).__name__}")
        for name, array in feeding.checked(self.inputs, feeds).items():
            np.copyto(self._feeds[name], array)
        self._session.run()
        return {name: np.array(buffer) for name, buffer in self._results.items()}


def _type(feature: Any) -> TensorType:
    return TensorType(tuple(feature.shape), dtypes.of_numpy(feature.dtype, f"feature {feature.name!r}"))


def load_model(path: str | os.PathLike[str], function: str | None = None) -> Model:
    """Loads an .mlpackage (or a bare model file) for prediction on the CPU.

    `function` names one function of a model that has several. Raises PackageError, UnsupportedError (with
    the op that is missing), or DeviceError where the native library is absent.
    """
    return Model(path, function)
