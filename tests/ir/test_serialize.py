"""Graph JSON: what is kept, and that no text, however malformed, does more than raise our error."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.errors import RlxError
from rlx_swift.ir.graph import Graph


def network() -> Graph:
    g = Graph("network")
    x = g.input("x", (2, 1, 4, 4))
    g.buffer("seen", (), 3.0)
    y = ops.conv2d(x, g.param("w", (2, 1, 3, 3)), padding="same")
    z = ops.max(ops.pad(ops.max_pool2d(y, 2), ((0, 0),) * 3 + ((1, 0),), float("-inf")), (2, 3))
    g.assign("seen", ops.mean(z))
    labels = g.input("labels", (2,), rlx.i32)
    g.set_outputs({"loss": ops.mean(ops.softmax_cross_entropy_with_logits(z * np.array([np.nan, -0.0]), labels))})
    return g


def test_a_graph_keeps_everything_but_values_of_params_and_buffers():
    graph = rlx.grad_with_loss(network(), "w")
    back = Graph.from_json(graph.to_json())
    assert str(back) == str(graph)
    assert back.generated == graph.generated == {"d_output": "d_output", "grad_w": "grad_w"}
    assert [n.op for n in back.nodes] == [n.op for n in graph.nodes]
    assert back.buffers["seen"].producer.value is None


def test_the_text_is_strict_json_and_always_the_same():
    def refuse(token):
        raise AssertionError(token)

    json.loads(network().to_json(), parse_constant=refuse)
    assert network().to_json() == network().to_json()


PATHS = [
    ("format", 2), ("format", None), ("name", 3), ("leaves", 3), ("leaves", [3]), ("leaves", [{}]), ("constants", [{}]),
    ("nodes", [{}]), ("nodes", {}), ("outputs", []), ("outputs", {"y": 999}), ("outputs", {"y": -1}),
    ("outputs", {"y": True}), ("outputs", {"y": "0"}), ("assigns", {"none": 0}), ("generated", 1),
]


@pytest.mark.parametrize(("key", "value"), PATHS)
def test_a_changed_part_is_refused(key, value):
    data = json.loads(network().to_json())
    data[key] = value
    with pytest.raises(RlxError):
        Graph.from_json(json.dumps(data))


@pytest.mark.parametrize("text", ["", "3", "[]", "null", "{}", "{", "nan", "[" * 100000, '{"format": 1}'])
def test_other_text_is_refused(text):
    with pytest.raises(RlxError):
        Graph.from_json(text)


TEXT = network().to_json()
JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 50), st.floats(allow_nan=False), st.text(max_size=3), st.just([]),
    st.just({}),
)


@given(st.data())
def test_one_value_replaced_raises_our_error_or_gives_a_whole_graph(data):
    tree = json.loads(TEXT)
    node = tree
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(node[key], (dict, list)) or not node[key] or data.draw(st.booleans()):
            node[key] = data.draw(JUNK)
            break
        node = node[key]
    try:
        graph = Graph.from_json(json.dumps(tree))
    except RlxError:
        return
    graph.verify()
    str(graph)
    Graph.from_json(graph.to_json())
