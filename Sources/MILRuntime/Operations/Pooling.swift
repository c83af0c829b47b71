// Pooling over windows.
import RLXKernels

let poolingRules: [OperationRule] = [
    pooling("max_pool") { (call, x, windows) throws(RuntimeError) in
        try call.graph.pool(x, windows, RLXK_POOL_MAX, divisors: [])
    },
    pooling("avg_pool") { (call, x, windows) throws(RuntimeError) in
        let excludesPadding = try call.bool("exclude_padding_from_average")
        let divisors = windows.count.indices.map { axis in
            (0..<windows.count[axis]).map { index in
                windows.elements(of: index, axis: axis, withPadding: !excludesPadding)
            }
        }
        return try call.graph.pool(x, windows, RLXK_POOL_SUM, divisors: divisors)
    },
    pooling("l2_pool") { (call, x, windows) throws(RuntimeError) in
        let square = try call.graph.map(RLXK_SQUARE, [x], .float32)
        let ones = windows.count.map { Array(repeating: 1, count: $0) }
        let sum = try call.graph.pool(square, windows, RLXK_POOL_SUM, divisors: ones)
        return try call.graph.map(RLXK_SQRT, [sum], .float32)
    },
]

private func pooling(
    _ name: String, _ body: @escaping @Sendable (Call, View, Windows) throws(RuntimeError) -> View
) -> OperationRule {
    var rule = OperationRule(
        name,
        [
            "x": .required, "kernel_sizes": .required, "strides": .absent, "pad_type": .required, "pad": .absent,
            "ceil_mode": false,
        ]
    ) { (call) throws(RuntimeError) in
        let x = try call.float(view: "x")
        guard (3...5).contains(x.rank) else {
            throw call.failure(.rank(parameter: "x", got: x.rank, expected: "3 to 5"))
        }
        let kernel = try call.steps("kernel_sizes", x.rank - 2)
        let windows = try call.windows(image: Array(x.shape[2...]), kernel: kernel, ceil: call.bool("ceil_mode"))
        let result = try body(call, call.graph.cast(x, to: .float32), windows)
        return try call.graph.cast(result, to: x.type)
    }
    if name == "avg_pool" { rule.parameters["exclude_padding_from_average"] = false }
    return rule
}

extension Windows {
    /// How many elements of one dimension a mean is over; what only ceil mode adds never counts.
    fileprivate func elements(of index: Int, axis: Int, withPadding: Bool) -> Int {
        let start = index * stride[axis] - before[axis]
        let end = min(start + kernel[axis], image[axis] + (withPadding ? after[axis] : 0))
        return end - (withPadding ? start : max(start, 0))
    }
}

extension GraphBuilder {
    fileprivate func pool(
        _ x: View, _ windows: Windows, _ kind: rlxk_pooling, divisors: [[Int]]
    ) throws(RuntimeError) -> View {
        let result = try empty(.float32, Array(x.shape[..<2]) + windows.count)
        if result.count == 0 { return result }
        let image = try dense(x)
        let planes = x.shape[0] * x.shape[1]
        let size = windows.kernel.reduce(1, *)
        var call = rlxk_pool()
        call.window = windows.kernelWindow
        call.planes = Int64(planes)
        call.pooling = kind
        let scratch = withUnsafePointer(to: call) { rlxk_pool_scratch($0) }
        add(
            .kernel(
                Kernel(
                    run: rlxk_pool_run, reads: [image], writes: [result],
                    nanoseconds: Double(result.count) * Double(size) * 0.3, scratch: scratch
                ) { [call] arguments, memory in
                    var pool = call
                    pool.scratch = memory.scratch.assumingMemoryBound(to: Float.self)
                    pool.scratch_stride = Int64(memory.scratchStride)
                    pool.x = UnsafePointer(memory.read(0).assumingMemoryBound(to: Float.self))
                    pool.out = memory.write(0).assumingMemoryBound(to: Float.self)
                    let padded = Array(repeating: [1], count: 3 - windows.count.count) + divisors
                    if !divisors.isEmpty {
                        let stored = padded.map { UnsafePointer(arguments.store($0.map { Float($0) })) }
                        pool.divisor = (stored[0], stored[1], stored[2])
                    }
                    return UnsafeRawPointer(arguments.store(pool))
                }))
        return result
    }
}
