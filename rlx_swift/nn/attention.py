"""Multi-head attention with its four projections, and the block of a transformer around it."""

from __future__ import annotations

from .. import ops
from ..errors import ConfigError
from ..ir.graph import Init
from ..ir.tensor import Tensor
from .init import glorot_uniform
from .layer import Layer
from .layers import Dense, Dropout
from .norms import LayerNorm

_GLOROT = glorot_uniform()


class Attention(Layer):
    """Projects query, key and value, attends head by head, and projects back to the query's width.

    Projections are `query`, `key`, `value` and `out`. `rotary` turns queries and keys by their positions;
    `kv_heads` fewer than `heads` share keys and values between neighbouring heads.
    """

    def __init__(
        self, heads: int, causal: bool = False, bias: bool = True, kv_heads: int | None = None, rotary: bool = False,
        init: Init = _GLOROT, name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.heads, self.kv_heads, self.causal, self.rotary = heads, kv_heads or heads, causal, rotary
        self.bias, self.init = bias, init
        self._projections: dict[str, Dense] = {}

    def forward(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """x [N, L, E] attends to the context [N, S, E'], itself by default; `mask` as for the op."""
        width = x.shape[-1]
        if width % self.heads:
            raise ConfigError("Attention heads", f"{self.heads} heads do not share {x.type} evenly")
        source, narrow = x if context is None else context, width // self.heads * self.kv_heads
        query, key = self._project("query", x, width), self._project("key", source, narrow)
        value = self._project("value", source, narrow)
        if self.rotary:
            query, key = _turned(query, self.heads), _turned(key, self.kv_heads)
        out = ops.multi_head_attention(query, key, value, self.heads, mask, self.causal, kv_heads=self.kv_heads)
        return self._project("out", out, width)

    def _project(self, name: str, x: Tensor, features: int) -> Tensor:
        if name not in self._projections:
            self._projections[name] = Dense(features, self.bias, init=self.init, name=name)
        return self._projections[name](x)


def _turned(x: Tensor, heads: int) -> Tensor:
    return ops.merge_heads(ops.rotary_embedding(ops.split_heads(x, heads)))


class TransformerBlock(Layer):
    """x + attention(norm(x)), then x + mlp(norm(x)), as a pre-LN transformer has it (Xiong et al. 2020)."""

    def __init__(
        self, heads: int, hidden: int, causal: bool = False, dropout: float = 0.0, rotary: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.attention = Attention(heads, causal, rotary=rotary, name="attention")
        self.norms = LayerNorm(name="norm1"), LayerNorm(name="norm2")
        self.hidden, self.dropout = hidden, dropout
        self._mlp: tuple[Dense, Dense] | None = None

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if self._mlp is None:
            self._mlp = Dense(self.hidden, activation=ops.gelu, name="up"), Dense(x.shape[-1], name="down")
        up, down = self._mlp
        left_out = Dropout(self.dropout)
        x = x + left_out(self.attention(self.norms[0](x), mask=mask))
        return x + left_out(down(up(self.norms[1](x))))
