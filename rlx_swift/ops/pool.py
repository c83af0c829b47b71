"""Two-dimensional max and average pooling, with derivatives of every order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ConfigError, ShapeError
from ..ir.op import Attrs, Case, Decompose, Domain, Mil, Op, OpKind
from ..ir.tensor import Tensor
from ..ir.types import Shape, TensorType
from . import conv_reference
from ._build import TensorLike, apply, as_tensors, public, require_float
from .arithmetic import add, mul
from .compare import equal
from .conv import Padding, Pads, as_padding, as_pair
from .primitives import MilConvAttrs, mil_conv_transpose
from .select import cast, where
from .slicing import dilate, pad_constant, slice

_ONES = (1, 1)


@dataclass(frozen=True)
class PoolAttrs(Attrs):
    """`padding`: (before, after) for rows, then columns, each less than the kernel."""

    kernel: Shape
    strides: Shape
    padding: Pads


@dataclass(frozen=True)
class AvgPoolAttrs(PoolAttrs):
    count_padding: bool = True


@dataclass(frozen=True)
class AvgPoolGradAttrs(AvgPoolAttrs):
    """`size`: rows and columns of the image."""

    size: Shape = ()


@public
def max_pool2d(
    x: TensorLike, kernel: int | Sequence[int], strides: int | Sequence[int] | None = None, padding: Padding = "valid"
) -> Tensor:
    """The largest element of each window of x [N, C, H, W]; `strides` is the kernel by default.

    Among equal largest elements the first of the window, in row-major order, gets the gradient.
    """
    image, size, steps, pads = _window("max_pool2d", x, kernel, strides, padding)
    return apply(MAX_POOL2D, image, attrs=PoolAttrs(size, steps, pads))


@public
def avg_pool2d(
    x: TensorLike, kernel: int | Sequence[int], strides: int | Sequence[int] | None = None, padding: Padding = "valid",
    count_padding: bool = True,
) -> Tensor:
    """The mean of each window of x [N, C, H, W]; padding counts as zeros unless `count_padding` is False."""
    image, size, steps, pads = _window("avg_pool2d", x, kernel, strides, padding)
    return apply(AVG_POOL2D, image, attrs=AvgPoolAttrs(size, steps, pads, bool(count_padding)))


def _window(
    subject: str, x: TensorLike, kernel: int | Sequence[int], strides: int | Sequence[int] | None, padding: Padding
) -> tuple[Tensor, Shape, Shape, Pads]:
    (image,) = as_tensors(subject, x)
    if image.ndim != 4:
        raise ShapeError(subject, f"expected x of rank 4, got {image.type}")
    size = as_pair(kernel, f"{subject} kernel")
    steps = size if strides is None else as_pair(strides, f"{subject} strides")
    pads = as_padding(padding, image.shape[2:], size, steps, subject)
    if any(max(p) >= k for p, k in zip(pads, size, strict=True)):
        raise ConfigError(f"{subject} padding", f"expected less than the kernel {size}, got {pads}")
    return image, size, steps, pads


def _out_size(size: Shape, attrs: PoolAttrs) -> Shape:
    return tuple(
        (n + sum(p) - k) // s + 1
        for n, k, p, s in zip(size, attrs.kernel, attrs.padding, attrs.strides, strict=True)
    )


def _infer(types: tuple[TensorType, ...], attrs: PoolAttrs) -> tuple[TensorType, ...]:
    x = types[0]
    require_float("pooling", x)
    inside = [0 <= min(p) <= max(p) < k for p, k in zip(attrs.padding, attrs.kernel, strict=True)]
    if min(*attrs.kernel, *attrs.strides) < 1 or not all(inside):
        raise ShapeError("pooling", f"expected sizes and strides of at least 1, padding below the kernel, got {attrs}")
    if x.rank != 4 or min(_out_size(x.shape[2:], attrs)) < 1:
        raise ShapeError("pooling", f"the window {attrs.kernel} does not fit {x} with padding {attrs.padding}")
    return (x.with_shape((*x.shape[:2], *_out_size(x.shape[2:], attrs))),)


def _views(x: np.ndarray, attrs: PoolAttrs, fill: float) -> np.ndarray:
    return conv_reference.windows(x, attrs.kernel, attrs.strides, attrs.padding, _ONES, fill)


def _mil(attrs: PoolAttrs, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> dict[str, object]:
    (top, bottom), (left, right) = attrs.padding
    params: dict[str, object] = {
        "kernel_sizes": attrs.kernel, "strides": attrs.strides, "pad_type": "custom",
        "pad": (top, bottom, left, right), "ceil_mode": False,
    }
    if isinstance(attrs, AvgPoolAttrs):
        params["exclude_padding_from_average"] = not attrs.count_padding
    return params


# Max pooling. `pick` and `place` move values from and to the first winner of each window: linear, and each
# other's transposes.


def _first_winner(x: np.ndarray, y: np.ndarray, attrs: PoolAttrs) -> np.ndarray:
    """True at the first winner of each window, [N, C, OH, OW, KH, KW]."""
    views = _views(x, attrs, -np.inf)
    hits = (views == y[..., None, None]).reshape(*y.shape, -1)
    first = np.zeros_like(hits)
    np.put_along_axis(first, hits.argmax(-1)[..., None], True, -1)
    return (first & hits).reshape(views.shape)


def _place_eval(arrays: tuple[np.ndarray, ...], attrs: PoolAttrs) -> np.ndarray:
    x, y, g = arrays
    cols = _first_winner(x, y, attrs) * g[..., None, None]
    return conv_reference.add_windows(cols, x.shape[2:], attrs.strides, attrs.padding, _ONES)


def _pick_eval(arrays: tuple[np.ndarray, ...], attrs: PoolAttrs) -> np.ndarray:
    x, y, h = arrays
    return np.where(_first_winner(x, y, attrs), _views(h, attrs, 0.0), 0).sum((-1, -2), dtype=h.dtype)


def _offsets(attrs: PoolAttrs) -> list[tuple[int, int]]:
    return [(i, j) for i in range(attrs.kernel[0]) for j in range(attrs.kernel[1])]


def _corner(x: Tensor, y: Tensor, at: tuple[int, int], attrs: PoolAttrs) -> Tensor:
    """The element at one offset of every window, from an image that is padded already."""
    ends = [i + (n - 1) * s + 1 for i, n, s in zip(at, y.shape[2:], attrs.strides, strict=True)]
    return slice(x, (0, 0, *at), (*x.shape[:2], *ends), (1, 1, *attrs.strides))


def _winners(x: Tensor, y: Tensor, attrs: PoolAttrs) -> list[tuple[tuple[int, int], Tensor]]:
    """For each offset of the window, 1 where that element is the window's first winner."""
    padded = pad_constant(x, ((0, 0), (0, 0), *attrs.padding), float("-inf"))
    result, free = [], None
    for at in _offsets(attrs):
        hit = cast(equal(_corner(padded, y, at, attrs), y), y.dtype)
        won = hit if free is None else mul(hit, free)
        free = 1.0 - won if free is None else free - won
        result.append((at, won))
    return result


