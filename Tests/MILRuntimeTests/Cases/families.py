"""The cases of each family of operations; generate.py saves them. Formulas are NumPy's or written out here."""

import math

import numpy as np
from generate import f32, integers, normal, rng

EDGES = f32([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 2.5, 88.0, -88.0, 1e-30, 1e30, np.inf, -np.inf, np.nan])


def half(f):
    """The float32 formula `f` on float16 arrays, rounded once."""
    return lambda *xs: f(*(x.astype(np.float32) for x in xs)).astype(np.float16)


def erf(x):
    return np.vectorize(math.erf)(x.astype(np.float64))


def sigmoid(x):
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def unary(c):
    f = {
        "exp": np.exp, "exp2": np.exp2, "sqrt": np.sqrt, "tanh": np.tanh, "erf": erf, "floor": np.floor,
        "ceil": np.ceil, "round": np.rint, "sin": np.sin, "cos": np.cos, "tan": np.tan, "abs": np.abs,
        "sign": np.sign, "square": np.square, "sinh": np.sinh, "cosh": np.cosh, "atan": np.arctan,
        "relu": lambda x: np.maximum(x, 0), "sigmoid": sigmoid, "softsign": lambda x: x / (1 + np.abs(x)),
        "softplus": lambda x: np.logaddexp(x.astype(np.float64), 0), "relu6": lambda x: np.clip(x, 0, 6),
    }
    for name, g in f.items():
        x = EDGES
        if name in ("sin", "cos", "tan"):
            x = f32([0.0, -0.0, 1.0, -1.0, 3.14159, 100.0, -1e4, 1e6, 1e9, np.inf, np.nan])
        if name in ("softsign",):
            x = EDGES[:11]
        if name in ("abs", "sign", "square"):
            i = integers(-9, 9, 3, 5)
            c.add(name, g(i), {"x": i})
        c.add(name, g(x.astype(np.float64)).astype(np.float32), {"x": x}, tolerance=3e-7)
        big = normal(3, 7, 50)
        c.add(name, g(big.astype(np.float64)).astype(np.float32), {"x": big}, tolerance=4e-7)
        h = normal(4, 5, dtype=np.float16)
        c.add(name, half(g)(h), {"x": h}, tolerance=1e-3)
        c.add(name, g(f32(0.75).astype(np.float64)).astype(np.float32), {"x": f32(0.75)}, tolerance=4e-7)
        c.add(name, np.zeros((0, 3), np.float32), {"x": np.zeros((0, 3), np.float32)})
    u = rng.uniform(-0.99, 0.99, (5, 6)).astype(np.float32)
    for name, g in {"asin": np.arcsin, "acos": np.arccos, "atanh": np.arctanh}.items():
        c.add(name, g(u), {"x": u}, tolerance=4e-7)
    x = EDGES[:11]
    c.add("silu", (x * sigmoid(x)).astype(np.float32), {"x": x}, tolerance=4e-7)
    for mode, g in {
        "EXACT": lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))),
        "TANH_APPROXIMATION": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        "SIGMOID_APPROXIMATION": lambda x: x * sigmoid(1.702 * x),
    }.items():
        x = normal(4, 33)
        c.add("gelu", g(x.astype(np.float64)).astype(np.float32), {"x": x}, {"mode": mode}, tolerance=1e-6)
    c.add("gelu", (0.5 * x * (1 + erf(x / np.sqrt(2)))).astype(np.float32), {"x": x})
    i = np.array([-3, 0, 1, 5, 30, 40], np.int32)  # what does not fit is the largest number
    c.add("exp2", np.minimum(np.floor(2.0**i), 2**31 - 1).astype(np.int32), {"x": i})
    # Epsilon is added first; the defaults count when it is left out.
    x = f32([0.0, 2.0, 1e-3, 4.0])
    c.add("log", f32([np.log(float(np.float32(1e-45))), np.log(2), np.log(1e-3), np.log(4)]), {"x": x}, tolerance=1e-6)
    c.add("rsqrt", f32([1e6, 2**-0.5, 1e-3**-0.5, 0.5]), {"x": x}, tolerance=1e-6)
    c.add("inverse", f32([1e4, 0.499975, 1 / (1e-3 + 1e-4), 1 / 4.0001]), {"x": x}, tolerance=1e-6)
    c.add("log", np.log(x + 1.0), {"x": x}, {"epsilon": 1.0})
    c.add("rsqrt", 1 / np.sqrt(x + 0.5), {"x": x}, {"epsilon": 0.5})
    c.add("inverse", f32([np.inf, 0.5, 1000, 0.25]), {"x": x}, {"epsilon": 0.0})
    c.add("log", np.array([-np.inf, 0], np.float16), {"x": np.array([0, 1], np.float16)})
    c.add("rsqrt", np.array([np.inf, 1], np.float16), {"x": np.array([0, 1], np.float16)})
    c.add("log", f32([np.nan, np.inf, np.nan, np.log(1e-40)]), {"x": f32([-1, np.inf, np.nan, 1e-40])},
          {"epsilon": 0.0}, tolerance=2e-6)
    x = EDGES
    c.add("clip", np.minimum(np.maximum(x, -1), 2.25), {"x": x}, {"alpha": -1.0, "beta": 2.25})
    c.add("threshold", np.maximum(x, 0.25), {"x": x}, {"alpha": 0.25})
    c.add("threshold", np.maximum(integers(-9, 9, 4), 2) * 0 + f32(2).astype(np.int32),
          {"x": np.full(4, -3, np.int32)}, {"alpha": np.int32(2) * np.ones((), np.int32)})
    c.add("threshold", np.array([16777219, 16777217], np.int32), {"x": np.array([16777219, 5], np.int32)},
          {"alpha": np.array(16777217, np.int32)})
    x = EDGES[:11]
    c.add("leaky_relu", np.where(x < 0, f32(0.1) * x, x), {"x": x}, {"alpha": 0.1})
    c.add("elu", np.where(x < 0, 1.5 * np.expm1(x.astype(np.float64)), x).astype(np.float32), {"x": x},
          {"alpha": 1.5}, tolerance=4e-7)
    c.add("thresholded_relu", np.where(x >= 0.5, x, 0), {"x": x}, {"alpha": 0.5})
    c.add("sigmoid_hard", np.clip(f32(0.3) * x + f32(0.4), 0, 1), {"x": x}, {"alpha": 0.3, "beta": 0.4})
    c.add("clamped_relu", np.minimum(1.5, np.where(x >= 0, x, f32(0.2) * x)).astype(np.float32), {"x": x},
          {"alpha": 0.2, "beta": 1.5})
    c.add("linear_activation", f32(2.0) * x + f32(3.0), {"x": x}, {"alpha": 2.0, "beta": 3.0})
    c.add("scaled_tanh", (2 * np.tanh(0.5 * x)).astype(np.float32), {"x": x}, {"alpha": 2.0, "beta": 0.5})
    x, a = normal(2, 3, 4, 5), f32([0.1, 0.2, 0.3])
    b = f32([1.5, 0.5, 1.0])
    a4, b4 = a.reshape(1, 3, 1, 1), b.reshape(1, 3, 1, 1)
    c.add("prelu", np.where(x >= 0, x, a4 * x), {"x": x}, {"alpha": a})
    c.add("softplus_parametric", a4 * np.logaddexp(b4 * x, 0), {"x": x}, {"alpha": a, "beta": b}, tolerance=1e-6)
    c.add("identity", x, {"x": x})


