"""Programs that no graph of ours lowers to: other spellings, operations that we avoid, indices out of range.

Core ML may compute, refuse or end the process; each is an answer. Knows neither devices nor processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import DType, bool_, f32, i32
from ..ir.types import Shape, TensorType
from ..lower.constants import Constants
from ..lower.opset import signatures
from ..lower.program import (
    OPSETS,
    Binding,
    Block,
    Feature,
    Function,
    Interface,
    Model,
    Named,
    Operation,
    StateOf,
)

Feeds = dict[str, np.ndarray]


class Name(str):
    """A value of a program, as against the value of a parameter that is text."""


class Body:
    """A program under construction; floats take its dtype."""

    def __init__(self, dtype: DType, opset: str = "CoreML7") -> None:
        self.dtype, self._opset = dtype, opset
        self.feeds: Feeds = {}
        self._constants = Constants(OPSETS[opset])
        self._types: dict[Name, TensorType] = {}
        self._states: list[Named] = []
        self._operations: list[Operation] = []

    def input(self, name: str, value: Any) -> Name:
        """An input with what is fed to it."""
        array = np.asarray(value)
        kind = self.dtype if array.dtype.kind == "f" else i32
        with np.errstate(over="ignore"):
            self.feeds[name] = array.astype(kind.numpy)
        return self._named(name, TensorType(array.shape, kind))

    def state(self, name: str, shape: Shape) -> Name:
        self._states.append((name, StateOf(self._constants.array(TensorType(shape, self.dtype)))))
        return Name(name)

    def constant(self, value: Any) -> Name:
        array = np.asarray(value)
        type = TensorType(array.shape, self.dtype if array.dtype.kind == "f" else i32)
        stored = self._constants.of(array.astype(type.dtype.numpy), type)
        name = self._named(f"const_{len(self._operations)}", type)
        self._operations.append(Operation("const", {}, [(name, stored.type)], {"val": stored}))
        return name

    def op(self, kind: str, shape: Shape, result: DType | None = None, **inputs: Any) -> Name:
        """An operation with a result of that shape; parameters that have a default may be left out."""
        given = {**dict(signatures(OPSETS[self._opset])[kind].defaults), **inputs}
        bindings = {parameter: self._binding(value) for parameter, value in given.items()}
        if kind == "write_state":
            self._operations.append(Operation(kind, bindings, []))
            return Name("")
        name = self._named(f"{kind}_{len(self._operations)}", TensorType(shape, result or self.dtype))
        self._operations.append(Operation(kind, bindings, [(name, self._constants.array(self._types[name]))]))
        return name

    def model(self, *outputs: Name) -> Model:
        """A program with these outputs; one of rank 0 has a feature of one element."""
        inputs = [(name, self._constants.array(self._types[Name(name)])) for name in self.feeds]
        features = [self._feature(Name(name)) for name in self.feeds]
        states = [
            Feature(name, "state", type.array.dtype, tuple(n or 0 for n in type.array.shape))
            for name, type in self._states if isinstance(type, StateOf)
        ]
        interface = Interface(features, [self._feature(name) for name in outputs], states)
        block = Block([], self._operations, list(outputs))
        function = Function([*inputs, *self._states], self._opset, {self._opset: block})
        return Model(OPSETS[self._opset], {"main": function}, {"main": interface}, weights=self._constants.weights)

    def _named(self, name: str, type: TensorType) -> Name:
        self._types[Name(name)] = type
        return Name(name)

    def _binding(self, value: Any) -> list[Binding]:
        if isinstance(value, Name):
            return [value]
        if isinstance(value, list):
            return [self._binding(each)[0] for each in value]
        return [self._constants.literal(value, self.dtype)]

    def _feature(self, name: Name) -> Feature:
        type = self._constants.array(self._types[name])
        return Feature(name, "array", type.dtype, self._types[name].shape or (1,))


@dataclass(frozen=True)
class Program:
    """Attributes:
    build: adds to a body and gives the outputs.
    dtypes, full: as of a case.
    """

    build: Callable[[Body], Sequence[Name]]
    dtypes: tuple[str, ...] = ("f32", "f16")
    opset: str = "CoreML7"
    full: bool = False

    def made(self, dtype: DType) -> tuple[Model, Feeds]:
        body = Body(dtype, self.opset)
        outputs = self.build(body)
        return body.model(*outputs), body.feeds


_PROGRAMS: dict[str, Program] = {}


def programs() -> Mapping[str, Program]:
    """Every program by name."""
    return _PROGRAMS


def _program(name: str, **settings: Any) -> Callable[[Callable[[Body], Sequence[Name]]], None]:
    def add(build: Callable[[Body], Sequence[Name]]) -> None:
        _PROGRAMS[f"program/{name}"] = Program(build, **settings)

    return add


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(list(shape)).uniform(-1, 1, shape)


# Inputs and outputs


@_program("a feature of one element for rank 0")
def _rank_zero(b: Body) -> Sequence[Name]:
    return [b.op("mul", (), x=b.op("squeeze", (), x=b.input("a", [1.5]), axes=(0,)), y=2.0)]


@_program("an input as output")
def _passed(b: Body) -> Sequence[Name]:
    a = b.input("a", _random(5))
    return [a, b.op("mul", (5,), x=a, y=2.0)]


@_program("an output twice")
def _doubled(b: Body) -> Sequence[Name]:
    return [b.op("mul", (5,), x=b.input("a", _random(5)), y=2.0)] * 2


@_program("an input never read")
def _unread(b: Body) -> Sequence[Name]:
    b.input("unread", _random(7))
    return [b.op("mul", (5,), x=b.input("a", _random(5)), y=2.0)]


@_program("a constant as output")
def _constant(b: Body) -> Sequence[Name]:
    return [b.constant(_random(3)), b.op("mul", (5,), x=b.input("a", _random(5)), y=2.0)]


@_program("a size of 0")
def _empty(b: Body) -> Sequence[Name]:
    return [b.op("mul", (0, 3), x=b.input("a", np.zeros((0, 3))), y=2.0)]


# Weights at run time


def _conv(**settings: Any) -> Callable[[Body], Sequence[Name]]:
    bias, dilation = settings.get("bias"), settings.get("dilation", 1)
    size = 9 - 2 * dilation

    def build(b: Body) -> Sequence[Name]:
        given: dict[str, Any] = {}
        if bias:
            given["bias"] = b.input("c", _random(4)) if bias == "run time" else b.constant(_random(4))
        return [b.op(
            "conv", (1, 4, size, size), x=b.input("a", _random(1, 2, 9, 9)), weight=b.input("w", _random(4, 2, 3, 3)),
            strides=(1, 1), pad=(0, 0, 0, 0), dilations=(dilation, dilation), **given,
        )]

    return build


_program("conv with a constant bias")(_conv(bias="constant"))
_program("conv with a bias at run time")(_conv(bias="run time"))
_program("conv with a dilated kernel at run time")(_conv(dilation=2))


@_program("conv_transpose with output_shape")
def _transposed(b: Body) -> Sequence[Name]:
    return [b.op(
        "conv_transpose", (1, 2, 11, 11), x=b.input("a", _random(1, 3, 5, 5)),
        weight=b.input("w", _random(3, 2, 3, 3)), strides=(2, 2), pad=(0, 0, 0, 0), dilations=(1, 1),
        output_shape=(1, 2, 11, 11),
    )]


@_program("linear with a weight at run time")
def _linear(b: Body) -> Sequence[Name]:
    return [b.op("linear", (4, 5), x=b.input("a", _random(4, 6)), weight=b.input("w", _random(5, 6)))]


@_program("batch_norm with a mean at run time")
def _batch_norm(b: Body) -> Sequence[Name]:
    mean, variance = b.input("mean", _random(3)), b.input("variance", np.abs(_random(3)))
    return [b.op("batch_norm", (2, 3, 4, 4), x=b.input("a", _random(2, 3, 4, 4)), mean=mean, variance=variance)]


@_program("layer_norm with gamma and beta at run time")
def _layer_norm(b: Body) -> Sequence[Name]:
    gamma, beta = b.input("gamma", _random(8)), b.input("beta", _random(8))
    return [b.op("layer_norm", (4, 8), x=b.input("a", _random(4, 8)), axes=(1,), gamma=gamma, beta=beta)]


@_program("layer_norm over axes with a gap")
def _gap(b: Body) -> Sequence[Name]:
    return [b.op("layer_norm", (3, 4, 5), x=b.input("a", _random(3, 4, 5)), axes=(0, 2))]


# Indices


for _name, _ids in (("negative", [-1, 0]), ("out of range", [9, 0])):

    @_program(f"gather, {_name}")
    def _gather(b: Body, ids: list[int] = _ids) -> Sequence[Name]:
        return [b.op("gather", (2, 3), x=b.input("a", _random(5, 3)), indices=b.input("i", ids))]

    @_program(f"gather_along_axis, {_name}")
    def _along(b: Body, ids: list[int] = _ids) -> Sequence[Name]:
        indices = b.input("i", [[i] for i in ids])
        return [b.op("gather_along_axis", (2, 1), x=b.input("a", _random(5, 1)), indices=indices)]

    @_program(f"scatter_nd, {_name}")
    def _scatter(b: Body, ids: list[int] = _ids) -> Sequence[Name]:
        indices = b.input("i", [[i] for i in ids])
        updates = b.input("u", [1.0, 2.0])
        return [b.op("scatter_nd", (5,), data=b.input("a", _random(5)), indices=indices, updates=updates)]


@_program("gather of rank 0 from rank 5")
def _scalar(b: Body) -> Sequence[Name]:
    index = b.op("squeeze", (), i32, x=b.input("i", [1]), axes=(0,))
    return [b.op("gather", (2, 1, 2, 2), x=b.input("a", _random(3, 2, 1, 2, 2)), indices=index)]


@_program("scatter adds in which order", dtypes=("f32",))
def _order(b: Body) -> Sequence[Name]:
    """1e8, 1 and -1e8 give 0 or 1."""
    updates = b.input("u", [1e8, 1.0, -1e8, 1.0])
    return [b.op("scatter", (2,), data=b.input("a", [0.0, 0.0]), indices=b.input("i", [0, 0, 0, 1]), updates=updates)]


@_program("scatter_along_axis of duplicates")
def _scatter_along(b: Body) -> Sequence[Name]:
    return [b.op(
        "scatter_along_axis", (4,), data=b.input("a", _random(4)), indices=b.input("i", [1, 1, 3]),
        updates=b.input("u", [1.0, 2.0, 3.0]),
    )]


# What graphs avoid


@_program("sliding_windows")
def _windows(b: Body) -> Sequence[Name]:
    return [b.op("sliding_windows", (3, 3, 5), x=b.input("a", _random(5, 5)), axis=0, size=3)]


@_program("round and floor_div")
def _rounded(b: Body) -> Sequence[Name]:
    a = b.input("a", [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])
    return [b.op("round", (6,), x=a), b.op("floor_div", (6,), x=a, y=2.0), b.op("mod", (6,), x=a, y=2.0)]


@_program("cast of what no int32 holds")
def _cast(b: Body) -> Sequence[Name]:
    a = b.input("a", [2.9, -2.9, 1e10, -1e10, np.nan, np.inf])
    return [b.op("cast", (6,), i32, x=a, dtype="int32")]


@_program("casts by way of bool")
def _bools(b: Body) -> Sequence[Name]:
    a = b.input("a", [0.0, -0.0, 0.5, -3.0, 1e-7])
    truth = b.op("cast", (5,), bool_, x=a, dtype="bool")
    return [b.op("cast", (5,), x=truth, dtype="fp32" if b.dtype is f32 else "fp16")]


@_program("select with a broadcast", dtypes=("f32", "f16"))
def _select(b: Body) -> Sequence[Name]:
    cond = b.op("greater", (2, 1), bool_, x=b.input("c", [[1.0], [-1.0]]), y=0.0)
    return [b.op("select", (2, 3), cond=cond, a=b.input("a", _random(2, 3)), b=b.input("b", _random(1, 3)))]


@_program("attention in one operation, with a mask", opset="CoreML8")
def _attention(b: Body) -> Sequence[Name]:
    q, k, v = (b.input(name, _random(1, 2, 6, 4)) for name in "qkv")
    mask = b.input("mask", np.where(np.tri(6), 0.0, -1e4)[None, None])
    return [b.op("scaled_dot_product_attention", (1, 2, 6, 4), query=q, key=k, value=v, attn_mask=mask)]


def with_states(dtype: DType, count: int) -> Model:
    """Adds its input to each of some states, whose sum it gives."""
    b = Body(dtype, "CoreML8")
    x, total = b.input("x", _random(1, 32)), None
    for i in range(count):
        held = b.state(f"held_{i}", (1, 32))
        new = b.op("add", (1, 32), x=b.op("read_state", (1, 32), input=held), y=x)
        b.op("write_state", (), input=held, data=new)
        total = new if total is None else b.op("add", (1, 32), x=total, y=new)
    assert total is not None
    return b.model(b.op("identity", (1, 32), x=total))
