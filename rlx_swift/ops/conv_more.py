"""Transposed convolutions, and convolution over three axes as a sum of convolutions over two."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ConfigError, ShapeError
from ..ir.tensor import Tensor
from ..ir.types import Shape, as_int, as_ints
from ._build import TensorLike, apply, public
from .arithmetic import add
from .conv import CONV, ConvAttrs, Size, conv_operands, conv_transpose, with_bias
from .shape import reshape, transpose
from .slicing import dilate, pad_constant, slice_axis
from .windows import Padding, as_padding, as_sizes, reach_of, window_counts


@public
def conv_transpose1d(
    x: TensorLike, w: TensorLike, bias: TensorLike | None = None, strides: Size = 1, padding: Padding = 0,
    output_padding: Size = 0, dilation: Size = 1, groups: int = 1,
) -> Tensor:
    """As `conv_transpose2d`, of x [N, C, L] with w [C, O/groups, K]."""
    return _transposed("conv_transpose1d", 1, x, w, bias, strides, padding, output_padding, dilation, groups)


@public
def conv_transpose2d(
    x: TensorLike, w: TensorLike, bias: TensorLike | None = None, strides: Size = 1, padding: Padding = 0,
    output_padding: Size = 0, dilation: Size = 1, groups: int = 1,
) -> Tensor:
    """The transpose of `conv2d`: x [N, C, H, W] with w [C, O/groups, KH, KW] gives [N, O, ...], plus bias [O].

    A size becomes (size - 1) stride + dilation (kernel - 1) + 1 - padding + output_padding, where padding
    counts both sides and output_padding is less than the stride or the dilation.
    """
    return _transposed("conv_transpose2d", 2, x, w, bias, strides, padding, output_padding, dilation, groups)


@public
def conv_transpose3d(
    x: TensorLike, w: TensorLike, bias: TensorLike | None = None, strides: Size = 1, padding: Padding = 0,
    output_padding: Size = 0, dilation: Size = 1, groups: int = 1,
) -> Tensor:
    """As `conv_transpose2d`, of x [N, C, D, H, W] with w [C, O/groups, KD, KH, KW]."""
    return _transposed("conv_transpose3d", 3, x, w, bias, strides, padding, output_padding, dilation, groups)


@public
def conv3d(
    x: TensorLike, w: TensorLike, bias: TensorLike | None = None, strides: Size = 1, padding: Padding = "valid",
    dilation: Size = 1, groups: int = 1,
) -> Tensor:
    """Cross-correlation of x [N, C, D, H, W] with w [O, C/groups, KD, KH, KW]; arguments as for `conv2d`."""
    subject = "conv3d"
    image, kernel = conv_operands(subject, 3, x, w)
    steps, spread = as_sizes(strides, 3, f"{subject} strides"), as_sizes(dilation, 3, f"{subject} dilation")
    reach = reach_of(kernel.shape[2:], spread)
    pads = as_padding(padding, image.shape[2:], reach, steps, subject)
    counts = window_counts(image.shape[2:], reach, steps, pads)
    if min(counts) < 1 or min(kernel.shape) < 1:
        raise ShapeError(subject, f"the kernel {kernel.shape[2:]} does not fit the image {image.shape[2:]}")
    padded = pad_constant(image, ((0, 0), (0, 0), pads[0], (0, 0), (0, 0)))
    plane = ConvAttrs(steps[1:], pads[1:], spread[1:], as_int(groups, f"{subject} groups"))
    total = None
    for tap in range(kernel.shape[2]):  # Core ML has no convolution over three axes with run-time weights
        first = tap * spread[0]
        layers = slice_axis(padded, 2, first, first + (counts[0] - 1) * steps[0] + 1, steps[0])
        part = apply(CONV, _planes(layers), _tap(kernel, tap), attrs=plane)
        total = part if total is None else add(total, part)
    assert total is not None
    return with_bias(subject, _volume(total, image.shape[0]), bias)


def _planes(x: Tensor) -> Tensor:
    """[N, C, D, H, W] as N * D images [C, H, W]."""
    n, c, d, h, w = x.shape
    return reshape(transpose(x, (0, 2, 1, 3, 4)), (n * d, c, h, w))


def _volume(planes: Tensor, batch: int) -> Tensor:
    """N * D images [C, H, W] as [N, C, D, H, W]."""
    count, c, h, w = planes.shape
    return transpose(reshape(planes, (batch, count // max(batch, 1), c, h, w)), (0, 2, 1, 3, 4))


def _tap(kernel: Tensor, index: int) -> Tensor:
    """One layer of a kernel of three axes."""
    o, c, _, h, w = kernel.shape
    return reshape(slice_axis(kernel, 2, index, index + 1), (o, c, h, w))


def _transposed(
    subject: str, rank: int, x: TensorLike, w: TensorLike, bias: TensorLike | None, strides: Size, padding: Padding,
    output_padding: Size, dilation: Size, groups: int,
) -> Tensor:
    data, kernel = conv_operands(subject, rank, x, w)
    steps, spread = as_sizes(strides, rank, f"{subject} strides"), as_sizes(dilation, rank, f"{subject} dilation")
    if padding == "same":
        raise ConfigError(f"{subject} padding", "expected numbers, got 'same'")
    pads = as_padding(padding, data.shape[2:], kernel.shape[2:], steps, subject)
    extra = _output_padding(subject, output_padding, steps, spread)
    reach = reach_of(kernel.shape[2:], spread)
    # The op's output padding is below the stride: what goes beyond takes back padding, then is zeros.
    beyond = tuple(max(e - (s - 1), 0) for e, s in zip(extra, steps, strict=True))
    zeros = tuple(max(b - p[1], 0) for b, p in zip(beyond, pads, strict=True))
    pads = tuple((p[0], max(p[1] - b, 0)) for b, p in zip(beyond, pads, strict=True))
    size = tuple(
        (n - 1) * s + k - sum(p) + min(e, s - 1)
        for n, s, k, p, e in zip(data.shape[2:], steps, reach, pads, extra, strict=True)
    )
    if min(size) < 1:
        raise ShapeError(subject, f"padding {pads} leaves nothing of {data.type}")
    attrs = ConvAttrs(steps, pads, spread, as_int(groups, f"{subject} groups"))
    out = _deep(data, kernel, size, attrs) if rank == 3 else conv_transpose(data, kernel, size, attrs)
    if any(zeros):
        out = pad_constant(out, ((0, 0), (0, 0), *[(0, count) for count in zeros]))
    return with_bias(subject, out, bias)


def _output_padding(subject: str, value: Size, strides: Shape, dilation: Shape) -> Shape:
    try:
        extra = as_ints(value, subject)
    except ShapeError:
        extra = (-1,)
    extra = extra * len(strides) if len(extra) == 1 else extra
    limits = tuple(map(max, strides, dilation))
    if len(extra) != len(limits) or any(not 0 <= e < limit for e, limit in zip(extra, limits, strict=True)):
        raise ConfigError(f"{subject} output_padding", f"expected integers from 0 and below {limits}, got {value!r}")
    return extra


def _deep(x: Tensor, kernel: Tensor, size: Shape, attrs: ConvAttrs) -> Tensor:
    """Transposed convolution over three axes: the layers of each tap, put where they belong and added."""
    plane = ConvAttrs(attrs.strides[1:], attrs.padding[1:], attrs.dilation[1:], attrs.groups)
    before, after = attrs.padding[0]
    depth = size[0] + before + after
    total = None
    for tap in range(kernel.shape[2]):
        part = _volume(conv_transpose(_planes(x), _tap(kernel, tap), size[1:], plane), x.shape[0])
        apart = dilate(part, 2, attrs.strides[0])
        first = tap * attrs.dilation[0]
        placed = pad_constant(apart, _around(2, (first, depth - first - apart.shape[2]), 5))
        total = placed if total is None else add(total, placed)
    assert total is not None
    return slice_axis(total, 2, before, before + size[0])


def _around(axis: int, sides: tuple[int, int], rank: int) -> Sequence[tuple[int, int]]:
    widths = [(0, 0)] * rank
    widths[axis] = sides
    return widths
