"""The functional form of every op, under NumPy's names where those exist.

One family a module, one record an op (`rlx_swift.ir.op.Op`). A function that is public carries `@public` in
its module and is exported here; importing a family declares its ops.
"""

from . import primitives as primitives
from .arithmetic import add, div, floor_div, maximum, minimum, mod, mul, sub
from .compare import equal, greater, greater_equal, less, less_equal, not_equal
from .conv import conv2d
from .elementwise import (
    abs,
    erf,
    exp,
    floor,
    gelu,
    identity,
    log,
    neg,
    relu,
    rsqrt,
    sigmoid,
    sign,
    silu,
    sqrt,
    square,
    stop_gradient,
    tanh,
)
from .index import gather, one_hot, scatter_add
from .linalg import matmul
from .loss import softmax_cross_entropy_with_logits
from .normalize import layer_norm, log_softmax, softmax
from .pool import avg_pool2d, max_pool2d
from .power import pow
from .reduce import logsumexp, max, mean, min, sum
from .select import cast, full, full_like, where
from .shape import broadcast_to, expand_dims, reshape, squeeze, swapaxes, tile, transpose
from .slicing import concat, flip, getitem, pad, slice, slice_axis

__all__ = [
    "abs",
    "add",
    "avg_pool2d",
    "broadcast_to",
    "cast",
    "concat",
    "conv2d",
    "div",
    "equal",
    "erf",
    "exp",
    "expand_dims",
    "flip",
    "floor",
    "floor_div",
    "full",
    "full_like",
    "gather",
    "gelu",
    "getitem",
    "greater",
    "greater_equal",
    "identity",
    "layer_norm",
    "less",
    "less_equal",
    "log",
    "log_softmax",
    "logsumexp",
    "matmul",
    "max",
    "max_pool2d",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mod",
    "mul",
    "neg",
    "not_equal",
    "one_hot",
    "pad",
    "pow",
    "relu",
    "reshape",
    "rsqrt",
    "scatter_add",
    "sigmoid",
    "sign",
    "silu",
    "slice",
    "slice_axis",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "sqrt",
    "square",
    "squeeze",
    "stop_gradient",
    "sub",
    "sum",
    "swapaxes",
    "tanh",
    "tile",
    "transpose",
    "where",
]
