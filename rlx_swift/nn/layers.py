"""Layers with one matrix, kernel or table, dropout, and layers after one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import ops
from ..errors import ShapeError
from ..ir.graph import Init
from ..ir.tensor import Tensor
from ..ops.windows import as_sizes
from .init import glorot_uniform, he_normal, normal
from .layer import Layer

_GLOROT = glorot_uniform()
_HE = he_normal()
_SMALL = normal(0.02)
Activation = Callable[[Tensor], Tensor]
_CONVS = {1: ops.conv1d, 2: ops.conv2d, 3: ops.conv3d}
_TRANSPOSED = {1: ops.conv_transpose1d, 2: ops.conv_transpose2d, 3: ops.conv_transpose3d}


class Dense(Layer):
    """x @ weight + bias over the last axis: weight [in, features], bias [features]."""

    def __init__(
        self, features: int, bias: bool = True, activation: Activation | None = None, init: Init = _GLOROT,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.features, self.bias, self.activation, self.init = features, bias, activation, init

    def forward(self, x: Tensor) -> Tensor:
        if not x.ndim:
            raise ShapeError("Dense", "expected a tensor of rank 1 or more, got rank 0")
        out = x @ _in(x, self.param(x.graph, "weight", (x.shape[-1], self.features), self.init))
        if self.bias:
            out = out + _in(x, self.param(x.graph, "bias", (self.features,), 0.0))
        return self.activation(out) if self.activation else out


class Conv(Layer):
    """Convolution of x [N, C, ...] over its one to three spatial axes: weight [features, C/groups, kernel...]."""

    def __init__(
        self, features: int, kernel: int | Sequence[int], strides: int | Sequence[int] = 1, padding: Any = "same",
        dilation: int | Sequence[int] = 1, groups: int = 1, bias: bool = True, activation: Activation | None = None,
        init: Init = _HE, name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.features, self.kernel, self.groups, self.bias = features, kernel, groups, bias
        self.options = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
        self.activation, self.init = activation, init

    def forward(self, x: Tensor) -> Tensor:
        rank = _spatial(x, "Conv")
        shape = (self.features, x.shape[1] // max(self.groups, 1), *as_sizes(self.kernel, rank, "Conv kernel"))
        weight = _in(x, self.param(x.graph, "weight", shape, self.init))
        bias = _in(x, self.param(x.graph, "bias", (self.features,), 0.0)) if self.bias else None
        out: Tensor = _CONVS[rank](x, weight, bias, **self.options)
        return self.activation(out) if self.activation else out


class ConvTranspose(Layer):
    """Transposed convolution of x [N, C, ...]: weight [C, features/groups, kernel...]."""

    def __init__(
        self, features: int, kernel: int | Sequence[int], strides: int | Sequence[int] = 1, padding: Any = 0,
        output_padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1, bias: bool = True,
        activation: Activation | None = None, init: Init = _HE, name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.features, self.kernel, self.groups, self.bias = features, kernel, groups, bias
        self.options = {
            "strides": strides, "padding": padding, "output_padding": output_padding, "dilation": dilation,
            "groups": groups,
        }
        self.activation, self.init = activation, init

    def forward(self, x: Tensor) -> Tensor:
        rank = _spatial(x, "ConvTranspose")
        each = self.features // max(self.groups, 1)
        shape = (x.shape[1], each, *as_sizes(self.kernel, rank, "ConvTranspose kernel"))
        weight = _in(x, self.param(x.graph, "weight", shape, self.init))
        bias = _in(x, self.param(x.graph, "bias", (self.features,), 0.0)) if self.bias else None
        out: Tensor = _TRANSPOSED[rank](x, weight, bias, **self.options)
        return self.activation(out) if self.activation else out


class Embedding(Layer):
    """Row `x` (i32) of the table [size, features]. `attend` multiplies by the same table, for tied output heads."""

    def __init__(self, size: int, features: int, init: Init = _SMALL, name: str | None = None) -> None:
        super().__init__(name)
        self.size, self.features, self.init = size, features, init

    def forward(self, x: Tensor) -> Tensor:
        return ops.gather(self._table(x), x, 0)

    def attend(self, x: Tensor) -> Tensor:
        """x [..., features] times the table transposed: [..., size]."""
        return ops.matmul(x, _in(x, self._table(x)), transpose_y=True)

    def _table(self, x: Tensor) -> Tensor:
        return self.param(x.graph, "weight", (self.size, self.features), self.init)


class Dropout(Layer):
    """Elements left out with a probability while training."""

    def __init__(self, rate: float = 0.5, name: str | None = None) -> None:
        super().__init__(name)
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        return ops.dropout(x, self.rate)


class Sequential(Layer):
    """Layers and functions of a tensor, each called on the result of the one before; named 0, 1, ..."""

    def __init__(self, *layers: Callable[[Tensor], Tensor], name: str | None = None) -> None:
        super().__init__(name)
        self.layers = layers
        for i, layer in enumerate(layers):
            if isinstance(layer, Layer) and layer.name is None:
                layer.name = str(i)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def _in(x: Tensor, param: Tensor) -> Tensor:
    """A param in the dtype of the tensor that meets it."""
    return ops.cast(param, x.dtype)


def _spatial(x: Tensor, subject: str) -> int:
    rank = x.ndim - 2
    if rank not in _CONVS:
        raise ShapeError(subject, f"expected x [N, C, ...] with one to three spatial axes, got {x.type}")
    return rank
