"""Running one graph on several devices and comparing; knows sessions, not what a device is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..interp import leaf_value
from ..ir.graph import Graph
from ..ir.op import OpKind
from .compare import ArrayMismatch, Tolerance, assert_close, tolerance


def assert_devices_agree(
    g: Graph, feeds: Mapping[str, Any], devices: Sequence[str] = ("numpy", "cpu"), within: Tolerance | None = None,
    *, allow_nonfinite: bool = False,
) -> None:
    """Raises ArrayMismatch, with device, output, element and graph, unless every device gives what the first one gives.

    `feeds` has the inputs, and those params and buffers that shall not have their initial value. Without
    `within`, each output may differ by what its dtype allows for a product or a reduction.
    """
    reference, *others = devices
    expected = run_on(reference, g, feeds)
    for device in others:
        for name, value in run_on(device, g, feeds).items():
            dtype = g.outputs[name].dtype
            allowed = within or tolerance(OpKind.COMPUTE, dtype)
            what = f"output {name!r} on {device!r} against {reference!r}"
            try:
                assert_close(value, expected[name], allowed, what, allow_nonfinite=allow_nonfinite)
            except ArrayMismatch as error:
                error.detail = str(g)
                raise


def run_on(device: str, g: Graph, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The outputs of the graph as a session on that device computes them."""
    from ..session.compiled import Session

    compiled = Session(device=device).compile(g)
    for name, tensor in {**g.params, **g.buffers}.items():
        compiled.set_param(name, leaf_value(tensor, feeds))
    results: dict[str, np.ndarray] = compiled.run({name: feeds[name] for name in g.inputs if name in feeds})
    return results
