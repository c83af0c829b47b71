"""Max pooling over one to three axes. Of equal largest elements the first of the window gets the gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.op import Batch, Case, Decompose, Domain, Mil, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import Shape, TensorType
from . import conv_reference
from ._build import TensorLike, apply, as_tensors, public
from .arithmetic import add, mul
from .compare import equal
from .pool import PoolAttrs, Size, arguments, flat_padding, pool_infer, pooled, views, window_axes
from .reduce import max
from .select import cast, full_like, where
from .slicing import dilate, pad_constant, slice
from .windows import Padding


@public
def max_pool1d(
    x: TensorLike, kernel: Size, strides: Size | None = None, padding: Padding = "valid", ceil_mode: bool = False
) -> Tensor:
    """The largest element of each window of x [N, C, L]; arguments as for `max_pool2d`."""
    return _max_pool("max_pool1d", 1, x, kernel, strides, padding, ceil_mode)


@public
def max_pool2d(
    x: TensorLike, kernel: Size, strides: Size | None = None, padding: Padding = "valid", ceil_mode: bool = False
) -> Tensor:
    """The largest element of each window of x [N, C, H, W]; `strides` is the kernel by default.

    With `ceil_mode` a last window that reaches past the end counts too. Among equal largest elements the
    first of the window, in row-major order, gets the gradient.
    """
    return _max_pool("max_pool2d", 2, x, kernel, strides, padding, ceil_mode)


@public
def max_pool3d(
    x: TensorLike, kernel: Size, strides: Size | None = None, padding: Padding = "valid", ceil_mode: bool = False
) -> Tensor:
    """The largest element of each window of x [N, C, D, H, W]; arguments as for `max_pool2d`."""
    return _max_pool("max_pool3d", 3, x, kernel, strides, padding, ceil_mode)


@public
def global_max_pool(x: TensorLike) -> Tensor:
    """The largest element over all spatial axes of x [N, C, ...], kept as sizes of 1; ties share the gradient."""
    (image,) = as_tensors("global_max_pool", x)
    if image.ndim < 3:
        raise ShapeError("global_max_pool", f"expected x of rank 3 or more, got {image.type}")
    return max(image, range(2, image.ndim), keepdims=True)


def _max_pool(
    subject: str, rank: int, x: TensorLike, kernel: Size, strides: Size | None, padding: Padding, ceil_mode: bool
) -> Tensor:
    image, attrs, _ = arguments(subject, rank, x, kernel, strides, padding, ceil_mode)
    return apply(MAX_POOL, image, attrs=attrs)


# `pick` and `place` move values from and to the first winner of each window: linear, and each other's transposes.


def _first_winner(x: np.ndarray, y: np.ndarray, attrs: PoolAttrs) -> np.ndarray:
    """True at the first winner of each window, [N, C, out..., kernel...]."""
    windows = views(x, attrs, -np.inf)
    hits = (windows == np.expand_dims(y, window_axes(attrs))).reshape(*y.shape, math.prod(attrs.kernel))
    first = np.zeros_like(hits)
    np.put_along_axis(first, hits.argmax(-1)[..., None], True, -1)
    return (first & hits).reshape(windows.shape)


def _place_eval(arrays: tuple[np.ndarray, ...], attrs: PoolAttrs) -> np.ndarray:
    x, y, g = arrays
    cols = np.where(_first_winner(x, y, attrs), np.expand_dims(g, window_axes(attrs)), 0).astype(g.dtype)
    return conv_reference.add_windows(cols, x.shape[2:], attrs.strides, attrs.padding, (1,) * len(attrs.kernel))


def _pick_eval(arrays: tuple[np.ndarray, ...], attrs: PoolAttrs) -> np.ndarray:
    x, y, h = arrays
    return np.where(_first_winner(x, y, attrs), views(h, attrs, 0.0), 0).sum(window_axes(attrs), dtype=h.dtype)


def _corner(x: Tensor, y: Tensor, at: Shape, attrs: PoolAttrs) -> Tensor:
    """The element at one offset of every window, from an image that is padded already."""
    ends = [i + (n - 1) * s + 1 for i, n, s in zip(at, y.shape[2:], attrs.strides, strict=True)]
    return slice(x, (0, 0, *at), (*x.shape[:2], *ends), (1, 1, *attrs.strides))


def _winners(x: Tensor, y: Tensor, attrs: PoolAttrs) -> list[tuple[Shape, Tensor]]:
    """For each offset of the window, 1 where that element is the window's first winner."""
    padded = pad_constant(x, ((0, 0), (0, 0), *attrs.padding), float("-inf"))
    result, free = [], None
    for at in np.ndindex(*attrs.kernel):
        hit = cast(equal(_corner(padded, y, at, attrs), y), y.dtype)
        won = hit if free is None else mul(hit, free)
        free = 1.0 - won if free is None else free - won
        result.append((at, won))
    return result


def _place_lower(ins: tuple[Tensor, ...], attrs: PoolAttrs) -> Tensor:
    x, y, g = ins
    sizes = [n + sum(p) for n, p in zip(x.shape[2:], attrs.padding, strict=True)]
    total = None
    for at, won in _winners(x, y, attrs):
        part = where(equal(won, 1.0), g, 0.0)
        for axis, stride in reversed(list(enumerate(attrs.strides, 2))):
            part = dilate(part, axis, stride)
        around = [(i, n - i - here) for i, n, here in zip(at, sizes, part.shape[2:], strict=True)]
        placed = pad_constant(part, ((0, 0), (0, 0), *around))
        total = placed if total is None else add(total, placed)
    assert total is not None
    starts = [before for before, _ in attrs.padding]
    ends = [before + n for before, n in zip(starts, x.shape[2:], strict=True)]
    return slice(total, (0, 0, *starts), (*x.shape[:2], *ends))


