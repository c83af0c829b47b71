// Convolution and its transpose. Products with 1x1 kernels need no unfolding; all others unfold block by block.
import RLXKernels

let convolutionRules: [OperationRule] = [
    OperationRule(
        "conv",
        [
            "x": .required, "weight": .required, "bias": .absent, "strides": .absent, "pad_type": "valid",
            "pad": .absent, "dilations": .absent, "groups": 1,
        ]
    ) { (call) throws(RuntimeError) in
        let shape = try ConvolutionShape(call, inputChannelsFirst: false)
        let windows = try call.windows(image: shape.spatial, kernel: shape.kernel)
        let graph = call.graph
        let x = try graph.cast(shape.x, to: .float32)
        let weight = try graph.cast(shape.weight, to: .float32)
        let result = try graph.convolution(x, weight, windows, shape.groups)
        return try call.biased(result, shape.x.type)
    },
    OperationRule(
        "conv_transpose",
        [
            "x": .required, "weight": .required, "bias": .absent, "pad": .absent, "output_shape": .absent,
            "pad_type": "valid", "strides": .absent, "dilations": .absent, "groups": 1,
        ]
    ) { (call) throws(RuntimeError) in
        let shape = try ConvolutionShape(call, inputChannelsFirst: true)
        let windows = try call.transposedWindows(shape)
        let graph = call.graph
        let x = try graph.dense(graph.cast(shape.x, to: .float32))
        let weight = try graph.dense(graph.cast(shape.weight, to: .float32))
        let result = try graph.transposedConvolution(x, weight, windows, shape.groups)
        return try call.biased(result, shape.x.type)
    },
]

/// The operands of a convolution, checked.
private struct ConvolutionShape {
    var x: View
    var weight: View
    var groups: Int
    var spatial: [Int]
    var kernel: [Int]

    init(_ call: Call, inputChannelsFirst: Bool) throws(RuntimeError) {
        x = try call.float(view: "x")
        weight = try call.float(view: "weight")
        _ = try call.productType(x, weight)
        guard (3...5).contains(x.rank) else {
            throw call.failure(.rank(parameter: "x", got: x.rank, expected: "3 to 5"))
        }
        groups = try call.int("groups")
        spatial = Array(x.shape[2...])
        kernel = Array(weight.shape.dropFirst(2))
        let channels = x.shape[1]
        let fits =
            groups >= 1 && weight.rank == x.rank && kernel.allSatisfy { $0 >= 1 }
            && (inputChannelsFirst
                ? weight.shape[0] == channels && channels % groups == 0
                : weight.shape[1].multipliedReportingOverflow(by: groups) == (channels, false)
                    && weight.shape[0] % groups == 0)
        guard fits else {
            throw call.failure(
                .shape(
                    parameter: "weight", got: weight.shape,
                    expected: "a kernel for \(channels) channels in \(groups) groups, of rank \(x.rank)"))
        }
    }
}

extension Call {
    /// `result` + bias over its channels, as `type`.
    fileprivate func biased(_ result: View, _ type: ElementType) throws(RuntimeError) -> View {
        guard has("bias") else { return try graph.cast(result, to: type) }
        return try graph.map(RLXK_ADD, [result, channels("bias", of: result)], type)
    }

    /// The windows that the input's elements are spread over; their image is the output.
    fileprivate func transposedWindows(_ shape: ConvolutionShape) throws(RuntimeError) -> Windows {
        let dims = shape.spatial.count
        let stride = try steps("strides", dims)
        let dilation = try steps("dilations", dims)
        let type = try choice("pad_type", PadType.self)
        let given = try optionalInts("output_shape")
        if let given, given.count != shape.x.rank {
            throw failure(.value(parameter: "output_shape", got: "\(given)", expected: "\(shape.x.rank) numbers"))
        }
        var windows = Windows(
            image: [], kernel: shape.kernel, stride: stride, dilation: dilation,
            before: Array(repeating: 0, count: dims), after: Array(repeating: 0, count: dims), count: shape.spatial)
        if type == .custom { (windows.before, windows.after) = try borders(dims) }
        for axis in 0..<dims {
            let reach = (shape.kernel[axis] - 1) * dilation[axis] + 1
            let (spread, overflow) = (shape.spatial[axis] - 1).multipliedReportingOverflow(by: stride[axis])
            guard !overflow, shape.spatial[axis] >= 1 else { throw failure(.tooLarge(shape.spatial)) }
            let full = spread + reach
            var size = full - windows.before[axis] - windows.after[axis]
            if type == .same || type == .sameLower {
                size = given?[axis + 2] ?? shape.spatial[axis] * stride[axis]
                let total = max(0, full - size)
                windows.before[axis] = type == .same ? total / 2 : total - total / 2
            } else if let given {
                size = given[axis + 2]
            }
            guard size >= 1 else {
                throw failure(.value(parameter: "pad", got: "\(size) elements left", expected: "at least 1"))
            }
            windows.image.append(size)
        }
        return windows
    }
}

