"""Predictions for users of coremltools where there is no Core ML: its MLModel runs on our runtime.

Owns the object that MLModel talks to; what MLModel itself checks and converts stays coremltools' own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import DeviceError, FeedError, RlxError
from ..session.device import pick
from ..session.model import Model, State, load_model

_NEWEST = 10  # the newest specification version that we read
_MACOS = (15, 0)  # from which on there are states
_undo: list[Callable[[], None]] = []


def install(force: bool = False) -> bool:
    """Makes `coremltools.models.MLModel(...).predict`, batches and `make_state` work through our runtime.

    Models loaded from then on use it. On a Mac, where coremltools has Core ML, nothing is done unless `force`.
    Installing twice is installing once.

    Returns:
        Whether it is installed.

    Raises:
        DeviceError: coremltools or the native library is absent.
    """
    if _undo:
        return True
    if sys.platform == "darwin" and not force:
        return False
    try:
        from coremltools.models import model as module
    except ImportError as error:
        raise DeviceError("coremltools", f"it cannot be imported ({error})", "pip install coremltools") from error
    pick("cpu")
    _replace(module, "_MLModelProxy", _Proxy)
    _replace(module.MLModel, "make_state", _make_state)
    # A model that could not be loaded then says why, and not that predictions need a Mac.
    _replace(module, "_macos_version", lambda: _MACOS)
    return True


def uninstall() -> None:
    """Puts back what `install` replaced; models loaded in between keep working."""
    while _undo:
        _undo.pop()()


def _replace(owner: Any, name: str, value: Any) -> None:
    old = getattr(owner, name)
    setattr(owner, name, value)
    _undo.append(lambda: setattr(owner, name, old))


def _make_state(model: Any) -> Any:
    """What MLModel.make_state does, on any system."""
    from coremltools.models.model import MLState

    if model.__proxy__ is None:
        raise RuntimeError("This model was not loaded for prediction. Cannot get state.")
    return MLState(model.__proxy__.newState())


class _Proxy:
    """What MLModel expects of a loaded model; errors are RuntimeErrors, as Core ML's are there."""

    def __init__(self, path: str, units: str, function: str, hints: Mapping[str, str], asset: object = None) -> None:
        try:
            self._model: Model = load_model(path, function or None, "cpu")
        except RlxError as error:
            raise RuntimeError(str(error)) from error

    @staticmethod
    def maximum_supported_specification_version() -> int:
        return _NEWEST

    def predict(self, data: Mapping[str, Any], state: State | None = None) -> dict[str, Any]:
        try:
            results = self._model.predict({name: self._fed(name, value) for name, value in data.items()}, state)
        except RlxError as error:
            raise RuntimeError(str(error)) from error
        images = self._model.images
        return {name: _given(value, images.get(name, "")) for name, value in results.items()}

    def _fed(self, name: str, value: Any) -> Any:
        """Core ML casts what it is fed to the type of the input."""
        if name in self._model.images or name not in self._model.inputs or value is None:
            return value
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise FeedError(f"input {name!r}", f"expected numbers, got {array.dtype}")
        return array.astype(self._model.inputs[name].dtype.numpy, copy=False)

    def batchPredict(self, batch: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [self.predict(data) for data in batch]

    def newState(self) -> _State:
        try:
            return _State(self._model.make_state())
        except RlxError as error:
            raise RuntimeError(str(error)) from error


class _State(State):
    """A state under the method names that coremltools uses."""

    def __init__(self, state: State) -> None:
        super().__init__(state._types, state._native)

    def read_state(self, name: str) -> np.ndarray:
        try:
            return self.read(name)
        except RlxError as error:
            raise RuntimeError(str(error)) from error

    def write_state(self, name: str, value: Any) -> None:
        try:
            self.write(name, value)
        except RlxError as error:
            raise RuntimeError(str(error)) from error


def _given(value: Any, color: str) -> Any:
    """An output as Core ML hands it to coremltools: images as PIL images, no arrays of rank 0."""
    if not isinstance(value, np.ndarray):
        return value
    if color:
        from PIL import Image

        return Image.fromarray(value.astype(np.float32) if color == "gray_f16" else value)
    return value.reshape(1) if value.ndim == 0 else value
