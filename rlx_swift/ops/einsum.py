"""Einstein sums: any equation as transposes, sums, reshapes and matrix products."""

from __future__ import annotations

import math
from collections import Counter

from ..errors import ConfigError, ShapeError
from ..ir.tensor import Tensor
from ._build import TensorLike, as_tensors, public, require_float
from .arithmetic import mul
from .linalg import matmul
from .reduce import sum
from .shape import broadcast_to, reshape, transpose
from .slicing import slice_axis

Labelled = tuple[Tensor, list[str]]


@public
def einsum(equation: str, *operands: TensorLike) -> Tensor:
    """The Einstein sum, as `numpy.einsum` with an equation of letters and `...`; floats only.

    Operands are contracted from left to right, each pair as one matrix product.
    """
    if not isinstance(equation, str):
        raise ConfigError("einsum", f"expected an equation first, got {type(equation).__name__}")
    tensors = as_tensors("einsum", *operands)
    require_float("einsum", *[t.type for t in tensors])
    inputs, output = _parse(equation, tensors)
    remaining = [_own(tensor, labels) for tensor, labels in zip(tensors, inputs, strict=True)]
    _check_sizes(equation, remaining)
    current = remaining.pop(0)
    while remaining:
        later = {*output}.union(*[labels for _, labels in remaining[1:]])
        current = _contract(current, remaining.pop(0), later)
    tensor, labels = _summed(*current, {*output})
    return transpose(tensor, [labels.index(label) for label in output])


@public
def dot(x: TensorLike, y: TensorLike) -> Tensor:
    """As `numpy.dot`: the sum over the last axis of x and the last but one of y (the last one of rank 1)."""
    a, b = as_tensors("dot", x, y)
    if a.ndim == 0 or b.ndim == 0:
        return mul(a, b)
    if b.ndim <= 2:
        return matmul(a, b)
    inner = b.ndim - 2
    last = transpose(b, [inner, *[axis for axis in range(b.ndim) if axis != inner]])
    rest = last.shape[1:]
    if a.shape[-1] != last.shape[0]:
        raise ShapeError("dot", f"expected equal inner sizes, got {a.type} and {b.type}")
    out = matmul(a, reshape(last, (last.shape[0], math.prod(rest))))
    return reshape(out, (*a.shape[:-1], *rest))


@public
def outer(x: TensorLike, y: TensorLike) -> Tensor:
    """All products of an element of x with one of y, both flattened: [x.size, y.size]."""
    a, b = as_tensors("outer", x, y)
    return mul(reshape(a, (a.size, 1)), reshape(b, (1, b.size)))


# Parsing. The axes of `...` get the labels "0", "1", ... counted from the last one.


def _parse(equation: str, tensors: tuple[Tensor, ...]) -> tuple[list[list[str]], list[str]]:
    subject = f"einsum {equation!r}"
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        raise ShapeError(subject, f"it has {len(terms)} operands, {len(tensors)} were given")
    inputs = [_labels(subject, term, t.ndim, str(t.type)) for term, t in zip(terms, tensors, strict=True)]
    shared = sorted({label for labels in inputs for label in labels if label.isdigit()}, key=int, reverse=True)
    if arrow:
        rank = len(right.replace("...", "")) + (len(shared) if "..." in right else 0)
        output = _labels(subject, right, rank, "the result")
    else:
        counts = Counter(label for labels in inputs for label in labels)
        output = shared + sorted(label for label, count in counts.items() if count == 1 and not label.isdigit())
    unknown = {*output}.difference(*inputs)
    if len({*output}) != len(output) or unknown:
        raise ShapeError(subject, f"expected each label of the result once, and among the operands, got {right!r}")
    return inputs, output


def _labels(subject: str, term: str, rank: int, what: str) -> list[str]:
    before, dots, after = term.partition("...")
    if not (before + after).isascii() or not ((before + after).isalpha() or before + after == ""):
        raise ShapeError(subject, f"expected letters and ..., got {term!r}")
    hidden = rank - len(before) - len(after)
    if hidden < 0 or (hidden and not dots):
        raise ShapeError(subject, f"{term!r} does not fit {what}")
    return [*before, *[str(i) for i in reversed(range(hidden))], *after]


# Contraction


def _own(x: Tensor, labels: list[str]) -> Labelled:
    """The tensor with each label once: a repeated one takes the diagonal."""
    for label in [label for label, count in Counter(labels).items() if count > 1]:
        while labels.count(label) > 1:
            i, j = labels.index(label), len(labels) - 1 - labels[::-1].index(label)
            if x.shape[i] != x.shape[j]:
                raise ShapeError("einsum", f"the label {label!r} stands for {x.shape[i]} and {x.shape[j]} in {x.type}")
            rest = [axis for axis in range(x.ndim) if axis not in (i, j)]
            size, lead = x.shape[i], tuple(x.shape[axis] for axis in rest)
            flat = reshape(transpose(x, [*rest, i, j]), (*lead, size * size))
            x = slice_axis(flat, -1, 0, size * size, size + 1)
            labels = [*[labels[axis] for axis in rest], label]
    return x, labels


def _check_sizes(equation: str, operands: list[Labelled]) -> None:
    sizes: dict[str, int] = {}
    for tensor, labels in operands:
        for label, size in zip(labels, tensor.shape, strict=True):
            known = sizes.setdefault(label, size)
            if known != size and not (label.isdigit() and 1 in (known, size)):
                raise ShapeError(f"einsum {equation!r}", f"the label {label!r} stands for {known} and {size}")
            sizes[label] = max(known, size)
    for i, (tensor, labels) in enumerate(operands):  # axes of ... broadcast
        operands[i] = broadcast_to(tensor, [sizes[label] for label in labels]), labels


def _summed(x: Tensor, labels: list[str], needed: set[str]) -> Labelled:
    axes = [i for i, label in enumerate(labels) if label not in needed]
    return (sum(x, axes) if axes else x), [label for label in labels if label in needed]


def _contract(a: Labelled, b: Labelled, later: set[str]) -> Labelled:
    (x, xs), (y, ys) = _summed(*a, later | {*b[1]}), _summed(*b, later | {*a[1]})
    batch = [label for label in xs if label in ys and label in later]
    inner = [label for label in xs if label in ys and label not in later]
    left, right = [label for label in xs if label not in ys], [label for label in ys if label not in xs]
    size = dict(zip([*xs, *ys], [*x.shape, *y.shape], strict=True))

    def grouped(t: Tensor, labels: list[str], *groups: list[str]) -> Tensor:
        order = [labels.index(label) for group in groups for label in group]
        return reshape(transpose(t, order), [math.prod(size[label] for label in group) for group in groups])

    out = matmul(grouped(x, xs, batch, left, inner), grouped(y, ys, batch, inner, right))
    labels = [*batch, *left, *right]
    return reshape(out, [size[label] for label in labels]), labels