def binary(c):
    f = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "real_div": np.divide, "maximum": np.maximum,
         "minimum": np.minimum, "pow": np.power, "floor_div": np.floor_divide, "mod": np.mod}
    shapes = [((2, 3), (2, 3)), ((2, 3), ()), ((), (2, 3)), ((), ()), ((2, 3), (3,)), ((3,), (2, 3)),
              ((2, 1, 3), (4, 1)), ((4, 1), (1, 700)), ((2, 3, 1, 5), (1, 3, 4, 1)), ((0, 3), (1, 3)),
              ((1100,), (1100,)), ((3, 600), (3, 1)), ((2, 1, 2, 1, 2, 1, 2, 1), (1, 3, 1, 2, 1, 2, 1, 2))]
    for name, g in f.items():
        for s, t in shapes:
            x, y = normal(*s), normal(*t)
            if name == "pow":
                x = np.abs(x)
            c.add(name, g(x, y), {"x": x, "y": y}, tolerance=2e-6)
        x, y = [v.ravel() for v in np.meshgrid(EDGES, EDGES)]
        if name in ("floor_div", "mod"):
            keep = np.isfinite(x) & np.isfinite(y) & (np.abs(x) < 1e9) & (np.abs(y) < 1e9) & (np.abs(y) > 1e-9)
            x, y = x[keep], y[keep]
        c.add(name, g(x, y), {"x": x, "y": y})
        h, k = np.abs(normal(3, 4, dtype=np.float16)), normal(4, dtype=np.float16)
        if name not in ("floor_div", "mod"):
            c.add(name, half(g)(h, k), {"x": h, "y": k}, tolerance=1e-3)
    i, j = integers(-20, 20, 4, 5), integers(1, 6, 5)
    for name, g in f.items():
        if name == "real_div":
            c.add(name, np.trunc(i / j).astype(np.int32), {"x": i, "y": j})
        elif name == "pow":
            c.add(name, i.astype(np.int32) ** j, {"x": i, "y": j})
        else:
            c.add(name, g(i, j), {"x": i, "y": j})
    c.add("floor_div", integers(0, 1, 4) + np.array([3, -4, 3, -4], np.int32),
          {"x": np.array([10, -10, 7, -7], np.int32), "y": np.array([3, 3, 2, 2], np.int32)})
    c.add("mod", np.array([2, -2], np.int32), {"x": np.array([-7, 7], np.int32), "y": np.array([3, -3], np.int32)})
    x = f32([2.0, 3.0, -2.0, 0.5])
    c.add("pow", x**2, {"x": x}, {"y": 2.0})
    comparisons = {"greater": np.greater, "greater_equal": np.greater_equal, "less": np.less,
                   "less_equal": np.less_equal, "equal": np.equal, "not_equal": np.not_equal}
    for name, g in comparisons.items():
        x, y = [v.ravel() for v in np.meshgrid(EDGES, EDGES)]
        c.add(name, g(x, y), {"x": x, "y": y})
        i, j = integers(-3, 3, 3, 4), integers(-3, 3, 4)
        c.add(name, g(i, j), {"x": i, "y": j})
        c.add(name, g(x[:30].astype(np.float16), np.float16(0.5)), {"x": x[:30].astype(np.float16),
                                                                    "y": np.array(0.5, np.float16)})
    p, q = rng.integers(0, 2, (3, 4)) > 0, rng.integers(0, 2, 4) > 0
    c.add("logical_and", p & q, {"x": p, "y": q})
    c.add("logical_or", p | q, {"x": p, "y": q})
    c.add("logical_xor", p ^ q, {"x": p, "y": q})
    c.add("logical_not", ~p, {"x": p})
    x, y = normal(3, 4), normal(4)
    c.add("select", np.where(p, x, y), {"cond": p, "a": x, "b": y})
    c.add("select", np.where(q, np.float32(1), x), {"cond": q, "a": f32(1), "b": x})
    c.add("select", np.where(p, f32(np.nan), f32(np.inf)), {"cond": p, "a": f32(np.nan), "b": f32(np.inf)})
    c.add("select", np.where(p, integers(0, 1, 3, 4) + 7, 3).astype(np.int32), {"cond": p},
          {"a": np.full((3, 4), 7, np.int32), "b": 3})
    x = f32([-4.9, -0.5, 0.0, 0.9, 3.99, 300.0, -300.0, 1e5])
    c.add("cast", x.astype(np.float16), {"x": x}, {"dtype": "fp16"})
    c.add("cast", x.astype(np.int32), {"x": x}, {"dtype": "int32"})
    c.add("cast", np.array([-2**31, 2**31 - 1, 0], np.int32), {"x": f32([-1e20, 1e20, np.nan])}, {"dtype": "int32"})
    c.add("cast", x != 0, {"x": x}, {"dtype": "bool"})
    c.add("cast", np.clip(x, -128, 127).astype(np.int8), {"x": x}, {"dtype": "int8"})
    c.add("cast", np.clip(x, 0, 255).astype(np.uint8), {"x": x}, {"dtype": "uint8"})
    c.add("cast", np.clip(x, -32768, 32767).astype(np.int16), {"x": x}, {"dtype": "int16"})
    c.add("cast", np.clip(x, 0, 65535).astype(np.uint16), {"x": x}, {"dtype": "uint16"})
    i = integers(-5, 5, 3, 3)
    c.add("cast", i.astype(np.float32), {"x": i}, {"dtype": "fp32"})
    c.add("cast", i != 0, {"x": i}, {"dtype": "bool"})
    c.add("cast", p.astype(np.float32), {"x": p}, {"dtype": "fp32"})
    c.add("cast", p.astype(np.int32), {"x": p}, {"dtype": "int32"})
    c.add("cast", f32([1.5, -2]), {"x": np.array([1.5, -2], np.float16)}, {"dtype": "fp32"})


def reduction(c):
    def lse(x, axis, keepdims):
        m = x.max(axis=axis, keepdims=True)
        m = np.where(np.isinf(m), 0, m)
        r = np.log(np.exp(x - m).sum(axis=axis, keepdims=True)) + m
        return r if keepdims else r.squeeze(axis if axis is None else tuple(np.atleast_1d(axis)))

    f = {
        "reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_max": np.max, "reduce_min": np.min,
        "reduce_prod": np.prod,
        "reduce_sum_square": lambda x, axis, keepdims: np.sum(x * x, axis=axis, keepdims=keepdims),
        "reduce_l1_norm": lambda x, axis, keepdims: np.sum(np.abs(x), axis=axis, keepdims=keepdims),
        "reduce_l2_norm": lambda x, axis, keepdims: np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims)),
        "reduce_log_sum": lambda x, axis, keepdims: np.log(np.sum(x, axis=axis, keepdims=keepdims)),
        "reduce_log_sum_exp": lse,
    }
    small = [((5,), (0,)), ((2, 3), (0,)), ((2, 3), (-1,)), ((2, 3), (0, 1)), ((2, 3, 4), (1,)),
             ((2, 3, 4), (0, 2)), ((1, 4, 1), (0, 1)), ((2, 3, 2, 2, 3, 2, 2, 2), (1, 3, 5))]
    large = [((40, 700), (0,)), ((40, 700), (1,)), ((3, 5000), (1,)), ((3, 64, 50), (1,)), ((6000,), (0,)),
             ((20, 17, 20), (1,)), ((20, 17, 20), (0, 2))]
    for name, g in f.items():
        for shape, axes in small + large * (name in ("reduce_sum", "reduce_log_sum_exp")):
            for keep in (False, True)[: 2 if shape in [s for s, _ in small] else 1]:
                x = normal(*shape)
                if name == "reduce_prod":
                    x = rng.uniform(0.9, 1.1, shape).astype(np.float32)
                if name == "reduce_log_sum":
                    x = np.abs(x)
                want = g(x.astype(np.float64), axis=axes, keepdims=keep).astype(np.float32)
                tolerance = 1e-4 if name == "reduce_prod" else 3e-5 if x.size > 1000 else 2e-6
                c.add(name, want, {"x": x}, {"axes": axes, "keep_dims": keep}, tolerance=tolerance)
        x = np.abs(normal(3, 4)) + 1
        c.add(name, g(x.astype(np.float64), axis=None, keepdims=False).astype(np.float32), {"x": x}, tolerance=5e-6)
        h = (np.abs(normal(4, 6)) * 0.5 + 0.5).astype(np.float16)
        want = g(h.astype(np.float64), axis=(1,), keepdims=False).astype(np.float16)
        c.add(name, want, {"x": h}, {"axes": (1,)}, tolerance=1e-3)
        c.add(name, np.zeros((0, 1), np.float32), {"x": np.zeros((0, 3), np.float32)},
              {"axes": (1,), "keep_dims": True})
    for name in ("reduce_sum", "reduce_max", "reduce_min", "reduce_mean", "reduce_prod", "reduce_sum_square"):
        i = integers(-9, 9, 3, 7)
        want = f[name](i, axis=(1,), keepdims=False)
        c.add(name, np.trunc(want).astype(np.int32), {"x": i}, {"axes": (1,)})
        c.add(name, np.trunc(f[name](i, axis=(0,), keepdims=True)).astype(np.int32), {"x": i},
              {"axes": (0,), "keep_dims": True})
    c.add("reduce_sum", f32([0, 0]), {"x": np.zeros((2, 0), np.float32)}, {"axes": (1,)})
    nan = f32([[1, np.nan, 3], [4, 5, np.inf]])
    for name in ("reduce_sum", "reduce_max", "reduce_min", "reduce_log_sum_exp"):
        c.add(name, f[name](nan, axis=(1,), keepdims=False), {"x": nan}, {"axes": (1,)})
        c.add(name, f[name](nan, axis=(0,), keepdims=False), {"x": nan}, {"axes": (0,)})
    c.add("reduce_log_sum_exp", f32([-np.inf, 0.0]), {"x": f32([[-np.inf, -np.inf], [-np.inf, 0.0]])},
          {"axes": (1,)})
    c.add("reduce_sum", f32(2048), {"x": np.ones(2048, np.float32)})
    c.add("reduce_sum", np.array(4096, np.float16), {"x": np.ones(4096, np.float16)})
    c.add("reduce_sum", np.float32(3.5), {"x": f32(3.5)})
    for shape, axis in [((5,), 0), ((3, 10), -1), ((3, 700), 1), ((2, 3, 4), 1)]:
        x = normal(*shape)
        e = np.exp(x.astype(np.float64) - x.max(axis=axis, keepdims=True))
        c.add("softmax", (e / e.sum(axis=axis, keepdims=True)).astype(np.float32), {"x": x}, {"axis": axis},
              tolerance=1e-6)
    x = f32([[1000, 1000, 0], [-1000, 0, 1]])
    e = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    c.add("softmax", (e / e.sum(-1, keepdims=True)).astype(np.float32), {"x": x}, tolerance=1e-6)
    h = normal(3, 8, dtype=np.float16)
    e = np.exp(h.astype(np.float64))
    c.add("softmax", (e / e.sum(-1, keepdims=True)).astype(np.float16), {"x": h}, tolerance=1e-3)


def product(c):
    for s, t, tx, ty in [
        ((2, 3), (3, 4), False, False), ((3, 2), (3, 4), True, False), ((2, 3), (4, 3), False, True),
        ((3, 2), (4, 3), True, True), ((5, 2, 3), (5, 3, 4), False, False), ((5, 2, 3), (3, 4), False, False),
        ((2, 3), (5, 3, 4), False, False), ((2, 1, 2, 3), (1, 5, 3, 4), False, False), ((3,), (3, 4), False, False),
        ((2, 3), (3,), False, False), ((3,), (3,), False, False), ((5, 2, 3), (3,), False, False),
        ((3,), (5, 3, 4), False, False), ((64, 100), (100, 48), False, False), ((0, 3), (3, 4), False, False),
        ((2, 0), (0, 4), False, False), ((2, 3, 1, 3, 2, 4), (2, 1, 2, 3, 4, 3), False, False),
    ]:
        x, y = normal(*s), normal(*t)
        a = np.swapaxes(x, -1, -2) if tx else x
        b = np.swapaxes(y, -1, -2) if ty else y
        want = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
        c.add("matmul", want, {"x": x, "y": y}, {"transpose_x": tx, "transpose_y": ty}, tolerance=3e-5)
    x, y = normal(3, 5, dtype=np.float16), normal(5, 2, dtype=np.float16)
    want = x.astype(np.float32) @ y.astype(np.float32)
    c.add("matmul", want.astype(np.float16), {"x": x, "y": y}, tolerance=1e-3)
    w = normal(5, 2)
    c.add("matmul", (x.astype(np.float32) @ w).astype(np.float16), {"x": x}, {"y": w}, tolerance=1e-3,
          folds=False)
    i, j = integers(-9, 9, 2, 3, 4), integers(-9, 9, 4, 5)
    c.add("matmul", i @ j, {"x": i, "y": j})
    x, w, b = normal(4, 3), normal(5, 3), normal(5)
    c.add("linear", (x @ w.T + b), {"x": x}, {"weight": w, "bias": b}, tolerance=1e-5)
    c.add("linear", (x @ w.T), {"x": x, "weight": w}, tolerance=1e-5)
    x = normal(2, 4, 3)
    c.add("linear", (x @ w.T + b), {"x": x, "weight": w, "bias": b}, tolerance=1e-5)
    x = normal(3)
    c.add("linear", (x @ w.T + b), {"x": x}, {"weight": w, "bias": b}, tolerance=1e-5)


