"""Losses as compositions: distances, classification, divergences, similarity.

Of f16 the whole formula runs in f32 and its result is rounded once: a square, or a sum over classes or over a batch,
may leave the range of f16 where the loss stays in it.

`reduction` is "mean", "sum" or "none". A mean over nothing (every label ignored) is 0, with a gradient of 0.
"""

from __future__ import annotations

import math

from ..dtypes import f32, i32
from ..errors import ConfigError, DTypeError, ShapeError
from ..ir.graph import Leaf, LeafKind
from ..ir.tensor import Tensor
from ..ir.types import as_axis, broadcast
from ._build import TensorLike, as_tensors, graph_of, public, require_float, same_dtype
from .activation import relu, softplus
from .arithmetic import add, div, maximum, mul, sub
from .compare import equal, less_equal, not_equal
from .elementwise import abs, exp, log, neg, square
from .index import gather, one_hot
from .reduce import mean, sum
from .select import cast, in_f32, where
from .shape import reshape
from .softmax import log_softmax
from .softmax_cross_entropy import softmax_cross_entropy_with_logits
from .statistics import norm


def _reduced(subject: str, each: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return each
    if reduction not in ("mean", "sum"):
        raise ConfigError(f"{subject} reduction", f"expected 'mean', 'sum' or 'none', got {reduction!r}")
    return mean(each) if reduction == "mean" else sum(each)


def _pair(subject: str, x: TensorLike, target: TensorLike) -> tuple[Tensor, Tensor]:
    """Both operands, of one float dtype and one shape: broadcasting a loss by mistake is a common fault."""
    a, b = as_tensors(subject, x, target)
    require_float(subject, a.type)
    if a.type != b.type:
        raise ShapeError(subject, f"expected a target of {a.type}, got {b.type}")
    return a, b


# Distances


@public
def mse_loss(prediction: TensorLike, target: TensorLike, reduction: str = "mean") -> Tensor:
    """(prediction - target)^2; both of one shape."""
    return _mse(*_pair("mse_loss", prediction, target), reduction)


@in_f32
def _mse(x: Tensor, target: Tensor, reduction: str) -> Tensor:
    return _reduced("mse_loss", square(sub(x, target)), reduction)


@public
def l1_loss(prediction: TensorLike, target: TensorLike, reduction: str = "mean") -> Tensor:
    """|prediction - target|; both of one shape."""
    return _l1(*_pair("l1_loss", prediction, target), reduction)


@in_f32
def _l1(x: Tensor, target: Tensor, reduction: str) -> Tensor:
    return _reduced("l1_loss", abs(sub(x, target)), reduction)


@public
def huber_loss(prediction: TensorLike, target: TensorLike, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    """d^2 / 2 for distances d up to delta, delta (d - delta / 2) beyond (Huber 1964); both of one shape."""
    if not delta > 0 or not math.isfinite(delta):
        raise ConfigError("huber_loss delta", f"expected a number above 0, got {delta!r}")
    return _huber(*_pair("huber_loss", prediction, target), delta, reduction)


@in_f32
def _huber(x: Tensor, target: Tensor, delta: float, reduction: str) -> Tensor:
    distance = abs(sub(x, target))
    near = less_equal(distance, delta)
    inside = 0.5 * square(where(near, distance, 0.0))
    return _reduced("huber_loss", where(near, inside, delta * (distance - 0.5 * delta)), reduction)


# Classification


@public
def cross_entropy(
    logits: TensorLike, labels: TensorLike, weight: TensorLike | None = None, ignore_index: int | None = None,
    label_smoothing: float = 0.0, axis: int = -1, reduction: str = "mean",
) -> Tensor:
    """-log softmax(logits) at the labels: class indices (i32, logits' shape without `axis`) or probabilities.

    `weight` has one number a class; the mean of indexed labels is then weighted by that of each label.
    Labels equal to `ignore_index` count for nothing. With `label_smoothing` e the target is
    (1 - e) label + e / classes (Szegedy et al. 2016, arXiv:1512.00567).
    """
    subject = "cross_entropy"
    graph = graph_of(subject, logits, labels)
    scores = graph.as_tensor(logits, f32)
    target = graph.as_tensor(labels, scores.dtype)
    require_float(subject, scores.type)
    if not 0 <= label_smoothing <= 1:
        raise ConfigError(f"{subject} label_smoothing", f"expected a number from 0 to 1, got {label_smoothing!r}")
    at = as_axis(axis, scores.ndim, subject)
    weights = _class_weights(subject, scores, weight, at)
    if target.dtype.is_float:
        if ignore_index is not None:
            raise ConfigError(f"{subject} ignore_index", "it is for labels that are class indices")
        if target.type != scores.type:
            raise ShapeError(subject, f"expected probabilities like {scores.type}, got {target.type}")
        return _soft(subject, scores, target, weights, label_smoothing, at, reduction)
    _check_labels(subject, target, scores.shape[at], ignore_index)
    return _indexed(subject, scores, target, weights, ignore_index, label_smoothing, at, reduction)


@in_f32
def _indexed(
    subject: str, scores: Tensor, target: Tensor, weights: Tensor | None, ignore_index: int | None, smoothing: float,
    axis: int, reduction: str,
) -> Tensor:
    kept = None if ignore_index is None else not_equal(target, ignore_index)
    safe = target if kept is None else where(kept, target, 0)
    losses = softmax_cross_entropy_with_logits(scores, safe, axis)
    shares = None if weights is None else gather(reshape(weights, (scores.shape[axis],)), safe, 0)
    if shares is not None:
        losses = mul(shares, losses)
    if smoothing:
        spread = _spread(log_softmax(scores, axis), weights, axis)
        losses = add((1 - smoothing) * losses, (smoothing / scores.shape[axis]) * spread)
    return _weighted(subject, losses, shares, kept, reduction)


def _check_labels(subject: str, labels: Tensor, classes: int, ignore_index: int | None) -> None:
    """Raises ShapeError for a constant label that is no class; those that are fed are checked before each run."""
    leaf = labels.producer
    if isinstance(leaf, Leaf) and leaf.kind is LeafKind.CONSTANT and labels.dtype is i32:
        wrong = leaf.value[((leaf.value < 0) | (leaf.value >= classes)) & (leaf.value != ignore_index)]
        if wrong.size:
            raise ShapeError(subject, f"expected labels from 0 to {classes - 1}, got {wrong[0]}")


def _class_weights(subject: str, scores: Tensor, weight: TensorLike | None, axis: int) -> Tensor | None:
    """One number a class, shaped to broadcast against the scores."""
    if weight is None:
        return None
    entries = scores.graph.as_tensor(weight, scores.dtype)
    if entries.type != scores.type.with_shape((scores.shape[axis],)):
        raise ShapeError(f"{subject} weight", f"expected one for each class of {scores.type}, got {entries.type}")
    return reshape(entries, (-1,) + (1,) * (scores.ndim - axis - 1))


def _spread(logs: Tensor, weights: Tensor | None, axis: int) -> Tensor:
    """The sum of -log probabilities over the classes."""
    return neg(sum(logs if weights is None else mul(weights, logs), axis))


@in_f32
def _soft(
    subject: str, scores: Tensor, target: Tensor, weights: Tensor | None, smoothing: float, axis: int, reduction: str
) -> Tensor:
    if smoothing:
        target = (1 - smoothing) * target + smoothing / scores.shape[axis]
    return _reduced(subject, _spread(mul(target, log_softmax(scores, axis)), weights, axis), reduction)


def _weighted(
    subject: str, losses: Tensor, shares: Tensor | None, kept: Tensor | None, reduction: str
) -> Tensor:
    """The reduction in which ignored entries count for nothing and each other one as much as its share."""
    if kept is not None:
        losses = where(kept, losses, 0.0)
    if reduction != "mean" or (kept is None and shares is None):
        return _reduced(subject, losses, reduction)
    if shares is None:
        assert kept is not None
        shares = cast(kept, f32)
    elif kept is not None:
        shares = where(kept, shares, 0.0)
    total = sum(shares)
    return div(sum(losses), where(equal(total, 0.0), 1.0, total))


@public
def nll_loss(
    log_probabilities: TensorLike, labels: TensorLike, weight: TensorLike | None = None,
    ignore_index: int | None = None, axis: int = -1, reduction: str = "mean",
) -> Tensor:
    """-log_probabilities at the labels (class indices, i32); arguments as for `cross_entropy`."""
    subject = "nll_loss"
    graph = graph_of(subject, log_probabilities, labels)
    logs, target = graph.as_tensor(log_probabilities, f32), graph.as_tensor(labels, i32)
    require_float(subject, logs.type)
    at = as_axis(axis, logs.ndim, subject)
    if target.dtype is not i32:
        raise DTypeError(subject, f"expected labels of i32, got {target.type}")
    if target.shape != (*logs.shape[:at], *logs.shape[at + 1 :]):
        raise ShapeError(subject, f"expected labels for {logs.type} without axis {at}, got {target.type}")
    _check_labels(subject, target, logs.shape[at], ignore_index)
    return _nll(logs, target, _class_weights(subject, logs, weight, at), ignore_index, at, reduction)


@in_f32
def _nll(
    logs: Tensor, target: Tensor, weights: Tensor | None, ignore_index: int | None, axis: int, reduction: str
) -> Tensor:
    kept = None if ignore_index is None else not_equal(target, ignore_index)
    safe = target if kept is None else where(kept, target, 0)
    chosen = equal(one_hot(safe, logs.shape[axis], axis, i32), 1)  # a choice, since 0 * -inf would be NaN
    losses = neg(sum(where(chosen, logs, 0.0), axis))
    shares = None if weights is None else gather(reshape(weights, (logs.shape[axis],)), safe, 0)
    return _weighted("nll_loss", losses if shares is None else mul(shares, losses), shares, kept, reduction)


@public
def bce_with_logits(
    logits: TensorLike, target: TensorLike, pos_weight: TensorLike | None = None, reduction: str = "mean"
) -> Tensor:
    """-(target log p + (1 - target) log(1 - p)) with p = sigmoid(logits), without overflow; both of one shape.

    `pos_weight` multiplies the first term and broadcasts.
    """
    x, t = _pair("bce_with_logits", logits, target)
    weight = None if pos_weight is None else x.graph.as_tensor(pos_weight, x.dtype)
    if weight is not None:
        same_dtype("bce_with_logits pos_weight", x.type, weight.type)
        if broadcast("bce_with_logits pos_weight", (x.shape, weight.shape)) != x.shape:
            raise ShapeError("bce_with_logits pos_weight", f"expected a shape that broadcasts to {x.shape}")
    return _bce(x, t, weight, reduction)


@in_f32
def _bce(x: Tensor, t: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    # -log p = softplus(-x) and -log(1 - p) = softplus(x): nothing cancels, and no kink is put in.
    positive = mul(t, softplus(neg(x)))
    if weight is not None:
        positive = mul(positive, weight)
    return _reduced("bce_with_logits", add(mul(1.0 - t, softplus(x)), positive), reduction)


@public
def kl_div(
    log_prediction: TensorLike, target: TensorLike, log_target: bool = False, reduction: str = "mean"
) -> Tensor:
    """target (log target - log_prediction), where target is a probability or, with `log_target`, its logarithm.

    A target of 0 contributes 0. `reduction="batchmean"` divides the sum by the size of axis 0.
    """
    return _kl(*_pair("kl_div", log_prediction, target), log_target, reduction)


@in_f32
def _kl(logs: Tensor, t: Tensor, log_target: bool, reduction: str) -> Tensor:
    if log_target:
        each = mul(exp(t), sub(t, logs))
    else:
        positive = not_equal(t, 0.0)
        each = where(positive, mul(t, sub(log(where(positive, t, 1.0)), logs)), 0.0)
    if reduction == "batchmean":
        return _reduced("kl_div", each, "sum") * (1.0 / max(each.shape[0] if each.ndim else 1, 1))
    return _reduced("kl_div", each, reduction)


# Similarity


@public
def cosine_similarity(x: TensorLike, y: TensorLike, axis: int = -1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between x and y along an axis; each length counts as at least eps."""
    a, b = as_tensors("cosine_similarity", x, y)
    require_float("cosine_similarity", a.type, b.type)
    return _cosine(a, b, axis, eps)


@in_f32
def _cosine(x: Tensor, y: Tensor, axis: int, eps: float) -> Tensor:
    lengths = [maximum(norm(t, 2, axis, keepdims=True), eps) for t in (x, y)]
    return sum(mul(div(x, lengths[0]), div(y, lengths[1])), axis)


@public
def cosine_embedding_loss(
    x: TensorLike, y: TensorLike, target: TensorLike, margin: float = 0.0, axis: int = -1, reduction: str = "mean"
) -> Tensor:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1."""
    subject = "cosine_embedding_loss"
    a, b = as_tensors(subject, x, y)
    require_float(subject, a.type, b.type)
    wanted = a.graph.as_tensor(target, a.dtype)
    return _cosine_embedding(a, b, equal(wanted, 1 if wanted.dtype is i32 else 1.0), margin, axis, reduction)


@in_f32
def _cosine_embedding(x: Tensor, y: Tensor, alike: Tensor, margin: float, axis: int, reduction: str) -> Tensor:
    cosine = _cosine(x, y, axis, 1e-8)
    if alike.shape != cosine.shape:
        raise ShapeError("cosine_embedding_loss", f"expected a target of shape {cosine.shape}, got {alike.shape}")
    return _reduced("cosine_embedding_loss", where(alike, 1.0 - cosine, relu(cosine - margin)), reduction)


@public
def triplet_loss(
    anchor: TensorLike, positive: TensorLike, negative: TensorLike, margin: float = 1.0, axis: int = -1,
    eps: float = 1e-6, reduction: str = "mean",
) -> Tensor:
    """max(0, |anchor - positive| - |anchor - negative| + margin), with eps added to each difference as in PyTorch."""
    a, p = _pair("triplet_loss", anchor, positive)
    _, n = _pair("triplet_loss", a, negative)
    return _triplet(a, p, n, margin, axis, eps, reduction)


@in_f32
def _triplet(a: Tensor, p: Tensor, n: Tensor, margin: float, axis: int, eps: float, reduction: str) -> Tensor:
    near, far = norm(sub(a, p) + eps, 2, axis), norm(sub(a, n) + eps, 2, axis)
    return _reduced("triplet_loss", relu(sub(near, far) + margin), reduction)
