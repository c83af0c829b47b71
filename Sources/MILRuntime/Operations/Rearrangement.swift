// Rearrangements of batches and sequences, and the integer forms of quantised values.
import RLXKernels

let rearrangementRules: [OperationRule] = [
    OperationRule("reverse_sequence", ["x": .required, "lengths": .required, "seq_axis": 0, "batch_axis": 0]) {
        (call) throws(RuntimeError) in
        let x = try call.view("x")
        let sequence = try call.axis("seq_axis", rank: x.rank)
        let batch = try call.axis("batch_axis", rank: x.rank)
        let lengths = try call.indices("lengths")
        guard sequence != batch, lengths.shape == [x.shape[batch]] else {
            throw call.failure(
                .shape(parameter: "lengths", got: lengths.shape, expected: "one a sequence: [\(x.shape[batch])]"))
        }
        let graph = call.graph
        let place = try graph.iota(x.shape[sequence]).expanded(at: Array(1..<x.rank - sequence))
        let length = lengths.expanded(at: Array(1..<x.rank - batch))
        let last = try graph.map(RLXK_SUB_I32, [length, graph.scalar(1, .int32)], .int32)
        let mirrored = try graph.map(RLXK_SUB_I32, [last, place], .int32)
        let isInside = try graph.map(RLXK_GT_I32, [length, place], .bool)
        let index = try graph.map(RLXK_SELECT, [isInside, mirrored, place], .int32)
        return try graph.gatherAlong(x, index.broadcast(to: x.shape), axis: sequence)
    },
    OperationRule("space_to_batch", ["x": .required, "block_shape": .required, "paddings": .required]) {
        (call) throws(RuntimeError) in
        let x = try call.image("x")
        let (block, pad) = try call.blocks("paddings")
        let graph = call.graph
        let padded = try graph.pad(x, pad, .constant, graph.scalar(0, x.type))
        let shape = padded.shape
        guard shape[2] % block[0] == 0, shape[3] % block[1] == 0 else {
            throw call.failure(.value(parameter: "block_shape", got: "\(block)", expected: "divisors of \(shape)"))
        }
        let (h, w) = (shape[2] / block[0], shape[3] / block[1])
        let blocks = try graph.reshape(padded, [shape[0], shape[1], h, block[0], w, block[1]])
        let batch = shape[0] * block[0] * block[1]
        return try graph.reshape(blocks.transposed([3, 5, 0, 1, 2, 4]), [batch, shape[1], h, w])
    },
    OperationRule("batch_to_space", ["x": .required, "block_shape": .required, "crops": .required]) {
        (call) throws(RuntimeError) in
        let x = try call.image("x")
        let (block, crop) = try call.blocks("crops")
        let (h, w) = (x.shape[2] * block[0], x.shape[3] * block[1])
        guard x.shape[0] % (block[0] * block[1]) == 0, crop[0] + crop[1] <= h, crop[2] + crop[3] <= w else {
            throw call.failure(.value(parameter: "crops", got: "\(crop)", expected: "a part of \(x.shape)"))
        }
        let batch = x.shape[0] / (block[0] * block[1])
        let blocks = try call.graph.reshape(x, [block[0], block[1], batch] + x.shape[1...])
        let whole = try call.graph.reshape(blocks.transposed([2, 3, 4, 0, 5, 1]), [batch, x.shape[1], h, w])
        return whole.sliced(axis: 2, start: crop[0], count: h - crop[0] - crop[1])
            .sliced(axis: 3, start: crop[2], count: w - crop[2] - crop[3])
    },
    OperationRule(
        "quantize",
        ["input": .required, "scale": .required, "zero_point": .absent, "output_dtype": .required, "axis": .absent]
    ) { (call) throws(RuntimeError) in
        let x = try call.float(view: "input")
        let name = try call.string("output_dtype")
        guard let type = ElementType(name: name), type == .int8 || type == .uint8 else {
            throw call.failure(.value(parameter: "output_dtype", got: "\"\(name)\"", expected: "int8 or uint8"))
        }
        let graph = call.graph
        let scaled = try graph.map(RLXK_DIV, [x, call.perChannel("scale", x)], .float32)
        var level = try graph.cast(graph.map(RLXK_ROUND, [scaled], .float32), to: .int32)
        if call.has("zero_point") {
            level = try graph.map(RLXK_ADD_I32, [level, call.perChannel("zero_point", x)], .int32)
        }
        return try graph.cast(level, to: type)
    },
    OperationRule(
        "dequantize", ["input": .required, "scale": .required, "zero_point": .absent, "axis": .absent]
    ) { (call) throws(RuntimeError) in
        let graph = call.graph
        let x = try call.indices("input")
        var level = x
        if call.has("zero_point") {
            level = try graph.map(RLXK_SUB_I32, [level, call.perChannel("zero_point", x)], .int32)
        }
        let scale = try call.perChannel("scale", x)
        return try graph.map(RLXK_MUL, [graph.cast(level, to: .float32), scale], scale.type)
    },
]

extension Call {
    /// Two block sizes, and two pairs of paddings or crops.
    fileprivate func blocks(_ name: String) throws(RuntimeError) -> ([Int], [Int]) {
        let block = try ints("block_shape")
        let pairs = try ints(name)
        let limits = 0..<(1 << 31)
        guard block.count == 2, block.allSatisfy({ $0 >= 1 && $0 < 1 << 15 }) else {
            throw failure(.value(parameter: "block_shape", got: "\(block)", expected: "two sizes"))
        }
        guard pairs.count == 4, pairs.allSatisfy(limits.contains) else {
            throw failure(.value(parameter: name, got: "\(pairs)", expected: "two pairs from 0 on"))
        }
        return (block, pairs)
    }

    /// A scalar, or a vector along `axis` of `x`, shaped to broadcast over it.
    fileprivate func perChannel(_ name: String, _ x: View) throws(RuntimeError) -> View {
        let view = try view(name)
        let value = view.type.isFloat ? view : try graph.cast(view, to: .int32)
        if value.rank == 0 { return value }
        let axis = try normalized(optionalInt("axis") ?? 0, rank: x.rank, "axis")
        guard value.shape == [x.shape[axis]] else {
            throw failure(.shape(parameter: name, got: value.shape, expected: "[\(x.shape[axis])]"))
        }
        return value.expanded(at: Array(1..<x.rank - axis))
    }
}