def layout(c):
    x = normal(2, 3, 4)
    c.add("reshape", x.reshape(6, 4), {"x": x}, {"shape": (6, 4)})
    c.add("reshape", x.reshape(4, 6), {"x": x}, {"shape": (4, -1)})
    c.add("reshape", x.reshape(2, 12), {"x": x}, {"shape": (0, -1)}, opset=6)
    c.add("reshape", x.reshape(6, 4), {"x": x}, {"shape": (-1, 0)}, opset=7)
    c.add("reshape", x.reshape(1, 2, 3, 4), {"x": x}, {"shape": (0, 2, 3, 4)}, opset=7)
    c.add("reshape", f32(5), {"x": f32([5])}, {"shape": np.zeros(0, np.int32)})
    c.add("reshape", np.zeros((0, 4), np.float32), {"x": np.zeros((2, 0), np.float32)}, {"shape": (0, 4)})
    b = rng.integers(0, 2, (2, 3)) > 0
    c.add("reshape", b.reshape(3, 2), {"x": b}, {"shape": (3, 2)})
    c.add("reshape_like", x.reshape(6, 4), {"x": x, "ref_tensors": [normal(5, 6), normal(1, 4)]},
          {"begins": (1, 1), "ends": (2, 0), "end_masks": np.array([False, True])})
    c.add("flatten2d", x.reshape(2, 12), {"x": x})
    c.add("flatten2d", x.reshape(6, 4), {"x": x}, {"axis": 2})
    c.add("transpose", x.transpose(2, 0, 1), {"x": x}, {"perm": (2, 0, 1)})
    c.add("transpose", x.transpose(0, 2, 1), {"x": x}, {"perm": (0, -1, -2)})
    big = normal(70, 90)
    c.add("transpose", big.T, {"x": big}, {"perm": (1, 0)})
    h = normal(2, 3, dtype=np.float16)
    c.add("transpose", h.T, {"x": h}, {"perm": (1, 0)})
    c.add("transpose", b.T, {"x": b}, {"perm": (1, 0)})
    y = normal(2, 1, 2, 3, 1, 2, 2, 2)
    c.add("transpose", y.transpose(7, 3, 1, 5, 0, 2, 4, 6), {"x": y}, {"perm": (7, 3, 1, 5, 0, 2, 4, 6)})
    c.add("expand_dims", x[:, None, :, :, None], {"x": x}, {"axes": (1, -1)})
    c.add("expand_dims", f32([[2.5]]), {"x": f32(2.5)}, {"axes": (0, 1)})
    z = normal(1, 3, 1, 2)
    c.add("squeeze", z.reshape(3, 2), {"x": z})
    c.add("squeeze", z.reshape(3, 1, 2), {"x": z}, {"axes": (0, 1)})
    c.add("concat", np.concatenate([x, 2 * x, x[:, :, :1]], 2), {"values": [x, 2 * x, x[:, :, :1]]}, {"axis": -1})
    c.add("concat", np.concatenate([x, x], 0), {"values": [x, x]}, {"axis": 0})
    c.add("concat", f32([1, 2]), {"values": [f32(1), f32(2)]}, {"axis": 0})
    w = np.stack([x, -x], 2).reshape(2, 6, 4)
    c.add("concat", w, {"values": [x, -x]}, {"axis": 1, "interleave": True})
    c.add("concat", np.concatenate([b, ~b], 1), {"values": [b, ~b]}, {"axis": 1})
    c.add("stack", np.stack([x, -x, x + 1], 1), {"values": [x, -x, x + 1]}, {"axis": 1})
    c.add("stack", f32([1, 2]), {"values": [f32(1), f32(2)]}, {"axis": -1})
    c.add("split", np.split(x, 2, 2), {"x": x}, {"num_splits": 2, "axis": 2})
    c.add("split", np.split(x, [1, 3], -1), {"x": x}, {"split_sizes": (1, 2, 1), "axis": -1})
    c.add("tile", np.tile(x, (2, 1, 3)), {"x": x}, {"reps": (2, 1, 3)})
    c.add("tile", np.tile(z, (4, 1, 2, 1)), {"x": z}, {"reps": (4, 1, 2, 1)})
    c.add("fill", np.full((2, 3), 1.5, np.float32), {}, {"shape": (2, 3), "value": 1.5})
    c.add("fill", np.zeros((2, 3), np.float32), {}, {"shape": (2, 3)})
    c.add("fill_like", np.full((2, 3, 4), 7, np.int32), {"ref_tensor": x}, {"value": 7})
    c.add("shape", np.array([2, 3, 4], np.int32), {"x": x})
    c.add("reverse", x[::-1, :, ::-1], {"x": x}, {"axes": (0, -1)})
    c.add("reverse", x[::-1, ::-1, ::-1], {"x": x})
    c.add("range_1d", np.arange(1, 9, 3, dtype=np.int32), {}, {"start": 1, "end": 9, "step": 3})
    c.add("range_1d", np.arange(5, 1, -1.5, dtype=np.float32), {}, {"start": 5.0, "end": 1.0, "step": -1.5})
    # More than a float can hold.
    c.add("range_1d", np.arange(16777217, 16777223, 2, dtype=np.int32), {},
          {"start": 16777217, "end": 16777223, "step": 2})
    v = np.lib.stride_tricks.sliding_window_view(x, 2, 2)
    c.add("sliding_windows", v, {"x": x}, {"axis": 2, "size": 2})
    c.add("sliding_windows", np.stack([x[:, 0:2], x[:, 1:3]], 1)[:, ::1], {"x": x}, {"axis": 1, "size": 2})
    n, ch, hh, ww, r = 2, 8, 3, 2, 2
    im = normal(n, ch, hh, ww)
    c.add("pixel_shuffle", im.reshape(n, 2, r, r, hh, ww).transpose(0, 1, 4, 2, 5, 3).reshape(n, 2, 6, 4), {"x": im},
          {"upscale_factor": 2})
    c.add("depth_to_space", im.reshape(n, r, r, 2, hh, ww).transpose(0, 3, 4, 1, 5, 2).reshape(n, 2, 6, 4), {"x": im},
          {"block_size": 2})
    im = normal(2, 3, 4, 6)
    c.add("pixel_unshuffle", im.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 12, 2, 3), {"x": im},
          {"downscale_factor": np.array(2, np.int32)})
    c.add("space_to_depth", im.reshape(2, 3, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 12, 2, 3), {"x": im},
          {"block_size": 2})


def slicing(c):
    x = normal(4, 5, 6)
    c.add("slice_by_index", x[1:3, 0:5:2, 2:6], {"x": x}, {"begin": (1, 0, 2), "end": (3, 5, 6), "stride": (1, 2, 1)})
    c.add("slice_by_index", x[-2:, :-1, 1:4], {"x": x},
          {"begin": (-2, 3, 1), "end": (0, -1, 4), "begin_mask": np.array([False, True, False]),
           "end_mask": np.array([True, False, False])})
    c.add("slice_by_index", x[::-1, 3:0:-2, 5], {"x": x},
          {"begin": (0, 3, 5), "end": (0, 0, 0), "stride": (-1, -2, 1),
           "begin_mask": np.array([True, False, False]), "end_mask": np.array([True, False, False]),
           "squeeze_mask": np.array([False, False, True])})
    c.add("slice_by_index", x[1, 2, 3], {"x": x}, {"begin": (1, 2, 3), "end": (0, 0, 0),
                                                   "squeeze_mask": np.array([True, True, True])})
    c.add("slice_by_index", x[3:-1:-1], {"x": x}, {"begin": (3, 0, 0), "end": (-1, 5, 6), "stride": (-1, 1, 1)})
    c.add("slice_by_index", x[2:100, -100:2, :], {"x": x}, {"begin": (2, -100, 0), "end": (100, 2, 6)})
    c.add("slice_by_size", x[1:3, 2:, 0:6], {"x": x}, {"begin": (1, 2, 0), "size": (2, -1, 6)})
    u = normal(2, 5, 2)
    y = x.copy()
    y[1:3, :, 1:4:2] = u
    c.add("slice_update", y, {"x": x, "update": u}, {"begin": (1, 0, 1), "end": (3, 5, 4), "stride": (1, 1, 2)},
          opset=8)
    p = [(0, 0), (1, 2), (3, 0)]
    c.add("pad", np.pad(x, p, constant_values=1.5), {"x": x}, {"pad": (1, 2, 3, 0), "constant_val": 1.5})
    c.add("pad", np.pad(x, p), {"x": x}, {"pad": (0, 0, 1, 2, 3, 0)})
    c.add("pad", np.pad(x, p, mode="reflect"), {"x": x}, {"pad": (1, 2, 3, 0), "mode": "reflect"})
    c.add("pad", np.pad(x, p, mode="edge"), {"x": x}, {"pad": (1, 2, 3, 0), "mode": "replicate"})
    h = normal(2, 3, dtype=np.float16)
    c.add("pad", np.pad(h, [(1, 0), (0, 1)]), {"x": h}, {"pad": (1, 0, 0, 1)})


