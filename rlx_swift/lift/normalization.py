"""Rules of normalisations: in f32 throughout, with the result rounded once."""

from __future__ import annotations

from .. import ops
from ..dtypes import f32
from ..ir.tensor import Tensor
from ..ir.types import Shape, as_axes
from .call import Call
from .table import rule


@rule("layer_norm")
def _layer_norm(call: Call) -> Tensor:
    x = call.tensor("x", f32)
    axes = as_axes(call.integers("axes", range(x.ndim)), x.ndim, "axes")
    out = ops.layer_norm(x, axis=axes, eps=call.number("epsilon"))
    return _affine(call, out, tuple([n if axis in axes else 1 for axis, n in enumerate(x.shape)]))


@rule("instance_norm")
def _instance_norm(call: Call) -> Tensor:
    x = call.tensor("x", f32)
    out = ops.layer_norm(x, axis=tuple(range(2, x.ndim)), eps=call.number("epsilon"))
    return _affine(call, out, _channels(x))


@rule("batch_norm")
def _batch_norm(call: Call) -> Tensor:
    x = call.tensor("x", f32)
    shape = _channels(x)
    mean, variance = (ops.reshape(call.average(name, f32), shape) for name in ("mean", "variance"))
    return _affine(call, (x - mean) * ops.rsqrt(variance + call.number("epsilon")), shape)


def _channels(x: Tensor) -> Shape:
    """The shape of one number for each channel (axis 1)."""
    return (x.shape[1], *(1,) * (x.ndim - 2))


def _affine(call: Call, x: Tensor, shape: Shape) -> Tensor:
    """x gamma + beta, of those that are bound, reshaped first."""
    gamma, beta = call.optional_weight("gamma", f32), call.optional_weight("beta", f32)
    if gamma is not None:
        x = ops.mul(x, ops.reshape(gamma, shape))
    return x if beta is None else ops.add(x, ops.reshape(beta, shape))


@rule("l2_norm")
def _l2_norm(call: Call) -> Tensor:
    x = call.tensor("x", f32)
    total = ops.sum(ops.square(x), axis=(-3, -2, -1), keepdims=True)
    return x * ops.rsqrt(total + call.number("epsilon"))
