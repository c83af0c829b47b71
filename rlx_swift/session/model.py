"""A Core ML package loaded for prediction: run as it is where the device can, else lifted to a graph that runs."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .. import dtypes
from ..errors import ConfigError, FeedError, NameNotFoundError, UnsupportedError
from ..ir.graph import Graph
from ..ir.symbolic import KEPT
from ..ir.types import Shape, TensorType
from ..lift import Lifting
from ..lower.package import Opened, naming, read_package
from ..lower.program import Feature
from . import feeds as feeding
from .compiled import CompiledGraph
from .device import Device, pick
from .interface import Interface
from .profile import Profile, profile_of

if TYPE_CHECKING:
    from .._native.model import NativeState

_BOUNDARY = ("fp32", "fp16", "int32")


class Model:
    """A loaded ML Program.

    Attributes:
        device: what runs it: "coreml", "cpu" or "numpy".
        lifted: whether the graph that `rlx.lift` gives is what runs, rather than the package's own program: on
            "numpy" always, on "coreml" where that does not take the program as it is.
        inputs, outputs, states: shape and dtype of each feature by name; of an input of several shapes the default
            one. The outputs of a classifier that are no tensors are missing.
    """

    def __init__(
        self, path: str | os.PathLike[str], function: str | None = None, device: str | None = None,
        time_limit: float | None = None,
    ) -> None:
        chosen = pick(device)
        with naming(path):
            self._path, self._way = path, _way(path, function, chosen, time_limit)
        self.device, self.lifted = chosen.name, isinstance(self._way, _Lifted)
        self.inputs, self.outputs, self.states = self._way.inputs, self._way.outputs, self._way.states

    def predict(self, feeds: Mapping[str, Any], state: State | None = None) -> dict[str, Any]:
        """The outputs by name, in their own types: arrays, and of a classifier the label and the probabilities.

        An image is fed as a PIL image, or as an array [height, width(, 3)] in the order red, green, blue; an image
        output is such an array of bytes. Inputs that are optional may be left out. `state` is read and written.

        Raises FeedError (missing or unknown name, shape) or DTypeError for feeds that do not fit the inputs, and
        ConfigError for a state that `make_state` did not make.
        """
        if state is not None and not isinstance(state, State):
            raise ConfigError("state", f"expected what make_state() gives, got {type(state).__name__}")
        return self._way.predict(feeds, state)

    def predict_batch(self, batch: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """One prediction after the other, in order."""
        return [self.predict(feeds) for feeds in batch]

    def make_state(self) -> State:
        """A new state, of zeros; empty for a model that has none."""
        return self._way.make_state()

    def profile(self, feeds: Mapping[str, Any], runs: int = 10) -> Profile:
        """Where the time goes in the quickest of `runs` predictions, with states of zeros.

        Raises UnsupportedError unless our own runtime runs the model (device "cpu"), and as `predict`.
        """
        if not isinstance(self._way, _OnOurRuntime):
            raise UnsupportedError(f"device {self.device!r}", "only our own runtime tells times", 'load it for "cpu"')
        return self._way.profile(feeds, runs)

    @property
    def images(self) -> dict[str, str]:
        """The inputs and outputs that are images, and what their colors are: "gray", "gray_f16", "rgb" or "bgr"."""
        return self._way.images

    @cached_property
    def metadata(self) -> dict[str, str]:
        """What the model says of itself: description, version, author, license and its own entries."""
        return read_package(self._path).model.metadata.entries()

    def __repr__(self) -> str:
        types = [", ".join(f"{name}: {type}" for name, type in table.items()) for table in (self.inputs, self.outputs)]
        return f"Model(({types[0]}) -> ({types[1]}), device={self.device!r})"


class State:
    """The values of a model's states from one prediction to the next; used with the model that made it only."""

    def __init__(self, types: Mapping[str, TensorType], native: NativeState | None = None) -> None:
        self._types, self._native = types, native

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._types)

    def read(self, name: str) -> np.ndarray:
        """A copy of a state's value, in its own dtype; raises NameNotFoundError."""
        type = self._type(name)
        assert self._native is not None  # what has types has memory
        return self._native.get(name, np.empty(type.shape, type.dtype.numpy))

    def write(self, name: str, value: Any) -> None:
        """Gives a state a value of its shape; raises NameNotFoundError, FeedError or DTypeError."""
        type = self._type(name)
        array = dtypes.to_host(value, type.dtype, f"state {name!r}")
        if array.shape != type.shape:
            raise FeedError(f"state {name!r}", f"expected shape {type.shape}, got {array.shape}")
        assert self._native is not None
        self._native.put(name, array)

    def reset(self) -> None:
        """Sets all to zero."""
        for name, type in self._types.items():
            self.write(name, np.zeros(type.shape, type.dtype.numpy))

    def _type(self, name: str) -> TensorType:
        if name not in self._types:
            known = ", ".join(self._types) or "none"
            raise NameNotFoundError(f"state {name!r}", "the model has no such state", f"it has {known}")
        return self._types[name]


