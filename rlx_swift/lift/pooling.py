"""Rules of pools over one to three axes."""

from __future__ import annotations

from .. import ops
from ..ir.tensor import Tensor
from .call import Call
from .table import rule
from .windows import for_axes, windows

_MAX = (ops.max_pool1d, ops.max_pool2d, ops.max_pool3d)
_MEAN = (ops.avg_pool1d, ops.avg_pool2d, ops.avg_pool3d)


@rule("max_pool")
def _max_pool(call: Call) -> Tensor:
    x, kernel = call.tensor("x"), call.integers("kernel_sizes")
    over = windows(call, x.shape[2:], kernel)
    return for_axes(call, x, _MAX)(x, kernel, over.strides, over.padding, call.flag("ceil_mode"))


@rule("avg_pool")
def _avg_pool(call: Call) -> Tensor:
    x, kernel = call.tensor("x"), call.integers("kernel_sizes")
    over, counted = windows(call, x.shape[2:], kernel), not call.flag("exclude_padding_from_average")
    return for_axes(call, x, _MEAN)(x, kernel, over.strides, over.padding, counted, call.flag("ceil_mode"))