def _place_lower(ins: tuple[Tensor, ...], attrs: PoolAttrs) -> Tensor:
    x, y, g = ins
    total = None
    (top, bottom), (left, right) = attrs.padding
    rows, columns = x.shape[2] + top + bottom, x.shape[3] + left + right
    for (i, j), won in _winners(x, y, attrs):
        part = dilate(dilate(where(equal(won, 1.0), g, 0.0), 2, attrs.strides[0]), 3, attrs.strides[1])
        spread = pad_constant(part, ((0, 0), (0, 0), (i, rows - i - part.shape[2]), (j, columns - j - part.shape[3])))
        total = spread if total is None else add(total, spread)
    assert total is not None
    return slice(total, (0, 0, top, left), (*x.shape[:2], top + x.shape[2], left + x.shape[3]))


def _pick_lower(ins: tuple[Tensor, ...], attrs: PoolAttrs) -> Tensor:
    x, y, h = ins
    padded = pad_constant(h, ((0, 0), (0, 0), *attrs.padding))
    total = None
    for at, won in _winners(x, y, attrs):
        part = where(equal(won, 1.0), _corner(padded, y, at, attrs), 0.0)
        total = part if total is None else add(total, part)
    assert total is not None
    return total


def _max_infer_grad(types: tuple[TensorType, ...], attrs: PoolAttrs) -> tuple[TensorType, ...]:
    x, y, g = types
    if _infer((x,), attrs) != (y,) or g != y:
        raise ShapeError("max_pool2d_grad", f"{x} pools to {_infer((x,), attrs)[0]}, got {y} and {g}")
    return (x,)


