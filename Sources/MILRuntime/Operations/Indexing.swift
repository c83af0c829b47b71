// Gather and scatter, one_hot and band_part: operations that go by indices.
import RLXKernels

let indexingRules: [OperationRule] = [
    OperationRule(
        "gather",
        ["x": .required, "indices": .required, "axis": 0, "batch_dims": 0, "validate_indices": false]
    ) { (call) throws(RuntimeError) in
        let x = try call.view("x")
        guard x.rank > 0 else { throw call.failure(.rank(parameter: "x", got: 0, expected: "at least 1")) }
        let axis = try call.axis(rank: x.rank)
        let indices = try call.checkedIndices(x.shape[axis])
        let batchDims = try call.batchDims(x, indices, largest: min(axis, indices.rank))
        return try call.graph.gather(x, indices, axis: axis, batchDims: batchDims)
    },
    OperationRule(
        "gather_along_axis", ["x": .required, "indices": .required, "axis": 0, "validate_indices": false]
    ) { (call) throws(RuntimeError) in
        let x = try call.view("x")
        let axis = try call.axis(rank: x.rank)
        let indices = try call.checkedIndices(x.shape[axis])
        try call.requireEqualBut(axis, x, indices, "indices")
        return try call.graph.gatherAlong(x, indices, axis: axis)
    },
    OperationRule(
        "gather_nd", ["x": .required, "indices": .required, "batch_dims": 0, "validate_indices": false]
    ) { (call) throws(RuntimeError) in
        let x = try call.view("x")
        let indices = try call.wrappingIndices(x.shape.max() ?? 0)
        guard indices.rank > 0 else { throw call.failure(.rank(parameter: "indices", got: 0, expected: "at least 1")) }
        let batchDims = try call.batchDims(x, indices, largest: min(x.rank, indices.rank - 1))
        let depth = indices.shape[indices.rank - 1]
        guard depth >= 1, depth <= x.rank - batchDims else {
            throw call.failure(.shape(parameter: "indices", got: indices.shape, expected: "tuples for x \(x.shape)"))
        }
        let (flat, linear) = try call.graph.linear(x, indices, from: batchDims)
        if try call.bool("validate_indices") { try call.graph.check(linear, below: flat.shape[batchDims]) }
        return try call.graph.gather(flat, linear, axis: batchDims, batchDims: batchDims)
    },
    OperationRule(
        "scatter",
        [
            "data": .required, "indices": .required, "updates": .required, "axis": 0, "mode": "add",
            "validate_indices": false,
        ]
    ) { (call) throws(RuntimeError) in
        let (data, updates) = try call.alike("data", "updates")
        let axis = try call.axis(rank: data.rank)
        let indices = try call.checkedIndices(data.shape[axis])
        let expected = data.shape[..<axis] + indices.shape + data.shape[(axis + 1)...]
        guard updates.shape == Array(expected) else {
            throw call.failure(.shape(parameter: "updates", got: updates.shape, expected: "\(Array(expected))"))
        }
        let outer = data.shape[..<axis].reduce(1, *)
        let rows = try call.graph.reshape(updates, [outer, indices.count, data.shape[(axis + 1)...].reduce(1, *)])
        return try call.scatter(data, axis: axis, call.graph.dense(indices), rows, along: false)
    },
    OperationRule(
        "scatter_along_axis",
        [
            "data": .required, "indices": .required, "updates": .required, "axis": 0, "mode": "add",
            "validate_indices": false,
        ]
    ) { (call) throws(RuntimeError) in
        let (data, updates) = try call.alike("data", "updates")
        let axis = try call.axis(rank: data.rank)
        let indices = try call.checkedIndices(data.shape[axis])
        try call.requireEqualBut(axis, data, indices, "indices")
        guard updates.shape == indices.shape else {
            throw call.failure(.shape(parameter: "updates", got: updates.shape, expected: "\(indices.shape)"))
        }
        return try call.scatter(data, axis: axis, call.graph.dense(indices), updates, along: true)
    },
    OperationRule(
        "scatter_nd",
        ["data": .required, "indices": .required, "updates": .required, "mode": "add", "validate_indices": false]
    ) { (call) throws(RuntimeError) in
        let (data, updates) = try call.alike("data", "updates")
        let indices = try call.wrappingIndices(data.shape.max() ?? 0)
        guard indices.rank > 0, let depth = indices.shape.last, depth >= 1, depth <= data.rank else {
            throw call.failure(
                .shape(parameter: "indices", got: indices.shape, expected: "tuples for data \(data.shape)"))
        }
        let expected = indices.shape.dropLast() + data.shape[depth...]
        guard updates.shape == Array(expected) else {
            throw call.failure(.shape(parameter: "updates", got: updates.shape, expected: "\(Array(expected))"))
        }
        let (flat, linear) = try call.graph.linear(data, indices, from: 0)
        if try call.bool("validate_indices") { try call.graph.check(linear, below: flat.shape[0]) }
        let result = try call.scatter(flat, axis: 0, call.graph.dense(linear), updates, along: false)
        return try call.graph.reshape(result, data.shape)
    },
    OperationRule(
        "one_hot",
        ["indices": .required, "one_hot_vector_size": .required, "axis": -1, "on_value": .absent, "off_value": .absent]
    ) { (call) throws(RuntimeError) in
        let indices = try call.indices("indices")
        let axis = try call.axis(rank: indices.rank + 1)
        let size = try call.int("one_hot_vector_size")
        guard size >= 0, size < 1 << 31, size <= call.declaredCount ?? size || indices.count == 0 else {
            throw call.failure(.value(parameter: "one_hot_vector_size", got: "\(size)", expected: "the declared size"))
        }
        let on = call.has("on_value") ? try call.view("on_value") : try call.graph.scalar(1, .int32)
        let off = call.has("off_value") ? try call.view("off_value") : try call.graph.scalar(0, on.type)
        guard on.count == 1, off.count == 1, on.type == off.type else {
            throw call.failure(.value(parameter: "off_value", got: "\(off.type)", expected: "a scalar as on_value"))
        }
        let places = try call.graph.iota(size).expanded(at: Array(1..<indices.rank + 1 - axis))
        let hot = try call.graph.map(RLXK_EQ_I32, [indices.expanded(at: [axis]), places], .bool)
        return try call.graph.map(RLXK_SELECT, [hot, on.scalar, off.scalar], on.type)
    },
    OperationRule("band_part", ["x": .required, "lower": -1, "upper": -1]) { (call) throws(RuntimeError) in
        let x = try call.view("x")
        guard x.rank >= 2 else { throw call.failure(.rank(parameter: "x", got: x.rank, expected: "at least 2")) }
        let lower = try call.int("lower")
        let upper = try call.int("upper")
        let graph = call.graph
        let below = try graph.map(
            RLXK_SUB_I32,
            [graph.iota(x.shape[x.rank - 2]).expanded(at: [1]), graph.iota(x.shape[x.rank - 1])], .int32)
        var result = x
        for (limit, isLower) in [(lower, true), (upper, false)] where limit >= 0 && limit < 1 << 24 {
            let bound = try graph.scalar(Float(isLower ? limit : -limit), .int32)
            let inside = try graph.map(RLXK_GE_I32, isLower ? [bound, below] : [below, bound], .bool)
            result = try graph.map(RLXK_SELECT, [inside, result, graph.scalar(0, x.type)], x.type)
        }
        return result
    },
]