def indexing(c):
    x = normal(4, 5, 6)
    i = np.array([[3, 0, -1], [2, 2, 1]], np.int32)
    for axis in (0, 1, -1):
        c.add("gather", np.take(x, i, axis), {"x": x, "indices": i}, {"axis": axis})
    c.add("gather", x[2], {"x": x, "indices": np.array(2, np.int32)})
    c.add("gather", np.take(x, i.astype(np.int64), 1), {"x": x, "indices": i.astype(np.int16)}, {"axis": 1})
    b = integers(0, 5, 4, 3)
    c.add("gather", np.stack([x[n][b[n]] for n in range(4)]), {"x": x, "indices": b}, {"axis": 1, "batch_dims": 1})
    c.add("gather", np.stack([x[n][:, b[n]] for n in range(4)]), {"x": x, "indices": b}, {"axis": 2, "batch_dims": 1})
    h = normal(7, 3, dtype=np.float16)
    c.add("gather", h[[6, 0]], {"x": h, "indices": np.array([6, 0], np.int32)})
    m = rng.integers(0, 2, (5, 3)) > 0
    c.add("gather", m[[4, 1, 1]], {"x": m, "indices": np.array([4, 1, 1], np.int32)})
    c.add("gather", np.zeros((0, 3), np.float32), {"x": normal(4, 3), "indices": np.zeros(0, np.int32)})
    a = integers(-5, 5, 4, 2, 6)
    c.add("gather_along_axis", np.take_along_axis(x, a.astype(np.int64) % 5, 1), {"x": x, "indices": a}, {"axis": 1})
    a = integers(0, 4, 3, 5, 6)
    c.add("gather_along_axis", np.take_along_axis(x, a.astype(np.int64), 0), {"x": x, "indices": a})
    n = np.array([[0, 1], [3, -1], [2, 2]], np.int32)
    c.add("gather_nd", x[n[:, 0], n[:, 1]], {"x": x, "indices": n})
    n3 = np.array([[[0, 1, 2], [3, 4, 5]]], np.int32)
    c.add("gather_nd", x[n3[..., 0], n3[..., 1], n3[..., 2]], {"x": x, "indices": n3})
    nb = np.array([[[1], [0]], [[2], [2]], [[4], [3]], [[0], [0]]], np.int32)
    c.add("gather_nd", np.stack([x[k][nb[k, :, 0]] for k in range(4)]), {"x": x, "indices": nb}, {"batch_dims": 1})

    f = {"update": lambda o, u: u, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
         "max": np.maximum, "min": np.minimum}
    i = np.array([1, 3, 1, -1], np.int32)
    for mode, g in f.items():
        for axis in (0, 1, 2):
            size = x.shape[axis]
            j = np.where(i < 0, i + size, i)
            u = normal(*x.shape[:axis], 4, *x.shape[axis + 1:])
            y = np.moveaxis(x.copy(), axis, 0)
            for k in range(4):
                y[j[k]] = g(y[j[k]], np.moveaxis(u, axis, 0)[k])
            c.add("scatter", np.moveaxis(y, 0, axis), {"data": x, "indices": i, "updates": u},
                  {"axis": axis, "mode": mode}, tolerance=1e-5)
            a = integers(0, size, *u.shape)
            y, v, b = (np.moveaxis(z, axis, 0) for z in (x.copy(), u, a))
            for k in range(4):
                for at in np.ndindex(b.shape[1:]):
                    y[(b[(k, *at)], *at)] = g(y[(b[(k, *at)], *at)], v[(k, *at)])
            c.add("scatter_along_axis", np.moveaxis(y, 0, axis), {"data": x, "indices": a, "updates": u},
                  {"axis": axis, "mode": mode}, tolerance=1e-5)
        n = np.array([[0, 1], [3, -1], [0, 1]], np.int32)
        u = normal(3, 6)
        y = x.copy()
        for k in range(3):
            y[n[k, 0], n[k, 1]] = g(y[n[k, 0], n[k, 1]], u[k])
        c.add("scatter_nd", y, {"data": x, "indices": n, "updates": u}, {"mode": mode}, tolerance=1e-5)
    ids, dy = np.array([0, 0, 1], np.int32), f32([1, 2, 4], shape=(3, 1))
    c.add("scatter", f32([[3], [4]]), {"data": np.zeros((2, 1), np.float32), "indices": ids, "updates": dy})
    k = integers(-9, 9, 4)
    y = k.copy()
    y[[2, 0]] += np.array([10, 20], np.int32)
    c.add("scatter", y, {"data": k, "indices": np.array([2, 0], np.int32), "updates": np.array([10, 20], np.int32)})
    h = normal(3, 2, dtype=np.float16)
    y = h.copy()
    y[1] = h[0]
    c.add("scatter", y, {"data": h, "indices": np.array([1], np.int32), "updates": h[:1]}, {"mode": "update"})

    i = np.array([[0, 2, 5], [-1, 1, 3]], np.int32)
    eye = (i[..., None] == np.arange(4)).astype(np.int32)
    c.add("one_hot", eye, {"indices": i}, {"one_hot_vector_size": 4})
    c.add("one_hot", np.moveaxis(eye, -1, 0).astype(np.float32) * 2.5 - 1, {"indices": i},
          {"one_hot_vector_size": 4, "axis": 0, "on_value": 1.5, "off_value": -1.0})
    c.add("one_hot", np.moveaxis(eye, -1, 1).astype(np.float16), {"indices": i},
          {"one_hot_vector_size": 4, "axis": 1, "on_value": np.array(1, np.float16),
           "off_value": np.array(0, np.float16)})
    rows, columns = np.arange(5)[:, None], np.arange(6)
    for lower, upper in ((1, 2), (-1, 0), (0, -1), (0, 0), (-1, -1)):
        keep = ((lower < 0) | (rows - columns <= lower)) & ((upper < 0) | (columns - rows <= upper))
        c.add("band_part", np.where(keep, x, 0), {"x": x}, {"lower": lower, "upper": upper})
    # Negative constants as converters write them in unsigned bits; where the number is an index it is that one.
    for dtype, given in ((np.uint16, [65535, 65534, 3]), (np.uint8, [255, 2, 254])):
        index, x = np.array(given, dtype), f32(np.arange(10)).reshape(5, 2)
        places = np.where(index >= 5, index.astype(np.int32) - (1 << 8 * index.itemsize), index)
        c.add("gather", x[places], {"x": x}, {"indices": index})
        c.add("gather_nd", x[places], {"x": x}, {"indices": index[:, None]})
        c.add("gather_along_axis", x[places], {"x": x}, {"indices": np.stack([index, index], 1)})
        c.add("scatter", x * 0 + np.bincount(places % 5, minlength=5)[:, None].astype(np.float32),
              {"data": x * 0, "updates": np.ones((3, 2), np.float32)}, {"indices": index})
    wide = f32(np.arange(200))
    c.add("gather", f32([150, 199]), {"x": wide}, {"indices": np.array([150, 255 - 56], np.uint8)})


def sorting(c):
    x = normal(3, 7, 4)
    nan = f32([[1, np.nan, 3, np.nan], [5, 5, -np.inf, np.inf]])
    for name, g in {"reduce_argmax": np.argmax, "reduce_argmin": np.argmin}.items():
        for axis in (0, 1, -1):
            c.add(name, g(x, axis).astype(np.int32), {"x": x}, {"axis": axis})
        c.add(name, np.expand_dims(g(x, 1), 1).astype(np.int32), {"x": x}, {"axis": 1, "keep_dims": True})
        c.add(name, g(nan, -1).astype(np.int32), {"x": nan})
        i = integers(-9, 9, 4, 6)
        c.add(name, g(i, -1).astype(np.int32), {"x": i})
        c.add(name, g(i, 0).astype(np.uint16), {"x": i}, {"axis": 0, "output_dtype": "uint16"})
        h = normal(3, 5, dtype=np.float16)
        c.add(name, g(h, -1).astype(np.int32), {"x": h})
    ties = f32([[2, 1, 2, 3, 1], [0, -0.0, 0, 0, 0]])
    for y in (x, ties, normal(2, 300, 1), integers(-4, 4, 2, 9)):
        axis = 1
        up = np.argsort(y, axis, kind="stable")
        down = np.argsort(-y, axis, kind="stable")
        c.add("argsort", down.astype(np.int32), {"x": y}, {"axis": axis})
        c.add("argsort", up.astype(np.int32), {"x": y}, {"axis": axis, "ascending": True})
        for k, order, ascending in ((2, down, False), (3, up, True), (-1, down, False)):
            take = order[:, : y.shape[1] if k == -1 else k]
            c.add("topk", [np.take_along_axis(y, take, axis), take.astype(np.int32)], {"x": y},
                  {"k": k, "axis": axis, "ascending": ascending})
    c.add("topk", np.sort(x, -1)[..., ::-1][..., :2], {"x": x}, {"k": 2, "return_indices": False})
    c.add("topk", [x.max(-1, keepdims=True), x.argmax(-1)[..., None].astype(np.int32)], {"x": x})
    for axis in (0, 1, 2):
        for exclusive in (False, True):
            for reverse in (False, True):
                y = np.flip(x, axis) if reverse else x
                s = np.cumsum(y, axis)
                s = s - y if exclusive else s
                c.add("cumsum", np.flip(s, axis) if reverse else s, {"x": x},
                      {"axis": axis, "exclusive": exclusive, "reverse": reverse}, tolerance=1e-5)
    i = integers(-9, 9, 3, 5)
    c.add("cumsum", np.cumsum(i, 0).astype(np.int32), {"x": i})


