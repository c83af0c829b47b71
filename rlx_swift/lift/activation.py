"""Rules of activation functions that take parameters."""

from __future__ import annotations

from .. import ops
from ..ir.tensor import Tensor
from .call import Call
from .table import rule


@rule("gelu")
def _gelu(call: Call) -> Tensor:
    x, mode = call.tensor("x"), call.text("mode").upper()
    if mode == "EXACT":
        return ops.gelu(x)
    if mode == "TANH_APPROXIMATION":
        return ops.gelu(x, "tanh")
    if mode == "SIGMOID_APPROXIMATION":
        return ops.mul(x, ops.sigmoid(ops.mul(x, 1.702)))
    raise call.unsupported(f"unknown mode {mode!r}")


@rule("softmax")
def _softmax(call: Call) -> Tensor:
    return ops.softmax(call.tensor("x"), call.integer("axis"))


@rule("softplus")
def _softplus(call: Call) -> Tensor:
    return ops.softplus(call.tensor("x"))


@rule("softplus_parametric")
def _softplus_parametric(call: Call) -> Tensor:
    x = call.tensor("x")
    return ops.mul(_each_channel(call, "alpha", x), ops.softplus(ops.mul(_each_channel(call, "beta", x), x)))


def _each_channel(call: Call, name: str, x: Tensor) -> Tensor:
    """One number for each channel (axis 1), in a shape that broadcasts against x."""
    return ops.reshape(call.weight(name, x.dtype), (-1,) + (1,) * (x.ndim - 2))


@rule("elu")
def _elu(call: Call) -> Tensor:
    return ops.elu(call.tensor("x"), call.number("alpha"))


@rule("leaky_relu")
def _leaky_relu(call: Call) -> Tensor:
    return ops.leaky_relu(call.tensor("x"), call.number("alpha"))


@rule("prelu")
def _prelu(call: Call) -> Tensor:
    x = call.tensor("x")
    return ops.prelu(x, _each_channel(call, "alpha", x))


@rule("clamped_relu")
def _clamped_relu(call: Call) -> Tensor:
    return ops.minimum(ops.leaky_relu(call.tensor("x"), call.number("alpha")), call.number("beta"))


@rule("thresholded_relu")
def _thresholded_relu(call: Call) -> Tensor:
    x = call.tensor("x")
    return ops.where(ops.greater_equal(x, call.number("alpha")), x, 0.0)


@rule("sigmoid_hard")
def _sigmoid_hard(call: Call) -> Tensor:
    return ops.clip(_line(call), 0.0, 1.0)


@rule("linear_activation")
def _line(call: Call) -> Tensor:
    return ops.add(ops.mul(call.tensor("x"), call.number("alpha")), call.number("beta"))


@rule("scaled_tanh")
def _scaled_tanh(call: Call) -> Tensor:
    return ops.mul(ops.tanh(ops.mul(call.tensor("x"), call.number("beta"))), call.number("alpha"))