extension GraphBuilder {
    /// Floats that an unfolded block may take: it should stay in the second-level cache beside the kernel.
    private static let blockFloats = 1 << 16

    func convolution(_ x: View, _ weight: View, _ windows: Windows, _ groups: Int) throws(RuntimeError) -> View {
        let batch = x.shape[0]
        let outputs = weight.shape[0]
        let result = try empty(.float32, [batch, outputs] + windows.count)
        if result.count == 0 { return result }
        if let product = try pointwise(x, weight, windows, groups, result) { return product }
        let image = try dense(x)
        let kernel = try dense(weight)
        let depth = weight.shape[1...].reduce(1, *)
        let call = convolutionCall(
            windows, batch: batch, groups: groups, inputs: weight.shape[1], outputs: outputs / groups, depth: depth)
        let scratch = withUnsafePointer(to: call) { rlxk_conv_scratch($0) }
        let flops = 2 * Double(result.count) * Double(depth)
        add(
            .kernel(
                Kernel(
                    run: rlxk_conv_run, reads: [image, kernel], writes: [result], nanoseconds: flops / 20,
                    scratch: scratch
                ) { arguments, memory in store(call, arguments, memory) }))
        return result
    }

    func transposedConvolution(
        _ x: View, _ weight: View, _ windows: Windows, _ groups: Int
    ) throws(RuntimeError) -> View {
        let outputs = weight.shape[1]
        let (channels, overflow) = outputs.multipliedReportingOverflow(by: groups)
        if overflow { throw .invalid(.tooLarge(weight.shape), place) }
        let result = try empty(.float32, [x.shape[0], channels] + windows.image)
        if result.count == 0 { return result }
        let depth = weight.shape[1...].reduce(1, *)
        let call = convolutionCall(
            windows, batch: x.shape[0], groups: groups, inputs: x.shape[1] / groups, outputs: outputs, depth: depth)
        let scratch = withUnsafePointer(to: call) { rlxk_conv_transpose_scratch($0) }
        let flops = 2 * Double(x.count) * Double(depth)
        add(
            .kernel(
                Kernel(
                    run: rlxk_conv_transpose_run, reads: [x, weight], writes: [result], nanoseconds: flops / 20,
                    scratch: scratch
                ) { arguments, memory in store(call, arguments, memory) }))
        return result
    }

    private func convolutionCall(
        _ windows: Windows, batch: Int, groups: Int, inputs: Int, outputs: Int, depth: Int
    ) -> rlxk_conv {
        var call = rlxk_conv()
        call.window = windows.kernelWindow
        call.batch = Int64(batch)
        call.groups = Int64(groups)
        call.ci = Int64(inputs)
        call.co = Int64(outputs)
        let count = windows.count.reduce(1, *)
        // Whole vectors, and blocks of about one size.
        let fitting = max(64, Self.blockFloats / max(depth, 1) / 16 * 16)
        let blocks = (count + fitting - 1) / fitting
        call.block = Int64(((count + blocks - 1) / blocks + 15) / 16 * 16)
        return call
    }

    /// A kernel of one element and step is a product over the pixels.
    private func pointwise(
        _ x: View, _ weight: View, _ windows: Windows, _ groups: Int, _ result: View
    ) throws(RuntimeError) -> View? {
        guard groups == 1, windows.kernel.allSatisfy({ $0 == 1 }), windows.stride.allSatisfy({ $0 == 1 }),
            windows.before.allSatisfy({ $0 == 0 }), windows.after.allSatisfy({ $0 == 0 }),
            let pixels = x.reshaped([x.shape[0], x.shape[1], windows.image.reduce(1, *)]),
            let kernel = weight.reshaped([1, weight.shape[0], weight.shape[1]])
        else { return nil }
        let a = kernel.broadcast(to: [x.shape[0], weight.shape[0], weight.shape[1]])
        let c = result.reshaped([x.shape[0], weight.shape[0], pixels.shape[2]])!
        add(.product(Product(a: a, b: pixels, c: c)))
        return result
    }
}

private func store(_ call: rlxk_conv, _ arguments: Arguments, _ memory: KernelMemory) -> UnsafeRawPointer {
    var call = call
    call.x = UnsafePointer(memory.read(0).assumingMemoryBound(to: Float.self))
    call.weight = UnsafePointer(memory.read(1).assumingMemoryBound(to: Float.self))
    call.out = memory.write(0).assumingMemoryBound(to: Float.self)
    call.scratch = memory.scratch.assumingMemoryBound(to: Float.self)
    call.scratch_stride = Int64(memory.scratchStride)
    return UnsafeRawPointer(arguments.store(call))
}
