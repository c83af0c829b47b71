"""What the self-test asks of Core ML: tiny graphs with their feeds, and programs that it should refuse.

A case is a function of the float dtype. It knows neither devices nor processes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .. import ops
from ..autodiff.reverse import backward
from ..dtypes import DType, bool_, f16, f32, i32
from ..ir.graph import Graph
from ..ir.rewrite import drop_unused_leaves
from ..ir.tensor import Tensor

Feeds = dict[str, np.ndarray]
Built = tuple[Graph, Feeds]
Build = Callable[[DType], Built]


@dataclass(frozen=True)
class Case:
    """A question to Core ML.

    Attributes:
        name: the family and what is asked, "conv/2d stride 2".
        build: the graph and its feeds for a float dtype.
        dtypes: the names of the dtypes for which it makes sense.
        full: whether it takes long, so that only a full run asks it.
        exact: whether results are compared with those in float64 too.
        twice: whether a second process is to give the same bits.
    """

    name: str
    build: Build
    dtypes: tuple[str, ...] = ("f32", "f16")
    full: bool = False
    exact: bool = False
    twice: bool = False


_CASES: dict[str, Case] = {}


def cases() -> Mapping[str, Case]:
    """Every case by name."""
    return _CASES


def _case(name: str, **settings: Any) -> Callable[[Build], Build]:
    def add(build: Build) -> Build:
        _CASES[name] = Case(name, build, **settings)
        return build

    return add


def _values(shape: tuple[int, ...], dtype: DType = f32, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    if dtype.is_float:
        return rng.uniform(-1, 1, shape).astype(dtype.numpy)
    return rng.integers(0, 2 if dtype is bool_ else 5, shape).astype(dtype.numpy)


def _asks(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Build:
    """A graph of one function of random inputs a, b, ..."""
    return lambda dtype: _of(function, shapes, dtype)


def _told(function: Callable[..., Any], **arrays: Any) -> Build:
    """The same of given inputs; floats take the dtype."""
    return lambda dtype: _given(function, dtype, arrays)


def _of(function: Callable[..., Any], shapes: Sequence[tuple[int, ...]], dtype: DType) -> Built:
    graph = Graph("case")
    names = "abcdefgh"[: len(shapes)]
    inputs = [graph.input(name, shape, dtype) for name, shape in zip(names, shapes, strict=True)]
    return _finished(graph, function(*inputs), {
        name: _values(shape, dtype, seed) for seed, (name, shape) in enumerate(zip(names, shapes, strict=True))
    })


def _given(function: Callable[..., Any], dtype: DType, arrays: Mapping[str, Any]) -> Built:
    graph, inputs = Graph("case"), []
    feeds: Feeds = {}
    for name, value in arrays.items():
        array = np.asarray(value)
        kind = dtype if array.dtype.kind == "f" else bool_ if array.dtype.kind == "b" else i32
        with np.errstate(over="ignore"):
            feeds[name] = array.astype(kind.numpy)
        inputs.append(graph.input(name, array.shape, kind))
    return _finished(graph, function(*inputs), feeds)


def _finished(graph: Graph, result: Any, feeds: Feeds) -> Built:
    outputs = result if isinstance(result, (tuple, list, dict)) else [result]
    named = outputs if isinstance(outputs, dict) else {f"y{i}": t for i, t in enumerate(outputs)}
    graph.set_outputs(named)
    return graph, feeds


# Inputs and outputs


def _features(count: int) -> Build:
    """Many inputs under names in no order, each returned times a number of its own under its own name."""

    def build(dtype: DType) -> Built:
        graph, outputs = Graph("case"), {}
        feeds: Feeds = {}
        for i in range(count):
            name = f"{'bAzQ'[i % 4]}{(i * 37) % count}_{i}"
            feeds[name] = np.full(4, i % 61 + 1, dtype.numpy)
            outputs[f"out_{name}"] = graph.input(name, (4,), dtype) * (1.0 + i % 7)
        graph.set_outputs(outputs)
        return graph, feeds

    return build


for _size in (4, 8, 1000):
    _case(f"io/{_size} elements")(_asks(lambda a: a + 1.0, (_size,)))
for _count in (10, 100, 500, 2000):
    _case(f"io/{_count} inputs and outputs", full=_count == 2000)(_features(_count))
_case("io/rank 0")(_asks(lambda a, b: a * b, (), (3,)))
_case("io/one element")(_asks(lambda a, b: a * b, (1,), (3,)))
_case("io/passed through")(_asks(lambda a: [a, a * 2.0], (5,)))
_case("io/one value twice")(_asks(lambda a: [a * 2.0] * 2, (5,)))
_case("io/padded rows")(_asks(lambda a: a * 2.0, (5, 13)))
for _megabytes in (64, 1024):
    _case(f"io/{_megabytes} MB", full=True)(_asks(lambda a: a * 2.0, (_megabytes << 8, 1024)))


@_case("io/constant output")
def _constant(dtype: DType) -> Built:
    graph = Graph("case")
    x = graph.input("a", (2,), dtype)
    return _finished(graph, [x + 1.0, graph.constant(np.arange(3), dtype)], {"a": _values((2,), dtype)})


# Products


def _matmul(x: tuple[int, ...], y: tuple[int, ...], **transposed: bool) -> Build:
    return _asks(partial(ops.matmul, **transposed), x, y)


for _inner in (31, 32, 33, 100):
    _case(f"matmul/inner {_inner}")(_matmul((8, _inner), (_inner, 5)))
for _batch in ((2,), (2, 3)):
    _case(f"matmul/rank {len(_batch) + 2}")(_matmul((*_batch, 4, 6), (*_batch, 6, 5)))
for _a, _b in ((True, False), (False, True), (True, True)):
    _case(f"matmul/transposed {'x' * _a}{'y' * _b}")(
        _matmul((6, 4) if _a else (4, 6), (5, 6) if _b else (6, 5), transpose_x=_a, transpose_y=_b))
_case("matmul/sum of 4096 ones")(_told(ops.matmul, a=np.ones((1, 4096)), b=np.ones((4096, 1))))
_case("matmul/sum of 40000")(_told(ops.matmul, a=np.ones((1, 4)), b=np.full((4, 1), 1e4)))
_case("matmul/256 cubed", exact=True, twice=True)(_matmul((256, 256), (256, 256)))


# Convolutions


def _conv(rank: int, strides: int, groups: int, batch: int, padding: Any = "valid", bias: bool = False) -> Build:
    x, w = (batch, 4, *(9,) * rank), (8, 4 // groups, *(3, 2)[:rank])
    conv = partial(ops.conv1d if rank == 1 else ops.conv2d, strides=strides, padding=padding, groups=groups)
    return _asks(conv, x, w, (8,)) if bias else _asks(conv, x, w)


def _kernel_gradient(stride: int) -> Build:
    def build(dtype: DType) -> Built:
        graph = Graph("case")
        x, w = graph.input("a", (2, 3, 9, 9), dtype), graph.input("b", (4, 3, 3, 3), dtype)
        out = ops.conv2d(x, w, strides=stride)
        cotangent = graph.input("c", out.shape, dtype)
        (gradient,) = backward(graph, {out: cotangent}, [w])
        graph.set_outputs({"y0": gradient})
        feeds = {n: _values(t.shape, dtype, i) for i, (n, t) in enumerate(graph.inputs.items()) if n != "b"}
        drop_unused_leaves(graph)
        return graph, feeds

    return build


def _kernel_gradient_by_patches(stride: int) -> Build:
    count = (9 - 3) // stride + 1

    def function(x: Tensor, g: Tensor) -> Tensor:
        reach = stride * (count - 1) + 1
        patches = [
            ops.reshape(x[:, :, i : i + reach : stride, j : j + reach : stride], (2, 3, 1, count * count))
            for i in range(3) for j in range(3)
        ]
        columns = ops.reshape(ops.transpose(ops.concat(patches, axis=2), (0, 3, 1, 2)), (2 * count * count, 27))
        rows = ops.reshape(ops.transpose(g, (1, 0, 2, 3)), (4, 2 * count * count))
        return ops.reshape(rows @ columns, (4, 3, 3, 3))

    def build(dtype: DType) -> Built:
        graph, feeds = _of(function, [(2, 3, 9, 9), (2, 4, count, count)], dtype)
        return graph, {"a": feeds["a"], "b": _values(feeds["b"].shape, dtype, 2)}

    return build


for _rank, _stride, _groups, _samples in itertools.product((1, 2), (1, 2), (1, 2, 4), (1, 8)):
    _name = f"conv/{_rank}d stride {_stride} groups {_groups} batch {_samples}"
    _case(_name)(_conv(_rank, _stride, _groups, _samples))
_case("conv/2d same", twice=True)(_conv(2, 1, 1, 2, "same"))
_case("conv/2d stride 2 pad 1")(_conv(2, 2, 1, 2, 1))
_case("conv/2d bias at run time")(_conv(2, 1, 1, 2, "same", bias=True))
for _stride in (1, 2):
    # The gradient of a kernel: a convolution by the cotangent, or patches times the cotangent.
    _case(f"conv/gradient of the kernel, stride {_stride}")(_kernel_gradient(_stride))
    _case(f"conv/gradient of the kernel by patches, stride {_stride}")(_kernel_gradient_by_patches(_stride))
_case("conv/dilated")(_asks(partial(ops.conv2d, dilation=2), (1, 2, 9, 9), (3, 2, 3, 3)))
_case("conv/transposed")(_asks(partial(ops.conv_transpose2d, strides=2), (1, 3, 5, 5), (3, 2, 3, 3)))
_case("conv/transposed with output padding")(
    _asks(partial(ops.conv_transpose2d, strides=2, padding=1, output_padding=1), (1, 3, 5, 5), (3, 2, 3, 3)))
for _pool in (ops.max_pool2d, ops.avg_pool2d):
    _case(f"conv/{_pool.__name__}")(_asks(partial(_pool, kernel=3, strides=2, padding=1), (2, 3, 7, 7)))


# Norms, indices, what backward graphs are made of


_case("norm/layer")(_asks(ops.layer_norm, (4, 16), (16,), (16,)))
_case("norm/instance")(_asks(ops.instance_norm, (2, 3, 5, 5), (3,), (3,)))
_case("norm/rms")(_asks(ops.rms_norm, (4, 16), (16,)))

_IDS = np.array([3, 0, 3, 4])
_TABLE = np.linspace(-1, 1, 15).reshape(5, 3)
_case("index/gather")(_told(ops.gather, x=_TABLE, i=_IDS))
_case("index/gather rank 0")(_told(ops.gather, x=_TABLE, i=np.array(2)))
_case("index/along axis")(_told(partial(ops.take_along_axis, axis=1), x=_TABLE, i=np.array([[2], [0], [1], [1], [0]])))
_case("index/scatter add, duplicates")(_told(partial(ops.scatter_add, size=5), u=_TABLE[:4], i=_IDS))
_case("index/one hot")(_told(partial(ops.one_hot, depth=5), i=_IDS))
_case("index/top 3")(_asks(lambda a: list(ops.topk(a, 3)), (4, 10)))
for _classes in (19, 1000):
    _case(f"index/argmax of {_classes}")(_asks(partial(ops.argmax, axis=-1), (3, _classes)))
for _axes, _reduce in itertools.product(((0,), (0, 1), (0, 1, 2)), (ops.sum, ops.mean, ops.max)):
    _case(f"reduce/{_reduce.__name__} over {len(_axes)}")(_asks(partial(_reduce, axis=_axes), (3, 4, 5)))
_case("move/flip")(_asks(partial(ops.flip, axis=1), (3, 5)))
_case("move/cumulative sum")(_asks(partial(ops.cumsum, axis=1), (3, 5)))
_case("move/triangles")(_asks(lambda a: [ops.tril(a), ops.triu(a, 1)], (5, 5)))
_case("move/tile")(_asks(lambda a: ops.tile(a, (2, 3)), (3, 5)))
_case("move/strided slice")(_asks(lambda a: a[1::2, ::-1], (5, 6)))
_case("move/pixel unshuffle")(_asks(lambda a: ops.pixel_unshuffle(a, 2), (1, 2, 4, 4)))
for _mode in ("constant", "reflect", "edge"):
    _case(f"move/pad {_mode}")(_asks(partial(ops.pad, widths=((0, 0), (2, 1)), mode=_mode), (3, 5)))
_case("move/select with broadcast")(_told(ops.where, c=np.array([[True], [False]]), x=np.ones((2, 3)), y=np.zeros(3)))


# Numbers


_SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 65504.0, 1e-40, 6e-8, 0.5, 1.5, 2.5])
_UNARY: Mapping[str, Callable[[Tensor], Tensor]] = {
    "sum with itself": lambda a: a + a, "reciprocal": lambda a: 1.0 / a, "log": ops.log, "sqrt": ops.sqrt,
    "round": ops.round, "difference with itself": lambda a: a - a, "zero times": lambda a: a * 0.0,
    "product with a half": lambda a: a * 0.5, "quotient with itself": lambda a: a / a,
}
for _name, _unary in _UNARY.items():
    _case(f"number/special values: {_name}")(_told(_unary, a=_SPECIAL))
_case("number/to integers")(_told(partial(ops.cast, dtype=i32), a=np.array([2.9, -2.9, 0.5, 100.0])))
_case("number/large integers", dtypes=("f32",))(
    _told(lambda a, b: a + b, a=np.array([2**24, 2**24 + 1, 2**30]), b=np.array([1, 1, 2**30 - 1])))
_case("number/exp")(_told(ops.exp, a=np.linspace(-10, 10, 101)))
_case("number/exp, log and tanh in float64", exact=True)(
    _told(lambda a: [ops.exp(a), ops.log(a), ops.tanh(a)], a=np.linspace(0.1, 10, 100)))
_case("number/small addend")(_told(lambda a: (a + 1e-7) - a, a=np.linspace(0, 2, 11)))
_case("number/thirds")(_told(lambda a: [a / 3.0, a * (1 / 3)], a=np.linspace(0, 10, 33)))
_case("number/softplus")(_told(ops.softplus, a=np.linspace(-20, 20, 41)))
_case("number/log of a sum of exponentials")(_told(partial(ops.logsumexp, axis=-1), a=np.full((2, 32), 7.64)))


def _attended(q: Tensor, k: Tensor, v: Tensor, twice: bool) -> list[Tensor]:
    weights = ops.softmax(ops.matmul(q, k, transpose_y=True) * 0.5, -1)
    return [ops.matmul(weights, v), *[weights * 2.0] * twice]


for _samples, _twice in itertools.product((1, 9, 10, 16), (False, True)):
    _case(f"attention/batch {_samples}{', weights used twice' * _twice}")(
        _asks(partial(_attended, twice=_twice), *[(_samples, 2, 6, 4)] * 3))


# Training without state between programs, placement


def _unrolled(updates: int) -> Build:
    """Plain gradient descent on linear regression, so many updates in one program."""

    def function(x: Tensor, target: Tensor, w: Tensor) -> Tensor:
        for _ in range(updates):
            w = w - ops.matmul(x, x @ w - target, transpose_x=True) * (0.1 / 16)
        return w

    return _asks(function, (16, 8), (16, 1), (8, 1))


def _perceptron(width: int, rank: int) -> Build:
    """Three layers of a step's size: forward, and the gradient of the middle weights."""

    def function(x: Tensor, *weights: Tensor) -> list[Tensor]:
        hidden = [x]
        for w in weights:
            hidden.append(ops.relu(hidden[-1] @ w))
        g = ops.where(hidden[3] > 0.0, hidden[3], hidden[3] * 0.0)
        back = ops.matmul(g, weights[2], transpose_y=True)
        return [hidden[3], ops.matmul(hidden[1], back, transpose_x=True)]

    def scaled(dtype: DType) -> Built:
        ones = (1,) * (rank - 2)
        graph, feeds = _of(function, [(*ones, 64, width)] + [(*ones, width, width)] * 3, dtype)
        return graph, {n: v if n == "a" else (v * width**-0.5).astype(v.dtype) for n, v in feeds.items()}

    return scaled


for _updates in (1, 8):
    _case(f"training/{_updates} updates in one program", twice=True)(_unrolled(_updates))
for _width, _rank in itertools.product((64, 256, 1024, 2048), (2, 4)):
    _case(f"placement/perceptron {_width} wide, rank {_rank}", full=_width > 256)(_perceptron(_width, _rank))
_case("executor/f32 features of an f16 program", dtypes=("f32",))(
    _asks(lambda a, b: ops.cast(ops.cast(a, f16) @ ops.cast(b, f16), f32), (64, 256), (256, 256)))
_case("executor/f16 features of an f16 program", dtypes=("f16",))(_asks(lambda a, b: a @ b, (64, 256), (256, 256)))
