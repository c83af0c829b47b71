"""The functional form of every op, under NumPy's names where those exist.

One family a module, one record an op (`rlx_swift.ir.op.Op`). A function that is public carries `@public` in
its module and is exported here; importing a family declares its ops.
"""

from ..ir.op import registry
from . import primitives as primitives
from .activation import (
    clip,
    elu,
    erf,
    gelu,
    hardsigmoid,
    hardswish,
    leaky_relu,
    prelu,
    relu,
    relu6,
    sigmoid,
    silu,
    softplus,
    softsign,
)
from .along import put_along_axis, take_along_axis
from .argreduce import argmax, argmin
from .arithmetic import add, div, maximum, minimum, mul, sub
from .arrange import roll, split, stack, tril, triu
from .attention import merge_heads, multi_head_attention, rotary_embedding, scaled_dot_product_attention, split_heads
from .avg_pool import adaptive_avg_pool, avg_pool1d, avg_pool2d, avg_pool3d, global_avg_pool
from .batch_norm import batch_norm
from .compare import equal, greater, greater_equal, less, less_equal, not_equal
from .conv import conv1d, conv2d, depthwise_conv2d
from .conv_more import conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from .division import floor_div, mod
from .dropout import dropout
from .einsum import dot, einsum, outer
from .elementwise import (
    abs,
    ceil,
    exp,
    exp2,
    expm1,
    floor,
    identity,
    log,
    log1p,
    neg,
    reciprocal,
    round,
    rsqrt,
    sign,
    sqrt,
    square,
    stop_gradient,
)
from .index import gather, one_hot, scatter_add
from .linalg import matmul
from .logical import isfinite, isinf, isnan, logical_and, logical_not, logical_or, logical_xor
from .losses import (
    bce_with_logits,
    cosine_embedding_loss,
    cosine_similarity,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    triplet_loss,
)
from .max_pool import global_max_pool, max_pool1d, max_pool2d, max_pool3d
from .norms import group_norm, instance_norm, l2_normalize, layer_norm, rms_norm
from .order import argsort, sort, topk
from .padding import pad
from .positions import dynamic_slice, dynamic_update_slice, gather_nd, index_select, scatter_nd, take
from .power import pow
from .recurrent import gru, gru_cell, lstm, lstm_cell, scan
from .reduce import logsumexp, max, mean, min, sum
from .resize import pixel_shuffle, pixel_unshuffle, resize
from .running import cumprod, cumsum, prod
from .select import cast, full, full_like, where
from .shape import broadcast_to, expand_dims, reshape, squeeze, swapaxes, tile, transpose
from .slicing import concat, flip, getitem, slice, slice_axis
from .softmax import log_softmax, softmax
from .softmax_cross_entropy import softmax_cross_entropy_with_logits
from .statistics import norm, std, var
from .trigonometry import acos, asin, atan, atanh, cos, cosh, sin, sinh, tan, tanh

OWN = frozenset(registry().values())  # beside those that callers make

__all__ = [
    "abs",
    "acos",
    "adaptive_avg_pool",
    "add",
    "argmax",
    "argmin",
    "argsort",
    "asin",
    "atan",
    "atanh",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bce_with_logits",
    "broadcast_to",
    "cast",
    "ceil",
    "clip",
    "concat",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cos",
    "cosh",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "cumprod",
    "cumsum",
    "depthwise_conv2d",
    "div",
    "dot",
    "dropout",
    "dynamic_slice",
    "dynamic_update_slice",
    "einsum",
    "elu",
    "equal",
    "erf",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "flip",
    "floor",
    "floor_div",
    "full",
    "full_like",
    "gather",
    "gather_nd",
    "gelu",
    "getitem",
    "global_avg_pool",
    "global_max_pool",
    "greater",
    "greater_equal",
    "group_norm",
    "gru",
    "gru_cell",
    "hardsigmoid",
    "hardswish",
    "huber_loss",
    "identity",
    "index_select",
    "instance_norm",
    "isfinite",
    "isinf",
    "isnan",
    "kl_div",
    "l1_loss",
    "l2_normalize",
    "layer_norm",
    "leaky_relu",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log_softmax",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "lstm",
    "lstm_cell",
    "matmul",
    "max",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "maximum",
    "mean",
    "merge_heads",
    "min",
    "minimum",
    "mod",
    "mse_loss",
    "mul",
    "multi_head_attention",
    "neg",
    "nll_loss",
    "norm",
    "not_equal",
    "one_hot",
    "outer",
    "pad",
    "pixel_shuffle",
    "pixel_unshuffle",
    "pow",
    "prelu",
    "prod",
    "put_along_axis",
    "reciprocal",
    "relu",
    "relu6",
    "reshape",
    "resize",
    "rms_norm",
    "roll",
    "rotary_embedding",
    "round",
    "rsqrt",
    "scaled_dot_product_attention",
    "scan",
    "scatter_add",
    "scatter_nd",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinh",
    "slice",
    "slice_axis",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "sort",
    "split",
    "split_heads",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "stop_gradient",
    "sub",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tile",
    "topk",
    "transpose",
    "tril",
    "triplet_loss",
    "triu",
    "var",
    "where",
]
