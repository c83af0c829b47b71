"""A Core ML package loaded for prediction: run as it is where the device can, else lifted to a graph that runs."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from .. import dtypes
from ..errors import UnsupportedError
from ..ir.graph import Graph
from ..ir.symbolic import KEPT
from ..ir.types import Shape, TensorType
from ..lift import Lifting
from ..lower.package import Opened, read_package
from ..lower.program import Feature
from . import feeds as feeding
from .compiled import CompiledGraph
from .device import Device, pick

_BOUNDARY = ("fp32", "fp16", "int32")


class Model:
    """A loaded ML Program.

    Attributes:
        device: what runs it: "coreml", "cpu" or "numpy".
        lifted: whether the graph that `rlx.lift` gives is what runs, rather than the package's own program: on
            "numpy" always, else where the device does not take the program as it is.
        inputs, outputs: shape and dtype of each feature by name; of an input of several shapes the default one.
    """

    def __init__(self, path: str | os.PathLike[str], function: str | None = None, device: str | None = None) -> None:
        chosen = pick(device)
        self._way = _way(path, function, chosen)
        self.device, self.lifted = chosen.name, isinstance(self._way, _Lifted)
        self.inputs, self.outputs = self._way.inputs, self._way.outputs

    def predict(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The outputs by name, in their own types.

        Raises FeedError (missing or unknown name, shape) or DTypeError for feeds that do not fit the inputs.
        """
        return self._way.predict(feeds)

    def __repr__(self) -> str:
        types = [", ".join(f"{name}: {type}" for name, type in table.items()) for table in (self.inputs, self.outputs)]
        return f"Model(({types[0]}) -> ({types[1]}), device={self.device!r})"


def load_model(path: str | os.PathLike[str], function: str | None = None, device: str | None = None) -> Model:
    """Loads an .mlpackage (or a bare model file) for prediction.

    Args:
        function: one function of a model that has several; the default one if None.
        device: "coreml", "cpu" (our own runtime), "numpy" (slow, but always there), or None for the best present.

    Raises:
        PackageError: the file is no readable ML Program.
        NameNotFoundError: there is no such function.
        UnsupportedError: the model needs what is not there; it is named.
        DeviceError: the device is absent.
    """
    return Model(path, function, device)


class _Way(Protocol):
    """How a model predicts."""

    inputs: dict[str, TensorType]
    outputs: dict[str, TensorType]

    def predict(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]: ...


def _way(path: str | os.PathLike[str], function: str | None, device: Device) -> _Way:
    if device.name == "numpy":
        return _Lifted(read_package(path), function, device)
    try:
        return _AsItIs(path, function, device.name)
    except UnsupportedError as error:
        package = read_package(path)
        try:
            return _Lifted(package, function, device)
        except UnsupportedError as other:
            other.detail = other.detail or f"the device {device.name!r}: {error}"
            raise


class _AsItIs:
    """The package's own program on the native library."""

    def __init__(self, path: str | os.PathLike[str], function: str | None, device: str) -> None:
        from .._native.handles import NativeSession, Program, Store
        from .native_device import PREDICTING_UNITS, asked_units

        program = Program.load(os.fspath(path), function)
        self.inputs = {f.name: _type(f) for f in program.inputs}
        self.outputs = {f.name: _type(f) for f in program.outputs}
        self._session = NativeSession(program, Store(), device=device, units=asked_units(PREDICTING_UNITS))
        self._feeds = {name: self._session.buffer(name) for name in self.inputs}
        self._results = {name: self._session.buffer(name) for name in self.outputs}

    def predict(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        for name, array in feeding.checked(self.inputs, feeds).items():
            np.copyto(self._feeds[name], array)
        self._session.run()
        return {name: np.array(buffer) for name, buffer in self._results.items()}


def _type(feature: Any) -> TensorType:
    return TensorType(tuple(feature.shape), dtypes.of_numpy(feature.dtype, f"feature {feature.name!r}"))


class _Lifted:
    """The graph that the program is lifted to, compiled once for each set of shapes that comes."""

    def __init__(self, package: Opened, function: str | None, device: Device) -> None:
        self._package, self._function, self._device = package, function, device
        interface = package.model.interfaces.get(function or package.model.default_function)
        features = [*interface.inputs, *interface.outputs, *interface.states] if interface else []
        for feature in features:
            _require_array(feature)
        self._flexible = [f.name for f in interface.inputs if f.flexible] if interface else []
        self._made: OrderedDict[tuple[Shape, ...], CompiledGraph] = OrderedDict()
        graph = Lifting(package, function).graph()
        self._compile(graph)
        self.inputs = {name: t.type for name, t in graph.inputs.items()}
        self.outputs = {name: t.type for name, t in graph.outputs.items()}

    def predict(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        given = feeding.require_mapping(feeds)
        shapes = {
            name: dtypes.as_array(given[name], f"input {name!r}").shape for name in self._flexible if name in given
        }
        types = {name: type.with_shape(shapes.get(name, type.shape)) for name, type in self.inputs.items()}
        arrays = feeding.checked(types, given)
        key = tuple([shapes[name] for name in self._flexible])
        if key not in self._made:
            self._compile(Lifting(self._package, self._function, shapes).graph())
        self._made.move_to_end(key)
        return self._made[key].run(arrays)

    def _compile(self, graph: Graph) -> None:
        self._made[tuple([graph.inputs[name].shape for name in self._flexible])] = CompiledGraph(graph, self._device)
        if len(self._made) > KEPT:
            self._made.popitem(last=False)


def _require_array(feature: Feature) -> None:
    """Raises UnsupportedError for features that are no arrays of f32, f16 or i32."""
    if feature.kind == "state":
        raise UnsupportedError(f"state {feature.name!r}", "models with states cannot be predicted with yet")
    if feature.kind == "image" or (feature.kind == "array" and feature.dtype in _BOUNDARY):
        return
    what = f"array of {feature.dtype}" if feature.kind == "array" else feature.kind
    raise UnsupportedError(f"feature {feature.name!r}", f"expected an array of f32, f16 or i32, it is of kind {what}")
