// Comparisons and logic: operations whose result is bool.
import RLXKernels

let comparisonRules: [OperationRule] = [
    comparison("greater", RLXK_GT, RLXK_GT_I32),
    comparison("greater_equal", RLXK_GE, RLXK_GE_I32),
    comparison("less", RLXK_GT, RLXK_GT_I32, swapped: true),
    comparison("less_equal", RLXK_GE, RLXK_GE_I32, swapped: true),
    comparison("equal", RLXK_EQ, RLXK_EQ_I32),
    comparison("not_equal", RLXK_NE, RLXK_NE_I32),

    logical("logical_and", RLXK_AND),
    logical("logical_or", RLXK_OR),
    logical("logical_xor", RLXK_XOR),
    OperationRule("logical_not", ["x": .required]) { (call) throws(RuntimeError) in
        try call.graph.map(RLXK_NOT, [call.boolean("x")], .bool)
    },
]

private func comparison(
    _ name: String, _ float: rlxk_op, _ integer: rlxk_op, swapped: Bool = false
) -> OperationRule {
    OperationRule(name, ["x": .required, "y": .required]) { (call) throws(RuntimeError) in
        let (x, y) = try call.alike("x", "y", allowsBool: false)
        return try call.graph.map(x.type.isFloat ? float : integer, swapped ? [y, x] : [x, y], .bool)
    }
}

private func logical(_ name: String, _ op: rlxk_op) -> OperationRule {
    OperationRule(name, ["x": .required, "y": .required]) { (call) throws(RuntimeError) in
        try call.graph.map(op, [call.boolean("x"), call.boolean("y")], .bool)
    }
}