def _max_infer_pick(types: tuple[TensorType, ...], attrs: PoolAttrs) -> tuple[TensorType, ...]:
    x, y, h = types
    if _infer((x,), attrs) != (y,) or h != x:
        raise ShapeError("max_pool2d_pick", f"{x} pools to {_infer((x,), attrs)[0]}, got {y} and {h}")
    return (y,)


def _place(x: Tensor, y: Tensor, g: Tensor, attrs: PoolAttrs) -> Tensor:
    return apply(MAX_POOL2D_GRAD, x, y, g, attrs=attrs)


def _pick(x: Tensor, y: Tensor, h: Tensor, attrs: PoolAttrs) -> Tensor:
    return apply(MAX_POOL2D_PICK, x, y, h, attrs=attrs)


def _third_jvp(rule: Any) -> Any:
    def jvp(ts: Sequence[Tensor | None], out: Tensor, ins: tuple[Tensor, ...], attrs: PoolAttrs) -> Tensor:
        tangent = ts[2] if ts[2] is not None else mul(ins[2], 0.0)
        return rule(ins[0], ins[1], tangent, attrs)

    return jvp


_DISTINCT = Domain(distinct=True)
_BASES = (
    ((2, 2, 4, 6), PoolAttrs((2, 2), (2, 2), ((0, 0), (0, 0)))),
    ((2, 1, 5, 5), PoolAttrs((3, 3), (2, 2), ((1, 1), (1, 1)))),
    ((1, 2, 5, 4), PoolAttrs((3, 2), (1, 2), ((0, 1), (1, 0)))),
)


def _with_pooled(attrs: PoolAttrs) -> Any:
    """Makes the second operand what the first one pools to."""
    return lambda arrays: [arrays[0], _views(arrays[0], attrs, -np.inf).max((-1, -2)), *arrays[2:]]


def _pooled(shape: Shape, attrs: PoolAttrs) -> Shape:
    return (*shape[:2], *_out_size(shape[2:], attrs))


MAX_POOL2D = Op(
    name="max_pool2d", summary="largest element of each window", attrs=PoolAttrs, infer=_infer,
    eval=lambda arrays, attrs: _views(arrays[0], attrs, -np.inf).max((-1, -2)),
    vjp=lambda g, out, ins, attrs: (_place(ins[0], out, g, attrs),),
    jvp=lambda ts, out, ins, attrs: _pick(ins[0], out, ts[0], attrs),
    lower=Mil("max_pool", ("x",), _mil), kind=OpKind.REDUCTION, domain=_DISTINCT,
    cases=tuple(Case((shape,), attrs) for shape, attrs in _BASES),
)
MAX_POOL2D_GRAD = Op(
    name="max_pool2d_grad", summary="values placed at the first winner of each window", attrs=PoolAttrs,
    infer=_max_infer_grad, eval=_place_eval,
    vjp=lambda h, out, ins, attrs: (None, None, _pick(ins[0], ins[1], h, attrs)), jvp=_third_jvp(_place),
    lower=Decompose(_place_lower), kind=OpKind.DATA_MOVEMENT, domain=_DISTINCT,
    cases=tuple(
        Case((shape, _pooled(shape, a), _pooled(shape, a)), a, held=(0, 1), prepare=_with_pooled(a))
        for shape, a in _BASES
    ),
)
MAX_POOL2D_PICK = Op(
    name="max_pool2d_pick", summary="values read at the first winner of each window", attrs=PoolAttrs,
    infer=_max_infer_pick, eval=_pick_eval,
    vjp=lambda g, out, ins, attrs: (None, None, _place(ins[0], ins[1], g, attrs)), jvp=_third_jvp(_pick),
    lower=Decompose(_pick_lower), kind=OpKind.DATA_MOVEMENT, domain=_DISTINCT,
    cases=tuple(
        Case((shape, _pooled(shape, a), shape), a, held=(0, 1), prepare=_with_pooled(a)) for shape, a in _BASES
    ),
)


# Average pooling: linear, its transpose is a convolution with a kernel of ones.


def _counts(size: Shape, attrs: AvgPoolAttrs) -> np.ndarray:
    """How many elements each window's mean is over, [OH, OW]."""
    ones = np.ones((1, 1, *size), np.float32)
    fill = 1.0 if attrs.count_padding else 0.0
    return _views(ones, attrs, fill).sum((-1, -2), dtype=np.float32)[0, 0]