private enum ScatterMode: String, CaseIterable {
    case update, add, sub, mul, div, max, min

    var kernelMode: rlxk_scatter_mode {
        switch self {
        case .update: RLXK_SCATTER_UPDATE
        case .add: RLXK_SCATTER_ADD
        case .sub: RLXK_SCATTER_SUB
        case .mul: RLXK_SCATTER_MUL
        case .div: RLXK_SCATTER_DIV
        case .max: RLXK_SCATTER_MAX
        case .min: RLXK_SCATTER_MIN
        }
    }
}

extension Call {
    /// Indices along one dimension of `size` elements; the program may want them checked in each run.
    fileprivate func checkedIndices(_ size: Int) throws(RuntimeError) -> View {
        let indices = try wrappingIndices(size)
        if try bool("validate_indices") { try graph.check(indices, below: size) }
        return indices
    }

    /// Indices as int32. Converters write negative constants as 16 unsigned bits, 65535 for -1: what is none of `size`
    /// elements stands for such a number.
    fileprivate func wrappingIndices(_ size: Int) throws(RuntimeError) -> View {
        let indices = try indices("indices")
        let original = try view("indices")
        let bits = original.type == .uint16 ? 16 : original.type == .uint8 ? 8 : 0
        guard graph.constantAddress(original) != nil, bits > 0, size < 1 << bits else { return indices }
        let isNegative = try graph.map(RLXK_GE_I32, [indices, graph.scalar(Float(size), .int32)], .bool)
        let wrapped = try graph.map(RLXK_SUB_I32, [indices, graph.scalar(Float(1 << bits), .int32)], .int32)
        return try graph.map(RLXK_SELECT, [isNegative, wrapped, indices], .int32)
    }

