// Operations that move elements and never compute with them. Whatever can be a view of its operand is one.
import RLXKernels

let layoutRules: [OperationRule] = reshapeRules + joinRules + repeatRules + blockRules

private let reshapeRules: [OperationRule] = [
    OperationRule("reshape", ["x": .required, "shape": .required]) { (call) throws(RuntimeError) in
        let x = try call.view("x")
        return try call.graph.reshape(x, call.reshapedShape(of: x, call.ints("shape")))
    },
    OperationRule(
        "reshape_like",
        [
            "x": .required, "ref_tensors": .required, "begins": .required, "ends": .required, "end_masks": .required,
        ]
    ) { (call) throws(RuntimeError) in
        let x = try call.view("x")
        let references = try call.views("ref_tensors")
        let begins = try call.ints("begins")
        let ends = try call.ints("ends")
        let masks = try call.bools("end_masks") ?? []
        guard begins.count == references.count, ends.count == begins.count, masks.count == begins.count else {
            throw call.failure(.value(parameter: "begins", got: "\(begins)", expected: "one a reference tensor"))
        }
        var shape: [Int] = []
        for (index, reference) in references.enumerated() {
            let end = masks[index] ? reference.rank : ends[index]
            guard begins[index] >= 0, begins[index] <= end, end <= reference.rank else {
                throw call.failure(.value(parameter: "ends", got: "\(ends)", expected: "ranges of dimensions"))
            }
            shape += reference.shape[begins[index]..<end]
        }
        return try call.graph.reshape(x, call.reshapedShape(of: x, shape))
    },
    OperationRule("flatten2d", ["x": .required, "axis": 1]) { (call) throws(RuntimeError) in
        let x = try call.view("x")
        var axis = try call.int("axis")
        if axis < 0 { axis += x.rank }
        guard axis >= 0, axis <= x.rank else {
            throw call.failure(.value(parameter: "axis", got: "\(axis)", expected: "an axis of x"))
        }
        let rows = x.shape[..<axis].reduce(1, *)
        return try call.graph.reshape(x, [rows, x.shape[axis...].reduce(1, *)])
    },
    OperationRule("transpose", ["x": .required, "perm": .required]) { (call) throws(RuntimeError) in
        let x = try call.view("x")
        var permutation: [Int] = []
        for axis in try call.ints("perm") {
            permutation.append(try call.normalized(axis, rank: x.rank, "perm"))
        }
        guard permutation.sorted() == Array(0..<x.rank) else {
            throw call.failure(.value(parameter: "perm", got: "\(permutation)", expected: "each axis of x once"))
        }
        return x.transposed(permutation)
    },
    OperationRule("expand_dims", ["x": .required, "axes": .required]) { (call) throws(RuntimeError) in
        let x = try call.view("x")
        let count = try call.ints("axes").count
        return x.expanded(at: try call.axes(rank: x.rank + count))
    },
    OperationRule("squeeze", ["x": .required, "axes": .absent]) { (call) throws(RuntimeError) in
        let x = try call.view("x")
        return x.dropping(try call.axes(rank: x.rank).filter { x.shape[$0] == 1 })
    },
    OperationRule("reverse", ["x": .required, "axes": .absent]) { (call) throws(RuntimeError) in
        var x = try call.view("x")
        for axis in try call.axes(rank: x.rank) {
            x = x.sliced(axis: axis, start: x.shape[axis] - 1, count: x.shape[axis], step: -1)
        }
        return x
    },
    OperationRule("shape", ["x": .required]) { (call) throws(RuntimeError) in
        let x = try call.view("x")
        let storage = try Storage(type: .int32, shape: [x.rank])
        storage.fill(x.shape.map { Int32(clamping: $0) })
        return call.graph.constant(storage)
    },
]

private let joinRules: [OperationRule] = [
    OperationRule("concat", ["values": .required, "axis": .required, "interleave": false]) {
        (call) throws(RuntimeError) in
        var values = try call.views("values")
        if values.allSatisfy({ $0.rank == 0 }) { values = values.map { $0.expanded(at: [0]) } }
        let axis = try call.axis(rank: values[0].rank)
        return try call.graph.concat(values, axis: axis, interleaved: call.bool("interleave"))
    },
    OperationRule("stack", ["values": .required, "axis": .required]) { (call) throws(RuntimeError) in
        let values = try call.views("values")
        let axis = try call.axis(rank: values[0].rank + 1)
        for value in values where value.shape != values[0].shape {
            throw call.failure(.shape(parameter: "values", got: value.shape, expected: "\(values[0].shape)"))
        }
        return try call.graph.concat(values.map { $0.expanded(at: [axis]) }, axis: axis)
    },
    OperationRule(
        "split", ["x": .required, "num_splits": .absent, "split_sizes": .absent, "axis": .required],
        lower: { (call) throws(RuntimeError) in
            let x = try call.view("x")
            let axis = try call.axis(rank: x.rank)
            var sizes: [Int]
            if let given = try call.optionalInts("split_sizes") {
                sizes = given
            } else if let count = try call.optionalInt("num_splits"), count > 0, count <= call.outputCount,
                x.shape[axis] % count == 0
            {
                sizes = Array(repeating: x.shape[axis] / count, count: count)
            } else {
                throw call.failure(.missingParameter("split_sizes (or a num_splits that divides the axis)"))
            }
            guard sizes.allSatisfy({ $0 >= 0 && $0 <= x.shape[axis] }), sizes.count <= call.outputCount,
                sizes.reduce(0, +) == x.shape[axis]
            else {
                throw call.failure(
                    .value(parameter: "split_sizes", got: "\(sizes)", expected: "a sum of \(x.shape[axis])"))
            }
            var start = 0
            return sizes.map { size in
                defer { start += size }
                return x.sliced(axis: axis, start: start, count: size)
            }
        }),
]

