"""Python owner of the library's models, their states and results; thin, and ignorant of images and classes."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from .call import call
from .handles import Handle
from .loader import native
from .values import Array, array_over, enum_value, struct, tensor, text


class Result(NamedTuple):
    """One result: `kind` is "tensor", "label" (`label` is the place of the class) or "probabilities"."""

    kind: str
    label: int
    value: Array | None


class NativeModel(Handle):
    """A function of a package that predicts with any interface on the cpu."""

    _destroy = "rlx_model_destroy"

    def __init__(
        self, path: str | os.PathLike[str], function: str | None = None, *, time_limit: float | None = None,
        watched: Collection[str] = (),
    ) -> None:
        """`time_limit` in seconds; `watched` are values of the program that `predict` gives beside the outputs.

        Raises PackageError, UnsupportedError, NameNotFoundError (no such function), ConfigError (no such value).
        """
        library = native()
        new = library.ffi.new
        out = new("rlx_model **")
        name = library.ffi.NULL if function is None else text(function)
        names = [new("char[]", text(each)) for each in watched]
        array = new("char *[]", names)
        options = struct(
            library, "rlx_model_options", seconds=time_limit or 0.0, watched=array, watched_count=len(names)
        )
        call(library, library.lib.rlx_model_load, text(os.fspath(path)), name, options, out)
        super().__init__(library, out[0])
        said = library.ffi.string(library.lib.rlx_model_interface(self._pointer)).decode()
        self.interface: dict[str, Any] = json.loads(said)

    def predict(self, feeds: Mapping[str, Array], state: NativeState | None = None) -> dict[str, Result]:
        """The outputs by name, as arrays of their own."""
        library = self._native
        names, values, _alive = self._values(feeds)
        out = library.ffi.new("rlx_results **")
        held = library.ffi.NULL if state is None else state._pointer
        call(library, library.lib.rlx_model_predict, self._pointer, held, names, values, len(feeds), out)
        results = library.ffi.gc(out[0], library.lib.rlx_results_destroy)
        return dict(self._result(results, index) for index in range(library.lib.rlx_results_count(results)))

    def profile(self, feeds: Mapping[str, Array], runs: int) -> dict[str, Any]:
        """What rlx_model_profile tells."""
        library = self._native
        names, values, _alive = self._values(feeds)
        out = library.ffi.new("rlx_text **")
        call(library, library.lib.rlx_model_profile, self._pointer, names, values, len(feeds), runs, out)
        owned = library.ffi.gc(out[0], library.lib.rlx_text_destroy)
        said: dict[str, Any] = json.loads(library.ffi.string(library.lib.rlx_text_get(owned)).decode())
        return said

    def _values(self, feeds: Mapping[str, Array]) -> tuple[Any, Any, object]:
        """The names and rlx_tensors of feeds, and what must outlive them."""
        new = self._native.ffi.new
        names = [new("char[]", text(name)) for name in feeds]
        described = [tensor(self._native, name, array) for name, array in feeds.items()]
        return new("char *[]", names), new("rlx_tensor[]", [view[0] for view, _ in described]), (names, described)

    def _result(self, results: Any, index: int) -> tuple[str, Result]:
        library = self._native
        out = struct(library, "rlx_result")
        call(library, library.lib.rlx_results_get, results, index, out)
        name = library.ffi.string(out.name).decode()
        if out.kind == enum_value(library, "result_kind", "label"):
            return name, Result("label", out.label, None)
        kind = "tensor" if out.kind == enum_value(library, "result_kind", "tensor") else "probabilities"
        return name, Result(kind, -1, np.array(array_over(library, name, out.value, owner=results)))


class NativeState(Handle):
    """The values of a model's states; zeros at first."""

    _destroy = "rlx_state_destroy"

    def __init__(self, model: NativeModel) -> None:
        out = model._native.ffi.new("rlx_state **")
        call(model._native, model._native.lib.rlx_state_create, model._pointer, out)
        super().__init__(model._native, out[0])

    def put(self, name: str, value: Array) -> None:
        """Raises NameNotFoundError, ShapeError, DTypeError."""
        view, _alive = tensor(self._native, name, value)
        call(self._native, self._native.lib.rlx_state_put, self._pointer, text(name), view)

    def get(self, name: str, out: Array) -> Array:
        """Copies the state into `out`, which has its shape and dtype; raises as `put`."""
        view, _alive = tensor(self._native, name, out)
        call(self._native, self._native.lib.rlx_state_get, self._pointer, text(name), view)
        return out
