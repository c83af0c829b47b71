// Order and running sums along an axis: arg reductions, topk, argsort, cumsum.
import RLXKernels

let sortingRules: [OperationRule] = [
    argReduction("reduce_argmax", smallest: false),
    argReduction("reduce_argmin", smallest: true),
    OperationRule(
        "topk",
        [
            "x": .required, "k": 1, "axis": -1, "ascending": false, "sort": true, "return_indices": true,
            "output_indices_dtype": "int32",
        ],
        lower: { (call) throws(RuntimeError) in
            let x = try call.number("x")
            let axis = try call.axis(rank: x.rank)
            var k = try call.int("k")
            if k == -1 { k = x.shape[axis] }
            guard k >= 0, k <= x.shape[axis] else {
                throw call.failure(.value(parameter: "k", got: "\(k)", expected: "at most \(x.shape[axis])"))
            }
            let order = try call.graph.sort(x, axis: axis, k: k, descending: !call.bool("ascending"))
            let values = try call.graph.cast(order.values, to: x.type)
            if try !call.bool("return_indices") { return [values] }
            return [values, try call.graph.cast(order.indices, to: call.indexType("output_indices_dtype"))]
        }),
    OperationRule("argsort", ["x": .required, "axis": -1, "ascending": false]) { (call) throws(RuntimeError) in
        let x = try call.number("x")
        let axis = try call.axis(rank: x.rank)
        let descending = try !call.bool("ascending")
        return try call.graph.sort(x, axis: axis, k: x.shape[axis], descending: descending).indices
    },
    OperationRule("cumsum", ["x": .required, "axis": 0, "exclusive": false, "reverse": false]) {
        (call) throws(RuntimeError) in
        let x = try call.number("x")
        let axis = try call.axis(rank: x.rank)
        let exclusive = try call.bool("exclusive")
        let reverse = try call.bool("reverse")
        let source = try call.graph.dense(call.graph.cast(x, to: x.type.register))
        let result = try call.graph.empty(x.type.register, x.shape)
        if result.count > 0 {
            let rows = Rows(x.shape, axis)
            call.graph.add(
                .kernel(
                    Kernel(
                        run: rlxk_cumsum_run, reads: [source], writes: [result], nanoseconds: Double(x.count)
                    ) { arguments, memory in
                        UnsafeRawPointer(
                            arguments.store(
                                rlxk_cumsum(
                                    x: memory.read(0), out: memory.write(0), outer: rows.outer, size: rows.size,
                                    inner: rows.inner, exclusive: exclusive ? 1 : 0, reverse: reverse ? 1 : 0,
                                    is_float: x.type.isFloat ? 1 : 0)))
                    }))
        }
        return try call.graph.cast(result, to: x.type)
    },
]

private func argReduction(_ name: String, smallest: Bool) -> OperationRule {
    OperationRule(name, ["x": .required, "axis": -1, "keep_dims": false, "output_dtype": "int32"]) {
        (call) throws(RuntimeError) in
        let x = try call.number("x")
        let axis = try call.axis(rank: x.rank)
        let indices = try call.graph.argReduce(x, axis: axis, smallest: smallest)
        let result = try call.graph.cast(indices, to: call.indexType("output_dtype"))
        return try call.bool("keep_dims") ? result : result.dropping([axis])
    }
}

/// A shape as [outer, size, inner] around an axis.
private struct Rows {
    var outer: Int64
    var size: Int64
    var inner: Int64

    init(_ shape: [Int], _ axis: Int) {
        outer = Int64(shape[..<axis].reduce(1, *))
        size = Int64(shape[axis])
        inner = Int64(shape[(axis + 1)...].reduce(1, *))
    }
}

extension Call {
    fileprivate func indexType(_ name: String) throws(RuntimeError) -> ElementType {
        let word = try string(name)
        guard let type = ElementType(name: word), !type.isFloat, type != .bool else {
            throw failure(.value(parameter: name, got: "\"\(word)\"", expected: "an integer type"))
        }
        return type
    }
}

extension GraphBuilder {
    /// Indices along `axis`, which stays with size 1.
    fileprivate func argReduce(_ x: View, axis: Int, smallest: Bool) throws(RuntimeError) -> View {
        var shape = x.shape
        shape[axis] = 1
        let result = try empty(.int32, shape)
        if result.count == 0 { return result }
        guard x.shape[axis] > 0 else {
            throw .invalid(.shape(parameter: "x", got: x.shape, expected: "something along axis \(axis)"), place)
        }
        let rows = Rows(x.shape, axis)
        let source = try dense(cast(x, to: x.type.register))
        add(
            .kernel(
                Kernel(run: rlxk_arg_run, reads: [source], writes: [result], nanoseconds: Double(x.count)) {
                    arguments, memory in
                    UnsafeRawPointer(
                        arguments.store(
                            rlxk_arg(
                                x: memory.read(0), index: memory.write(0).assumingMemoryBound(to: Int32.self),
                                outer: rows.outer, size: rows.size, inner: rows.inner, smallest: smallest ? 1 : 0,
                                is_float: x.type.isFloat ? 1 : 0)))
                }))
        return result
    }

    /// The first `k` along `axis` in order, as f32 or i32, and their indices.
    fileprivate func sort(
        _ x: View, axis: Int, k: Int, descending: Bool
    ) throws(RuntimeError) -> (values: View, indices: View) {
        var shape = x.shape
        shape[axis] = k
        let values = try empty(x.type.register, shape)
        let indices = try empty(.int32, shape)
        if values.count == 0 { return (values, indices) }
        let rows = Rows(x.shape, axis)
        let source = try dense(cast(x, to: x.type.register))
        add(
            .kernel(
                Kernel(
                    run: rlxk_sort_run, reads: [source], writes: [values, indices],
                    nanoseconds: Double(x.count) * 10, scratch: 4 * x.shape[axis]
                ) { arguments, memory in
                    UnsafeRawPointer(
                        arguments.store(
                            rlxk_sort(
                                x: memory.read(0), values: memory.write(0),
                                index: memory.write(1).assumingMemoryBound(to: Int32.self), outer: rows.outer,
                                size: rows.size, inner: rows.inner, k: Int64(k), descending: descending ? 1 : 0,
                                is_float: x.type.isFloat ? 1 : 0,
                                scratch: memory.scratch.assumingMemoryBound(to: Float.self),
                                scratch_stride: Int64(memory.scratchStride))))
                }))
        return (values, indices)
    }
}