def load_model(
    path: str | os.PathLike[str], function: str | None = None, device: str | None = None,
    time_limit: float | None = None,
) -> Model:
    """Loads an .mlpackage (or a bare model file) for prediction.

    Args:
        function: one function of a model that has several; the default one if None.
        device: "coreml", "cpu" (our own runtime), "numpy" (slow, but always there), or None for the best present.
        time_limit: seconds after which our own runtime gives a prediction up, at the next round of a loop, with
            TimeLimitError; the other devices know no limit. Without one a loop ends with an error after 2^20 rounds.

    Raises:
        PackageError: the file is no readable ML Program.
        NameNotFoundError: there is no such function.
        UnsupportedError: the model needs what is not there; it is named.
        DeviceError: the device is absent.
    """
    if time_limit is not None and not 0 < time_limit < 1e9:
        raise ConfigError("time_limit", f"expected seconds, got {time_limit}")
    return Model(path, function, device, time_limit)


class _Way(Protocol):
    """How a model predicts."""

    inputs: dict[str, TensorType]
    outputs: dict[str, TensorType]
    states: dict[str, TensorType]
    images: dict[str, str]

    def predict(self, feeds: Mapping[str, Any], state: State | None) -> dict[str, Any]: ...
    def make_state(self) -> State: ...


def _way(path: str | os.PathLike[str], function: str | None, device: Device, time_limit: float | None) -> _Way:
    if device.name == "cpu":
        return _OnOurRuntime(path, function, time_limit)
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


class _OnOurRuntime:
    """The package's own program on our runtime, with all that an interface can have."""

    def __init__(self, path: str | os.PathLike[str], function: str | None, time_limit: float | None) -> None:
        from .._native.model import NativeModel

        self._model = NativeModel(path, function, time_limit=time_limit)
        self._interface = Interface(self._model.interface)
        self.inputs = {name: feature.type for name, feature in self._interface.inputs.items()}
        self.states = {name: feature.type for name, feature in self._interface.states.items()}
        features = {**self._interface.inputs, **self._interface.outputs}
        self.images = {name: feature.color for name, feature in features.items() if feature.kind == "image"}
        self.outputs = {
            name: feature.type for name, feature in self._interface.outputs.items()
            if feature.kind in ("array", "image")
        }

    def predict(self, feeds: Mapping[str, Any], state: State | None) -> dict[str, Any]:
        results = self._model.predict(self._interface.checked(feeds), state._native if state else None)
        return {name: self._value(name, *results[name]) for name in self._interface.outputs}

    def profile(self, feeds: Mapping[str, Any], runs: int) -> Profile:
        return profile_of(self._model.profile(self._interface.checked(feeds), runs))

    def _value(self, name: str, kind: str, place: int, array: np.ndarray | None) -> Any:
        if kind == "label" or array is None:
            return self._interface.label(place, f"output {name!r}")
        if kind == "probabilities":
            return self._interface.probabilities(array)
        return self._interface.outputs[name].result(array)

    def make_state(self) -> State:
        from .._native.model import NativeState

        return State(self.states, NativeState(self._model))


class _AsItIs:
    """The package's own program on Apple's Core ML: tensors of fixed shape."""

    def __init__(self, path: str | os.PathLike[str], function: str | None, device: str) -> None:
        from .._native.call import Turns
        from .._native.handles import NativeSession, Program, Store
        from .native_device import PREDICTING_UNITS, asked_units

        program = Program.load(os.fspath(path), function)
        self.states: dict[str, TensorType] = {}
        self.images: dict[str, str] = {}
        self.inputs = {f.name: _type(f) for f in program.inputs}
        self.outputs = {f.name: _type(f) for f in program.outputs}
        self._turns = Turns("model")  # from the writing of feeds to the reading of results
        self._session = NativeSession(program, Store(), device=device, units=asked_units(PREDICTING_UNITS))
        self._feeds = {name: self._session.buffer(name) for name in self.inputs}
        self._results = {name: self._session.buffer(name) for name in self.outputs}

    def predict(self, feeds: Mapping[str, Any], state: State | None) -> dict[str, Any]:
        arrays = feeding.checked(self.inputs, feeds)
        with self._turns.lock():
            for name, array in arrays.items():
                np.copyto(self._feeds[name], array)
            self._session.run()
            return {name: np.array(buffer) for name, buffer in self._results.items()}

    def make_state(self) -> State:
        return State({})


def _type(feature: Any) -> TensorType:
    return TensorType(tuple(feature.shape), dtypes.of_numpy(feature.dtype, f"feature {feature.name!r}"))


class _Lifted:
    """The graph that the program is lifted to, compiled once for each set of shapes that comes."""

    def __init__(self, package: Opened, function: str | None, device: Device) -> None:
        self._package, self._function, self._device = package, function, device
        self.states: dict[str, TensorType] = {}
        self.images: dict[str, str] = {}
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

    def predict(self, feeds: Mapping[str, Any], state: State | None) -> dict[str, Any]:
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
        return {**self._made[key].run(arrays)}

    def make_state(self) -> State:
        return State({})

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