    fileprivate func batchDims(_ x: View, _ indices: View, largest: Int) throws(RuntimeError) -> Int {
        let count = try int("batch_dims")
        guard count >= 0, count <= largest, x.shape[..<count] == indices.shape[..<count] else {
            throw failure(.value(parameter: "batch_dims", got: "\(count)", expected: "shared leading dimensions"))
        }
        return count
    }

    fileprivate func requireEqualBut(
        _ axis: Int, _ x: View, _ other: View, _ name: String
    ) throws(RuntimeError) {
        guard x.rank == other.rank, (0..<x.rank).allSatisfy({ $0 == axis || x.shape[$0] == other.shape[$0] }) else {
            throw failure(.shape(parameter: name, got: other.shape, expected: "\(x.shape) but for axis \(axis)"))
        }
    }

    /// `data` with `updates` put where `indices` say.
    fileprivate func scatter(
        _ data: View, axis: Int, _ indices: View, _ updates: View, along: Bool
    ) throws(RuntimeError) -> View {
        let mode = try choice("mode", ScatterMode.self)
        let register = data.type.register
        let result = try graph.empty(register, data.shape)
        graph.copy(try graph.cast(data, to: register), into: result)
        let values = try graph.dense(graph.cast(updates, to: register))
        let count = along ? indices.shape[axis] : indices.count
        if data.count > 0, values.count > 0 {
            graph.add(
                .kernel(
                    Kernel(
                        run: rlxk_scatter_run, reads: [indices, values], writes: [result],
                        nanoseconds: Double(values.count)
                    ) { arguments, memory in
                        UnsafeRawPointer(
                            arguments.store(
                                rlxk_scatter(
                                    out: memory.write(0), index: memory.indices(0), updates: memory.read(1),
                                    outer: Int64(data.shape[..<axis].reduce(1, *)), size: Int64(data.shape[axis]),
                                    count: Int64(count), inner: Int64(data.shape[(axis + 1)...].reduce(1, *)),
                                    mode: mode.kernelMode, along: along ? 1 : 0,
                                    is_float: register == .float32 ? 1 : 0)))
                    }))
        }
        return try graph.cast(result, to: data.type)
    }
}

extension KernelMemory {
    func indices(_ index: Int) -> UnsafePointer<Int32> {
        UnsafePointer(read(index).assumingMemoryBound(to: Int32.self))
    }
}

extension View {
    /// The only element as rank 0.
    var scalar: View { dropping(Array(0..<rank)) }
}

extension GraphBuilder {
    /// 0, 1, 2, ...
    func iota(_ count: Int) throws(RuntimeError) -> View {
        guard count <= Self.longestIota else {
            throw .unsupported(.feature("indices of a dimension of \(count)"), place)
        }
        let storage = try Storage(type: .int32, shape: [count])
        storage.fill((0..<count).map { Int32(truncatingIfNeeded: $0) })
        return constant(storage)
    }

