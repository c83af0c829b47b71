"""What Core ML plans for the operations of a model, read through the library; ignorant of what a good plan is."""

from __future__ import annotations

import json
import os
from typing import Any

from .call import call
from .handles import Handle
from .loader import native
from .values import enum_value, text


class Placement(Handle):
    """Which device Core ML plans for each operation of one model."""

    _destroy = "rlx_placement_destroy"

    @classmethod
    def load(cls, path: str | os.PathLike[str], function: str | None = None, units: str = "all") -> Placement:
        """Compiles an .mlpackage or .mlmodel (or takes an .mlmodelc) and asks for its plan; runs nothing.

        Args:
            units: "cpu", "cpu_and_gpu", "all" or "cpu_and_ne".

        Raises:
            DeviceError: there is no Core ML here, or one that does not tell.
            PackageError, UnsupportedError, NameNotFoundError, NativeError: what the model or Core ML refuses.
        """
        library = native()
        out = library.ffi.new("rlx_placement **")
        name = library.ffi.NULL if function is None else text(function)
        code = enum_value(library, "units", units)
        call(library, library.lib.rlx_placement_load, text(os.fspath(path)), name, code, out)
        return cls(library, out[0])

    @property
    def report(self) -> dict[str, Any]:
        """`units`, `counts` (steps by device) and `steps`; see rlx_placement_json in rlx.h."""
        said = self._native.ffi.string(self._native.lib.rlx_placement_json(self._pointer)).decode()
        report: dict[str, Any] = json.loads(said)
        return report
