"""Independent values for ops: SciPy, extended precision and plain loops; shares no code with rlx_swift.

`ORACLES[op](*arrays, attrs=attrs)` gives what an op's `eval` must give, from arrays of float64, int32 or bool.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

ORACLES: dict[str, Callable[..., Any]] = {}
Wide = np.longdouble


def oracle(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            assert name not in ORACLES, name
            ORACLES[name] = function
        return function

    return register


def elementwise(name: str, function: Callable[..., Any]) -> None:
    """A formula on extended precision, for integers on themselves."""

    def evaluate(*arrays: np.ndarray, attrs: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            return function(*[a.astype(Wide) if a.dtype.kind == "f" else a for a in arrays])

    ORACLES[name] = evaluate


def f64(function: Callable[..., Any]) -> Callable[..., Any]:
    """For functions that SciPy has in double precision only."""
    return lambda *arrays: function(*[a.astype(np.float64) for a in arrays])


# Elementwise

normal_cdf = f64(scipy.special.ndtr)


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x / 2 * (1 + np.tanh(np.sqrt(Wide(2) / Wide(np.pi)) * (x + Wide(0.044715) * x * x * x)))


for _name, _function in {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "maximum": lambda x, y: np.where(np.isnan(x) | (x > y), x, y),
    "minimum": lambda x, y: np.where(np.isnan(x) | (x < y), x, y),
    "pow": f64(np.float_power),
    "neg": lambda x: 0 - x if x.dtype.kind == "i" else -x,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh,
    "sigmoid": f64(scipy.special.expit),
    "relu": lambda x: np.where(np.isnan(x) | (x > 0), x, 0 * np.abs(np.where(np.isinf(x), 0, x))),
    "erf": f64(scipy.special.erf),
    "gelu": f64(lambda x: x * normal_cdf(x)),
    "gelu_tanh": gelu_tanh,
    "silu": f64(lambda x: x * scipy.special.expit(x)),
    "abs": lambda x: np.where(x < 0, -x, x + 0 if x.dtype.kind == "i" else np.copysign(x, 1)),
    "sign": lambda x: np.where(np.isnan(x), x, np.where(x > 0, 1, np.where(x < 0, -1, 0))),
    "square": lambda x: x * x,
    "floor": lambda x: np.trunc(x) - (np.trunc(x) > x),
    "ceil": np.ceil,
    "round": np.round,
    "exp2": lambda x: np.exp(x * np.log(Wide(2))),
    "expm1": f64(scipy.special.expm1),
    "log1p": f64(scipy.special.log1p),
    "reciprocal": lambda x: 1 / x,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": lambda x: np.arctan2(x, np.sqrt((1 - x) * (1 + x))),
    "acos": lambda x: np.arctan2(np.sqrt((1 - x) * (1 + x)), x),
    "atan": lambda x: np.arctan2(x, 1),
    "sinh": np.sinh,
    "cosh": np.cosh,
    "atanh": lambda x: (np.log1p(x) - np.log1p(-x)) / 2,
    "relu6": lambda x: np.where(np.isnan(x), x, np.where(x > 0, np.minimum(x, 6), 0)),
    "softplus": lambda x: np.logaddexp(x, 0),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "hardsigmoid": lambda x: np.clip(x / 6 + Wide(0.5), 0, 1),
    "hardswish": lambda x: x * np.clip(x / 6 + Wide(0.5), 0, 1),
    "logical_and": lambda x, y: x & y,
    "logical_or": lambda x, y: x | y,
    "logical_xor": lambda x, y: x ^ y,
    "logical_not": lambda x: ~x,
    "identity": lambda x: x,
    "stop_gradient": lambda x: x,
    "greater": lambda x, y: ~((x <= y) | np.isnan(x) | np.isnan(y)) if x.dtype.kind == "f" else ~(x <= y),
    "greater_equal": lambda x, y: (x > y) | (x == y),
    "less": lambda x, y: y > x,
    "less_equal": lambda x, y: (y > x) | (x == y),
    "equal": lambda x, y: (x <= y) & (y <= x),
    "not_equal": lambda x, y: ~((x <= y) & (y <= x)),
    "where": lambda c, x, y: np.choose(c.astype(int), [y, x]),
}.items():
    elementwise(_name, _function)


@oracle("leaky_relu")
def leaky_relu(x: np.ndarray, attrs: Any) -> np.ndarray:
    return np.where(x <= 0, attrs.alpha * x, x)


@oracle("elu")
def elu(x: np.ndarray, attrs: Any) -> np.ndarray:
    return np.where(x <= 0, attrs.alpha * scipy.special.expm1(x), x)


@oracle("clip")
def clip(x: np.ndarray, attrs: Any) -> np.ndarray:
    if x.dtype.kind == "f":
        return np.where(np.isnan(x), x, np.fmin(np.fmax(x, attrs.low), attrs.high))
    return np.array([min(max(v, attrs.low), attrs.high) for v in x.ravel()]).reshape(x.shape)


@oracle("mod")
def mod(x: np.ndarray, y: np.ndarray, attrs: Any) -> np.ndarray:
    pairs = np.broadcast_arrays(x, y)
    values = [a % b if b else math.nan for a, b in zip(*[p.ravel().tolist() for p in pairs], strict=True)]
    return np.array(values).reshape(pairs[0].shape)


@oracle("dropout")
def dropout(x: np.ndarray, numbers: np.ndarray, attrs: Any) -> np.ndarray:
    return np.array([
        v / (1 - attrs.rate) if u >= attrs.rate else 0.0 for v, u in zip(x.ravel(), numbers.ravel(), strict=True)
    ]).reshape(x.shape)


@oracle("floor_div")
def floor_div(x: np.ndarray, y: np.ndarray, attrs: Any) -> np.ndarray:
    return np.vectorize(lambda a, b: int(a) // int(b))(*np.broadcast_arrays(x, y))


@oracle("cast")
def cast(x: np.ndarray, attrs: Any) -> np.ndarray:
    if attrs.dtype.name == "i32":
        return np.array([_to_i32(v) for v in x.ravel().tolist()], np.int32).reshape(x.shape)
    if attrs.dtype.name == "bool":
        return np.array([bool(v) for v in x.ravel().tolist()]).reshape(x.shape)
    return x.astype(np.float64)


def _to_i32(value: float) -> int:
    if math.isnan(value):
        return 0
    return int(min(max(value, -(2**31)), 2**31 - 1))


# Reductions and norms


def reduction(name: str, formula: Callable[[list[Any]], Any]) -> None:
    """`formula` of the list of reduced elements, for each result."""

    def evaluate(x: np.ndarray, attrs: Any) -> np.ndarray:
        kept = [axis for axis in range(x.ndim) if axis not in attrs.axes]
        rows = np.transpose(x, [*kept, *attrs.axes]).reshape([x.shape[a] for a in kept] + [-1])
        out = np.empty(rows.shape[:-1], np.float64 if x.dtype.kind == "f" else x.dtype)
        for at in np.ndindex(out.shape):
            out[at] = formula(rows[at].tolist())
        return np.expand_dims(out, attrs.axes) if attrs.keepdims else out

    ORACLES[name] = evaluate


def exact_sum(values: list[Any]) -> Any:
    if all(isinstance(v, int) for v in values) or not all(map(math.isfinite, values)):
        return sum(values)
    return math.fsum(values)


def log_sum_exp(values: list[float]) -> float:
    if any(map(math.isnan, values)):
        return math.nan
    top = max(values)
    return top if math.isinf(top) else top + math.log(math.fsum(math.exp(v - top) for v in values))


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def extreme(better: Callable[[Any, Any], bool]) -> Callable[[list[Any]], Any]:
    def formula(values: list[Any]) -> Any:
        best = values[0]
        for v in values[1:]:
            if not is_nan(best) and (is_nan(v) or better(v, best)):
                best = v
        return best

    return formula


reduction("sum", exact_sum)
reduction("prod", math.prod)
reduction("mean", lambda values: exact_sum(values) / len(values))
reduction("max", extreme(lambda v, best: v > best))
reduction("min", extreme(lambda v, best: v < best))
reduction("logsumexp", log_sum_exp)


@oracle("softmax")
def softmax(x: np.ndarray, attrs: Any) -> np.ndarray:
    return scipy.special.softmax(x.astype(Wide), axis=attrs.axis)


@oracle("log_softmax")
def log_softmax(x: np.ndarray, attrs: Any) -> np.ndarray:
    return scipy.special.log_softmax(x.astype(Wide), axis=attrs.axis)


def _normalised(x: np.ndarray, axes: tuple[int, ...], eps: float, centre: bool) -> np.ndarray:
    """Each row of the axes on its own, in plain loops."""
    out = np.empty(x.shape)
    kept = [a for a in range(x.ndim) if a not in axes]
    for at in np.ndindex(*[x.shape[a] for a in kept]):
        place = [slice(None)] * x.ndim
        for a, i in zip(kept, at, strict=True):
            place[a] = i
        row = x[tuple(place)]
        values = row.ravel().tolist()
        middle = math.fsum(values) / len(values) if centre else 0.0
        power = math.fsum((v - middle) ** 2 for v in values) / len(values)
        out[tuple(place)] = (row - middle) / math.sqrt(power + eps)
    return out


@oracle("layer_norm")
def layer_norm(x: np.ndarray, attrs: Any) -> np.ndarray:
    return _normalised(x, attrs.axes, attrs.eps, centre=True)


@oracle("rms_norm")
def rms_norm(x: np.ndarray, attrs: Any) -> np.ndarray:
    return _normalised(x, attrs.axes, attrs.eps, centre=False)


@oracle("batch_norm")
def batch_norm(x: np.ndarray, average: np.ndarray, variance: np.ndarray, attrs: Any) -> tuple[np.ndarray, ...]:
    axes = tuple(a for a in range(x.ndim) if a != attrs.axis)
    out = _normalised(x, axes, attrs.eps, centre=True)
    channels = np.moveaxis(x, attrs.axis, 0).reshape(x.shape[attrs.axis], -1)
    keep, take = 1 - attrs.momentum, attrs.momentum
    return out, keep * average + take * channels.mean(1), keep * variance + take * channels.var(1, ddof=1)


@oracle("clamp_labels")
def clamp_labels(labels: np.ndarray, attrs: Any) -> np.ndarray:
    return np.minimum(np.maximum(labels, 0), attrs.count - 1)


@oracle("softmax_cross_entropy")
def softmax_cross_entropy(logits: np.ndarray, labels: np.ndarray, attrs: Any) -> np.ndarray:
    rows = np.moveaxis(logits, attrs.axis, -1)
    out = np.empty(rows.shape[:-1])
    for at in np.ndindex(out.shape):
        label = min(max(int(labels[at]), 0), rows.shape[-1] - 1)
        out[at] = log_sum_exp(rows[at].tolist()) - rows[at][label]
    return out


def first_best(better: Callable[[Any, Any], bool]) -> Callable[..., np.ndarray]:
    def evaluate(x: np.ndarray, attrs: Any) -> np.ndarray:
        rows = np.moveaxis(x, attrs.axis, -1)
        out = np.zeros(rows.shape[:-1], int)
        for at in np.ndindex(out.shape):
            row = rows[at].tolist()
            out[at] = next(i for i, v in enumerate(row) if is_nan(v) or not any(better(w, v) or is_nan(w) for w in row))
        return np.expand_dims(out, attrs.axis) if attrs.keepdims else out

    return evaluate


ORACLES["argmax"] = ORACLES["mil_argmax"] = first_best(lambda w, v: w > v)
ORACLES["argmin"] = ORACLES["mil_argmin"] = first_best(lambda w, v: w < v)


@oracle("cumsum")
def cumsum(x: np.ndarray, attrs: Any) -> np.ndarray:
    out = np.zeros_like(x)
    for i in range(x.shape[attrs.axis]):
        span = slice(i, None) if attrs.reverse else slice(0, i + 1)
        part = np.moveaxis(x, attrs.axis, 0)[span]
        np.moveaxis(out, attrs.axis, 0)[i] = part.sum(0)
    return out


# Movement


def moved(name: str, source: Callable[..., np.ndarray]) -> None:
    """`source(positions, attrs)` moves an array of positions; the values then follow."""

    def evaluate(*arrays: np.ndarray, attrs: Any) -> np.ndarray:
        flat = np.concatenate([a.ravel() for a in arrays])
        starts = np.cumsum([0, *(a.size for a in arrays)])
        numbers = [start + np.arange(a.size).reshape(a.shape) for start, a in zip(starts, arrays, strict=False)]
        return flat[source(*numbers, attrs)]

    ORACLES[name] = evaluate


def transposed(x: np.ndarray, attrs: Any) -> np.ndarray:
    out = np.empty([x.shape[a] for a in attrs.perm], int)
    for at in np.ndindex(x.shape):
        out[tuple(at[a] for a in attrs.perm)] = x[at]
    return out


def sliced(x: np.ndarray, attrs: Any) -> np.ndarray:
    picks = [[s + i * d for i in range(n)] for s, n, d in zip(attrs.start, attrs.count, attrs.step, strict=True)]
    return x[np.ix_(*picks)] if picks else x


def tiled(x: np.ndarray, attrs: Any) -> np.ndarray:
    out = np.empty([n * r for n, r in zip(x.shape, attrs.reps, strict=True)], int)
    for at in np.ndindex(out.shape):
        out[at] = x[tuple(i % n for i, n in zip(at, x.shape, strict=True))]
    return out


moved("reshape", lambda x, attrs: np.array(x.ravel().tolist()).reshape(attrs.shape))
moved("expand_dims", lambda x, attrs: x.reshape(np.expand_dims(x, attrs.axes).shape))
moved("squeeze", lambda x, attrs: x.reshape([n for a, n in enumerate(x.shape) if a not in attrs.axes]))
moved("transpose", transposed)
moved("broadcast_to", lambda x, attrs: np.zeros(attrs.shape, int) + x)
moved("tile", tiled)
moved("slice", sliced)
moved("concat", lambda *args: np.concatenate(args[:-1], args[-1].axis))
moved("flip", lambda x, attrs: x[tuple(slice(None, None, -1 if a in attrs.axes else 1) for a in range(x.ndim))])


@oracle("pad")
def pad(x: np.ndarray, attrs: Any) -> np.ndarray:
    out = np.full([n + a + b for n, (b, a) in zip(x.shape, attrs.widths, strict=True)], attrs.value)
    out[tuple(slice(b, b + n) for n, (b, _) in zip(x.shape, attrs.widths, strict=True))] = x
    return out


@oracle("full")
def full(attrs: Any) -> np.ndarray:
    return np.zeros(attrs.shape) + attrs.value


# Indices


@oracle("gather", "gather_clamped")
def gather(x: np.ndarray, ids: np.ndarray, attrs: Any) -> np.ndarray:
    rows = np.moveaxis(x, attrs.axis, 0)
    out = np.empty((*ids.shape, *rows.shape[1:]), x.dtype)
    for at in np.ndindex(ids.shape):
        out[at] = rows[min(max(int(ids[at]), 0), len(rows) - 1)]
    return np.moveaxis(out, range(ids.ndim), range(attrs.axis, attrs.axis + ids.ndim))


@oracle("scatter_add")
def scatter_add(updates: np.ndarray, ids: np.ndarray, attrs: Any) -> np.ndarray:
    front = np.moveaxis(updates, range(attrs.axis, attrs.axis + ids.ndim), range(ids.ndim))
    out = np.zeros((attrs.size, *front.shape[ids.ndim :]))
    for at in np.ndindex(ids.shape):
        out[min(max(int(ids[at]), 0), attrs.size - 1)] += front[at]
    return np.moveaxis(out, 0, attrs.axis)


@oracle("scatter_add_clamped")
def scatter_add_clamped(data: np.ndarray, ids: np.ndarray, updates: np.ndarray, attrs: Any) -> np.ndarray:
    out = np.moveaxis(data.copy(), attrs.axis, 0)
    for i, update in zip(ids, np.moveaxis(updates, attrs.axis, 0), strict=True):
        out[i] = out[i] + update
    return np.moveaxis(out, 0, attrs.axis)


@oracle("one_hot")
def one_hot(ids: np.ndarray, attrs: Any) -> np.ndarray:
    out = np.zeros((*ids.shape, attrs.depth))
    for at in np.ndindex(ids.shape):
        if 0 <= ids[at] < attrs.depth:
            out[(*at, ids[at])] = 1
    return np.moveaxis(out, -1, attrs.axis)


def _rows(*arrays: np.ndarray, axis: int) -> Any:
    """The one-dimensional rows of several arrays along an axis, as views, for each place."""
    moved = [np.moveaxis(a, axis, -1) for a in arrays]
    for at in np.ndindex(moved[0].shape[:-1]):
        yield [m[at] for m in moved]


@oracle("take_along_axis", "gather_along_clamped")
def take_along_axis(x: np.ndarray, ids: np.ndarray, attrs: Any) -> np.ndarray:
    out = np.zeros(ids.shape, x.dtype)
    for source, at, target in _rows(x, ids, out, axis=attrs.axis):
        for i, k in enumerate(at.tolist()):
            target[i] = source[min(max(k, 0), len(source) - 1)]
    return out


@oracle("put_along_axis", "scatter_along_clamped")
def put_along_axis(x: np.ndarray, ids: np.ndarray, values: np.ndarray, attrs: Any) -> np.ndarray:
    out = x.copy()
    combine = {"update": lambda a, b: b, "add": lambda a, b: a + b, "max": max, "min": min}[attrs.mode]
    for target, at, new in _rows(out, ids, values, axis=attrs.axis):
        for k, v in zip(at.tolist(), new, strict=True):
            place = min(max(k, 0), len(target) - 1)
            target[place] = combine(target[place], v)
    return out


@oracle("topk")
def topk(x: np.ndarray, attrs: Any) -> tuple[np.ndarray, np.ndarray]:
    shape = (*x.shape[: attrs.axis], attrs.k, *x.shape[attrs.axis + 1 :])
    values, indices = np.zeros(shape, x.dtype), np.zeros(shape, int)
    for row, best, where in _rows(x, values, indices, axis=attrs.axis):
        numbered = sorted(enumerate(row.tolist()), key=lambda pair: pair[1] if attrs.ascending else -pair[1])
        where[:], best[:] = zip(*numbered[: attrs.k], strict=True)
    return values, indices


# Products


@oracle("matmul")
def matmul(x: np.ndarray, y: np.ndarray, attrs: Any) -> np.ndarray:
    a = np.swapaxes(x, -1, -2) if attrs.transpose_x else x
    b = np.swapaxes(y, -1, -2) if attrs.transpose_y else y
    return (a[..., :, :, None] * b[..., None, :, :]).sum(-2)


def convolve(x: np.ndarray, w: np.ndarray, strides: Any, padding: Any, dilation: Any, groups: int) -> np.ndarray:
    """Cross-correlation over any number of axes, as the sum that defines it."""
    padded = np.pad(x, [(0, 0), (0, 0), *padding])
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    sizes = [(n - r) // s + 1 for n, r, s in zip(padded.shape[2:], reach, strides, strict=True)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    per_in, per_out = w.shape[1], w.shape[0] // groups
    for o, c in itertools.product(range(w.shape[0]), range(per_in)):
        for tap in np.ndindex(*w.shape[2:]):
            window = tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, dilation, sizes, strides, strict=True)
            )
            out[:, o] += w[(o, c, *tap)] * padded[(slice(None), o // per_out * per_in + c, *window)]
    return out


def by_duality(forward: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...], g: np.ndarray) -> np.ndarray:
    """The transpose of a linear function applied to g: one inner product with each unit array."""
    out = np.empty(shape)
    for at in np.ndindex(*shape):
        unit = np.zeros(shape)
        unit[at] = 1
        out[at] = np.vdot(forward(unit), g)
    return out


@oracle("conv")
def conv(x: np.ndarray, w: np.ndarray, attrs: Any) -> np.ndarray:
    return convolve(x, w, attrs.strides, attrs.padding, attrs.dilation, attrs.groups)


@oracle("conv_transpose")
def conv_input_grad(g: np.ndarray, w: np.ndarray, attrs: Any) -> np.ndarray:
    shape = (g.shape[0], w.shape[1] * attrs.groups, *attrs.size)
    return by_duality(lambda x: conv(x, w, attrs), shape, g)


@oracle("conv_weight_grad")
def conv_weight_grad(x: np.ndarray, g: np.ndarray, attrs: Any) -> np.ndarray:
    shape = (g.shape[1], x.shape[1] // attrs.groups, *attrs.size)
    return by_duality(lambda w: conv(x, w, attrs), shape, g)


@oracle("mil_conv")
def mil_conv(x: np.ndarray, w: np.ndarray, attrs: Any) -> np.ndarray:
    return convolve(x, w, attrs.strides, attrs.padding, (1,) * (x.ndim - 2), attrs.groups)


@oracle("mil_conv_transpose")
def mil_conv_transpose(g: np.ndarray, w: np.ndarray, attrs: Any) -> np.ndarray:
    sizes = [
        (n - 1) * s + k - sum(p)
        for n, s, k, p in zip(g.shape[2:], attrs.strides, w.shape[2:], attrs.padding, strict=True)
    ]
    shape = (g.shape[0], w.shape[1] * attrs.groups, *sizes)
    return by_duality(lambda x: mil_conv(x, w, attrs), shape, g)


# Pooling


def windows(shape: tuple[int, ...], attrs: Any) -> Any:
    """For each window of an image: its place in the result, and the places in the image that it covers."""
    sizes = [
        (n + sum(p) - k) // s + 1
        for n, p, k, s in zip(shape, attrs.padding, attrs.kernel, attrs.strides, strict=True)
    ]
    for at in np.ndindex(*sizes):
        firsts = [i * s - p[0] for i, s, p in zip(at, attrs.strides, attrs.padding, strict=True)]
        spans = [range(first, first + k) for first, k in zip(firsts, attrs.kernel, strict=True)]
        yield at, [q for q in itertools.product(*spans) if all(0 <= i < n for i, n in zip(q, shape, strict=True))]


def result_like(x: np.ndarray, attrs: Any) -> np.ndarray:
    last = list(windows(x.shape[2:], attrs))[-1][0]
    return np.zeros((*x.shape[:2], *(i + 1 for i in last)))


@oracle("max_pool")
def max_pool(x: np.ndarray, attrs: Any) -> np.ndarray:
    out = result_like(x, attrs)
    for at, covered in windows(x.shape[2:], attrs):
        for nc in np.ndindex(x.shape[:2]):
            out[(*nc, *at)] = extreme(lambda v, best: v > best)([x[(*nc, *q)] for q in covered])
    return out


def first_winners(x: np.ndarray, attrs: Any) -> Any:
    for at, covered in windows(x.shape[2:], attrs):
        for nc in np.ndindex(x.shape[:2]):
            yield (*nc, *at), (*nc, *max(covered, key=lambda q: x[(*nc, *q)]))


@oracle("max_pool_grad")
def max_pool_grad(x: np.ndarray, y: np.ndarray, g: np.ndarray, attrs: Any) -> np.ndarray:
    out = np.zeros(x.shape)
    for at, winner in first_winners(x, attrs):
        out[winner] += g[at]
    return out


@oracle("max_pool_pick")
def max_pool_pick(x: np.ndarray, y: np.ndarray, h: np.ndarray, attrs: Any) -> np.ndarray:
    out = np.zeros(y.shape)
    for at, winner in first_winners(x, attrs):
        out[at] = h[winner]
    return out


@oracle("avg_pool")
def avg_pool(x: np.ndarray, attrs: Any) -> np.ndarray:
    out = result_like(x, attrs)
    for at, covered in windows(x.shape[2:], attrs):
        count = math.prod(attrs.kernel) if attrs.count_padding else len(covered)
        for nc in np.ndindex(x.shape[:2]):
            out[(*nc, *at)] = math.fsum(x[(*nc, *q)] for q in covered) / count
    return out


@oracle("avg_pool_grad")
def avg_pool_grad(g: np.ndarray, attrs: Any) -> np.ndarray:
    return by_duality(lambda x: avg_pool(x, attrs), (*g.shape[:2], *attrs.size), g)
