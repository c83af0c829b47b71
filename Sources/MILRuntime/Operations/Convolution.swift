// Convolution and its transpose: parameters, and which kernel does them.
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
        let x = try graph.cast(shape.x, to: .float32)
        let weight = try graph.cast(shape.weight, to: .float32)
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
            guard (1...Windows.largestSize).contains(shape.spatial[axis]), shape.kernel[axis] <= Windows.largestSize
            else {
                throw failure(.tooLarge(shape.spatial + shape.kernel))
            }
            let reach = (shape.kernel[axis] - 1) * dilation[axis] + 1
            let full = (shape.spatial[axis] - 1) * stride[axis] + reach
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
    func convolution(_ x: View, _ weight: View, _ windows: Windows, _ groups: Int) throws(RuntimeError) -> View {
        let result = try empty(.float32, [x.shape[0], weight.shape[0]] + windows.count)
        if result.count == 0 { return result }
        if x.count == 0 || weight.count == 0 { return try zeros(result) }
        guard let planar = Planar(x, weight, windows, groups) else {
            return try unfoldedConvolution(x, weight, windows, groups, result)
        }
        if planar.looksLikeWeightGradient {
            return try weightGradient(planar).dropping(Array(2..<(2 + planar.addedAxes)))
        }
        let convolution = Convolution(
            kind: .forward, shape: planar.shape(in: x.shape[1], out: weight.shape[0]), x: try dense(x),
            weight: try dense(weight), result: result)
        add(.convolution(convolution))
        return result
    }

    /// `windows` lie on the result.
    func transposedConvolution(
        _ x: View, _ weight: View, _ windows: Windows, _ groups: Int
    ) throws(RuntimeError) -> View {
        let (channels, overflow) = weight.shape[1].multipliedReportingOverflow(by: groups)
        if overflow { throw .invalid(.tooLarge(weight.shape), place) }
        let result = try empty(.float32, [x.shape[0], channels] + windows.image)
        if result.count == 0 { return result }
        if x.count == 0 || weight.count == 0 { return try zeros(result) }
        guard let planar = Planar(x, weight, windows, groups) else {
            return try unfoldedTranspose(x, weight, windows, groups, result)
        }
        let convolution = Convolution(
            kind: .inputGradient, shape: planar.shape(in: channels, out: x.shape[1]), x: try dense(x),
            weight: try dense(weight), result: result)
        add(.convolution(convolution))
        return result
    }

    /// A sum of nothing.
    private func zeros(_ result: View) throws(RuntimeError) -> View {
        copy(try scalar(0, .float32).broadcast(to: result.shape), into: result)
        return result
    }

    /// A convolution whose kernel is larger than its output, read as the gradient of a kernel: batch and channels of x
    /// change places, as do those of the kernel, which is the gradient of that convolution's output. There each pass
    /// over an image goes over long runs. With one group that is the same sum; the transposes are often free, since
    /// programs write such gradients with transposes of their own.
    private func weightGradient(_ planar: Planar) throws(RuntimeError) -> View {
        let (x, dy, groups) = (planar.x, planar.weight, planar.groups)
        let (images, inputs) = (dy.shape[1], x.shape[0])
        let image = x.shape[2...]
        let byGroup = try reshape(x, [inputs, groups, images] + image).transposed([2, 1, 0, 3, 4])
        let source = try reshape(byGroup, [images, groups * inputs] + image)
        var shape = rlxk_conv_shape()
        shape.batch = Int64(images)
        shape.groups = Int64(groups)
        shape.in_channels = Int64(groups * inputs)
        (shape.in_height, shape.in_width) = (Int64(x.shape[2]), Int64(x.shape[3]))
        shape.out_channels = Int64(dy.shape[0])
        (shape.out_height, shape.out_width) = (Int64(dy.shape[2]), Int64(dy.shape[3]))
        (shape.kernel_height, shape.kernel_width) = (Int64(planar.windows[0]), Int64(planar.windows[1]))
        shape.stride = (Int64(planar.dilation[0]), Int64(planar.dilation[1]))
        shape.dilation = (Int64(planar.stride[0]), Int64(planar.stride[1]))
        shape.pad = (Int64(planar.before[0]), Int64(planar.before[1]))
        let gradient = try empty(.float32, [dy.shape[0], inputs] + planar.windows)
        let convolution = Convolution(
            kind: .weightGradient, shape: shape, x: try dense(source), weight: try dense(dy.transposed([1, 0, 2, 3])),
            result: gradient)
        add(.convolution(convolution))
        return gradient.transposed([1, 0, 2, 3])
    }
}

/// A convolution in one or two dimensions, as one in two.
private struct Planar {
    var x: View
    var weight: View
    var groups: Int
    var windows: [Int]
    var image: [Int]
    var kernel: [Int]
    var stride: [Int]
    var dilation: [Int]
    var before: [Int]
    /// Dimensions of size 1 that stand in front of the spatial ones.
    var addedAxes: Int

    init?(_ x: View, _ weight: View, _ windows: Windows, _ groups: Int) {
        let missing = 2 - windows.count.count
        guard missing >= 0 else { return nil }
        func padded(_ values: [Int], _ value: Int) -> [Int] { Array(repeating: value, count: missing) + values }
        addedAxes = missing
        let axes = Array(2..<(2 + missing))
        self.x = x.expanded(at: axes)
        self.weight = weight.expanded(at: axes)
        self.groups = groups
        self.windows = padded(windows.count, 1)
        image = padded(windows.image, 1)
        kernel = padded(windows.kernel, 1)
        stride = padded(windows.stride, 1)
        dilation = padded(windows.dilation, 1)
        before = padded(windows.before, 0)
        let bordered = (0..<2).map { axis in
            Double((self.windows[axis] - 1) * stride[axis] + (kernel[axis] - 1) * dilation[axis] + 1)
        }
        if bordered[0] * bordered[1] > Self.largestPlane { return nil }
    }

    /// Elements of an image with all that its windows reach. The kernels copy it, a few rows at a time; their sizes do
    /// not overflow.
    private static let largestPlane = 0x1p32

    func shape(in inputs: Int, out outputs: Int) -> rlxk_conv_shape {
        var shape = rlxk_conv_shape()
        shape.batch = Int64(x.shape[0])
        shape.groups = Int64(groups)
        shape.in_channels = Int64(inputs)
        (shape.in_height, shape.in_width) = (Int64(image[0]), Int64(image[1]))
        shape.out_channels = Int64(outputs)
        (shape.out_height, shape.out_width) = (Int64(windows[0]), Int64(windows[1]))
        (shape.kernel_height, shape.kernel_width) = (Int64(kernel[0]), Int64(kernel[1]))
        shape.stride = (Int64(stride[0]), Int64(stride[1]))
        shape.dilation = (Int64(dilation[0]), Int64(dilation[1]))
        shape.pad = (Int64(before[0]), Int64(before[1]))
        return shape
    }

    var looksLikeWeightGradient: Bool { kernel[0] * kernel[1] > windows[0] * windows[1] }
}
