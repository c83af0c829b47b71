"""What a device offers to a session, and which devices there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Protocol

import numpy as np

from ..errors import DeviceError
from ..ir.graph import Graph
from ..ir.types import Shape

NO_SCALARS: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True)
class DeviceStatus:
    """Whether a device can be used here; `reason` says what it is, or why it cannot be used."""

    name: str
    available: bool
    reason: str

    def __str__(self) -> str:
        return f"{self.name:8}{'available' if self.available else 'absent':11}{self.reason}"


class Store(Protocol):
    """Named f32 tensors that stay on the device between runs. Values are copied in and out."""

    def put(self, name: str, value: np.ndarray) -> None: ...
    def get(self, name: str) -> np.ndarray: ...
    def __contains__(self, name: str) -> bool: ...


class Direct(NamedTuple):
    """A program's own memory: write `inputs`, call `run`, read `outputs`. Rank 0 is one element.

    The inputs in `lent` are read where the caller has them: where there are any, `run_lent` takes their arrays in order
    and stands for `run`. `unheard` tells, once, how many runs were made though their calls ended with an exception.
    """

    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]
    lent: Sequence[str]
    run: Callable[[], None]
    run_lent: Callable[[Iterable[np.ndarray]], None]
    unheard: Callable[[], int]


class Series(NamedTuple):
    """An input's values for many runs: the places along the first axis of `values` that they read in their order.

    `values` are in C order and of the input's type; as many places make one run as make the input. None: from the
    beginning on.
    """

    values: np.ndarray
    places: np.ndarray | None = None


class Ran(NamedTuple):
    """How many runs are whole, and each output as it was after each of them. It may be none: then a run by itself says
    why, if there is a reason. `raised`: by a signal handler, which ended them."""

    done: int
    outputs: dict[str, np.ndarray]
    raised: BaseException | None = None


Repeat = Callable[[Mapping[str, Series], int], Ran]  # feeds, and how often to run at most


class Executable(Protocol):
    """A graph compiled for one store: params and buffers live there, assigns go there."""

    @property
    def inputs(self) -> Mapping[str, Shape]:
        """The shapes of what is fed."""
        ...

    def run(self, feeds: Mapping[str, np.ndarray], scalars: Mapping[str, float] = NO_SCALARS) -> dict[str, np.ndarray]:
        """The outputs by name, as arrays of their own. On an error the store is unchanged.

        `feeds` are arrays of the inputs' types, and may have more names; `scalars` feed inputs that are f32 of rank 0.
        """
        ...

    def run_scalars(self, feeds: Mapping[str, np.ndarray], scalars: Mapping[str, float]) -> dict[str, float]:
        """As `run`, for a program whose outputs all have rank 0, which come as numbers."""
        ...

    def statistics(self) -> dict[str, int]:
        """What the device counts; may be nothing."""
        ...

    def direct(self) -> Direct | None:
        """Where to feed the program without copies, if the device has such a place."""
        ...

    def repeated(self, endings: Mapping[str, str]) -> Repeat | None:
        """What runs many times in one call of the device, if it can; the program's outputs all have rank 0.

        `endings` are outputs that make a run the last of its call when they are "zero" or "not_finite". A call takes no
        more than a moment, so that the program can do something else: it may run less often than it is asked to.
        """
        ...


class Device(Protocol):
    """Attributes:
    name: as users say it.
    repeats: whether its programs can run many times in one call.
    """

    name: str
    repeats: bool

    def status(self) -> DeviceStatus: ...
    def kernel(self) -> str:
        """What computes matrix products: results of equal runs are equal bit for bit only under the same."""
        ...

    def make_store(self) -> Store: ...
    def compile(self, graph: Graph, store: Store) -> Executable: ...
    def compile_kept(self, key: str, build: Callable[[], Graph], store: Store) -> Executable:
        """As `compile`, of a graph that is built only where nothing is kept under the key; nothing is under ""."""
        ...


def _numpy() -> Device:
    from .numpy_device import NumpyDevice

    return NumpyDevice()


def _cpu() -> Device:
    from .native_device import NativeDevice

    return NativeDevice("cpu")


def _coreml() -> Device:
    from .native_device import NativeDevice

    return NativeDevice("coreml")


_MAKERS: dict[str, Callable[[], Device]] = {"coreml": _coreml, "cpu": _cpu, "numpy": _numpy}  # best first


def devices() -> list[DeviceStatus]:
    """Every device, best first, and for what is absent the reason."""
    return [make().status() for make in _MAKERS.values()]


def pick(name: str | None) -> Device:
    """The device of that name, or the best one present; raises DeviceError when it is absent or unknown."""
    if name is None:
        return next(device for device in (make() for make in _MAKERS.values()) if device.status().available)
    if name not in _MAKERS:
        raise DeviceError(f"device {name!r}", f"expected one of {', '.join(_MAKERS)}, or None for the best present")
    device = _MAKERS[name]()
    status = device.status()
    if not status.available:
        raise DeviceError(f"device {name!r}", status.reason)
    return device