def normalization(c):
    def norm(x, axes, eps=1e-5):
        x = x.astype(np.float64)
        m = x.mean(axes, keepdims=True)
        return (x - m) / np.sqrt(x.var(axes, keepdims=True) + eps)

    x = normal(2, 3, 4, 5)
    for axes in ((3,), (-1, 2), (1, 2, 3), (0,), (1, 3)):
        c.add("layer_norm", norm(x, axes).astype(np.float32), {"x": x}, {"axes": axes}, tolerance=1e-5)
    c.add("layer_norm", norm(x, (0, 1, 2, 3), 0.1).astype(np.float32), {"x": x}, {"epsilon": 0.1}, tolerance=1e-5)
    g, b = normal(4, 5), normal(4, 5)
    c.add("layer_norm", (norm(x, (2, 3)) * g + b).astype(np.float32), {"x": x},
          {"axes": (2, 3), "gamma": g, "beta": b}, tolerance=1e-5)
    far = f32([[10000, 10001, 10002]])
    c.add("layer_norm", f32([[-1.2247356, 0, 1.2247356]]), {"x": far}, {"axes": (1,)}, tolerance=1e-5)
    big = normal(3, 700)
    c.add("layer_norm", norm(big, (1,)).astype(np.float32), {"x": big}, {"axes": (-1,)}, tolerance=1e-5)
    h = np.zeros((2, 4), np.float16)
    c.add("layer_norm", h, {"x": h}, {"axes": (1,), "epsilon": 1e-12})
    g, b = f32([1.5, -1, 0.5]), f32([0.1, 0.2, 0.3])
    c4 = (1, 3, 1, 1)
    c.add("instance_norm", (norm(x, (2, 3)) * g.reshape(c4) + b.reshape(c4)).astype(np.float32), {"x": x},
          {"gamma": g, "beta": b}, tolerance=1e-5)
    c.add("instance_norm", norm(x[0], (2,)).astype(np.float32), {"x": x[0]}, tolerance=1e-5)
    m, v = normal(3), np.abs(normal(3))
    y = (x - m.reshape(c4)) / np.sqrt(v.reshape(c4) + 1e-3)
    c.add("batch_norm", y, {"x": x}, {"mean": m, "variance": v, "epsilon": 1e-3}, tolerance=1e-5)
    c.add("batch_norm", y * g.reshape(c4) + b.reshape(c4), {"x": x},
          {"mean": m, "variance": v, "epsilon": 1e-3, "gamma": g, "beta": b}, tolerance=1e-5)
    s = np.sqrt((x.astype(np.float64) ** 2).sum((1, 2, 3), keepdims=True) + 1e-6)
    c.add("l2_norm", (x / s).astype(np.float32), {"x": x}, tolerance=1e-5)
    for size in (1, 2, 3):
        p = np.pad(x.astype(np.float64) ** 2, [(0, 0), (size // 2, (size - 1) // 2), (0, 0), (0, 0)])
        s = sum(p[:, k : k + 3] for k in range(size))
        c.add("local_response_norm", (x / (1.5 + 0.2 / size * s) ** 0.75).astype(np.float32), {"x": x},
              {"size": size, "alpha": 0.2, "k": 1.5}, tolerance=1e-5)


def pads_of(shape, kernel, stride, dilation, kind, pad):
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    if kind == "custom":
        return [(pad[2 * i], pad[2 * i + 1]) for i in range(len(kernel))]
    if kind == "valid":
        return [(0, 0)] * len(kernel)
    result = []
    for n, r, s in zip(shape, reach, stride, strict=True):
        total = max(0, (-(-n // s) - 1) * s + r - n)
        low, high = total // 2, total - total // 2
        result.append((low, high) if kind == "same" else (high, low))
    return result


def windows(x, kernel, stride, dilation, pads, fill=0.0):
    """[n, c, *windows, *kernel]"""
    dims = len(kernel)
    x = np.pad(x, [(0, 0), (0, 0), *pads], constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    v = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(2, 2 + dims)))
    at = (slice(None), slice(None), *(slice(None, None, s) for s in stride), *(slice(None, None, d) for d in dilation))
    return v[at]


def conv(x, w, stride, dilation, pads, groups):
    dims = w.ndim - 2
    v = windows(x.astype(np.float64), w.shape[2:], stride, dilation, pads)
    ci, co = w.shape[1], w.shape[0] // groups
    out = []
    for g in range(groups):
        part, kernel = v[:, g * ci : (g + 1) * ci], w[g * co : (g + 1) * co].astype(np.float64)
        axes = [1, *range(2 + dims, 2 + 2 * dims)]
        out.append(np.moveaxis(np.tensordot(part, kernel, (axes, list(range(1, 2 + dims)))), -1, 1))
    return np.concatenate(out, 1)


def conv_transpose(x, w, stride, dilation, groups):
    """Every element of x adds its multiple of the kernel; nothing is cropped."""
    sizes = zip(x.shape[2:], stride, w.shape[2:], dilation, strict=True)
    size = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in sizes]
    ci, co = x.shape[1] // groups, w.shape[1]
    y = np.zeros((x.shape[0], co * groups, *size))
    for g in range(groups):
        for at in np.ndindex(*x.shape[2:]):
            for k in np.ndindex(*w.shape[2:]):
                to = tuple(a * s + b * d for a, s, b, d in zip(at, stride, k, dilation, strict=True))
                ins, outs = slice(g * ci, (g + 1) * ci), slice(g * co, (g + 1) * co)
                part = x[(slice(None), ins, *at)].astype(np.float64)
                y[(slice(None), outs, *to)] += part @ w[(ins, slice(None), *k)]
    return y


def convolution(c):
    cases = [
        ((2, 3, 8), (4, 3, 3), (1,), (1,), "valid", (0, 0), 1), ((2, 4, 9), (6, 2, 3), (2,), (2,), "same", (0, 0), 2),
        ((2, 3, 7, 8), (4, 3, 3, 3), (1, 1), (1, 1), "custom", (1, 1, 1, 1), 1),
        ((2, 3, 7, 8), (4, 3, 3, 2), (2, 3), (1, 2), "custom", (2, 0, 1, 3), 1),
        ((2, 4, 6, 6), (4, 1, 3, 3), (1, 1), (1, 1), "same", (0, 0, 0, 0), 4),
        ((2, 4, 7, 6), (6, 2, 3, 4), (2, 2), (1, 1), "same_lower", (0, 0, 0, 0), 2),
        ((2, 5, 6, 7), (3, 5, 1, 1), (1, 1), (1, 1), "valid", (0, 0, 0, 0), 1),
        ((2, 5, 6, 7), (3, 5, 1, 1), (2, 1), (1, 1), "valid", (0, 0, 0, 0), 1),
        ((1, 2, 4, 5, 6), (3, 2, 2, 3, 2), (1, 2, 1), (2, 1, 1), "custom", (1, 0, 0, 1, 1, 1), 1),
        ((1, 16, 28, 28), (8, 16, 5, 5), (1, 1), (1, 1), "custom", (2, 2, 2, 2), 1),
        ((3, 2, 5, 5), (4, 2, 5, 5), (1, 1), (1, 1), "valid", (0, 0, 0, 0), 1),
    ]
    for s, t, stride, dilation, kind, pad, groups in cases:
        x, w, b = normal(*s), normal(*t), normal(t[0])
        pads = pads_of(s[2:], t[2:], stride, dilation, kind, pad)
        y = conv(x, w, stride, dilation, pads, groups)
        params = {"strides": stride, "dilations": dilation, "pad_type": kind, "pad": pad, "groups": groups}
        c.add("conv", y.astype(np.float32), {"x": x, "weight": w}, params, tolerance=1e-4)
        y = y + b.reshape(-1, *[1] * (len(s) - 2))
        c.add("conv", y.astype(np.float32), {"x": x}, params | {"weight": w, "bias": b}, tolerance=1e-4)
    x, w = normal(2, 3, 5, 5), normal(2, 3, 3, 3)
    c.add("conv", conv(x, w, (1, 1), (1, 1), [(0, 0)] * 2, 1).astype(np.float32), {"x": x, "weight": w},
          tolerance=1e-4)
    h, k = normal(1, 2, 5, 5, dtype=np.float16), normal(2, 2, 3, 3, dtype=np.float16)
    c.add("conv", conv(h, k, (1, 1), (1, 1), [(0, 0)] * 2, 1).astype(np.float16), {"x": h, "weight": k},
          tolerance=2e-3)
    for s, t, stride, dilation, groups in [
        ((2, 3, 5), (3, 4, 3), (1,), (1,), 1), ((2, 4, 5), (4, 3, 3), (3,), (2,), 2),
        ((2, 3, 4, 5), (3, 2, 3, 3), (1, 1), (1, 1), 1), ((2, 3, 4, 5), (3, 2, 3, 2), (2, 3), (1, 2), 1),
        ((2, 4, 3, 3), (4, 1, 2, 2), (2, 2), (1, 1), 4), ((1, 2, 2, 3, 2), (2, 2, 2, 2, 3), (2, 1, 2), (1, 1, 1), 1),
        ((1, 8, 20, 20), (8, 4, 5, 5), (1, 1), (1, 1), 1),
    ]:
        x, w = normal(*s), normal(*t)
        full = conv_transpose(x, w, stride, dilation, groups)
        params = {"strides": stride, "dilations": dilation, "groups": groups}
        c.add("conv_transpose", full.astype(np.float32), {"x": x, "weight": w}, params, tolerance=1e-4)
        b = normal(full.shape[1])
        dims = len(s) - 2
        pad = (1, 0) * dims
        cut = full[(slice(None), slice(None), *[slice(1, None)] * dims)] + b.reshape(-1, *[1] * dims)
        c.add("conv_transpose", cut.astype(np.float32), {"x": x},
              params | {"weight": w, "bias": b, "pad_type": "custom", "pad": pad}, tolerance=1e-4)
        size = [n - 1 for n in full.shape[2:-1]] + [full.shape[-1] + 2]
        given = np.zeros((*full.shape[:2], *size))
        part = full[(slice(None), slice(None), *[slice(0, n) for n in size])]
        given[tuple(slice(0, n) for n in part.shape)] = part
        c.add("conv_transpose", given.astype(np.float32), {"x": x, "weight": w},
              params | {"output_shape": given.shape}, tolerance=1e-4)
    x, w = normal(1, 2, 3, 3), normal(2, 2, 3, 3)
    full = conv_transpose(x, w, (2, 2), (1, 1), 1)
    c.add("conv_transpose", full[:, :, :6, :6].astype(np.float32), {"x": x, "weight": w},
          {"strides": (2, 2), "pad_type": "same"}, tolerance=1e-4)
    c.add("conv_transpose", full[:, :, 1:7, 1:7].astype(np.float32), {"x": x, "weight": w},
          {"strides": (2, 2), "pad_type": "same_lower"}, tolerance=1e-4)


def pooling(c):
    def mean(x, kernel, stride, pads, exclude):
        s = windows(x.astype(np.float64), kernel, stride, [1] * len(kernel), pads)
        dims = tuple(range(-len(kernel), 0))
        if not exclude:
            return s.mean(dims)
        ones = windows(np.ones_like(x, np.float64), kernel, stride, [1] * len(kernel), pads)
        return s.sum(dims) / ones.sum(dims)

    for s, kernel, stride, kind, pad in [
        ((2, 3, 9), (3,), (2,), "valid", (0, 0)), ((2, 3, 8, 8), (2, 2), (2, 2), "valid", (0, 0, 0, 0)),
        ((2, 3, 7, 8), (3, 2), (2, 1), "custom", (1, 1, 1, 0)), ((2, 3, 7, 8), (3, 3), (2, 2), "same", (0, 0, 0, 0)),
        ((2, 1, 6, 7), (2, 4), (1, 3), "same_lower", (0, 0, 0, 0)),
        ((1, 2, 4, 5, 6), (2, 2, 3), (1, 2, 2), "custom", (0, 0, 1, 0, 1, 1)),
        ((1, 2, 4, 74), (2, 2), (2, 2), "valid", (0, 0, 0, 0)), ((1, 2, 3, 40), (3, 3), (1, 1), "same", (0, 0, 0, 0)),
        ((1, 1, 2, 107), (2, 5), (1, 3), "custom", (1, 1, 2, 2)),
    ]:
        x = normal(*s)
        pads = pads_of(s[2:], kernel, stride, [1] * len(kernel), kind, pad)
        params = {"kernel_sizes": kernel, "strides": stride, "pad_type": kind, "pad": pad}
        axes = tuple(range(-len(kernel), 0))
        v = windows(x, kernel, stride, [1] * len(kernel), pads, -np.inf)
        c.add("max_pool", v.max(axes), {"x": x}, params)
        for exclude in (False, True):
            c.add("avg_pool", mean(x, kernel, stride, pads, exclude).astype(np.float32), {"x": x},
                  params | {"exclude_padding_from_average": exclude})
        v = windows(x.astype(np.float64), kernel, stride, [1] * len(kernel), pads)
        c.add("l2_pool", np.sqrt((v**2).sum(axes)).astype(np.float32), {"x": x}, params)
    c.add("avg_pool", np.full((1, 1, 2, 2), 0.25, np.float32), {"x": np.ones((1, 1, 2, 2), np.float32)},
          {"kernel_sizes": (2, 2), "strides": (2, 2), "pad_type": "custom", "pad": (1, 1, 1, 1)})
    c.add("avg_pool", f32([[[[0.32653, 0.57143], [0.57143, 1]]]]), {"x": np.ones((1, 1, 8, 8), np.float32)},
          {"kernel_sizes": (7, 7), "strides": (4, 4), "pad_type": "custom", "pad": (3, 3, 3, 3)}, tolerance=1e-5)
    # Ceil mode: the last window hangs over; what is beyond the padding never counts.
    x = np.arange(5, dtype=np.float32).reshape(1, 1, 5)
    params = {"kernel_sizes": (2,), "strides": (2,), "pad_type": "valid", "ceil_mode": True}
    c.add("max_pool", f32([[[1, 3, 4]]]), {"x": x}, params)
    c.add("avg_pool", f32([[[0.5, 2.5, 4]]]), {"x": x}, params)
    params = {"kernel_sizes": (3,), "strides": (2,), "pad_type": "custom", "pad": (1, 1), "ceil_mode": True}
    c.add("avg_pool", f32([[[1 / 3, 2, 7 / 3]]]), {"x": x}, params)
    nan = f32([[[1, np.nan, 3, 4]]])
    c.add("max_pool", f32([[[np.nan, 4]]]), {"x": nan}, {"kernel_sizes": (2,), "strides": (2,), "pad_type": "valid"})
    h = normal(1, 2, 4, 4, dtype=np.float16)
    c.add("max_pool", h.reshape(1, 2, 2, 2, 2, 2).max((3, 5)), {"x": h},
          {"kernel_sizes": (2, 2), "strides": (2, 2), "pad_type": "valid"})


def resizing(c):
    x = normal(2, 3, 4, 6)

    def linear(x, points, axis):
        low = np.floor(points).astype(int)
        high = np.minimum(low + 1, x.shape[axis] - 1)
        f = (points - low).reshape(-1, *[1] * (x.ndim - axis - 1))
        return np.take(x, low, axis) * (1 - f) + np.take(x, high, axis) * f

    def both(x, h, w, grid):
        points = [np.clip(grid(n, m), 0, n - 1) for n, m in zip(x.shape[-2:], (h, w), strict=True)]
        return linear(linear(x.astype(np.float64), points[0], 2), points[1], 3).astype(np.float32)

    grids = {
        "DEFAULT": lambda n, m: np.arange(m) * n / m,
        "STRICT_ALIGN_CORNERS": lambda n, m: np.arange(m) * (n - 1) / max(m - 1, 1),
        "ALIGN_CORNERS": lambda n, m: np.arange(m) * (n - 1) / (m - 1) if m > 1 else np.array([(n - 1) / 2]),
        "OFFSET_CORNERS": lambda n, m: (np.arange(m) + 0.5) * max(1, n - 1) / m,
        "UNALIGN_CORNERS": lambda n, m: (np.arange(m) + 0.5) * n / m - 0.5,
    }

    def floor(n, m):
        return np.arange(m) * n // m

    for h, w in ((8, 12), (3, 5), (1, 7), (4, 9)):
        y = x[:, :, floor(4, h)][:, :, :, floor(6, w)]
        c.add("resize_nearest_neighbor", y, {"x": x}, {"target_size_height": h, "target_size_width": w})
        for mode, grid in grids.items():
            c.add("resize_bilinear", both(x, h, w, grid), {"x": x},
                  {"target_size_height": h, "target_size_width": w, "sampling_mode": mode}, tolerance=1e-5)
            c.add("resize", both(x, h, w, grid), {"x": x},
                  {"shape": (0, 0, h, w), "resized_dims": np.array(2, np.int32), "sampling_mode": mode},
                  tolerance=1e-5)
    c.add("upsample_nearest_neighbor", x.repeat(2, 2).repeat(3, 3), {"x": x},
          {"scale_factor_height": 2, "scale_factor_width": 3})
    c.add("upsample_nearest_neighbor", x[:, :, :, floor(6, 9)], {"x": x}, {"scale_factor_width": 1.5})
    y = both(x, 8, 12, grids["STRICT_ALIGN_CORNERS"])
    c.add("upsample_bilinear", y, {"x": x}, {"scale_factor_height": 2.0, "scale_factor_width": 2.0}, tolerance=1e-5)
    y = both(x, 8, 12, grids["UNALIGN_CORNERS"])
    c.add("upsample_bilinear", y, {"x": x},
          {"scale_factor_height": 2.0, "scale_factor_width": 2.0, "align_corners": False}, tolerance=1e-5)
    y = both(x, 8, 12, grids["DEFAULT"])
    c.add("upsample_bilinear", y, {"x": x},
          {"scale_factor_height": 2.0, "scale_factor_width": 2.0, "align_corners": False,
           "half_pixel_centers": False}, tolerance=1e-5)
    c.add("resize", f32([[[0, 1, 1]]]), {"x": f32([[[0, 1]]])},
          {"shape": (3,), "resized_dims": np.array(1, np.int32), "interpolation_mode": "NEAREST_NEIGHBOR"})
    c.add("crop", x[:, :, 1:3, 2:6], {"x": x}, {"crop_height": (1, 1), "crop_width": (2, 0)})


def contraction(c):
    x, y = normal(2, 3, 4, 5), normal(2, 5, 4, 6)
    c.add("einsum", np.einsum("nchw,nwhu->nchu", x, y), {"values": [x, y]}, {"equation": "nchw,nwhu->nchu"},
          tolerance=1e-5)
    c.add("einsum", np.einsum("chw,whr->chr", x[0], y[0]), {"values": [x[0], y[0]]}, {"equation": "chw,whr->chr"},
          tolerance=1e-5)
    c.add("einsum", np.einsum("ab,cb->ca", x[0, 0], y[0, :, :, :].reshape(24, 5)),
          {"values": [x[0, 0], y[0].reshape(24, 5)]}, {"equation": "ab,cb->ca"}, tolerance=1e-5)
    q, k, v = normal(2, 3, 5, 8), normal(2, 3, 7, 8), normal(2, 3, 7, 4)

    def attention(mask):
        s = q.astype(np.float64) @ np.swapaxes(k, -1, -2) / np.sqrt(8) + mask
        e = np.exp(s - s.max(-1, keepdims=True))
        return (e / e.sum(-1, keepdims=True) @ v).astype(np.float32)

    m = rng.integers(0, 2, (5, 7)) > 0
    m[:, 0] = True
    feeds = {"query": q, "key": k, "value": v}
    c.add("scaled_dot_product_attention", attention(0), feeds, opset=8, tolerance=1e-5)
    c.add("scaled_dot_product_attention", attention(np.where(m, 0, -np.inf)), feeds | {"attn_mask": m}, opset=8,
          tolerance=1e-5)
    a = normal(2, 1, 5, 7)
    c.add("scaled_dot_product_attention", attention(a), feeds | {"attn_mask": a}, opset=8, tolerance=1e-5)


def rearrangement(c):
    x = normal(3, 4, 5)
    lengths = np.array([2, 0, 4], np.int32)
    y = x.copy()
    for n, length in enumerate(lengths):
        y[n, :length] = x[n, :length][::-1]
    c.add("reverse_sequence", y, {"x": x, "lengths": lengths}, {"seq_axis": 1, "batch_axis": 0})
    z = np.swapaxes(x, 0, 1)
    c.add("reverse_sequence", np.swapaxes(y, 0, 1), {"x": z, "lengths": lengths}, {"seq_axis": 0, "batch_axis": 1})
    x = normal(2, 3, 4, 5)
    p = np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 1)])
    y = p.reshape(2, 3, 3, 2, 2, 3).transpose(3, 5, 0, 1, 2, 4).reshape(12, 3, 3, 2)
    c.add("space_to_batch", y, {"x": x},
          {"block_shape": (2, 3), "paddings": np.array([[1, 1], [0, 1]], np.int32)})
    c.add("batch_to_space", x, {"x": y}, {"block_shape": (2, 3), "crops": np.array([[1, 1], [0, 1]], np.int32)})
    x, s, z = normal(3, 4), f32([0.1, 0.2, 0.05]), np.array([3, -2, 0], np.int8)
    q = np.clip(np.rint(x / s[:, None]) + z[:, None], -128, 127).astype(np.int8)
    c.add("quantize", q, {"input": x}, {"scale": s, "zero_point": z, "axis": 0, "output_dtype": "int8"})
    c.add("dequantize", (q.astype(np.float32) - z[:, None]) * s[:, None], {"input": q},
          {"scale": s, "zero_point": z, "axis": 0})
    u = np.clip(np.rint(x / f32(0.1)), 0, 255).astype(np.uint8)
    c.add("quantize", u, {"input": x}, {"scale": 0.1, "output_dtype": "uint8"})
    c.add("dequantize", u.astype(np.float32) * f32(0.1), {"input": u}, {"scale": 0.1})


def packed(values, width):
    """Numbers of `width` bits in bytes, from the low bit on."""
    bits = (values.reshape(-1, 1) >> np.arange(width)) & 1
    return np.packbits(bits.reshape(-1).astype(np.uint8), bitorder="little")


def compression(c):
    halves = {"source_val": np.float16([1.5, -2]), "output_dtype": "fp32"}
    c.add("constexpr_cast", f32([1.5, -2.0]), {}, halves, opset=6)
    q = rng.integers(-128, 128, (3, 4)).astype(np.int8)
    scale, zero = f32([0.5, 0.25, 2.0]), np.int8([1, -3, 0])
    c.add("constexpr_affine_dequantize", (q.astype(np.float32) - zero[:, None]) * scale[:, None], {},
          {"quantized_data": q, "zero_point": zero, "scale": scale, "axis": 0}, opset=6)
    c.add("constexpr_affine_dequantize", ((q.astype(np.float32) - 7) * f32(0.5)).astype(np.float16), {},
          {"quantized_data": q, "zero_point": np.int8(7), "scale": np.float16(0.5), "axis": 1}, opset=6)
    lut, indices = normal(8), rng.integers(0, 8, (3, 5)).astype(np.uint8)
    c.add("constexpr_lut_to_dense", lut[indices], {},
          {"indices": packed(indices, 3), "lut": lut, "shape": (3, 5)}, opset=6)
    mask = rng.integers(0, 2, (3, 7)).astype(np.uint8)
    dense = np.where(mask, normal(3, 7), 0).astype(np.float32)
    values = dense[mask != 0]
    c.add("constexpr_sparse_to_dense", dense, {},
          {"nonzero_data": values, "mask": packed(mask, 1), "shape": (3, 7)}, opset=6)
    c.add("constexpr_sparse_to_dense", dense, {}, {"nonzero_data": values, "mask": mask}, opset=8)

    data, scale, offset = rng.integers(-8, 8, (4, 6)).astype(np.int8), normal(2, 3), np.int8([[1, 2, 3], [0, -1, 4]])
    wide = [np.repeat(np.repeat(x, 2, 0), 2, 1) for x in (scale, offset)]
    expected = wide[0] * (data.astype(np.float32) - wide[1])
    c.add("constexpr_blockwise_shift_scale", expected, {}, {"data": data, "scale": scale, "offset": offset}, opset=8)
    c.add("constexpr_blockwise_shift_scale", data.astype(np.float16) * np.float16(0.5), {},
          {"data": data, "scale": np.full((4, 1), 0.5, np.float16)}, opset=8)
    mask = rng.integers(0, 2, (4, 6)).astype(np.uint8)
    chosen = mask != 0
    c.add("constexpr_sparse_blockwise_shift_scale", [mask, expected[chosen]], {},
          {"data_mask": mask, "nonzero_data": data[chosen], "scale": scale, "offset": offset}, opset=8)

    indices, lut = rng.integers(0, 4, (6, 2)).astype(np.uint8), normal(2, 1, 4, 1)
    dense = np.stack([lut[i // 3, 0, indices[i], 0] for i in range(6)])
    c.add("constexpr_lut_to_dense", dense, {}, {"indices": indices, "lut": lut}, opset=8)
    mask = rng.integers(0, 2, (6, 2)).astype(np.uint8)
    c.add("constexpr_lut_to_sparse", [mask, dense[mask != 0]], {},
          {"indices_mask": mask, "indices_nonzero_data": indices[mask != 0], "lut": lut}, opset=8)
    indices, lut = rng.integers(0, 2, (2, 2, 2)).astype(np.uint8), normal(1, 1, 1, 2, 3)
    vectors = lut[0, 0, 0][indices]
    for axis, order in ((0, (0, 3, 1, 2)), (1, (0, 1, 3, 2)), (-1, (0, 1, 2, 3))):
        shape = [2, 2, 2]
        shape[axis] = 6
        c.add("constexpr_lut_to_dense", vectors.transpose(order).reshape(shape), {},
              {"indices": indices, "lut": lut, "vector_axis": axis}, opset=8)
    mask = np.uint8([[1, 0, 1], [0, 1, 1]])
    index = np.uint8([0, 1, 1, 0])
    lut = f32([2, 3, 4, 5]).reshape(1, 1, 2, 2)
    tall = np.zeros((4, 3), np.float32)
    for (i, j), k in zip(np.argwhere(mask), index, strict=True):
        tall[2 * i : 2 * i + 2, j] = lut[0, 0, k]
    tall_mask = np.repeat(mask, 2, 0)
    c.add("constexpr_lut_to_sparse", [tall_mask, tall[tall_mask != 0]], {},
          {"indices_mask": mask, "indices_nonzero_data": index, "lut": lut, "vector_axis": 0}, opset=8)


GATES = {
    "sigmoid": sigmoid, "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0), "linear": lambda x: x,
    "hard_sigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1), "scaled_tanh": np.tanh,
}


def rnn_steps(x, h, wi, wh, b, f, reverse):
    out = []
    for t in range(len(x))[:: -1 if reverse else 1]:
        h = f(x[t] @ wi.T + h @ wh.T + b)
        out.append(h)
    return np.stack(out), h


def gru_steps(x, h, wi, wh, b, bi, rec, act, reverse, after):
    out = []
    (wr, wo, wz), (ur, uo, uz) = np.split(wi, 3), np.split(wh, 3)
    (br, bo, bz), (cr, co, cz) = np.split(b, 3), np.split(bi, 3)
    for t in range(len(x))[:: -1 if reverse else 1]:
        r, z = rec(x[t] @ wr.T + cr + h @ ur.T + br), rec(x[t] @ wz.T + cz + h @ uz.T + bz)
        inner = r * (h @ uo.T + bo) if after else (r * h) @ uo.T + bo
        h = (1 - z) * act(x[t] @ wo.T + co + inner) + z * h
        out.append(h)
    return np.stack(out), h


def lstm_steps(x, h, c, wi, wh, b, p, rec, cell, act, clip, reverse):
    out = []
    for t in range(len(x))[:: -1 if reverse else 1]:
        i, f, o, z = np.split(x[t] @ wi.T + h @ wh.T + b, 4, axis=-1)
        i, f = rec(i + p[0] * c), rec(f + p[1] * c)
        c = np.clip(f * c + i * cell(z), -clip, clip)
        h = rec(o + p[2] * c) * act(c)
        out.append(h)
    return np.stack(out), h, c


def recurrent(c):
    def small(*shape):
        return (normal(*shape) / 4).astype(np.float32)

    def wide(*arrays):
        return [a.astype(np.float64) for a in arrays]

    def single(arrays, sequence):
        out, *rest = (np.asarray(a, np.float32) for a in arrays)
        return [out if sequence else out[-1:], *rest]

    s, b, n, m = 5, 3, 4, 6
    x = normal(s, b, n)
    h, cell = small(b, m), small(b, m)
    for sequence in (True, False):
        for reverse in (False, True):
            common = {"direction": "reverse" if reverse else "forward", "output_sequence": sequence}
            wi, wh, bias = small(m, n), small(m, m), small(m)
            for name in ("tanh", "relu", "sigmoid"):
                got = rnn_steps(*wide(x, h, wi, wh, bias), GATES[name], reverse)
                c.add("rnn", single(got, sequence), {"x": x, "initial_h": h},
                      common | {"weight_ih": wi, "weight_hh": wh, "bias": bias, "activation": name}, tolerance=2e-6)
            wi, wh, bias, extra = small(3 * m, n), small(3 * m, m), small(3 * m), small(3 * m)
            zero = np.zeros(3 * m)
            w = {"weight_ih": wi, "weight_hh": wh}
            for rec, act in (("sigmoid", "tanh"), ("hard_sigmoid", "relu")):
                names = {"recurrent_activation": rec, "activation": act}
                got = gru_steps(*wide(x, h, wi, wh, bias, zero), GATES[rec], GATES[act], reverse, False)
                c.add("gru", single(got, sequence), {"x": x, "initial_h": h}, common | w | names | {"bias": bias},
                      tolerance=2e-6)
            got = gru_steps(*wide(x, h, wi, wh, bias, extra), GATES["sigmoid"], np.tanh, reverse, True)
            c.add("gru", single(got, sequence), {"x": x, "initial_h": h},
                  common | w | {"bias": bias, "input_bias": extra, "reset_after": True}, opset=8, tolerance=2e-6)
            got = gru_steps(*wide(x, h, wi, wh, zero, zero), GATES["sigmoid"], np.tanh, reverse, False)
            c.add("gru", single(got, sequence), {"x": x, "initial_h": h}, common | w, tolerance=2e-6)
            wi, wh, bias, peep = small(4 * m, n), small(4 * m, m), small(4 * m), small(3 * m)
            feeds = {"x": x, "initial_h": h, "initial_c": cell}
            w = {"weight_ih": wi, "weight_hh": wh}
            none = np.zeros((3, m))
            operands = wide(x, h, cell, wi, wh, np.zeros(4 * m), none)
            got = lstm_steps(*operands, sigmoid, np.tanh, np.tanh, np.inf, reverse)
            c.add("lstm", single(got, sequence), feeds, common | w, tolerance=2e-6)
            operands = wide(x, h, cell, wi, wh, bias, peep.reshape(3, m))
            got = lstm_steps(*operands, sigmoid, np.tanh, np.tanh, 0.3, reverse)
            c.add("lstm", single(got, sequence), feeds, common | w | {"bias": bias, "peephole": peep, "clip": 0.3},
                  tolerance=2e-6)
            got = lstm_steps(*wide(x, h, cell, wi, wh, bias, none), GATES["hard_sigmoid"], GATES["relu"],
                             GATES["linear"], np.inf, reverse)
            names = {"recurrent_activation": "hard_sigmoid", "cell_activation": "relu", "activation": "linear"}
            c.add("lstm", single(got, sequence), feeds, common | w | names | {"bias": bias}, tolerance=2e-6)
        back = [small(4 * m, n), small(4 * m, m), small(4 * m)]
        h2, c2 = small(b, 2 * m), small(b, 2 * m)
        args = (sigmoid, np.tanh, np.tanh, np.inf)
        one = lstm_steps(*wide(x, h2[:, :m], c2[:, :m], wi, wh, bias, none), *args, False)
        two = lstm_steps(*wide(x, h2[:, m:], c2[:, m:], *back, none), *args, True)
        sequences = (one[0], two[0][::-1]) if sequence else (one[0][-1:], two[0][-1:])
        expected = [np.concatenate(p, -1).astype(np.float32) for p in (sequences, (one[1], two[1]), (one[2], two[2]))]
        backward = dict(zip(("weight_ih_back", "weight_hh_back", "bias_back"), back, strict=True))
        c.add("lstm", expected, {"x": x, "initial_h": h2, "initial_c": c2},
              w | backward | {"bias": bias, "direction": "bidirectional", "output_sequence": sequence}, tolerance=2e-6)
    half_x = normal(2, 1, 3, dtype=np.float16)
    weights = [small(8, 3).astype(np.float16), small(8, 2).astype(np.float16)]
    zeros = np.zeros((1, 2), np.float16)
    got = lstm_steps(*wide(half_x, zeros, zeros, *weights, np.zeros(8), np.zeros((3, 2))), *args, False)
    c.add("lstm", [got[0].astype(np.float16), got[1].astype(np.float16), got[2].astype(np.float16)],
          {"x": half_x, "initial_h": zeros, "initial_c": zeros},
          {"weight_ih": weights[0], "weight_hh": weights[1], "output_sequence": True}, tolerance=1e-3)


def sampling(c):
    def bilinear(image, px, py, outside):
        """At one point of an image [c, h, w]; `outside(i, size)` is an index, or None for the value 10."""
        _, h, w = image.shape
        i, j = math.floor(py), math.floor(px)
        total = 0
        for di, wi in ((0, 1 - (py - i)), (1, py - i)):
            for dj, wj in ((0, 1 - (px - j)), (1, px - j)):
                ii, jj = outside(i + di, h), outside(j + dj, w)
                total = total + wi * wj * (10.0 if ii is None or jj is None else image[:, ii, jj].astype(np.float64))
        return total

    def reflect(i, n):
        i = abs(i) % (2 * n - 2)
        return i if i < n else 2 * n - 2 - i

    def symmetric(i, n):
        i = i % (2 * n)
        return i if i < n else 2 * n - 1 - i

    outsides = {
        "constant": lambda i, n: i if 0 <= i < n else None, "border": lambda i, n: min(max(i, 0), n - 1),
        "reflection": reflect, "symmetric": symmetric,
    }
    x = normal(2, 3, 4, 5)
    points = rng.uniform(-3, 8, (2, 3, 2, 2)).astype(np.float32)
    names = {"sampling_mode": "bilinear", "padding_value": 10.0, "coordinates_mode": "unnormalized",
             "align_corners": True}

    def resampled(points, outside):
        out = np.zeros((2, 3, 3, 2))
        for n, i, j in np.ndindex(2, 3, 2):
            out[n, :, i, j] = bilinear(x[n], *points[n, i, j].astype(np.float64), outside)
        return out.astype(np.float32)

    for name, outside in outsides.items():
        c.add("resample", resampled(points, outside), {"x": x, "coordinates": points}, names | {"padding_mode": name},
              tolerance=1e-5)
    for mode, corners in (("normalized_minus_one_to_one", True), ("normalized_minus_one_to_one", False),
                          ("normalized_zero_to_one", True), ("normalized_zero_to_one", False)):
        unit = rng.uniform(-0.1, 1.1, (2, 3, 2, 2)).astype(np.float32)
        size = np.array([5, 4])
        pixels = unit * (size - 1) if corners else unit * size - 0.5
        fed = unit if mode.endswith("zero_to_one") else 2 * unit - 1
        c.add("resample", resampled(pixels, outsides["constant"]), {"x": x, "coordinates": fed},
              names | {"padding_mode": "constant", "coordinates_mode": mode, "align_corners": corners}, tolerance=1e-5)
    whole = integers(-1, 6, 2, 3, 2, 2)
    c.add("resample", resampled(whole, outsides["constant"]), {"x": x, "coordinates": whole},
          names | {"padding_mode": "constant"}, tolerance=1e-5)
    halves = rng.integers(-6, 16, (2, 3, 2, 2)).astype(np.float32) / 2
    for name, outside in outsides.items():
        for fed in (points, halves):
            c.add("resample", resampled(np.floor(fed.astype(np.float64) + 0.5), outside), {"x": x, "coordinates": fed},
                  names | {"padding_mode": name, "sampling_mode": "nearest"})

    matrix = f32([[0.8, 0.1, 0.05, -0.2, 0.9, 0.1], [1, 0, 0, 0, 1, 0]])
    grid = np.stack(np.meshgrid(np.linspace(-1, 1, 2), np.linspace(-1, 1, 3)), -1)
    moved = np.stack([grid @ m.reshape(2, 3)[:, :2].T + m.reshape(2, 3)[:, 2] for m in matrix.astype(np.float64)])
    zero = {"padding_mode": "constant", "padding_value": 0.0, "sampling_mode": "bilinear",
            "coordinates_mode": "normalized_minus_one_to_one", "align_corners": True}
    pixels = (moved + 1) / 2 * (np.array([5, 4]) - 1)
    inside = {"constant": lambda i, n: i if 0 <= i < n else None}
    flat = np.zeros((2, 3, 3, 2))
    for n, i, j in np.ndindex(2, 3, 2):
        image = np.pad(x[n], [(0, 0), (3, 3), (3, 3)])
        flat[n, :, i, j] = bilinear(image, pixels[n, i, j, 0] + 3, pixels[n, i, j, 1] + 3, inside["constant"])
    c.add("affine", flat.astype(np.float32), {"x": x, "transform_matrix": matrix},
          zero | {"output_height": 3, "output_width": 2}, tolerance=1e-5)

    x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    corners = {"target_height": 2, "target_width": 2, "sampling_mode": "ALIGN_CORNERS", "pad_value": 10.0}
    c.add("crop_resize", f32([6, 7, 10, 11]).reshape(1, 1, 2, 2), {"x": x, "boxes": f32([[1, 1, 2, 2]])}, corners)
    boxes = f32([[0.1, 0.3, 1.3, 1.0], [0.5, 1.8, 1.0, 0.3], [0.0, 0.4, 0.6, 0.7]])
    # As MIL's documentation has it.
    expected = f32([3.1, 5.2, 10, 10, 10, 7.9, 10, 13.9, 2.2, 3.1, 9.4, 10.3]).reshape(3, 1, 2, 2)
    c.add("crop_resize", expected, {"x": x, "boxes": boxes, "box_indices": np.zeros(3, np.int32)},
          corners | {"normalized_coordinates": True}, tolerance=1e-5)
    c.add("crop_resize", expected[:, None], {"x": x, "roi": boxes.reshape(3, 1, 4, 1, 1)},
          corners | {"normalized_coordinates": True}, opset=6, tolerance=1e-5)
    c.add("crop_resize", f32([6, 7, 10, 11]).reshape(1, 1, 1, 2, 2),
          {"x": x, "roi": f32([0, 1.5, 1.5, 1, 1]).reshape(1, 1, 5, 1, 1)},
          {"target_height": 2, "target_width": 2, "sampling_mode": "ALIGN_CORNERS",
           "box_coordinate_mode": "CENTER_SIZE_WIDTH_FIRST"}, opset=5)


def valued(c):
    """Operations that need the values of their operands when they are planned."""
    x = f32([[0, 1.5, 0], [-2, 0, np.nan]])
    c.add("non_zero", np.argwhere(x).astype(np.int32), {}, {"x": x})
    c.add("non_zero", np.zeros((0, 1), np.int32), {}, {"x": np.zeros(3, np.int32)})
    c.add("non_zero", np.array([[1], [2]], np.int32), {}, {"x": np.array([False, True, True])})
    # Centres, widths and heights; the second overlaps the first by 0.6, the fourth has the lowest score.
    boxes = f32([[[1, 1, 2, 2], [1.5, 1, 2, 2], [5, 5, 2, 2], [1, 1, 2, 2]]])
    scores = f32([[[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.05, 0.01]]])
    for per_class, kept in ((False, [0, 2]), (True, [0, 1, 2])):
        indices = np.int32([kept + [-1] * (4 - len(kept))])
        out = [np.zeros((1, 4, 4), np.float32), np.zeros((1, 4, 2), np.float32)]
        out[0][0, : len(kept)], out[1][0, : len(kept)] = boxes[0, kept], scores[0, kept]
        rest = {"iou_threshold": 0.5, "max_boxes": 4, "per_class_suppression": per_class}
        if not per_class:
            c.add("non_maximum_suppression", [*out, indices, np.int32([len(kept)])], {},
                  rest | {"boxes": boxes, "scores": scores, "score_threshold": 0.1}, opset=5)
        turned = [np.swapaxes(a, 1, 2) for a in (*out, boxes, scores)]
        c.add("non_maximum_suppression", [*turned[:2], indices], {}, rest | {"boxes": turned[2], "scores": turned[3]})


def randomness(c):
    """Distributions without spread, the only ones whose values are known."""
    c.add("random_uniform", np.full((2, 3), 4, np.float32), {}, {"shape": (2, 3), "low": 4.0, "high": 4.0, "seed": 3},
          folds=False)
    c.add("random_normal", np.full((2, 3), -1, np.float16), {},
          {"shape": (2, 3), "mean": np.float16(-1), "stddev": np.float16(0), "seed": 3}, folds=False)
    for p in (0.0, 1.0):
        drawn = {"shape": (2, 3), "prob": p, "seed": 3}
        c.add("random_bernoulli", np.full((2, 3), p, np.float32), {}, drawn, folds=False)
    x = f32([[0, 1, 0], [0, 0, 2]])
    c.add("random_categorical", f32([[1, 1], [2, 2]]), {"x": x}, {"mode": "probs", "size": 2, "seed": 3}, folds=False)
    with np.errstate(divide="ignore"):
        logits = np.log(x)
    c.add("random_categorical", f32([[1], [2]]), {"x": logits}, {"mode": "logits", "seed": 3}, folds=False)


ALL = [unary, binary, reduction, product, layout, slicing, indexing, sorting, normalization, convolution, pooling,
       resizing, contraction, rearrangement, compression, recurrent, sampling, valued, randomness]
