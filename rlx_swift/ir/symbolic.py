"""Graphs from Python functions, with a fixed shape or with a leading dimension that has only a name."""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..dtypes import DType, as_array, f32
from ..errors import FeedError, GraphError, ShapeError
from .graph import Graph, Init
from .tensor import Tensor

KEPT = 8  # sizes of a named dimension whose graphs and programs are kept


@dataclass(frozen=True)
class Spec:
    """The shape and dtype of a traced argument; the leading size may be a name."""

    shape: tuple[int | str, ...]
    dtype: DType = f32
    is_param: bool = False
    init: Init = None

    @property
    def dimension(self) -> str | None:
        """The name of the leading dimension, if it has one."""
        return self.shape[0] if self.shape and isinstance(self.shape[0], str) else None

    def sized(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(sizes[s] if isinstance(s, str) else s for s in self.shape)


def spec(shape: Sequence[int | str] | int, dtype: DType = f32) -> Spec:
    """An input of `rlx.trace`; `spec(("B", 3))` leaves the leading size open under the name B."""
    return _checked(Spec((shape,) if isinstance(shape, int) else tuple(shape), dtype))


def param_spec(shape: Sequence[int] | int, dtype: DType = f32, init: Init = None) -> Spec:
    """A param of `rlx.trace`: a trainable f32 weight of fixed shape."""
    if dtype is not f32:
        raise GraphError("param_spec", f"expected f32, got {dtype}", "precision policies place the casts")
    return _checked(Spec((shape,) if isinstance(shape, int) else tuple(shape), dtype, True, init))


def _checked(made: Spec) -> Spec:
    if any(isinstance(size, str) for size in made.shape[0 if made.is_param else 1 :]):
        raise ShapeError("spec", f"only the leading size of an input may be a name, got {made.shape}")
    return made


def trace(function: Callable[..., Any], **specs: Spec) -> Graph | SymbolicGraph:
    """The graph that `function` builds when called with tensors of the given specs, by argument name.

    The function returns a tensor, a list of them, or a dict of names. With a named leading dimension the
    result is a SymbolicGraph, which is traced anew for each size that comes.
    """
    for name, given in specs.items():
        if not isinstance(given, Spec):
            raise GraphError(f"trace argument {name!r}", f"expected rlx.spec or rlx.param_spec, got {given!r}")
    try:
        inspect.signature(function).bind(**specs)
    except TypeError as error:
        raise GraphError("trace", f"the specs do not fit the function: {error}") from error
    symbolic = SymbolicGraph(function, specs, getattr(function, "__name__", "graph"))
    return symbolic if symbolic.dimensions else symbolic.bind({})


class SymbolicGraph:
    """A graph whose leading dimension has a name: bound to a size at use, one program a size.

    Attributes:
        inputs, params: the specs by name.
        dimensions: the names of the open dimensions.
    """

    def __init__(
        self, function: Callable[..., Any], specs: Mapping[str, Spec], name: str,
        transforms: tuple[Callable[[Graph], Graph], ...] = (),
    ) -> None:
        self.name, self._function, self._specs, self._transforms = name, function, dict(specs), transforms
        self.inputs = {n: s for n, s in specs.items() if not s.is_param}
        self.params = {n: s for n, s in specs.items() if s.is_param}
        self.dimensions = sorted({s.dimension for s in specs.values() if s.dimension})
        self._bound: OrderedDict[tuple[tuple[str, int], ...], Graph] = OrderedDict()

    def bind(self, sizes: Mapping[str, int]) -> Graph:
        """The graph for the given sizes; raises GraphError when one is missing or below 1."""
        if set(sizes) != set(self.dimensions) or any(size < 1 for size in sizes.values()):
            raise GraphError(
                f"sizes {dict(sizes)}", f"expected a size of at least 1 for each of {', '.join(self.dimensions)}"
            )
        key = tuple(sorted(sizes.items()))
        if key not in self._bound:
            self._bound[key] = self._build(sizes)
            if len(self._bound) > KEPT:
                self._bound.popitem(last=False)
        self._bound.move_to_end(key)
        return self._bound[key]

    def sizes(self, feeds: Mapping[str, Any]) -> dict[str, int]:
        """The sizes that a set of feeds gives to the named dimensions; raises FeedError when they disagree."""
        sizes: dict[str, int] = {}
        for name, given in self.inputs.items():
            if given.dimension and name in feeds:
                shape = as_array(feeds[name], f"input {name!r}").shape
                if not shape or shape[0] == 0:
                    raise FeedError(f"input {name!r}", f"expected shape {given.shape}, got {shape}", "an empty batch")
                if sizes.setdefault(given.dimension, shape[0]) != shape[0]:
                    raise FeedError(
                        f"input {name!r}", f"its size {shape[0]} disagrees with {sizes[given.dimension]} elsewhere"
                    )
        for dimension in self.dimensions:
            if dimension not in sizes:
                names = [n for n, s in self.inputs.items() if s.dimension == dimension]
                raise FeedError(f"input {names[0]!r}", "no value was given")
        return sizes

    def map(self, transform: Callable[[Graph], Graph]) -> SymbolicGraph:
        """This graph with a rewrite applied at each binding."""
        return SymbolicGraph(self._function, self._specs, self.name, (*self._transforms, transform))

    def _build(self, sizes: Mapping[str, int]) -> Graph:
        graph = Graph(self.name)
        arguments: dict[str, Tensor] = {}
        for name, given in self._specs.items():
            shape = given.sized(sizes)
            arguments[name] = (
                graph.param(name, shape, given.init) if given.is_param else graph.input(name, shape, given.dtype)
            )
        graph.set_outputs(self._function(**arguments))
        for transform in self._transforms:
            graph = transform(graph)
        return graph

    def __str__(self) -> str:
        return str(self.bind(dict.fromkeys(self.dimensions, 2)))

    def __repr__(self) -> str:
        return f"SymbolicGraph({self.name!r}, open dimensions {', '.join(self.dimensions)})"


def per_size(transform: Callable[..., Graph]) -> Callable[..., Any]:
    """Lets a function from Graph to Graph take a SymbolicGraph too: it is then applied at each binding."""

    @functools.wraps(transform)
    def lifted(graph: Graph | SymbolicGraph, *args: Any, **kwargs: Any) -> Graph | SymbolicGraph:
        if isinstance(graph, SymbolicGraph):
            return graph.map(lambda bound: transform(bound, *args, **kwargs))
        return transform(graph, *args, **kwargs)

    return lifted


def bound(graph: Graph | SymbolicGraph, feeds: Mapping[str, Any]) -> Graph:
    """The graph for a set of feeds."""
    return graph.bind(graph.sizes(feeds)) if isinstance(graph, SymbolicGraph) else graph


def sample(graph: Graph | SymbolicGraph) -> Graph:
    """The graph itself, or its form at some size, to read what does not depend on the size."""
    return graph.bind(dict.fromkeys(graph.dimensions, 2)) if isinstance(graph, SymbolicGraph) else graph
