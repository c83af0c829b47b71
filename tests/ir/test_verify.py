"""Each rule of the IR rejects a graph that breaks it."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.errors import GraphError
from rlx_swift.ir.graph import Leaf, LeafKind, Node
from rlx_swift.ir.op import NoAttrs
from rlx_swift.ir.tensor import Tensor
from rlx_swift.ir.types import TensorType
from rlx_swift.ops.arithmetic import ADD
from rlx_swift.ops.elementwise import EXP
from rlx_swift.ops.reduce import ReduceAttrs


@pytest.fixture
def graph() -> rlx.Graph:
    g = rlx.Graph("whole")
    x = g.input("x", (2, 3))
    w = g.param("w", (3,))
    g.buffer("state", (3,))
    y = ops.exp(x * w + np.ones(3, np.float32))
    g.assign("state", ops.mean(y, 0))
    g.set_outputs({"y": y})
    g.verify()
    return g


def other_tensor() -> Tensor:
    return rlx.Graph("other").input("x", (2, 3))


def rename_leaf(g):
    g.inputs["z"] = g.inputs.pop("x")


def repeat_a_name(g):
    leaf = Leaf(LeafKind.PARAM, "x")
    g.params["x"] = Tensor(g, TensorType((1,)), leaf, name="x")


def swap_tables(g):
    g.params["x"] = g.inputs.pop("x")


def half_param(g):
    g.params["h"] = Tensor(g, TensorType((1,), rlx.f16), Leaf(LeafKind.PARAM, "h"), name="h")


def wrong_constant(g):
    g.constants[0].producer.value = np.ones(4, np.float32)


def no_constant(g):
    g.constants[0].producer.value = None


def foreign_operand(g):
    g.nodes[0].inputs = (other_tensor(), g.params["w"])


def reversed_order(g):
    g.nodes.reverse()


def missing_constant(g):
    g.constants.clear()


def wrong_type(g):
    g.nodes[0].outputs[0].type = TensorType((7,))


def wrong_dtype(g):
    g.nodes[0].outputs[0].type = TensorType((2, 3), rlx.f16)


def wrong_attrs(g):
    g.nodes[0].attrs = ReduceAttrs((0,), False)


def wrong_arity(g):
    g.nodes[0].inputs = g.nodes[0].inputs[:1]


def wrong_op(g):
    g.nodes[0].op = EXP


def refused_operands(g):
    g.nodes[0].inputs = (g.inputs["x"], g.input("long", (2, 5)))


def borrowed_result(g):
    g.nodes[1].outputs = g.nodes[0].outputs


def wrong_index(g):
    g.nodes[0].outputs[0].index = 1


def too_many_results(g):
    extra = Tensor(g, TensorType((2, 3)), g.nodes[0], 1)
    g.nodes[0].outputs += (extra,)


def foreign_output(g):
    g.outputs["y"] = other_tensor()


def output_of_no_node(g):
    node = Node(ADD, NoAttrs(), (), "", "")
    g.outputs["y"] = Tensor(g, TensorType(()), node)


def assign_without_buffer(g):
    g.assigns["nothing"] = g.assigns.pop("state")


def assign_of_another_type(g):
    g.assigns["state"] = g.outputs["y"]


def foreign_assign(g):
    g.assigns["state"] = other_tensor()


BREAKS = {
    rename_leaf: "another one", repeat_a_name: "comes before", swap_tables: "another one", half_param: "expected f32",
    wrong_constant: "value is not", no_constant: "value is not", foreign_operand: "another graph",
    reversed_order: "before it is made", missing_constant: "before it is made", wrong_type: "infers",
    wrong_dtype: "infers", wrong_attrs: "expected attributes", wrong_arity: "expected 2 operands",
    wrong_op: "expected 1 operands", refused_operands: "broadcast", borrowed_result: "own", wrong_index: "own",
    too_many_results: "infers", foreign_output: "not one of this graph", output_of_no_node: "not one of this graph",
    assign_without_buffer: "no buffer", assign_of_another_type: "expected f32", foreign_assign: "not one of this graph",
}


@pytest.mark.parametrize("change", BREAKS, ids=lambda change: change.__name__)
def test_a_broken_graph_is_rejected_with_the_rule(graph, change):
    change(graph)
    with pytest.raises(GraphError, match=BREAKS[change]):
        graph.verify()
    with pytest.raises(GraphError):
        graph.to_json()


def test_the_message_holds_the_text_of_the_node(graph):
    wrong_arity(graph)
    with pytest.raises(GraphError, match=r"f32\[2, 3\] = mul\(x\)"):
        graph.verify()
