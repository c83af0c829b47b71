// Matrix products.
import RLXKernels

let linearAlgebraRules: [OperationRule] = [
    OperationRule("matmul", ["x": .required, "y": .required, "transpose_x": false, "transpose_y": false]) {
        (call) throws(RuntimeError) in
        var x = try call.number("x")
        var y = try call.number("y")
        let type = try call.productType(x, y)
        guard x.rank >= 1, y.rank >= 1 else {
            throw call.failure(.rank(parameter: x.rank == 0 ? "x" : "y", got: 0, expected: "at least 1"))
        }
        // A vector is a row on the left and a column on the right; its extra dimension goes again.
        let dropsRow = x.rank == 1
        let dropsColumn = y.rank == 1
        if dropsRow { x = x.expanded(at: [0]) } else if try call.bool("transpose_x") { x = x.swappingLastAxes }
        if dropsColumn { y = y.expanded(at: [1]) } else if try call.bool("transpose_y") { y = y.swappingLastAxes }
        guard x.shape[x.rank - 1] == y.shape[y.rank - 2] else {
            throw call.failure(
                .shape(parameter: "y", got: y.shape, expected: "\(x.shape.last!) rows, as x has columns"))
        }
        let product = try call.graph.product(x, y, type)
        var dropped: [Int] = []
        if dropsRow { dropped.append(product.rank - 2) }
        if dropsColumn { dropped.append(product.rank - 1) }
        return product.dropping(dropped)
    },
    OperationRule("linear", ["x": .required, "weight": .required, "bias": .absent]) { (call) throws(RuntimeError) in
        let x = try call.number("x")
        let weight = try call.number("weight")
        let type = try call.productType(x, weight)
        guard x.rank >= 1 else { throw call.failure(.rank(parameter: "x", got: 0, expected: "at least 1")) }
        guard weight.rank == 2, weight.shape[1] == x.shape.last else {
            throw call.failure(
                .shape(parameter: "weight", got: weight.shape, expected: "[out, \(x.shape[x.rank - 1])]"))
        }
        let bias = try call.optionalView("bias")
        if let bias, bias.shape != [weight.shape[0]] {
            throw call.failure(.shape(parameter: "bias", got: bias.shape, expected: "[\(weight.shape[0])]"))
        }
        let rows = x.rank == 1 ? x.expanded(at: [0]) : x
        var result = try call.graph.product(rows, weight.swappingLastAxes, type.register)
        if let bias {
            result = try call.graph.map(type.isFloat ? RLXK_ADD : RLXK_ADD_I32, [result, bias], type.register)
        }
        result = try call.graph.cast(result, to: type)
        return x.rank == 1 ? result.dropping([0]) : result
    },
]

extension Call {
    /// From CoreML7 on one operand of a product may be a constant of the other float type: the result has the type
    /// of the one that is not.
    func productType(_ x: View, _ y: View) throws(RuntimeError) -> ElementType {
        if x.type == y.type { return x.type }
        let xIsConstant = graph.constantAddress(x) != nil
        let yIsConstant = graph.constantAddress(y) != nil
        guard opset >= 7, x.type.isFloat, y.type.isFloat, xIsConstant != yIsConstant else {
            throw failure(.elementType(parameter: "y", got: y.type.description, expected: "\(x.type), as x"))
        }
        return xIsConstant ? y.type : x.type
    }
}

extension View {
    var swappingLastAxes: View {
        var view = self
        view.shape.swapAt(rank - 1, rank - 2)
        view.strides.swapAt(rank - 1, rank - 2)
        return view
    }
}

extension GraphBuilder {
    /// The batched matrix product of views of rank 2 and more, whose leading dimensions broadcast.
    func product(_ a: View, _ b: View, _ type: ElementType) throws(RuntimeError) -> View {
        let aBatch = Array(a.shape.dropLast(2))
        let bBatch = Array(b.shape.dropLast(2))
        guard let batch = broadcastShape(aBatch, bBatch) else {
            throw .invalid(.notBroadcastable(aBatch, bBatch), place)
        }
        let rows = a.shape[a.rank - 2]
        let inner = a.shape[a.rank - 1]
        let columns = b.shape[b.rank - 1]
        if !type.isFloat {
            // Small and rare: a fold over the products.
            let x = a.expanded(at: [a.rank]).broadcast(to: batch + [rows, inner, columns])
            let y = b.expanded(at: [b.rank - 2]).broadcast(to: batch + [rows, inner, columns])
            let sum = try fold(.sum, map(RLXK_MUL_I32, [x, y], .int32), axes: [batch.count + 1])
            return try cast(sum.dropping([batch.count + 1]), to: type)
        }
        let c = try empty(.float32, batch + [rows, columns])
        let x = try cast(a, to: .float32).broadcast(to: batch + [rows, inner])
        let y = try cast(b, to: .float32).broadcast(to: batch + [inner, columns])
        add(.product(Product(a: x, b: y, c: c)))
        return try cast(c, to: type)
    }
}
