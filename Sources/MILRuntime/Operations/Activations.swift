// Activation functions, softmax included.
import RLXKernels

let activationRules: [OperationRule] = [
    activation("relu", RLXK_RELU),
    activation("tanh", RLXK_TANH),
    activation("sigmoid", RLXK_SIGMOID),
    activation("silu", RLXK_SILU),
    activation("softplus", RLXK_SOFTPLUS),
    activation("softsign", RLXK_SOFTSIGN),
    activation("leaky_relu", RLXK_LEAKY_RELU, p: "alpha"),
    activation("elu", RLXK_ELU, p: "alpha"),
    activation("thresholded_relu", RLXK_THRESHOLDED_RELU, p: "alpha"),
    activation("sigmoid_hard", RLXK_HARD_SIGMOID, p: "alpha", q: "beta"),
    activation("linear_activation", RLXK_LINEAR, p: "alpha", q: "beta"),

    OperationRule("relu6", ["x": .required]) { (call) throws(RuntimeError) in
        let x = try call.float(view: "x")
        return try call.graph.map(RLXK_CLIP, [x], x.type, p: 0, q: 6)
    },
    OperationRule("clamped_relu", ["x": .required, "alpha": .required, "beta": .required]) {
        (call) throws(RuntimeError) in
        let x = try call.float(view: "x")
        let leaky = try call.graph.map(RLXK_LEAKY_RELU, [x], .float32, p: call.float("alpha"))
        return try call.graph.map(RLXK_CLIP, [leaky], x.type, p: -.infinity, q: call.float("beta"))
    },
    OperationRule("scaled_tanh", ["x": .required, "alpha": .required, "beta": .required]) {
        (call) throws(RuntimeError) in
        let x = try call.float(view: "x")
        let inner = try call.graph.map(RLXK_LINEAR, [x], .float32, p: call.float("beta"))
        let tanh = try call.graph.map(RLXK_TANH, [inner], .float32)
        return try call.graph.map(RLXK_LINEAR, [tanh], x.type, p: call.float("alpha"))
    },
    OperationRule("gelu", ["x": .required, "mode": "EXACT"]) { (call) throws(RuntimeError) in
        let x = try call.float(view: "x")
        let op =
            switch try call.choice("mode", GeluMode.self) {
            case .exact: RLXK_GELU
            case .tanh: RLXK_GELU_TANH
            case .sigmoid: RLXK_GELU_SIGMOID
            }
        return try call.graph.map(op, [x], x.type)
    },
    OperationRule("prelu", ["x": .required, "alpha": .required]) { (call) throws(RuntimeError) in
        let x = try call.float(view: "x")
        let alpha = try call.channels("alpha", of: x)
        let scaled = try call.graph.map(RLXK_MUL, [x, alpha], .float32)
        let keeps = try call.graph.map(RLXK_GE, [x, call.graph.scalar(0, .float32)], .bool)
        return try call.graph.map(RLXK_SELECT, [keeps, x, scaled], x.type)
    },
    OperationRule("softplus_parametric", ["x": .required, "alpha": .required, "beta": .required]) {
        (call) throws(RuntimeError) in
        let x = try call.float(view: "x")
        let inner = try call.graph.map(RLXK_MUL, [x, call.channels("beta", of: x)], .float32)
        let softplus = try call.graph.map(RLXK_SOFTPLUS, [inner], .float32)
        return try call.graph.map(RLXK_MUL, [softplus, call.channels("alpha", of: x)], x.type)
    },
    OperationRule("softmax", ["x": .required, "axis": -1]) { (call) throws(RuntimeError) in
        let x = try call.float(view: "x")
        return try call.graph.softmax(x, axis: call.axis(rank: x.rank), x.type)
    },
]

private enum GeluMode: String, CaseIterable {
    case exact
    case tanh = "tanh_approximation"
    case sigmoid = "sigmoid_approximation"
}

private func activation(_ name: String, _ op: rlxk_op, p: String? = nil, q: String? = nil) -> OperationRule {
    var rule = OperationRule(name, ["x": .required]) { (call) throws(RuntimeError) in
        let x = try call.float(view: "x")
        let first = try p.map { (name) throws(RuntimeError) in try call.float(name) } ?? 0
        let second = try q.map { (name) throws(RuntimeError) in try call.float(name) } ?? 0
        return try call.graph.map(op, [x], x.type, p: first, q: second)
    }
    for parameter in [p, q].compactMap(\.self) { rule.parameters[parameter] = .required }
    return rule
}

extension Call {
    /// A vector with one value a channel (axis 1 of `x`), shaped to broadcast over `x`.
    func channels(_ name: String, of x: View) throws(RuntimeError) -> View {
        let vector = try float(view: name)
        guard x.rank >= 2 else { throw failure(.rank(parameter: "x", got: x.rank, expected: "at least 2")) }
        guard vector.shape == [x.shape[1]] else {
            throw failure(.shape(parameter: name, got: vector.shape, expected: "[\(x.shape[1])], one a channel"))
        }
        return vector.expanded(at: Array(1..<x.rank - 1))
    }
}
