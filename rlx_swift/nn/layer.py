"""What a layer is: a value that names and creates its params in the graph of the tensor it is called on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ..ir.graph import Graph, Init
from ..ir.tensor import Tensor

_open: list[str] = []  # the names of the layers that are being called, outermost first
_taken: WeakKeyDictionary[Graph, set[str]] = WeakKeyDictionary()


class Layer(ABC):
    """Called on a tensor, it creates what it needs in that graph, and uses it again when called again there.

    Params are named `<layer>.<what>`, as in `dense.weight`; inside another layer `<outer>.<layer>.<what>`. A
    layer without a `name` takes its class's, with `_1`, `_2`, ... for the second and third of a graph.
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        self._names: WeakKeyDictionary[Graph, str] = WeakKeyDictionary()

    def __call__(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
        _open.append(self._name_in(x.graph))
        try:
            return self.forward(x, *args, **kwargs)
        finally:
            _open.pop()

    @abstractmethod
    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
        """What a call computes."""

    def param(self, graph: Graph, what: str, shape: Sequence[int], init: Init) -> Tensor:
        """The layer's param of that name, created when it is first asked for."""
        name = f"{self._name_in(graph)}.{what}"
        return graph.params[name] if name in graph.params else graph.param(name, shape, init)

    def buffer(self, graph: Graph, what: str, shape: Sequence[int], init: Init) -> Tensor:
        """The layer's buffer of that name, created when it is first asked for."""
        name = f"{self._name_in(graph)}.{what}"
        return graph.buffers[name] if name in graph.buffers else graph.buffer(name, shape, init)

    def _name_in(self, graph: Graph) -> str:
        if graph not in self._names:
            wanted = ".".join([*_open[-1:], self.name or type(self).__name__.lower()])
            taken = _taken.setdefault(graph, set())
            name, n = wanted, 0
            while name in taken:
                n += 1
                name = f"{wanted}_{n}"
            taken.add(name)
            self._names[graph] = name
        return self._names[graph]
