// Elementwise arithmetic: unary and binary operations, casts and selection. Semantics are MIL's.
import RLXKernels

let elementwiseRules: [OperationRule] =
    [
        binary("add", RLXK_ADD, RLXK_ADD_I32),
        binary("sub", RLXK_SUB, RLXK_SUB_I32),
        binary("mul", RLXK_MUL, RLXK_MUL_I32),
        binary("real_div", RLXK_DIV, RLXK_DIV_I32),
        binary("pow", RLXK_POW, RLXK_POW_I32),
        binary("maximum", RLXK_MAX, RLXK_MAX_I32),
        binary("minimum", RLXK_MIN, RLXK_MIN_I32),
        binary("floor_div", RLXK_FLOOR_DIV, RLXK_FLOOR_DIV_I32),
        binary("mod", RLXK_MOD, RLXK_MOD_I32),

        unary("exp", RLXK_EXP),
        OperationRule("exp2", ["x": .required]) { (call) throws(RuntimeError) in
            let x = try call.number("x")
            if x.type.isFloat { return try call.graph.map(RLXK_EXP2, [x], x.type) }
            let power = try call.graph.map(RLXK_EXP2, [call.graph.cast(x, to: .float32)], .float32)
            return try call.graph.cast(power, to: x.type)
        },
        unary("sqrt", RLXK_SQRT),
        unary("erf", RLXK_ERF),
        unary("floor", RLXK_FLOOR),
        unary("ceil", RLXK_CEIL),
        unary("round", RLXK_ROUND),
        unary("sin", RLXK_SIN),
        unary("cos", RLXK_COS),
        unary("tan", RLXK_TAN),
        unary("asin", RLXK_ASIN),
        unary("acos", RLXK_ACOS),
        unary("atan", RLXK_ATAN),
        unary("sinh", RLXK_SINH),
        unary("cosh", RLXK_COSH),
        unary("atanh", RLXK_ATANH),
        unary("abs", RLXK_ABS, RLXK_ABS_I32),
        unary("sign", RLXK_SIGN, RLXK_SIGN_I32),
        unary("square", RLXK_SQUARE, RLXK_SQUARE_I32),

        shifted("log", RLXK_LOG, epsilon: .leastNonzeroMagnitude),
        shifted("rsqrt", RLXK_RSQRT, epsilon: 1e-12),
        shifted("inverse", RLXK_INVERSE, epsilon: 1e-4),

        OperationRule("clip", ["x": .required, "alpha": .required, "beta": .required]) { (call) throws(RuntimeError) in
            let x = try call.float(view: "x")
            return try call.graph.map(RLXK_CLIP, [x], x.type, p: call.float("alpha"), q: call.float("beta"))
        },
        OperationRule("threshold", ["x": .required, "alpha": .required]) { (call) throws(RuntimeError) in
            let x = try call.number("x")
            let alpha = try call.number("alpha")
            guard alpha.count == 1, alpha.type.isFloat == x.type.isFloat else {
                throw call.failure(
                    .elementType(parameter: "alpha", got: "\(alpha.type) \(alpha.shape)", expected: "one \(x.type)"))
            }
            let bound = try call.graph.cast(alpha.scalar, to: x.type)
            return try call.graph.map(x.type.isFloat ? RLXK_MAX : RLXK_MAX_I32, [x, bound], x.type)
        },
        OperationRule("identity", ["x": .required]) { (call) throws(RuntimeError) in try call.view("x") },
        OperationRule("cast", ["x": .required, "dtype": .required]) { (call) throws(RuntimeError) in
            let name = try call.string("dtype")
            guard let type = ElementType(name: name) else {
                throw .unsupported(.type(name), call.place)
            }
            return try call.graph.cast(call.view("x"), to: type)
        },
        OperationRule("select", ["cond": .required, "a": .required, "b": .required]) { (call) throws(RuntimeError) in
            let cond = try call.boolean("cond")
            let (a, b) = try call.alike("a", "b")
            return try call.graph.map(RLXK_SELECT, [cond, a, b], a.type)
        },
    ]

private func binary(_ name: String, _ float: rlxk_op, _ integer: rlxk_op) -> OperationRule {
    OperationRule(name, ["x": .required, "y": .required]) { (call) throws(RuntimeError) in
        let (x, y) = try call.alike("x", "y", allowsBool: false)
        return try call.graph.map(x.type.isFloat ? float : integer, [x, y], x.type)
    }
}

private func unary(_ name: String, _ float: rlxk_op, _ integer: rlxk_op? = nil) -> OperationRule {
    OperationRule(name, ["x": .required]) { (call) throws(RuntimeError) in
        if let integer {
            let x = try call.number("x")
            return try call.graph.map(x.type.isFloat ? float : integer, [x], x.type)
        }
        let x = try call.float(view: "x")
        return try call.graph.map(float, [x], x.type)
    }
}

/// A function of x + epsilon.
private func shifted(_ name: String, _ op: rlxk_op, epsilon: Float) -> OperationRule {
    OperationRule(name, ["x": .required, "epsilon": .float(epsilon)]) { (call) throws(RuntimeError) in
        let x = try call.float(view: "x")
        return try call.graph.map(op, [x], x.type, p: call.float("epsilon", for: x.type))
    }
}

extension Call {
    /// A tensor of any type but bool.
    func number(_ name: String) throws(RuntimeError) -> View {
        let view = try view(name)
        guard view.type != .bool else {
            throw failure(.elementType(parameter: name, got: "bool", expected: "a number type"))
        }
        return view
    }

    func boolean(_ name: String) throws(RuntimeError) -> View {
        let view = try view(name)
        guard view.type == .bool else {
            throw failure(.elementType(parameter: name, got: view.type.description, expected: "bool"))
        }
        return view
    }

    /// Two tensors of one type.
    func alike(_ first: String, _ second: String, allowsBool: Bool = true) throws(RuntimeError) -> (View, View) {
        let x = allowsBool ? try view(first) : try number(first)
        let y = try view(second)
        guard x.type == y.type else {
            throw failure(
                .elementType(parameter: second, got: y.type.description, expected: "\(x.type), as \(first)"))
        }
        return (x, y)
    }
}
