"""Rules of matrix products."""

from __future__ import annotations

import math

from .. import ops
from ..dtypes import bool_
from ..ir.tensor import Tensor
from .call import Call
from .table import rule


@rule("matmul")
def _matmul(call: Call) -> Tensor:
    x, y = call.weight("x", call.dtype), call.weight("y", call.dtype)
    return ops.matmul(x, y, call.flag("transpose_x"), call.flag("transpose_y"))


@rule("linear")
def _linear(call: Call) -> Tensor:
    product = ops.matmul(call.tensor("x", call.dtype), call.weight("weight", call.dtype), transpose_y=True)
    bias = call.optional_weight("bias", call.dtype)
    return product if bias is None else ops.add(product, bias)


@rule("einsum")
def _einsum(call: Call) -> Tensor:
    return ops.einsum(call.text("equation"), *call.tensors("values"))


@rule("scaled_dot_product_attention")
def _attention(call: Call) -> Tensor:
    query, key = call.tensor("query"), call.tensor("key")
    scores = ops.matmul(ops.mul(query, 1 / math.sqrt(query.shape[-1])), key, transpose_y=True)
    if call.has("attn_mask"):
        mask = call.tensor("attn_mask")
        scores = ops.where(mask, scores, float("-inf")) if mask.dtype is bool_ else ops.add(scores, mask)
    return ops.matmul(ops.softmax(scores), call.tensor("value"))
