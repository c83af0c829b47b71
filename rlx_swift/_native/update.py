"""The Python owner of what one of Core ML's update tasks left; thin, and ignorant of what the numbers mean."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .call import call
from .handles import Handle
from .loader import native
from .values import Array, enum_value, struct, tensor, text


def _beside(run: Callable[[], None], stop: Any) -> None:
    """Runs in another thread, since Python hears of Ctrl-C only while this one is not in the library."""
    failures: list[BaseException] = []

    def work() -> None:
        try:
            run()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work, name="rlx-update", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.1)  # another thread may be told of the signal, which wakes no waiting one
    except KeyboardInterrupt:
        stop[0] = 1
        thread.join()
        raise
    if failures:
        raise failures[0]


class NetworkUpdate(Handle):
    """The losses and trained weights of one finished task."""

    _destroy = "rlx_update_destroy"

    @classmethod
    def run(cls, model: bytes, data: Mapping[str, Array], epochs: int, mini_batch: int) -> NetworkUpdate:
        """Trains a copy of the model on rows of `data`, in their order, and waits; Ctrl-C ends it between mini-batches.

        Raises:
            DeviceError: there is no Core ML here.
            PackageError, UnsupportedError, FeedError, NativeError: what Core ML refuses, in its own words.
        """
        library = native()
        new = library.ffi.new
        views = [(new("char[]", text(name)), *tensor(library, name, value)) for name, value in data.items()]
        columns = new("rlx_column[]", [(name, view) for name, view, _ in views])
        stop = new("int32_t *")
        options = struct(library, "rlx_update_options", epochs=epochs, mini_batch=mini_batch, stop=stop)
        out = new("rlx_update **")
        bytes = library.ffi.from_buffer(model)
        arguments = (library.lib.rlx_update_run, bytes, len(model), columns, len(views), options, out)
        _beside(lambda: call(library, *arguments), stop)
        return cls(library, out[0])

    def losses(self) -> list[float]:
        """The mean loss of each mini-batch, before its step."""
        count = self._native.lib.rlx_update_loss_count(self._pointer)
        out = np.empty(count, np.float64)
        pointer = self._native.ffi.from_buffer("double[]", out)
        call(self._native, self._native.lib.rlx_update_get_losses, self._pointer, pointer, count)
        return [float(loss) for loss in out]

    def parameter(self, layer: str, kind: str, shape: tuple[int, ...]) -> Array:
        """The trained "weights" or "bias" of a layer, as f32; raises NameNotFoundError and ShapeError."""
        out = np.empty(shape, np.float32)
        view, _alive = tensor(self._native, layer, out)
        code = enum_value(self._native, "parameter", kind)
        call(self._native, self._native.lib.rlx_update_get_parameter, self._pointer, text(layer), code, view)
        return out