    func gather(_ x: View, _ indices: View, axis: Int, batchDims: Int) throws(RuntimeError) -> View {
        let shape = Array(x.shape[..<axis] + indices.shape[batchDims...] + x.shape[(axis + 1)...])
        let result = try empty(x.type, shape)
        if result.count == 0 { return result }
        guard x.shape[axis] > 0 else {
            throw .invalid(.shape(parameter: "x", got: x.shape, expected: "something to gather from"), place)
        }
        let source = try dense(x)
        let index = try dense(indices)
        let bytes = x.shape[(axis + 1)...].reduce(x.type.size, *)
        add(
            .kernel(
                Kernel(
                    run: rlxk_gather_run, reads: [source, index], writes: [result],
                    nanoseconds: Double(result.count) * 0.2 + Double(indices.count) * 2
                ) { arguments, memory in
                    UnsafeRawPointer(
                        arguments.store(
                            rlxk_gather(
                                x: memory.read(0), index: memory.indices(1), out: memory.write(0),
                                batches: Int64(x.shape[..<batchDims].reduce(1, *)),
                                outer: Int64(x.shape[batchDims..<axis].reduce(1, *)), size: Int64(x.shape[axis]),
                                count: Int64(indices.shape[batchDims...].reduce(1, *)), bytes: Int64(bytes))))
                }))
        return result
    }

    func gatherAlong(_ x: View, _ indices: View, axis: Int) throws(RuntimeError) -> View {
        let result = try empty(x.type, indices.shape)
        if result.count == 0 { return result }
        guard x.shape[axis] > 0 else {
            throw .invalid(.shape(parameter: "x", got: x.shape, expected: "something to gather from"), place)
        }
        add(
            .kernel(
                Kernel(
                    run: rlxk_gather_along_run, reads: [try dense(x), try dense(indices)], writes: [result],
                    nanoseconds: Double(result.count)
                ) { arguments, memory in
                    UnsafeRawPointer(
                        arguments.store(
                            rlxk_gather_along(
                                x: memory.read(0), index: memory.indices(1), out: memory.write(0),
                                outer: Int64(x.shape[..<axis].reduce(1, *)), size: Int64(x.shape[axis]),
                                count: Int64(indices.shape[axis]),
                                inner: Int64(x.shape[(axis + 1)...].reduce(1, *)), bytes: Int64(x.type.size))))
                }))
        return result
    }

    /// The dimensions of `x` that the index tuples (from dimension `start` on) go over as one, and the tuples as
    /// single indices into it; a tuple that is out of range becomes an index that is.
    fileprivate func linear(_ x: View, _ indices: View, from start: Int) throws(RuntimeError) -> (View, View) {
        let depth = indices.shape[indices.rank - 1]
        let sizes = Array(x.shape[start..<start + depth])
        let count = sizes.reduce(1, *)
        guard count < 1 << 31 else { throw .invalid(.tooLarge(x.shape), place) }
        let shape = Array(x.shape[..<start] + [count] + x.shape[(start + depth)...])
        var linear: View?
        var isInside: View?
        for (axis, size) in sizes.enumerated() {
            let component = indices.sliced(axis: indices.rank - 1, start: axis, count: 1).dropping([indices.rank - 1])
            let length = try integer(size)
            let isNegative = try map(RLXK_GT_I32, [integer(0), component], .bool)
            let wrapped = try map(
                RLXK_SELECT, [isNegative, map(RLXK_ADD_I32, [component, length], .int32), component], .int32)
            let fits = try map(
                RLXK_AND,
                [map(RLXK_GE_I32, [wrapped, integer(0)], .bool), map(RLXK_GT_I32, [length, wrapped], .bool)],
                .bool)
            isInside =
                try isInside.map { (inside) throws(RuntimeError) in
                    try map(RLXK_AND, [inside, fits], .bool)
                } ?? fits
            linear =
                try linear.map { (sum) throws(RuntimeError) in
                    try map(RLXK_ADD_I32, [map(RLXK_MUL_I32, [sum, length], .int32), wrapped], .int32)
                } ?? wrapped
        }
        let index = try map(RLXK_SELECT, [isInside!, linear!, integer(Int(Int32.min))], .int32)
        return (try reshape(x, shape), index)
    }

    private static let longestIota = 1 << 26

    private func integer(_ value: Int) throws(RuntimeError) -> View {
        let storage = try Storage(type: .int32, shape: [])
        storage.fill([Int32(value)])
        return constant(storage)
    }
}
