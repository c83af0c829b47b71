// Reductions over axes. All are folds of four kinds with elementwise work around them.
import RLXKernels

let reductionRules: [OperationRule] = [
    reduction("reduce_sum") { (graph, x, axes) throws(RuntimeError) in try graph.fold(.sum, x, axes: axes) },
    reduction("reduce_max") { (graph, x, axes) throws(RuntimeError) in try graph.fold(.maximum, x, axes: axes) },
    reduction("reduce_min") { (graph, x, axes) throws(RuntimeError) in try graph.fold(.minimum, x, axes: axes) },
    reduction("reduce_prod") { (graph, x, axes) throws(RuntimeError) in try graph.fold(.product, x, axes: axes) },
    reduction("reduce_mean") { (graph, x, axes) throws(RuntimeError) in try graph.mean(x, axes: axes) },
    reduction("reduce_sum_square") { (graph, x, axes) throws(RuntimeError) in
        try graph.sumOfSquares(x, axes: axes)
    },
    reduction("reduce_l1_norm") { (graph, x, axes) throws(RuntimeError) in
        let absolute = try graph.map(x.type.isFloat ? RLXK_ABS : RLXK_ABS_I32, [x], x.type.register)
        return try graph.fold(.sum, absolute, axes: axes)
    },
    reduction("reduce_l2_norm") { (graph, x, axes) throws(RuntimeError) in
        let sum = try graph.cast(graph.sumOfSquares(x, axes: axes), to: .float32)
        return try graph.map(RLXK_SQRT, [sum], .float32)
    },
    reduction("reduce_log_sum") { (graph, x, axes) throws(RuntimeError) in
        let sum = try graph.cast(graph.fold(.sum, x, axes: axes), to: .float32)
        return try graph.map(RLXK_LOG, [sum], .float32)
    },
    reduction("reduce_log_sum_exp") { (graph, x, axes) throws(RuntimeError) in
        try graph.logSumExp(graph.cast(x, to: .float32), axes: axes)
    },
]

/// `body` keeps the reduced axes and returns f32, or i32 where that is the type of x.
private func reduction(
    _ name: String,
    _ body: @escaping @Sendable (GraphBuilder, View, [Int]) throws(RuntimeError) -> View
) -> OperationRule {
    OperationRule(name, ["x": .required, "axes": .absent, "keep_dims": false]) { (call) throws(RuntimeError) in
        let x = try call.number("x")
        let axes = try call.axes(rank: x.rank)
        if axes.isEmpty, call.has("axes") {
            throw call.failure(.value(parameter: "axes", got: "[]", expected: "at least one axis"))
        }
        let result = try call.graph.cast(body(call.graph, x, axes), to: x.type)
        return try call.bool("keep_dims") ? result : result.dropping(axes)
    }
}

extension GraphBuilder {
    func mean(_ x: View, axes: [Int]) throws(RuntimeError) -> View {
        let sum = try fold(.sum, x, axes: axes)
        let count = axes.reduce(1) { $0 * x.shape[$1] }
        return try map(sum.type.isFloat ? RLXK_DIV : RLXK_DIV_I32, [sum, scalar(Float(count), sum.type)], sum.type)
    }

    func sumOfSquares(_ x: View, axes: [Int]) throws(RuntimeError) -> View {
        let square = try map(x.type.isFloat ? RLXK_SQUARE : RLXK_SQUARE_I32, [x], x.type.register)
        return try fold(.sum, square, axes: axes)
    }

    func logSumExp(_ x: View, axes: [Int]) throws(RuntimeError) -> View {
        let largest = try fold(.maximum, x, axes: axes)
        // inf - inf is NaN: an infinite maximum is not subtracted.
        let isInfinite = try map(
            RLXK_EQ, [map(RLXK_ABS, [largest], .float32), scalar(.infinity, .float32)], .bool)
        let shift = try map(RLXK_SELECT, [isInfinite, scalar(0, .float32), largest], .float32)
        let exponential = try map(RLXK_EXP, [map(RLXK_SUB, [x, shift], .float32)], .float32)
        let logarithm = try map(RLXK_LOG, [fold(.sum, exponential, axes: axes)], .float32)
        return try map(RLXK_ADD, [logarithm, shift], .float32)
    }
}
