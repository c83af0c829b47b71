"""Rules of reductions over axes."""

from __future__ import annotations

from collections.abc import Callable

from .. import ops
from ..dtypes import DType, f32
from ..ir.tensor import Tensor
from ..ir.types import Shape, as_axis
from .call import Call
from .table import rule

Reduce = Callable[..., Tensor]


def _reduction(function: Reduce, dtype: DType | None = None) -> Callable[[Call], Tensor]:
    """A rule for function(x, axes, keepdims), with floats in `dtype`."""

    def lifted(call: Call) -> Tensor:
        axes = call.integers("axes") if call.has("axes") else None
        return function(call.tensor("x", dtype), axes, call.flag("keep_dims"))

    return lifted


def _mean(x: Tensor, axes: Shape | None, keepdims: bool) -> Tensor:
    """Of integers: without its fraction."""
    return ops.mean(x if x.dtype.is_float else ops.cast(x, f32), axes, keepdims)


rule("reduce_sum")(_reduction(ops.sum))
rule("reduce_mean")(_reduction(_mean))
rule("reduce_max")(_reduction(ops.max))
rule("reduce_min")(_reduction(ops.min))
rule("reduce_prod")(_reduction(ops.prod))
rule("reduce_log_sum_exp")(_reduction(ops.logsumexp))
# Of several ops: in f32 throughout, since squares and sums overflow f16.
rule("reduce_l1_norm")(_reduction(lambda x, axes, keepdims: ops.sum(ops.abs(x), axes, keepdims), f32))
rule("reduce_l2_norm")(_reduction(lambda x, axes, keepdims: ops.sqrt(ops.sum(ops.square(x), axes, keepdims)), f32))
rule("reduce_sum_square")(_reduction(lambda x, axes, keepdims: ops.sum(ops.square(x), axes, keepdims), f32))
rule("reduce_log_sum")(_reduction(lambda x, axes, keepdims: ops.log(ops.sum(x, axes, keepdims)), f32))


@rule("reduce_argmax")
def _argmax(call: Call) -> Tensor:
    return ops.argmax(call.tensor("x"), call.integer("axis"), call.flag("keep_dims"))


@rule("reduce_argmin")
def _argmin(call: Call) -> Tensor:
    return ops.argmin(call.tensor("x"), call.integer("axis"), call.flag("keep_dims"))


@rule("cumsum")
def _cumsum(call: Call) -> Tensor:
    """Exclusive: the sum of the elements before each one, so of x moved on by one element."""
    x, reverse = call.tensor("x"), call.flag("reverse")
    axis = as_axis(call.integer("axis"), x.ndim, "axis")
    if call.flag("exclusive"):
        widths, first = [(0, 0)] * x.ndim, 1 if reverse else 0
        widths[axis] = (0, 1) if reverse else (1, 0)
        x = ops.slice_axis(ops.pad(x, widths), axis, first, first + x.shape[axis])
    return ops.cumsum(x, axis, reverse)
