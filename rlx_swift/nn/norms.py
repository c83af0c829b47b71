"""Normalising layers with their scale and shift, named weight and bias."""

from __future__ import annotations

from .. import ops
from ..ir.tensor import Tensor
from .layer import Layer


class LayerNorm(Layer):
    """Mean 0 and variance 1 over the last axis, then weight and bias."""

    def __init__(self, eps: float = 1e-5, name: str | None = None) -> None:
        super().__init__(name)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = _affine(self, x, x.shape[-1])
        return ops.layer_norm(x, weight, bias, eps=self.eps)


class RMSNorm(Layer):
    """Mean square 1 over the last axis, then weight."""

    def __init__(self, eps: float = 1e-6, name: str | None = None) -> None:
        super().__init__(name)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return ops.rms_norm(x, ops.cast(self.param(x.graph, "weight", x.shape[-1:], 1.0), x.dtype), eps=self.eps)


class GroupNorm(Layer):
    """Mean 0 and variance 1 over each group of channels of x [N, C, ...], then weight and bias a channel."""

    def __init__(self, groups: int, eps: float = 1e-5, name: str | None = None) -> None:
        super().__init__(name)
        self.groups, self.eps = groups, eps

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = _affine(self, x, x.shape[1])
        return ops.group_norm(x, self.groups, weight, bias, self.eps)


class InstanceNorm(Layer):
    """Mean 0 and variance 1 over the space of each channel of x [N, C, ...], then weight and bias a channel."""

    def __init__(self, eps: float = 1e-5, name: str | None = None) -> None:
        super().__init__(name)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = _affine(self, x, x.shape[1])
        return ops.instance_norm(x, weight, bias, self.eps)


class BatchNorm(Layer):
    """Mean 0 and variance 1 over the batch for each channel, then weight and bias; buffers mean and var.

    A layer that is called twice in a graph keeps the averages of the last call.
    """

    def __init__(self, axis: int = 1, eps: float = 1e-5, momentum: float = 0.1, name: str | None = None) -> None:
        super().__init__(name)
        self.axis, self.eps, self.momentum = axis, eps, momentum

    def forward(self, x: Tensor) -> Tensor:
        channels = x.shape[self.axis]
        weight, bias = _affine(self, x, channels)
        mean, var = self.buffer(x.graph, "mean", (channels,), 0.0), self.buffer(x.graph, "var", (channels,), 1.0)
        return ops.batch_norm(x, mean, var, weight, bias, self.axis, self.eps, self.momentum)


def _affine(layer: Layer, x: Tensor, size: int) -> tuple[Tensor, Tensor]:
    weight, bias = layer.param(x.graph, "weight", (size,), 1.0), layer.param(x.graph, "bias", (size,), 0.0)
    return ops.cast(weight, x.dtype), ops.cast(bias, x.dtype)
