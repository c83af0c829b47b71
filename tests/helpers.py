"""Values and gradients of a function of tensors, in one call, on the device that a test asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import rlx_swift as rlx
from rlx_swift.dtypes import of_numpy
from rlx_swift.ir.graph import Graph
from rlx_swift.testing.devices import run_on

device = "numpy"  # the fixture `each_device` changes it


def run(graph: Graph, feeds: dict[str, Any], dtype: Any = None) -> dict[str, np.ndarray]:
    """The outputs on the device of the test; of another dtype in the interpreter."""
    return rlx.evaluate(graph, feeds, dtype) if device == "numpy" or dtype else run_on(device, graph, feeds)


def traced(function: Callable[..., Any], *arrays: Any) -> tuple[Graph, dict[str, np.ndarray]]:
    """The graph of function(x0, x1, ...) with output(s) y0, y1, ..., and its feeds. Python floats are f32."""
    values = [np.asarray(a, np.float32) if np.asarray(a).dtype == np.float64 else np.asarray(a) for a in arrays]
    graph = Graph("traced")
    operands = [graph.input(f"x{i}", v.shape, of_numpy(v.dtype, f"x{i}")) for i, v in enumerate(values)]
    results = function(*operands)
    results = results if isinstance(results, tuple) else (results,)
    graph.set_outputs({f"y{i}": t for i, t in enumerate(results)})
    graph.verify()
    return graph, {f"x{i}": v for i, v in enumerate(values)}


def value(function: Callable[..., Any], *arrays: Any, dtype: Any = None) -> Any:
    """What function(...) evaluates to: an array, or a tuple of them."""
    graph, feeds = traced(function, *arrays)
    results = tuple(run(graph, feeds, dtype).values())
    return results[0] if len(results) == 1 else results


def gradients(function: Callable[..., Any], *arrays: Any, g: Any = 1.0, dtype: Any = None) -> Any:
    """The gradients of sum(g * function(...)) by each float argument: an array, or a list of them."""
    graph, feeds = traced(function, *arrays)
    wrt = [name for name, t in graph.inputs.items() if t.dtype.is_float]
    (output,) = graph.outputs.values()
    cotangent = np.broadcast_to(np.asarray(g, output.dtype.numpy), output.shape)
    results = list(run(rlx.vjp(graph, wrt), {**feeds, "d_y0": cotangent}, dtype).values())
    return results[0] if len(results) == 1 else results


def same(actual: Any, expected: Any, rtol: float = 1e-6, atol: float = 1e-7) -> None:
    """Equal shapes, and values near; NaN and infinities only where expected."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol)
