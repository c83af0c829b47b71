"""What makes two graphs different, in words; changes nothing."""

from __future__ import annotations

from itertools import zip_longest

from .graph import Graph
from .printer import print_graph
from .rewrite import Copy


def difference(old: Graph, new: Graph) -> str:
    """The first thing in which `new` differs from `old`, or ""; names of graphs and dead nodes do not count."""
    old, new = Copy(old).graph, Copy(new).graph
    tables = (
        ("input", old.inputs, new.inputs), ("param", old.params, new.params), ("buffer", old.buffers, new.buffers),
        ("output", old.outputs, new.outputs),
    )
    for kind, before, after in tables:
        for name in (*before, *after):
            if name not in after:
                return f"{kind} {name!r} is missing"
            if name not in before:
                return f"{kind} {name!r} is new"
            if before[name].type != after[name].type:
                return f"{kind} {name!r} was {before[name].type} and is {after[name].type}"
    lines = (print_graph(graph).splitlines()[1:] for graph in (old, new))
    for before_line, after_line in zip_longest(*lines, fillvalue=""):
        if before_line != after_line:
            return f"{before_line.strip()!r} has become {after_line.strip()!r}"
    for i, (a, b) in enumerate(zip(old.constants, new.constants, strict=True)):
        if a.producer.value.tobytes() != b.producer.value.tobytes():  # type: ignore[union-attr]
            return f"the values of constant {i}, {a.type}, have changed"
    return ""