def _avg_eval(arrays: tuple[np.ndarray, ...], attrs: AvgPoolAttrs) -> np.ndarray:
    (x,) = arrays
    return (_views(x, attrs, 0.0).sum((-1, -2)) / _counts(x.shape[2:], attrs)).astype(x.dtype)


def _avg_grad_infer(types: tuple[TensorType, ...], attrs: AvgPoolGradAttrs) -> tuple[TensorType, ...]:
    (g,) = types
    shape = (*g.shape[:2], *attrs.size)
    if _infer((g.with_shape(shape),), attrs) != (g,):
        raise ShapeError("avg_pool2d_grad", f"{shape} does not pool to {g}")
    return (g.with_shape(shape),)


def _avg_grad_eval(arrays: tuple[np.ndarray, ...], attrs: AvgPoolGradAttrs) -> np.ndarray:
    (g,) = arrays
    each = (g / _counts(attrs.size, attrs)).astype(g.dtype)[..., None, None]
    cols = np.broadcast_to(each, (*g.shape, *attrs.kernel))
    return conv_reference.add_windows(cols, attrs.size, attrs.strides, attrs.padding, _ONES)


def _avg_grad_lower(ins: tuple[Tensor, ...], attrs: AvgPoolGradAttrs) -> Tensor:
    (g,) = ins
    channels = g.shape[1]
    share = mul(g, g.graph.constant((1 / _counts(attrs.size, attrs)).astype(g.dtype.numpy)))
    ones = g.graph.constant(np.ones((channels, 1, *attrs.kernel), g.dtype.numpy))
    whole = mil_conv_transpose(share, ones, MilConvAttrs(attrs.strides, ((0, 0), (0, 0)), channels))
    begin = [0, 0, attrs.padding[0][0], attrs.padding[1][0]]
    end = [*whole.shape[:2], *(min(n, b + s) for n, b, s in zip(whole.shape[2:], begin[2:], attrs.size, strict=True))]
    inside = slice(whole, begin, end)
    missing = [(0, s - n) for s, n in zip(attrs.size, inside.shape[2:], strict=True)]
    return pad_constant(inside, [(0, 0), (0, 0), *missing])


def _avg_grad(g: Tensor, size: Shape, attrs: AvgPoolAttrs) -> Tensor:
    graded = AvgPoolGradAttrs(attrs.kernel, attrs.strides, attrs.padding, attrs.count_padding, size)
    return apply(AVG_POOL2D_GRAD, g, attrs=graded)


def _avg(x: Tensor, attrs: AvgPoolAttrs) -> Tensor:
    return apply(AVG_POOL2D, x, attrs=AvgPoolAttrs(attrs.kernel, attrs.strides, attrs.padding, attrs.count_padding))


_AVG_BASES = tuple(
    (shape, AvgPoolAttrs(a.kernel, a.strides, a.padding, counted)) for shape, a in _BASES for counted in (True, False)
)
AVG_POOL2D = Op(
    name="avg_pool2d", summary="mean of each window", attrs=AvgPoolAttrs, infer=_infer, eval=_avg_eval,
    vjp=lambda g, out, ins, attrs: (_avg_grad(g, ins[0].shape[2:], attrs),),
    jvp=lambda ts, out, ins, attrs: _avg(ts[0], attrs),
    lower=Mil("avg_pool", ("x",), _mil), kind=OpKind.REDUCTION, domain=Domain(),
    cases=tuple(Case((shape,), attrs) for shape, attrs in _AVG_BASES),
)
AVG_POOL2D_GRAD = Op(
    name="avg_pool2d_grad", summary="each window's share given to its elements", attrs=AvgPoolGradAttrs,
    infer=_avg_grad_infer, eval=_avg_grad_eval,
    vjp=lambda h, out, ins, attrs: (_avg(h, attrs),),
    jvp=lambda ts, out, ins, attrs: _avg_grad(ts[0], attrs.size, attrs),
    lower=Decompose(_avg_grad_lower), kind=OpKind.REDUCTION, domain=Domain(),
    cases=tuple(
        Case((_pooled(shape, a),), AvgPoolGradAttrs(a.kernel, a.strides, a.padding, a.count_padding, shape[2:]))
        for shape, a in _AVG_BASES
    ),
)