def _pick_lower(ins: tuple[Tensor, ...], attrs: PoolAttrs) -> Tensor:
    x, y, h = ins
    padded = pad_constant(h, ((0, 0), (0, 0), *attrs.padding))
    total = None
    for at, won in _winners(x, y, attrs):
        part = where(equal(won, 1.0), _corner(padded, y, at, attrs), 0.0)
        total = part if total is None else add(total, part)
    assert total is not None
    return total


def _place_infer(types: tuple[TensorType, ...], attrs: PoolAttrs) -> tuple[TensorType, ...]:
    x, y, g = types
    if pool_infer((x,), attrs) != (y,) or g != y:
        raise ShapeError("max_pool_grad", f"{x} pools to {pool_infer((x,), attrs)[0]}, got {y} and {g}")
    return (x,)


def _pick_infer(types: tuple[TensorType, ...], attrs: PoolAttrs) -> tuple[TensorType, ...]:
    x, y, h = types
    if pool_infer((x,), attrs) != (y,) or h != x:
        raise ShapeError("max_pool_pick", f"{x} pools to {pool_infer((x,), attrs)[0]}, got {y} and {h}")
    return (y,)


def _place(x: Tensor, y: Tensor, g: Tensor, attrs: PoolAttrs) -> Tensor:
    return apply(MAX_POOL_GRAD, x, y, g, attrs=attrs)


def _pick(x: Tensor, y: Tensor, h: Tensor, attrs: PoolAttrs) -> Tensor:
    return apply(MAX_POOL_PICK, x, y, h, attrs=attrs)


def _third_jvp(rule: Callable[[Tensor, Tensor, Tensor, PoolAttrs], Tensor]) -> Callable[..., Tensor]:
    def jvp(ts: Sequence[Tensor | None], out: Tensor, ins: tuple[Tensor, ...], attrs: PoolAttrs) -> Tensor:
        return full_like(out, 0.0) if ts[2] is None else rule(ins[0], ins[1], ts[2], attrs)

    return jvp


# Records


def _with_pooled(attrs: PoolAttrs) -> Callable[[list[np.ndarray]], list[np.ndarray]]:
    """Makes the second operand what the first one pools to."""
    return lambda arrays: [arrays[0], views(arrays[0], attrs, -np.inf).max(window_axes(attrs)), *arrays[2:]]


def _mil(attrs: PoolAttrs, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> dict[str, Any]:
    return {
        "kernel_sizes": attrs.kernel, "strides": attrs.strides, "pad_type": "custom", "pad": flat_padding(attrs),
        "ceil_mode": False,
    }


_DISTINCT = Domain(distinct=True)
BASES = (
    ((2, 2, 4, 6), PoolAttrs((2, 2), (2, 2), ((0, 0), (0, 0)))),
    ((2, 1, 5, 5), PoolAttrs((3, 3), (2, 2), ((1, 1), (1, 1)))),
    ((1, 2, 5, 4), PoolAttrs((3, 2), (1, 2), ((0, 1), (1, 0)))),
    ((2, 2, 7), PoolAttrs((3,), (2,), ((1, 2),))),
    ((1, 2, 3, 4, 4), PoolAttrs((2, 2, 3), (1, 2, 1), ((0, 0), (0, 0), (1, 1)))),
)
MAX_POOL = Op(
    name="max_pool", summary="largest element of each window", attrs=PoolAttrs, infer=pool_infer,
    eval=lambda arrays, attrs: views(arrays[0], attrs, -np.inf).max(window_axes(attrs)),
    vjp=lambda g, out, ins, attrs: (_place(ins[0], out, g, attrs),),
    jvp=lambda ts, out, ins, attrs: _pick(ins[0], out, ts[0], attrs),
    lower=Mil("max_pool", ("x",), _mil), kind=OpKind.REDUCTION, domain=_DISTINCT, batch=Batch.MERGE,
    cases=tuple(Case((shape,), attrs) for shape, attrs in BASES),
)
MAX_POOL_GRAD = Op(
    name="max_pool_grad", summary="values placed at the first winner of each window", attrs=PoolAttrs,
    infer=_place_infer, eval=_place_eval,
    vjp=lambda h, out, ins, attrs: (None, None, _pick(ins[0], ins[1], h, attrs)), jvp=_third_jvp(_place),
    lower=Decompose(_place_lower), kind=OpKind.DATA_MOVEMENT, domain=_DISTINCT, batch=Batch.MERGE,
    cases=tuple(
        Case((shape, pooled(shape, a), pooled(shape, a)), a, held=(0, 1), prepare=_with_pooled(a)) for shape, a in BASES
    ),
)
MAX_POOL_PICK = Op(
    name="max_pool_pick", summary="values read at the first winner of each window", attrs=PoolAttrs,
    infer=_pick_infer, eval=_pick_eval,
    vjp=lambda g, out, ins, attrs: (None, None, _place(ins[0], ins[1], g, attrs)), jvp=_third_jvp(_pick),
    lower=Decompose(_pick_lower), kind=OpKind.DATA_MOVEMENT, domain=_DISTINCT, batch=Batch.MERGE,
    cases=tuple(
        Case((shape, pooled(shape, a), shape), a, held=(0, 1), prepare=_with_pooled(a)) for shape, a in BASES
    ),
)
