"""Rules of elementwise operations that take parameters, or integers where the ops take floats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import ops
from ..dtypes import f32, i32
from ..ir.tensor import Tensor
from .call import Call
from .constants import IR_DTYPES
from .table import rule


@rule("cast")
def _cast(call: Call) -> Tensor:
    x, name = call.tensor("x"), call.text("dtype")
    if name not in IR_DTYPES:
        raise call.unsupported(f"a graph has no values of {name}")
    dtype = IR_DTYPES[name]
    result = ops.cast(x, dtype)
    if dtype is i32 and name != "int32" and x.dtype.is_float:
        limits = np.iinfo(name)
        return ops.clip(result, int(limits.min), int(limits.max))
    return result


@rule("clip")
def _clip(call: Call) -> Tensor:
    return ops.clip(call.tensor("x"), call.number("alpha"), call.number("beta"))


@rule("threshold")
def _threshold(call: Call) -> Tensor:
    x = call.tensor("x")
    return ops.maximum(x, call.number("alpha") if x.dtype.is_float else call.integer("alpha"))


@rule("round")
def _round(call: Call) -> Tensor:
    return ops.round(call.tensor("x"))


def _shifted(function: Callable[[Tensor], Tensor]) -> Callable[[Call], Tensor]:
    """function(x + epsilon); in f32 throughout, since epsilon is often below what f16 holds."""

    def lifted(call: Call) -> Tensor:
        x, epsilon = call.tensor("x"), call.number("epsilon")
        if not call.has("epsilon"):
            epsilon = float(x.dtype.numpy.type(epsilon))
        return function(ops.add(call.tensor("x", f32), epsilon) if epsilon else x)

    return lifted


rule("log")(_shifted(ops.log))
rule("rsqrt")(_shifted(ops.rsqrt))
rule("inverse")(_shifted(ops.reciprocal))


@rule("real_div")
def _real_div(call: Call) -> Tensor:
    """Of integers: the quotient without its fraction."""
    x, y = call.tensor("x"), call.tensor("y")
    if x.dtype.is_float:
        return ops.div(x, y)
    return ops.mul(ops.mul(ops.sign(x), ops.sign(y)), _floor_of_quotient(ops.abs(x), ops.abs(y)))


@rule("floor_div")
def _floor_div(call: Call) -> Tensor:
    return _floor_of_quotient(call.tensor("x"), call.tensor("y"))


def _floor_of_quotient(x: Tensor, y: Tensor) -> Tensor:
    """MIL's floor_div: of floats the quotient is rounded first."""
    return ops.floor(ops.div(x, y)) if x.dtype.is_float else ops.floor_div(x, y)


@rule("pow")
def _pow(call: Call) -> Tensor:
    return ops.pow(call.tensor("x", call.dtype), call.tensor("y", call.dtype))


@rule("select")
def _select(call: Call) -> Tensor:
    return ops.where(call.tensor("cond"), call.tensor("a"), call.tensor("b"))
