"""Attention and rotary positions: compositions of matrix products and softmax, in the form that every unit computes."""

from __future__ import annotations

import math

import numpy as np

from ..dtypes import bool_, f32, i32
from ..errors import ConfigError, DTypeError, ShapeError
from ..ir.graph import Leaf, LeafKind
from ..ir.tensor import Tensor
from ..ir.types import as_axis, broadcast
from ._build import TensorLike, as_tensors, public, require_float, require_integers, same_dtype
from .arithmetic import add, mul, sub
from .compare import greater, not_equal
from .linalg import matmul
from .logical import logical_and
from .reduce import max
from .select import cast, in_f32, where
from .shape import broadcast_to, expand_dims, reshape, transpose
from .slicing import concat, slice_axis
from .softmax import softmax
from .trigonometry import cos, sin


@public
def scaled_dot_product_attention(
    query: TensorLike, key: TensorLike, value: TensorLike, mask: TensorLike | None = None, causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """softmax(query key' scale) value over the last two axes (Vaswani et al. 2017, arXiv:1706.03762, eq. 1).

    query [..., L, E], key [..., S, E], value [..., S, V]; `scale` is 1 / sqrt(E) by default. A `mask` of bool
    says which keys a query sees, one of floats is added to the scores, and -inf in it hides a key; it broadcasts to
    [..., L, S]. `causal` hides key j from query i < j. A hidden key has no weight, however low the other scores are.
    A query that sees no key gets zeros, with a gradient of zero. Scores and weights of f16 are in f32.
    """
    q, k, v = as_tensors("attention", query, key, value)
    require_float("attention", q.type, k.type, v.type)
    same_dtype("attention", q.type, k.type, v.type)
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError("attention", f"expected tensors of rank 2 or more, got {q.type}, {k.type} and {v.type}")
    if not q.shape[-1] or (scale is not None and not math.isfinite(scale)):
        raise ConfigError("attention scale", f"expected a finite number for {q.type}, got {scale!r}")
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    return _attended(q, k, v, *_parts(q, mask), causal, factor)


def _parts(query: Tensor, mask: TensorLike | None) -> tuple[Tensor | None, Tensor | None]:
    """What a mask adds to the scores, and which keys it shows; None stands for zeros and for all."""
    given = None if mask is None else _mask(query, mask)
    if given is None or given.dtype is bool_:
        return None, given
    if _is_finite(given):
        return given, None
    shown = not_equal(given, -math.inf)
    return where(shown, given, 0.0), shown


def _mask(query: Tensor, mask: TensorLike) -> Tensor:
    """The mask as a tensor of rank 1 or more."""
    if not isinstance(mask, Tensor) and not np.ndim(mask):
        mask = np.full(1, mask, np.bool_ if np.asarray(mask).dtype.kind == "b" else query.dtype.numpy)
    given = query.graph.as_tensor(mask, query.dtype)
    if given.dtype is not bool_ and given.dtype is not query.dtype:
        raise DTypeError("attention mask", f"expected bool or {query.dtype}, got {given.type}")
    return given if given.ndim else reshape(given, (1,))


def _is_finite(x: Tensor) -> bool:
    """Whether x is a constant without -inf."""
    leaf = x.producer
    return isinstance(leaf, Leaf) and leaf.kind is LeafKind.CONSTANT and not np.isneginf(leaf.value).any()


@in_f32  # scores may leave the range of f16 where the weights that they give are plain
def _attended(
    q: Tensor, k: Tensor, v: Tensor, added: Tensor | None, shown: Tensor | None, causal: bool, factor: float
) -> Tensor:
    scores = matmul(mul(q, factor), k, transpose_y=True)
    for mask in (added, shown):
        if mask is not None and broadcast("attention mask", (mask.shape, scores.shape)) != scores.shape:
            raise ShapeError("attention mask", f"expected a shape that broadcasts to {scores.shape}, got {mask.shape}")
    if added is not None:
        scores = add(scores, added)
    before = scores.graph.constant(np.tri(*scores.shape[-2:], dtype=np.bool_)) if causal else None
    if shown is None:
        if before is not None:  # each query sees at least the first key, so that no row is -inf alone
            scores = where(before, scores, -math.inf)
        return matmul(softmax(scores), v)
    seen = shown if before is None else logical_and(shown, before)
    # -inf is below every score, but a row of it has no softmax: where a query sees no key, zeros take its place.
    some = greater(max(cast(seen, f32), -1, keepdims=True), 0.0)
    weights = softmax(where(seen, scores, where(some, -math.inf, 0.0)))
    return matmul(where(seen, weights, 0.0), v)


@public
def split_heads(x: TensorLike, heads: int) -> Tensor:
    """[N, L, heads * E] as [N, heads, L, E]."""
    (tensor,) = as_tensors("split_heads", x)
    if tensor.ndim != 3 or heads < 1 or tensor.shape[2] % heads:
        raise ShapeError("split_heads", f"expected [N, L, {heads} * E], got {tensor.type}")
    n, length, width = tensor.shape
    return transpose(reshape(tensor, (n, length, heads, width // heads)), (0, 2, 1, 3))


@public
def merge_heads(x: TensorLike) -> Tensor:
    """[N, heads, L, E] as [N, L, heads * E]: the inverse of `split_heads`."""
    (tensor,) = as_tensors("merge_heads", x)
    if tensor.ndim != 4:
        raise ShapeError("merge_heads", f"expected [N, heads, L, E], got {tensor.type}")
    n, heads, length, width = tensor.shape
    return reshape(transpose(tensor, (0, 2, 1, 3)), (n, length, heads * width))


@public
def multi_head_attention(
    query: TensorLike, key: TensorLike, value: TensorLike, heads: int, mask: TensorLike | None = None,
    causal: bool = False, scale: float | None = None, kv_heads: int | None = None,
) -> Tensor:
    """Attention of projected query [N, L, heads * E], key and value [N, S, kv_heads * E], head by head.

    With fewer `kv_heads`, each serves heads / kv_heads neighbouring query heads (Ainslie et al. 2023,
    arXiv:2305.13245). The projections before and after are matrix products of the caller's.
    """
    groups = heads if kv_heads is None else kv_heads
    if groups < 1 or heads % groups:
        raise ConfigError("attention heads", f"{heads} heads do not share {groups} key and value heads evenly")
    q, k, v = split_heads(query, heads), split_heads(key, groups), split_heads(value, groups)
    if groups != heads:
        k, v = _repeated(k, heads // groups), _repeated(v, heads // groups)
    return merge_heads(scaled_dot_product_attention(q, k, v, mask, causal, scale))


def _repeated(x: Tensor, times: int) -> Tensor:
    n, heads, length, width = x.shape
    wide = broadcast_to(expand_dims(x, 2), (n, heads, times, length, width))
    return reshape(wide, (n, heads * times, length, width))


@public
def rotary_embedding(
    x: TensorLike, positions: TensorLike | None = None, base: float = 10000.0, interleaved: bool = False, axis: int = -2
) -> Tensor:
    """x [..., L, E] with each pair of features turned by its position times base^(-2i/E).

    Su et al. 2021, arXiv:2104.09864, eq. 34. Feature i is paired with i + E/2, or with its neighbour when
    `interleaved`. `positions` (i32, of shape [L], or one that broadcasts to x without its last axis) is
    0, 1, ... along `axis` by default.
    """
    (tensor,) = as_tensors("rotary_embedding", x)
    require_float("rotary_embedding", tensor.type)
    if tensor.ndim < 2 or tensor.shape[-1] % 2 or tensor.shape[-1] == 0:
        raise ShapeError("rotary_embedding", f"expected [..., L, E] with an even E, got {tensor.type}")
    at = as_axis(axis, tensor.ndim, "rotary_embedding")
    half = tensor.shape[-1] // 2
    frequencies = (base ** (-np.arange(half) / half)).astype(np.float64)
    cosine, sine = _angles(tensor, positions, at, frequencies)
    if interleaved:
        pairs = reshape(tensor, (*tensor.shape[:-1], half, 2))
        first, second = pairs[..., 0], pairs[..., 1]
    else:
        first, second = slice_axis(tensor, -1, 0, half), slice_axis(tensor, -1, half, 2 * half)
    turned = sub(mul(first, cosine), mul(second, sine)), add(mul(second, cosine), mul(first, sine))
    if not interleaved:
        return concat(turned, -1)
    return reshape(concat([expand_dims(part, -1) for part in turned], -1), tensor.shape)


def _angles(x: Tensor, positions: TensorLike | None, axis: int, frequencies: np.ndarray) -> tuple[Tensor, Tensor]:
    """Cosine and sine of each angle, shaped to broadcast against half of x."""
    if positions is None:
        angles = np.arange(x.shape[axis])[:, None] * frequencies
        wide = angles.reshape(x.shape[axis], *(1,) * (x.ndim - axis - 2), len(frequencies))
        constants = [x.graph.constant(f(wide).astype(x.dtype.numpy)) for f in (np.cos, np.sin)]
        return constants[0], constants[1]
    at = x.graph.as_tensor(positions, i32)
    require_integers("rotary_embedding positions", at.type)
    if at.shape == (x.shape[axis],):
        at = reshape(at, (x.shape[axis],) + (1,) * (x.ndim - axis - 2))
    turns = mul(expand_dims(cast(at, f32), -1), x.graph.constant(frequencies.astype(np.float32)))
    return cast(cos(turns), x.dtype), cast(sin(turns), x.dtype)