/// Of a range whose length the file leaves open.
private let largestOpenRange = 1 << 26

private let repeatRules: [OperationRule] = [
    OperationRule("tile", ["x": .required, "reps": .required]) { (call) throws(RuntimeError) in
        let x = try call.view("x")
        let reps = try call.ints("reps")
        guard reps.count == x.rank, reps.allSatisfy({ $0 >= 0 }) else {
            throw call.failure(.value(parameter: "reps", got: "\(reps)", expected: "\(x.rank) numbers from 0 on"))
        }
        let shape = try call.product(x.shape, reps)
        if x.count == 0 || reps.contains(0) { return try call.graph.empty(x.type, shape) }
        var repeated = x
        for axis in reps.indices.reversed() {
            repeated.shape.insert(reps[axis], at: axis)
            repeated.strides.insert(0, at: axis)
        }
        return try call.graph.reshape(repeated, shape)
    },
    OperationRule("fill", ["shape": .required, "value": 0.0]) { (call) throws(RuntimeError) in
        try call.filled(try call.ints("shape"))
    },
    OperationRule("fill_like", ["ref_tensor": .required, "value": 0.0]) { (call) throws(RuntimeError) in
        try call.filled(try call.view("ref_tensor").shape)
    },
    OperationRule("range_1d", ["end": .required, "start": .required, "step": .required]) {
        (call) throws(RuntimeError) in
        let type = try call.number("start").type
        let bounds = try ["start", "end", "step"].map { (name) throws(RuntimeError) in
            guard let value = try call.numbers(name)?.first else { throw call.failure(.notConstant(name)) }
            return value
        }
        let count = ((bounds[1] - bounds[0]) / bounds[2]).rounded(.up)
        guard count.isFinite, count <= Double(call.declaredCount ?? largestOpenRange) else {
            throw call.failure(.value(parameter: "step", got: "\(bounds[2])", expected: "a step towards the end"))
        }
        let numbers = (0..<Int(max(count, 0))).map { bounds[0] + Double($0) * bounds[2] }
        let storage = try Storage(type: type.register, shape: [numbers.count])
        if type.isFloat { storage.fill(numbers.map { Float($0) }) } else { storage.fill(numbers.map { Int32($0) }) }
        return try call.graph.cast(call.graph.constant(storage), to: type)
    },
    OperationRule("sliding_windows", ["x": .required, "axis": .required, "size": .required, "stride": 1]) {
        (call) throws(RuntimeError) in
        var x = try call.view("x")
        let axis = try call.axis(rank: x.rank)
        let size = try call.int("size")
        let step = try call.int("stride")
        guard size >= 1, size <= x.shape[axis], step >= 1 else {
            throw call.failure(.value(parameter: "size", got: "\(size)", expected: "1 ... \(x.shape[axis])"))
        }
        x.shape.insert(size, at: axis + 1)
        x.strides.insert(x.strides[axis], at: axis + 1)
        x.shape[axis] = (x.shape[axis] - size) / step + 1
        x.strides[axis] *= x.shape[axis] > 1 ? step : 1
        guard byteCount(x.type, x.shape) != nil else { throw call.failure(.tooLarge(x.shape)) }
        return x
    },
]

private let blockRules: [OperationRule] = [
    // The block index is the outer part of the channel.
    block("depth_to_space", "block_size") { (b, c) in ([b, b, c / (b * b)], [0, 3, 4, 1, 5, 2]) },
    block("pixel_shuffle", "upscale_factor") { (b, c) in ([c / (b * b), b, b], [0, 1, 4, 2, 5, 3]) },
    unblock("space_to_depth", "block_size", [0, 3, 5, 1, 2, 4]),
    unblock("pixel_unshuffle", "downscale_factor", [0, 1, 3, 5, 2, 4]),
]

/// [n, C, h, w] with C split into three, so permuted that two of them end up in h and w.
private func block(
    _ name: String, _ parameter: String, _ plan: @escaping @Sendable (Int, Int) -> ([Int], [Int])
) -> OperationRule {
    OperationRule(name, ["x": .required, parameter: .required]) { (call) throws(RuntimeError) in
        let x = try call.image("x")
        let b = try call.int(parameter)
        guard b >= 1, b < 1 << 15, x.shape[1] % (b * b) == 0 else {
            throw call.failure(.value(parameter: parameter, got: "\(b)", expected: "a block that divides the channels"))
        }
        let (split, permutation) = plan(b, x.shape[1])
        let blocks = try call.graph.reshape(x, [x.shape[0]] + split + [x.shape[2], x.shape[3]])
        let shape = [x.shape[0], x.shape[1] / (b * b), x.shape[2] * b, x.shape[3] * b]
        return try call.graph.reshape(blocks.transposed(permutation), shape)
    }
}

