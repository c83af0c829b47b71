// Normalisations, written in folds and maps: the chains make few passes of them.
import RLXKernels

let normalizationRules: [OperationRule] = [
    OperationRule(
        "layer_norm", ["x": .required, "axes": .absent, "gamma": .absent, "beta": .absent, "epsilon": 1e-5]
    ) { (call) throws(RuntimeError) in
        let x = try call.float(view: "x")
        let axes = try call.axes(rank: x.rank)
        let shape = axes.map { x.shape[$0] }
        return try call.normalized(
            x, axes: axes, gamma: call.affine("gamma", shape, axes, x), beta: call.affine("beta", shape, axes, x))
    },
    OperationRule(
        "instance_norm", ["x": .required, "gamma": .absent, "beta": .absent, "epsilon": 1e-5]
    ) { (call) throws(RuntimeError) in
        let x = try call.float(view: "x")
        guard x.rank >= 3 else { throw call.failure(.rank(parameter: "x", got: x.rank, expected: "at least 3")) }
        return try call.normalized(
            x, axes: Array(2..<x.rank), gamma: call.affine("gamma", [x.shape[1]], [1], x),
            beta: call.affine("beta", [x.shape[1]], [1], x))
    },
    OperationRule(
        "batch_norm",
        [
            "x": .required, "mean": .required, "variance": .required, "gamma": .absent, "beta": .absent,
            "epsilon": 1e-5,
        ]
    ) { (call) throws(RuntimeError) in
        let x = try call.float(view: "x")
        let graph = call.graph
        let mean = try call.channels("mean", of: x)
        let variance = try call.channels("variance", of: x)
        let deviation = try graph.map(RLXK_RSQRT, [variance], .float32, p: call.float("epsilon", for: x.type))
        let scale =
            try call.has("gamma")
            ? graph.map(RLXK_MUL, [deviation, call.channels("gamma", of: x)], .float32) : deviation
        let centred = try graph.map(RLXK_SUB, [x, mean], .float32)
        guard call.has("beta") else { return try graph.map(RLXK_MUL, [centred, scale], x.type) }
        let scaled = try graph.map(RLXK_MUL, [centred, scale], .float32)
        return try graph.map(RLXK_ADD, [scaled, call.channels("beta", of: x)], x.type)
    },
    OperationRule("l2_norm", ["x": .required, "epsilon": 1e-6]) { (call) throws(RuntimeError) in
        let x = try call.float(view: "x")
        guard x.rank >= 3 else { throw call.failure(.rank(parameter: "x", got: x.rank, expected: "at least 3")) }
        let sum = try call.graph.sumOfSquares(x, axes: Array(x.rank - 3..<x.rank))
        let scale = try call.graph.map(RLXK_RSQRT, [sum], .float32, p: call.float("epsilon", for: x.type))
        return try call.graph.map(RLXK_MUL, [x, scale], x.type)
    },
    OperationRule(
        "local_response_norm", ["x": .required, "size": .required, "alpha": 1e-4, "beta": 0.75, "k": 1.0]
    ) { (call) throws(RuntimeError) in
        let x = try call.float(view: "x")
        guard x.rank >= 3 else { throw call.failure(.rank(parameter: "x", got: x.rank, expected: "at least 3")) }
        let size = try call.int("size")
        guard size >= 1, size < 1 << 20 else {
            throw call.failure(.value(parameter: "size", got: "\(size)", expected: "at least 1"))
        }
        let graph = call.graph
        let axis = x.rank - 3
        let square = try graph.map(RLXK_SQUARE, [x], .float32)
        var pad = Array(repeating: 0, count: 6)
        (pad[0], pad[1]) = (size / 2, (size - 1) / 2)
        var windows = try graph.pad(square, pad, .constant, graph.scalar(0, .float32))
        windows.shape[axis] = x.shape[axis]
        windows.shape.insert(size, at: axis + 1)
        windows.strides.insert(windows.strides[axis], at: axis + 1)
        let sum = try graph.fold(.sum, windows, axes: [axis + 1]).dropping([axis + 1])
        let base = try graph.map(
            RLXK_LINEAR, [sum], .float32, p: call.float("alpha") / Float(size), q: call.float("k"))
        let power = try graph.map(RLXK_POW, [base, graph.scalar(call.float("beta"), .float32)], .float32)
        return try graph.map(RLXK_DIV, [x, power], x.type)
    },
]

extension Call {
    /// A scale or an offset over `axes` of `x`, shaped to broadcast over it.
    fileprivate func affine(
        _ name: String, _ shape: [Int], _ axes: [Int], _ x: View
    ) throws(RuntimeError) -> View? {
        guard has(name) else { return nil }
        let vector = try float(view: name)
        guard vector.shape == shape else {
            throw failure(.shape(parameter: name, got: vector.shape, expected: "\(shape)"))
        }
        return vector.expanded(at: (0..<x.rank).filter { !axes.contains($0) })
    }

    /// (x - mean) / sqrt(variance + epsilon) * gamma + beta, statistics over `axes`.
    fileprivate func normalized(
        _ x: View, axes: [Int], gamma: View?, beta: View?
    ) throws(RuntimeError) -> View {
        let centred = try graph.map(RLXK_SUB, [x, graph.mean(x, axes: axes)], .float32)
        let square = try graph.map(RLXK_SQUARE, [centred], .float32)
        let scale = try graph.map(
            RLXK_RSQRT, [graph.mean(square, axes: axes)], .float32, p: float("epsilon", for: x.type))
        var result = try graph.map(RLXK_MUL, [centred, scale], .float32)
        if let gamma { result = try graph.map(RLXK_MUL, [result, gamma], .float32) }
        if let beta { result = try graph.map(RLXK_ADD, [result, beta], .float32) }
        return try graph.cast(result, to: x.type)
    }
}
