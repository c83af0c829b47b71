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


ALL = [unary, binary, reduction, product, layout, slicing]
