"""Arguments that each family of ops must refuse while the graph is built, with a typed error that names the op."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.errors import ConfigError, DTypeError, GraphError, RlxError, ShapeError

SHAPES = {"m": (2, 3), "v": (3,), "s": (), "t": (2, 3, 4), "image": (1, 4, 5, 5), "kernel": (2, 4, 3, 3), "e": (0, 3)}


@pytest.fixture
def a():
    """Tensors by name: f32 of SHAPES, and `half`, `ints`, `bools` of shape (2, 3)."""
    g = rlx.Graph()
    tensors = {name: g.input(name, shape) for name, shape in SHAPES.items()}
    tensors |= {n: g.input(n, (2, 3), d) for n, d in (("half", rlx.f16), ("ints", rlx.i32), ("bools", rlx.bool_))}
    return type("Operands", (), tensors)


UNARY_FLOAT = [
    "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "relu", "erf", "gelu", "silu", "floor", "softmax", "log_softmax",
    "layer_norm", "mean", "logsumexp",
]
BINARY = [
    "add", "sub", "mul", "div", "pow", "maximum", "minimum", "greater", "less_equal", "equal", "matmul", "floor_div",
    "mod",
]
AXES = (2, -3, 1.0, "a", (0, 0), (0, 2), [None])
REDUCE = ["sum", "mean", "max", "min", "logsumexp"]

ROWS = [
    *[(name, lambda a, f=name: getattr(ops, f)(a.ints), DTypeError) for name in UNARY_FLOAT],
    *[(name, lambda a, f=name: getattr(ops, f)(a.bools), DTypeError) for name in ("abs", "neg", "sign", "square")],
    *[(name, lambda a, f=name: getattr(ops, f)(np.ones(3)), GraphError) for name in ("exp", "sum", "transpose")],
    *[(name, lambda a, f=name: getattr(ops, f)(a.m, a.half), DTypeError) for name in BINARY],
    *[(name, lambda a, f=name: getattr(ops, f)(a.m, a.t), ShapeError) for name in BINARY if name != "matmul"],
    *[(name, lambda a, f=name: getattr(ops, f)(1.0, 2.0), GraphError) for name in BINARY],
    *[(name, lambda a, f=name: getattr(ops, f)(a.bools, a.bools), DTypeError) for name in BINARY if name != "equal"],
    *[(name, lambda a, f=name, x=axis: getattr(ops, f)(a.m, x), ShapeError) for name in REDUCE for axis in AXES],
    *[(name, lambda a, f=name: getattr(ops, f)(a.e, 0), ShapeError) for name in ("mean", "max", "min", "logsumexp")],
    ("gelu", lambda a: ops.gelu(a.m, "fast"), ConfigError),
    ("where", lambda a: ops.where(a.m, a.m, a.m), DTypeError),
    ("where", lambda a: ops.where(a.bools, a.m, a.ints), DTypeError),
    ("where", lambda a: ops.where(a.bools, a.t, a.t), ShapeError),
    ("cast", lambda a: ops.cast(a.m, "f16"), DTypeError),
    ("cast", lambda a: a.m.astype(np.float16), DTypeError),
    ("full", lambda a: ops.full(a.m.graph, (2,), 1.5, rlx.i32), DTypeError),
    ("full", lambda a: ops.full(a.m.graph, (2,), float("nan"), rlx.i32), DTypeError),
    ("full", lambda a: ops.full(a.m.graph, (2,), float("inf"), rlx.i32), DTypeError),
    ("full", lambda a: ops.full(a.m.graph, (2,), 2**31, rlx.i32), DTypeError),
    ("full", lambda a: ops.full(a.m.graph, (-2,), 1.0), ShapeError),
    ("full", lambda a: ops.full(a.m.graph, (2,), "one"), DTypeError),
    ("full", lambda a: ops.full(a.m.graph, (2,), 1.0, "f32"), DTypeError),
    ("reshape", lambda a: ops.reshape(a.m, (4,)), ShapeError),
    ("reshape", lambda a: ops.reshape(a.m, (-1, -1)), ShapeError),
    ("reshape", lambda a: ops.reshape(a.m, (-2, -3)), ShapeError),
    ("reshape", lambda a: ops.reshape(a.m, (2.0, 3)), ShapeError),
    ("reshape", lambda a: ops.reshape(a.m, "ab"), ShapeError),
    ("reshape", lambda a: ops.reshape(a.e, (0, -1)), ShapeError),
    ("expand_dims", lambda a: ops.expand_dims(a.m, 3), ShapeError),
    ("expand_dims", lambda a: ops.expand_dims(a.m, (0, 0)), ShapeError),
    ("squeeze", lambda a: ops.squeeze(a.m, 0), ShapeError),
    ("transpose", lambda a: ops.transpose(a.m, (0,)), ShapeError),
    ("transpose", lambda a: ops.transpose(a.m, (0, 2)), ShapeError),
    ("transpose", lambda a: ops.transpose(a.m, 1), ShapeError),
    ("swapaxes", lambda a: ops.swapaxes(a.m, 0, 2), ShapeError),
    ("broadcast_to", lambda a: ops.broadcast_to(a.m, (2,)), ShapeError),
    ("broadcast_to", lambda a: ops.broadcast_to(a.m, (4, 3)), ShapeError),
    ("tile", lambda a: ops.tile(a.m, (2,)), ShapeError),
    ("tile", lambda a: ops.tile(a.m, (1, -1)), ShapeError),
    ("concat", lambda a: ops.concat([]), ShapeError),
    ("concat", lambda a: ops.concat([a.m, a.v]), ShapeError),
    ("concat", lambda a: ops.concat([a.m, a.t]), ShapeError),
    ("concat", lambda a: ops.concat([a.m, a.half]), DTypeError),
    ("concat", lambda a: ops.concat([a.m, a.m], 2), ShapeError),
    ("concat", lambda a: ops.concat([a.s, a.s]), ShapeError),
    ("slice", lambda a: ops.slice(a.m, (0,), (1,)), ShapeError),
    ("slice", lambda a: ops.slice(a.m, (0, 0), (1, 1), (0, 1)), ShapeError),
    ("slice", lambda a: ops.slice(a.m, (0.5, 0), (1, 1)), ShapeError),
    ("slice", lambda a: ops.slice_axis(a.m, 2, 0, 1), ShapeError),
    ("pad", lambda a: ops.pad(a.m, ((1, 1),)), ShapeError),
    ("pad", lambda a: ops.pad(a.m, ((1, 1), (1,))), ShapeError),
    ("pad", lambda a: ops.pad(a.m, ((1, -1), (0, 0))), ShapeError),
    ("pad", lambda a: ops.pad(a.m, 1), ShapeError),
    ("flip", lambda a: ops.flip(a.m, 2), ShapeError),
    ("matmul", lambda a: a.s @ a.m, ShapeError),
    ("matmul", lambda a: a.m @ a.m, ShapeError),
    ("matmul", lambda a: a.v @ a.m, ShapeError),
    ("matmul", lambda a: ops.matmul(a.t, a.t, transpose_y=False), ShapeError),
    ("gather", lambda a: ops.gather(a.m, a.m), DTypeError),
    ("gather", lambda a: ops.gather(a.m, a.ints, 2), ShapeError),
    ("gather", lambda a: ops.gather(a.s, a.ints), ShapeError),
    ("gather", lambda a: ops.gather(a.e, a.ints), ShapeError),
    ("scatter_add", lambda a: ops.scatter_add(a.m, a.m, 4), DTypeError),
    ("scatter_add", lambda a: ops.scatter_add(a.v, a.ints, 4), ShapeError),
    ("scatter_add", lambda a: ops.scatter_add(a.m, a.ints, -1), ShapeError),
    ("scatter_add", lambda a: ops.scatter_add(a.m, a.ints, 0), ShapeError),
    ("one_hot", lambda a: ops.one_hot(a.m, 3), DTypeError),
    ("one_hot", lambda a: ops.one_hot(a.ints, 0), ShapeError),
    ("one_hot", lambda a: ops.one_hot(a.ints, 3, 3), ShapeError),
    ("one_hot", lambda a: ops.one_hot(a.ints, 2.5), ShapeError),
    ("softmax", lambda a: ops.softmax(a.s), ShapeError),
    ("softmax", lambda a: ops.softmax(a.m, 2), ShapeError),
    ("softmax", lambda a: ops.softmax(a.e, 0), ShapeError),
    ("log_softmax", lambda a: ops.log_softmax(a.e, 0), ShapeError),
    ("layer_norm", lambda a: ops.layer_norm(a.m, eps=-1.0), ConfigError),
    ("layer_norm", lambda a: ops.layer_norm(a.m, eps=float("nan")), ConfigError),
    ("layer_norm", lambda a: ops.layer_norm(a.m, axis=2), ShapeError),
    ("layer_norm", lambda a: ops.layer_norm(a.m, np.ones(4)), ShapeError),
    ("cross_entropy", lambda a: ops.softmax_cross_entropy_with_logits(a.s, np.int32(0)), ShapeError),
    ("cross_entropy", lambda a: ops.softmax_cross_entropy_with_logits(a.m, a.ints), ShapeError),
    ("cross_entropy", lambda a: ops.softmax_cross_entropy_with_logits(a.m, a.t), ShapeError),
    ("cross_entropy", lambda a: ops.softmax_cross_entropy_with_logits(a.m, a.half), RlxError),
    ("cross_entropy", lambda a: ops.softmax_cross_entropy_with_logits(a.ints, a.ints), DTypeError),
    ("clip", lambda a: ops.clip(a.m, 2, 1), ConfigError),
    ("clip", lambda a: ops.clip(a.m, float("nan")), ConfigError),
    ("clip", lambda a: ops.clip(a.ints, 0.5), DTypeError),
    ("clip", lambda a: ops.clip(a.bools, 0), DTypeError),
    ("leaky_relu", lambda a: ops.leaky_relu(a.m, float("inf")), ConfigError),
    ("elu", lambda a: ops.elu(a.m, "one"), ConfigError),
    ("prelu", lambda a: ops.prelu(a.m, np.float32([1, 2])), ShapeError),
    ("logical_and", lambda a: a.bools & a.ints, DTypeError),
    ("logical_or", lambda a: a.m | a.m, DTypeError),
    ("logical_not", lambda a: ~a.ints, DTypeError),
    ("isnan", lambda a: ops.isnan(a.ints), DTypeError),
    ("cumsum", lambda a: ops.cumsum(a.m), ShapeError),
    ("cumsum", lambda a: ops.cumsum(a.m, 2), ShapeError),
    ("cumsum", lambda a: ops.cumsum(a.s, 0), ShapeError),
    ("cumprod", lambda a: ops.cumprod(a.t), ShapeError),
    ("prod", lambda a: ops.prod(a.m, []), ShapeError),
    ("var", lambda a: ops.var(a.ints), DTypeError),
    ("var", lambda a: ops.var(a.m, 0, correction=2), ConfigError),
    ("std", lambda a: ops.std(a.e, 0), ConfigError),
    ("norm", lambda a: ops.norm(a.m, 3), ConfigError),
    ("norm", lambda a: ops.norm(a.ints), DTypeError),
    ("argmax", lambda a: ops.argmax(a.m, 2), ShapeError),
    ("argmax", lambda a: ops.argmax(a.e, 0), ShapeError),
    ("argmax", lambda a: ops.argmax(a.e), ShapeError),
    ("argmin", lambda a: ops.argmin(a.bools, 0), DTypeError),
    ("argmin", lambda a: ops.argmin(a.m, (0, 1)), ShapeError),
    ("conv2d", lambda a: ops.conv2d(a.m, a.kernel), ShapeError),
    ("conv2d", lambda a: ops.conv2d(a.image, a.kernel, groups=3), ShapeError),
    ("conv2d", lambda a: ops.conv2d(a.image, a.kernel, groups=0), RlxError),
    ("conv2d", lambda a: ops.conv2d(a.image, a.kernel, groups=1.5), RlxError),
    ("conv2d", lambda a: ops.conv2d(a.image, a.kernel, strides=0), ConfigError),
    ("conv2d", lambda a: ops.conv2d(a.image, a.kernel, strides=(1, 2, 3)), ConfigError),
    ("conv2d", lambda a: ops.conv2d(a.image, a.kernel, strides=None), ConfigError),
    ("conv2d", lambda a: ops.conv2d(a.image, a.kernel, dilation=3), ShapeError),
    ("conv2d", lambda a: ops.conv2d(a.image, a.kernel, padding="full"), ConfigError),
    ("conv2d", lambda a: ops.conv2d(a.image, a.kernel, padding=-1), ConfigError),
    ("conv2d", lambda a: ops.conv2d(a.image, a.kernel, padding=None), ConfigError),
    ("conv2d", lambda a: ops.conv2d(a.image, a.kernel, padding=(1, 2, 3)), ConfigError),
    ("conv2d", lambda a: ops.conv2d(a.image, a.kernel, padding=1.0), ConfigError),
    ("conv2d", lambda a: ops.conv2d(a.image, a.kernel, np.ones(3)), ShapeError),
    ("conv2d", lambda a: ops.conv2d(a.image, np.ones((2, 4, 6, 6))), ShapeError),
    ("max_pool2d", lambda a: ops.max_pool2d(a.m, 2), ShapeError),
    ("max_pool2d", lambda a: ops.max_pool2d(a.image, 6), ShapeError),
    ("max_pool2d", lambda a: ops.max_pool2d(a.image, 0), ConfigError),
    ("max_pool2d", lambda a: ops.max_pool2d(a.image, 2, padding=2), ConfigError),
    ("avg_pool2d", lambda a: ops.avg_pool2d(a.image, 2, padding="all"), ConfigError),
    ("avg_pool2d", lambda a: ops.avg_pool2d(a.image, 2, 0), ConfigError),
]


@pytest.mark.parametrize(("call", "error"), [pytest.param(*row[1:], id=f"{i}-{row[0]}") for i, row in enumerate(ROWS)])
def test_refused(a, call, error):
    with pytest.raises(error) as caught:
        call(a)
    assert isinstance(caught.value, RlxError)
    assert caught.value.subject and caught.value.problem