/// [n, C, h, w] with h and w split into two, so permuted that the inner parts end up in C.
private func unblock(_ name: String, _ parameter: String, _ permutation: [Int]) -> OperationRule {
    OperationRule(name, ["x": .required, parameter: .required]) { (call) throws(RuntimeError) in
        let x = try call.image("x")
        let b = try call.int(parameter)
        guard b >= 1, b < 1 << 15, x.shape[2] % b == 0, x.shape[3] % b == 0 else {
            throw call.failure(.value(parameter: parameter, got: "\(b)", expected: "a block that divides h and w"))
        }
        let (h, w) = (x.shape[2] / b, x.shape[3] / b)
        let blocks = try call.graph.reshape(x, [x.shape[0], x.shape[1], h, b, w, b])
        return try call.graph.reshape(blocks.transposed(permutation), [x.shape[0], x.shape[1] * b * b, h, w])
    }
}

extension Call {
    /// A tensor [n, C, h, w].
    func image(_ name: String) throws(RuntimeError) -> View {
        let view = try view(name)
        guard view.rank == 4 else { throw failure(.rank(parameter: name, got: view.rank, expected: "4")) }
        return view
    }

    func product(_ shape: [Int], _ factors: [Int]) throws(RuntimeError) -> [Int] {
        var result: [Int] = []
        for (size, factor) in zip(shape, factors) {
            let (product, overflow) = size.multipliedReportingOverflow(by: factor)
            if overflow { throw failure(.tooLarge(shape)) }
            result.append(product)
        }
        guard elementCount(result) != nil else { throw failure(.tooLarge(result)) }
        return result
    }

    func filled(_ shape: [Int]) throws(RuntimeError) -> View {
        let value =
            if has("value") { try view("value") } else { try graph.scalar(0, .float32) }
        guard value.count == 1 else {
            throw failure(.shape(parameter: "value", got: value.shape, expected: "one element"))
        }
        guard byteCount(value.type, shape) != nil else { throw failure(.tooLarge(shape)) }
        return value.dropping(Array(0..<value.rank)).broadcast(to: shape)
    }

    /// The shape that a reshape to `pattern` gives: 0 copies a dimension, one -1 takes what is left.
    func reshapedShape(of x: View, _ pattern: [Int]) throws(RuntimeError) -> [Int] {
        let expected = "a shape of \(x.count) elements"
        func refusal() -> RuntimeError {
            failure(.value(parameter: "shape", got: "\(pattern)", expected: expected))
        }
        var shape = pattern
        if !x.shape.contains(0) {
            // Up to CoreML6 the dimension at the same place, later the one at the same distance from the end.
            let shift = opset >= 7 ? x.rank - pattern.count : 0
            for axis in shape.indices where shape[axis] == 0 {
                let source = axis + shift
                if x.shape.indices.contains(source) {
                    shape[axis] = x.shape[source]
                } else if opset >= 7 {
                    shape[axis] = 1
                } else {
                    throw refusal()
                }
            }
        }
        let open = shape.indices.filter { shape[$0] == -1 }
        guard open.count <= 1 else { throw refusal() }
        if let axis = open.first {
            shape[axis] = 1
            guard let known = elementCount(shape), known > 0, x.count % known == 0 else { throw refusal() }
            shape[axis] = x.count / known
        }
        guard elementCount(shape) == x.count else { throw refusal() }
        return shape
    }
}

extension GraphBuilder {
    /// Joins values whose other dimensions are equal. `interleaved`: index by index in turn.
    func concat(_ values: [View], axis: Int, interleaved: Bool = false) throws(RuntimeError) -> View {
        if values.count == 1 { return values[0] }
        var shape = values[0].shape
        shape[axis] = 0
        for value in values {
            var other = value.shape
            if axis < value.rank { other[axis] = values[0].shape[axis] }
            guard other == values[0].shape, !interleaved || value.shape == values[0].shape else {
                throw .invalid(
                    .shape(parameter: "values", got: value.shape, expected: "\(values[0].shape) but for axis \(axis)"),
                    place)
            }
            let (sum, overflow) = shape[axis].addingReportingOverflow(value.shape[axis])
            if overflow { throw .invalid(.tooLarge(value.shape), place) }
            shape[axis] = sum
        }
        let result = try empty(values[0].type, shape)
        var start = 0
        for (index, value) in values.enumerated() {
            let size = value.shape[axis]
            if interleaved {
                copy(value, into: result.sliced(axis: axis, start: index, count: size, step: values.count))
            } else {
                copy(value, into: result.sliced(axis: axis, start: start, count: size))
                start += size
            }
        }
        return result
    }
}
