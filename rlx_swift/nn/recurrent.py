"""Recurrent layers over the time axis of x [N, T, I]."""

from __future__ import annotations

from .. import ops
from ..ir.graph import Init
from ..ir.tensor import Tensor
from .init import glorot_uniform
from .layer import Layer

_GLOROT = glorot_uniform()


class LSTM(Layer):
    """Long short-term memory: params weight_ih [I, 4H], weight_hh [H, 4H], bias [4H]; see `rlx.ops.lstm`."""

    def __init__(
        self, features: int, reverse: bool = False, init: Init = _GLOROT, name: str | None = None
    ) -> None:
        super().__init__(name)
        self.features, self.reverse, self.init = features, reverse, init

    def forward(
        self, x: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """All outputs [N, T, H] and the last (h, c)."""
        wide = 4 * self.features
        w_ih = self.param(x.graph, "weight_ih", (x.shape[-1], wide), self.init)
        w_hh = self.param(x.graph, "weight_hh", (self.features, wide), self.init)
        bias = self.param(x.graph, "bias", (wide,), 0.0)
        h, c = state or (None, None)
        return ops.lstm(x, w_ih, w_hh, bias, h, c, self.reverse)


class GRU(Layer):
    """Gated recurrent unit: params weight_ih [I, 3H], weight_hh [H, 3H], bias_ih, bias_hh [3H]; see `rlx.ops.gru`."""

    def __init__(
        self, features: int, reverse: bool = False, init: Init = _GLOROT, name: str | None = None
    ) -> None:
        super().__init__(name)
        self.features, self.reverse, self.init = features, reverse, init

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All outputs [N, T, H] and the last h."""
        wide = 3 * self.features
        w_ih = self.param(x.graph, "weight_ih", (x.shape[-1], wide), self.init)
        w_hh = self.param(x.graph, "weight_hh", (self.features, wide), self.init)
        b_ih, b_hh = (self.param(x.graph, name, (wide,), 0.0) for name in ("bias_ih", "bias_hh"))
        return ops.gru(x, w_ih, w_hh, b_ih, b_hh, state, self.reverse)
