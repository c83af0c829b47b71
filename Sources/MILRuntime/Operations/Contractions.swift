// Products that are more than one matrix product: einsum and attention.
import RLXKernels

let contractionRules: [OperationRule] = [
    OperationRule("einsum", ["values": .required, "equation": .required]) { (call) throws(RuntimeError) in
        let values = try call.views("values")
        let text = try call.string("equation")
        guard values.count == 2, let equation = Equation(text),
            equation.x.count == values[0].rank, equation.y.count == values[1].rank, values[0].type.isFloat
        else {
            throw call.failure(
                .value(parameter: "equation", got: "\"\(text)\"", expected: "a contraction of the two values"))
        }
        return try call.graph.contract(equation, values[0], values[1])
    },
    OperationRule(
        "scaled_dot_product_attention",
        ["query": .required, "key": .required, "value": .required, "attn_mask": .absent]
    ) { (call) throws(RuntimeError) in
        let query = try call.float(view: "query")
        let key = try call.float(view: "key")
        let value = try call.float(view: "value")
        let graph = call.graph
        guard query.rank >= 3, key.rank == query.rank, value.rank == query.rank,
            key.shape.last == query.shape.last, key.shape[key.rank - 2] == value.shape[value.rank - 2]
        else {
            throw call.failure(.shape(parameter: "key", got: key.shape, expected: "keys for \(query.shape)"))
        }
        let products = try graph.product(query, key.swappingLastAxes, .float32)
        let scale = 1 / Float(query.shape[query.rank - 1]).squareRoot()
        var scores = try graph.map(RLXK_LINEAR, [products], .float32, p: scale)
        if let mask = try call.optionalView("attn_mask") {
            scores =
                mask.type == .bool
                ? try graph.map(RLXK_SELECT, [mask, scores, graph.scalar(-.infinity, .float32)], .float32)
                : try graph.map(RLXK_ADD, [scores, mask], .float32)
        }
        let weights = try graph.softmax(scores, axis: scores.rank - 1, .float32)
        return try graph.cast(graph.product(weights, value, .float32), to: query.type)
    },
]

/// "ab,bc->ac"
private struct Equation {
    var x: [Character]
    var y: [Character]
    var result: [Character]

    init?(_ text: String) {
        let sides = text.filter { $0 != " " }.replacing("->", with: ">").split(
            separator: ">", omittingEmptySubsequences: false)
        let operands = sides.first?.split(separator: ",", omittingEmptySubsequences: false) ?? []
        guard sides.count == 2, operands.count == 2 else { return nil }
        (x, y, result) = (Array(operands[0]), Array(operands[1]), Array(sides[1]))
        for labels in [x, y, result] where Set(labels).count != labels.count { return nil }
        guard Set(result).isSubset(of: Set(x).union(y)) else { return nil }
    }
}

extension GraphBuilder {
    /// Labels of both operands and the result are batches, those of the operands only are summed over.
    fileprivate func contract(_ equation: Equation, _ x: View, _ y: View) throws(RuntimeError) -> View {
        let batch = equation.result.filter { equation.x.contains($0) && equation.y.contains($0) }
        let rows = equation.x.filter { !equation.y.contains($0) }
        let columns = equation.y.filter { !equation.x.contains($0) }
        let summed = equation.x.filter { equation.y.contains($0) && !equation.result.contains($0) }
        guard rows.allSatisfy(equation.result.contains), columns.allSatisfy(equation.result.contains) else {
            throw .unsupported(.feature("an einsum that sums over a dimension of one operand"), place)
        }
        func arrange(_ view: View, _ labels: [Character], _ order: [Character]) -> View {
            view.transposed(order.map { label in labels.firstIndex(of: label)! })
        }
        func merge(_ view: View, _ first: Int, _ second: Int) throws(RuntimeError) -> View {
            let lead = view.shape.prefix(batch.count)
            let middle = view.shape[batch.count..<batch.count + first].reduce(1, *)
            return try reshape(view, lead + [middle, view.shape.suffix(second).reduce(1, *)])
        }
        let a = try merge(arrange(x, equation.x, batch + rows + summed), rows.count, summed.count)
        let b = try merge(arrange(y, equation.y, batch + summed + columns), summed.count, columns.count)
        guard a.shape.last == b.shape[b.rank - 2] else {
            throw .invalid(.shape(parameter: "values", got: y.shape, expected: "sizes that fit \(x.shape)"), place)
        }
        let product = try product(a, b, x.type)
        let sizes =
            product.shape.prefix(batch.count)
            + rows.map { x.shape[equation.x.firstIndex(of: $0)!] }
            + columns.map { y.shape[equation.y.firstIndex(of: $0)!] }
        return arrange(try reshape(product, Array(sizes)), batch + rows + columns, equation.result)
    }

    func softmax(_ x: View, axis: Int, _ type: ElementType) throws(RuntimeError) -> View {
        let largest = try fold(.maximum, x, axes: [axis])
        let exponential = try map(RLXK_EXP, [map(RLXK_SUB, [x, largest], .float32)], .float32)
        return try map(RLXK_DIV, [exponential, fold(.sum, exponential, axes: [axis])], type)
    }
}
