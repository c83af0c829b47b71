"""Recurrent cells, and scans that unroll a cell over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import ShapeError
from ..ir.tensor import Tensor
from ..ir.types import as_axis
from ._build import TensorLike, as_tensors, public
from .activation import sigmoid
from .arithmetic import add, mul
from .arrange import split, stack
from .linalg import matmul
from .select import full
from .trigonometry import tanh

State = TypeVar("State")


@public
def scan(
    cell: Callable[[State, Tensor], tuple[State, Tensor]], state: State, x: Tensor, axis: int = 1, reverse: bool = False
) -> tuple[State, Tensor]:
    """Calls `cell(state, x_t) -> (state, y_t)` for each slice of x along an axis; the last state, and all y_t stacked.

    The loop is unrolled: the graph holds the cell once for each step. `reverse` runs from the last slice to
    the first; the results keep the order of x.
    """
    at, results = as_axis(axis, x.ndim, "scan"), []
    if x.shape[at] == 0:
        raise ShapeError("scan", f"axis {at} of {x.type} has no elements")
    order: Any = reversed(range(x.shape[at])) if reverse else range(x.shape[at])
    for step in order:
        state, result = cell(state, x[(slice(None),) * at + (step,)])
        results.append(result)
    return state, stack(results[::-1] if reverse else results, at)


@public
def lstm_cell(x: TensorLike, h: TensorLike, c: TensorLike, w_ih: TensorLike, w_hh: TensorLike,
              bias: TensorLike | None = None) -> tuple[Tensor, Tensor]:
    """The next (h, c) of a long short-term memory (Hochreiter & Schmidhuber 1997, with a forget gate).

    x [N, I], h and c [N, H], w_ih [I, 4H], w_hh [H, 4H], bias [4H]; the gates come in the order input,
    forget, cell, output, as in PyTorch.
    """
    data, before, memory, wx, wh = as_tensors("lstm_cell", x, h, c, w_ih, w_hh)
    return _lstm_step(_gates("lstm_cell", 4, data, before, wx, wh, bias), memory)


def _lstm_step(gates: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = split(gates, 4, 1)
    after = add(mul(sigmoid(f), memory), mul(sigmoid(i), tanh(g)))
    return mul(sigmoid(o), tanh(after)), after


@public
def gru_cell(x: TensorLike, h: TensorLike, w_ih: TensorLike, w_hh: TensorLike, b_ih: TensorLike | None = None,
             b_hh: TensorLike | None = None) -> Tensor:
    """The next h of a gated recurrent unit (Cho et al. 2014, arXiv:1406.1078) in PyTorch's form.

    x [N, I], h [N, H], w_ih [I, 3H], w_hh [H, 3H], biases [3H]; the gates come in the order reset, update,
    new, and new = tanh(x part + reset * h part).
    """
    data, before, wx, wh = as_tensors("gru_cell", x, h, w_ih, w_hh)
    _check("gru_cell", 3, data, before, wx, wh)
    return _gru_step(_product(data, wx, b_ih), _product(before, wh, b_hh), before)


def _gru_step(from_x: Tensor, from_h: Tensor, before: Tensor) -> Tensor:
    (rx, zx, nx), (rh, zh, nh) = split(from_x, 3, 1), split(from_h, 3, 1)
    update = sigmoid(add(zx, zh))
    new = tanh(add(nx, mul(sigmoid(add(rx, rh)), nh)))
    return add(new, mul(update, before - new))


@public
def lstm(
    x: TensorLike, w_ih: TensorLike, w_hh: TensorLike, bias: TensorLike | None = None, h: TensorLike | None = None,
    c: TensorLike | None = None, reverse: bool = False,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """`lstm_cell` over the axis 1 of x [N, T, I]: all h [N, T, H], and the last (h, c); they start at zero."""
    data, wx, wh = as_tensors("lstm", x, w_ih, w_hh)
    before, memory = _start("lstm", data, wh, h), _start("lstm", data, wh, c)
    _check("lstm", 4, data[:, 0] if data.shape[1] else data, before, wx, wh)

    def cell(state: tuple[Tensor, Tensor], from_x: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
        h, c = state
        state = _lstm_step(add(from_x, matmul(h, wh)), c)
        return state, state[0]

    last, ys = scan(cell, (before, memory), _product(data, wx, bias), 1, reverse)
    return ys, last


@public
def gru(
    x: TensorLike, w_ih: TensorLike, w_hh: TensorLike, b_ih: TensorLike | None = None,
    b_hh: TensorLike | None = None, h: TensorLike | None = None, reverse: bool = False,
) -> tuple[Tensor, Tensor]:
    """`gru_cell` over the axis 1 of x [N, T, I]: all h [N, T, H], and the last one; it starts at zero."""
    data, wx, wh = as_tensors("gru", x, w_ih, w_hh)
    before = _start("gru", data, wh, h)
    _check("gru", 3, data[:, 0] if data.shape[1] else data, before, wx, wh)

    def cell(state: Tensor, from_x: Tensor) -> tuple[Tensor, Tensor]:
        state = _gru_step(from_x, _product(state, wh, b_hh), state)
        return state, state

    last, ys = scan(cell, before, _product(data, wx, b_ih), 1, reverse)
    return ys, last


def _product(x: Tensor, w: Tensor, bias: TensorLike | None) -> Tensor:
    out = matmul(x, w)
    return out if bias is None else add(out, bias)


def _gates(subject: str, count: int, x: Tensor, h: Tensor, wx: Tensor, wh: Tensor, bias: TensorLike | None) -> Tensor:
    _check(subject, count, x, h, wx, wh)
    return add(_product(x, wx, bias), matmul(h, wh))


def _check(subject: str, count: int, x: Tensor, h: Tensor, wx: Tensor, wh: Tensor) -> None:
    if min(x.ndim, h.ndim, wx.ndim, wh.ndim) != 2 or max(x.ndim, h.ndim, wx.ndim, wh.ndim) != 2:
        raise ShapeError(subject, f"expected x, h and weights of rank 2, got {x.type}, {h.type}, {wx.type}, {wh.type}")
    size = h.shape[1]
    if wx.shape != (x.shape[1], count * size) or wh.shape != (size, count * size):
        wanted = f"[{x.shape[1]}, {count * size}] and [{size}, {count * size}]"
        raise ShapeError(subject, f"expected weights {wanted}, got {wx.type} and {wh.type}")


def _start(subject: str, x: Tensor, wh: Tensor, given: TensorLike | None) -> Tensor:
    if x.ndim != 3 or not x.shape[1] or wh.ndim != 2:
        raise ShapeError(subject, f"expected x [N, T, I] with T >= 1 and w_hh of rank 2, got {x.type} and {wh.type}")
    if given is None:
        return full(x.graph, (x.shape[0], wh.shape[0]), 0.0, x.dtype)
    return x.graph.as_tensor(given, x.dtype)
