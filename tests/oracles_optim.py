"""Optimizers in float64, written from the papers and independent of `rlx_swift`.

Each is `rule(w, g, state, t, lr, **hyperparameters) -> w`, with `t` counting updates from 1 and `state` a dict
that the rule fills. Where there is a choice they take another way to the same number: singular values instead of
iterations of matrix products, branches instead of masks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Rule = Callable[..., np.ndarray]


def sgd(w, g, state, t, lr, *, momentum, dampening, nesterov, weight_decay):
    g = g + weight_decay * w
    if momentum == 0:
        return w - lr * g
    state["velocity"] = g if t == 1 else momentum * state["velocity"] + (1 - dampening) * g
    return w - lr * (g + momentum * state["velocity"] if nesterov else state["velocity"])


def moments(state, g, beta1, beta2):
    state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * g
    state["v"] = beta2 * state.get("v", 0.0) + (1 - beta2) * g**2
    return state["m"], state["v"]


def adam(w, g, state, t, lr, *, beta1, beta2, eps, weight_decay, amsgrad):
    m, v = moments(state, g + weight_decay * w, beta1, beta2)
    if amsgrad:
        v = state["v_max"] = np.maximum(state.get("v_max", 0.0), v)
    return w - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)


def adamw(w, g, state, t, lr, *, weight_decay, **rest):
    return adam(w, g, state, t, lr, weight_decay=0.0, **rest) - lr * weight_decay * w


def nadamw(w, g, state, t, lr, *, beta1, beta2, eps, weight_decay, momentum_decay):
    def mu(i):
        return beta1 * (1 - 0.5 * 0.96 ** (i * momentum_decay))

    m, v = moments(state, g, beta1, beta2)
    now, after = np.prod([mu(i) for i in range(1, t + 1)]), np.prod([mu(i) for i in range(1, t + 2)])
    direction = (1 - mu(t)) * g / (1 - now) + mu(t + 1) * m / (1 - after)
    return w * (1 - lr * weight_decay) - lr * direction / (np.sqrt(v / (1 - beta2**t)) + eps)


def radam(w, g, state, t, lr, *, beta1, beta2, eps, weight_decay, threshold):
    m, v = moments(state, g + weight_decay * w, beta1, beta2)
    m_hat = m / (1 - beta1**t)
    rho_inf = 2 / (1 - beta2) - 1
    rho = rho_inf - 2 * t * beta2**t / (1 - beta2**t)
    if rho <= threshold:
        return w - lr * m_hat
    r = np.sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))
    return w - lr * m_hat * r * np.sqrt(1 - beta2**t) / (np.sqrt(v) + eps)


def qhadamw(w, g, state, t, lr, *, beta1, beta2, nu1, nu2, eps, weight_decay):
    m, v = moments(state, g, beta1, beta2)
    above = (1 - nu1) * g + nu1 * m / (1 - beta1**t)
    below = np.sqrt((1 - nu2) * g**2 + nu2 * v / (1 - beta2**t)) + eps
    return w * (1 - lr * weight_decay) - lr * above / below


def lamb(w, g, state, t, lr, *, beta1, beta2, eps, weight_decay):
    m, v = moments(state, g, beta1, beta2)
    u = m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps) + weight_decay * w
    size, length = np.linalg.norm(w.ravel()), np.linalg.norm(u.ravel())
    return w - lr * (size / length if size > 0 and length > 0 else 1.0) * u


def adafactor(w, g, state, t, lr, *, decay_power, clip, eps1, eps2, beta1, weight_decay, own_lr):
    def rms(x):
        return np.sqrt(np.mean(x**2))

    relative = min(1e-2, 1 / np.sqrt(t)) if own_lr is None else own_lr
    b = 1 - t**decay_power
    squares = g**2 + eps1
    if w.ndim < 2:
        v = state["v"] = b * state.get("v", 0.0) + (1 - b) * squares
    else:
        r = state["row"] = b * state.get("row", 0.0) + (1 - b) * squares.sum(-1)
        c = state["column"] = b * state.get("column", 0.0) + (1 - b) * squares.sum(-2)
        v = r[..., :, None] * c[..., None, :] / r.sum(-1)[..., None, None]
    u = g / np.sqrt(v)
    u = u / max(1.0, rms(u) / clip)
    if beta1:
        u = state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * u
    alpha = max(eps2, rms(w)) * relative
    return w - alpha * weight_decay * w - alpha * u


def lion(w, g, state, t, lr, *, beta1, beta2, weight_decay):
    m = state.get("m", 0.0)
    state["m"] = beta2 * m + (1 - beta2) * g
    return w - lr * (np.sign(beta1 * m + (1 - beta1) * g) + weight_decay * w)


def muon(w, g, state, t, lr, *, momentum, nesterov, ns_steps, weight_decay, scale, fallback, **rest):
    if w.ndim != 2:
        return ORACLES[type(fallback).__name__](w, g, state, t, lr, **vars(fallback))
    m = state["m"] = momentum * state.get("m", 0.0) + (1 - momentum) * g
    u = (1 - momentum) * g + momentum * m if nesterov else m
    left, s, right = np.linalg.svd(u, full_matrices=False)
    s = s / (np.linalg.norm(u) + 1e-7)
    for _ in range(ns_steps):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    rows, columns = w.shape
    factor = max(1, rows / columns) ** 0.5 if scale == "original" else 0.2 * max(rows, columns) ** 0.5
    return w - lr * weight_decay * w - lr * factor * (left * s) @ right


def sophia(w, g, state, t, lr, *, beta1, beta2, weight_decay, gamma, eps, every, hessian, **rest):
    m = state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * g
    if t % every == 1 or every == 1:
        state["h"] = beta2 * state.get("h", 0.0) + (1 - beta2) * hessian
    return w * (1 - lr * weight_decay) - lr * np.clip(m / np.maximum(gamma * state["h"], eps), -1, 1)


def mars(w, g, state, t, lr, *, beta1, beta2, eps, weight_decay, gamma, exact, previous=None):
    before = (g if t == 1 else previous) if exact else state.get("g", g)
    state["g"] = g
    c = g + gamma * beta1 / (1 - beta1) * (g - before)
    length = np.linalg.norm(c.ravel())
    m, v = moments(state, c / length if length > 1 else c, beta1, beta2)
    return w * (1 - lr * weight_decay) - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)


def stiefel(w, g, state, t, lr, *, momentum, fallback, **rest):
    if w.ndim != 2:
        return ORACLES[type(fallback).__name__](w, g, state, t, lr, **vars(fallback))
    if w.shape[0] < w.shape[1]:
        return stiefel(w.T, g.T, state, t, lr, momentum=momentum, fallback=fallback).T
    if t == 1:
        w = polar(w)
    m = momentum * state.get("m", 0.0) + g
    m = state["m"] = m - w @ (w.T @ m + m.T @ w) / 2
    return polar(w - lr * m)


def polar(x):
    left, _, right = np.linalg.svd(x, full_matrices=False)
    return left @ right


def soap(w, g, state, t, lr, *, beta1, beta2, eps, weight_decay, every, longest):
    flat = g.reshape(g.shape[0], -1) if g.ndim >= 2 else g.reshape(-1, 1)
    sides = [n if g.ndim >= 2 and n <= longest else 0 for n in flat.shape]
    if t == 1:
        state["bases"] = [np.eye(n) for n in flat.shape]
        state["squares"] = [np.zeros((n, n)) for n in flat.shape]
    left, right = state["bases"]
    m = state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * flat
    v = state["v"] = beta2 * state.get("v", 0.0) + (1 - beta2) * (left.T @ flat @ right) ** 2
    turned = (left.T @ m @ right) / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)
    for i, square in enumerate((flat @ flat.T, flat.T @ flat)):
        if sides[i]:
            state["squares"][i] = beta2 * state["squares"][i] + (1 - beta2) * square
            if t == 1:
                state["bases"][i] = np.linalg.eigh(state["squares"][i])[1]
            elif t % every == 0:
                state["bases"][i] = np.linalg.qr(state["squares"][i] @ state["bases"][i])[0]
    return w - lr * weight_decay * w - lr * (left @ turned @ right.T).reshape(w.shape)


def kron(w, g, state, t, lr, *, beta1, precond_lr, weight_decay, every, clip):
    m = state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * g
    mean = m / (1 - beta1**t)
    shape = (w.shape[0], w.size // w.shape[0]) if w.ndim >= 2 else w.shape
    probe = np.random.default_rng([t, *shape]).standard_normal(shape, np.float32).astype(float)
    rms = np.sqrt(np.mean(mean**2)) or 1.0
    if w.ndim < 2:
        q = state.get("q", np.full(w.shape, rms**-0.5))
        if (t - 1) % every == 0:
            a, b = (q * mean) ** 2, (probe / q) ** 2
            q = q * (1 - precond_lr * (a - b) / (a + b).max())
        state["q"], u = q, q**2 * mean
    else:
        matrix = mean.reshape(shape)
        left, right = state.get("q", [np.eye(n) * rms**-0.25 for n in shape])
        if (t - 1) % every == 0:
            a = left @ matrix @ right.T
            b = np.linalg.inv(left).T @ probe @ np.linalg.inv(right)
            new = []
            for q, above, below in ((left, a @ a.T, b @ b.T), (right, a.T @ a, b.T @ b)):
                new.append(q - precond_lr * np.triu(above - below) @ q / np.linalg.norm(above + below, np.inf))
            left, right = new
        state["q"] = [left, right]
        u = (left.T @ left @ matrix @ right.T @ right).reshape(w.shape)
    u = u / max(1.0, np.sqrt(np.mean(u**2)) / clip)
    return w - lr * (u + weight_decay * w)


ORACLES: dict[str, Rule] = {
    "SGD": sgd, "Adam": adam, "AdamW": adamw, "NAdamW": nadamw, "RAdam": radam, "QHAdamW": qhadamw, "LAMB": lamb,
    "Adafactor": adafactor, "Lion": lion, "Muon": muon, "SophiaH": sophia, "MARS": mars, "Stiefel": stiefel,
    "SOAP": soap, "KronPSGD": kron,
}


def clipped(clip: Any, gradients: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    kind = type(clip).__name__
    if kind == "ClipByValue":
        return {name: np.clip(g, -clip.limit, clip.limit) for name, g in gradients.items()}
    norms = {name: np.linalg.norm(g.ravel()) for name, g in gradients.items()}
    if kind == "ClipByGlobalNorm":
        norms = dict.fromkeys(norms, np.linalg.norm(list(norms.values())))
    limit = np.inf if clip is None else clip.limit
    return {name: g if norms[name] <= limit else g * (limit / norms[name]) for name, g in gradients.items()}


def follow(
    optimizers: dict[str, Any], start: dict[str, np.ndarray], bends: dict[str, np.ndarray],
    windows: list[list[tuple[float, dict[str, np.ndarray]]]], lr: Callable[[int], float], clip: Any,
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """The params after a run on loss = sum(w * g + bend * w^2 / 2), and the largest magnitude that each had.

    Each window has its micro-batches as (weight, g by param); one with a gradient that is not finite is skipped.
    """
    w = {name: np.asarray(value, np.float64) for name, value in start.items()}
    before, states, t = w, {name: {} for name in w}, 0
    largest = {name: np.max(np.abs(value), initial=0.0) for name, value in w.items()}
    for window in windows:
        total = sum(weight for weight, _ in window)
        fed = {n: sum(weight * np.asarray(g[n], np.float64) for weight, g in window) / total for n in w}
        if not all(np.isfinite(g).all() for g in fed.values()):
            continue
        t += 1
        gradients = clipped(clip, {n: g + bends[n] * w[n] for n, g in fed.items()})
        previous = clipped(clip, {n: g + bends[n] * before[n] for n, g in fed.items()})
        new = {}
        for name, g in gradients.items():
            hyper = dict(vars(optimizers[name]))
            if "lr" in hyper:
                hyper["own_lr"] = hyper.pop("lr")
            if hyper.get("exact"):
                hyper["previous"] = previous[name]
            if "estimator" in hyper:
                hyper["hessian"] = bends[name]
            new[name] = ORACLES[type(optimizers[name]).__name__](w[name], g, states[name], t, lr(t - 1), **hyper)
        before, w = w, new
        largest = {name: max(largest[name], np.max(np.abs(value), initial=0.0)) for name, value in w.items()}
    return w, largest


def run(optimizer: Any, w: np.ndarray, gradients: list[np.ndarray], lr: float, **extra: Any) -> np.ndarray:
    """The param after updates with the given gradients, by the oracle for `optimizer` (a dataclass)."""
    rule, state, hyper = ORACLES[type(optimizer).__name__], {}, {**vars(optimizer), **extra}
    if "lr" in hyper:
        hyper["own_lr"] = hyper.pop("lr")
    w = np.asarray(w, np.float64)
    for t, g in enumerate(gradients, 1):
        w = rule(w, np.asarray(g, np.float64), state, t, lr, **hyper)
    return w
