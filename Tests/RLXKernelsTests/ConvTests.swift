// Convolutions and their gradients against loops in double precision, on every instruction set.
import RLXKernels
import Testing

private struct Conv: CustomStringConvertible {
    var batch = 1
    var groups = 1
    var channels = (1, 1)  // of one group: in, out
    var size = (1, 1)
    var kernel = (1, 1)
    var stride = (1, 1)
    var dilation = (1, 1)
    var before = (0, 0)
    var after = (0, 0)

    var out: (Int, Int) {
        (
            (size.0 + before.0 + after.0 - (kernel.0 - 1) * dilation.0 - 1) / stride.0 + 1,
            (size.1 + before.1 + after.1 - (kernel.1 - 1) * dilation.1 - 1) / stride.1 + 1
        )
    }

    var isValid: Bool {
        size.0 + before.0 + after.0 > (kernel.0 - 1) * dilation.0
            && size.1 + before.1 + after.1 > (kernel.1 - 1) * dilation.1
    }

    var description: String {
        "batch \(batch) groups \(groups) channels \(channels) size \(size) kernel \(kernel) stride \(stride) dilation \(dilation) pad \(before) \(after)"
    }

    var counts: (x: Int, w: Int, y: Int) {
        (
            batch * groups * channels.0 * size.0 * size.1, groups * channels.1 * channels.0 * kernel.0 * kernel.1,
            batch * groups * channels.1 * out.0 * out.1
        )
    }

    var shape: rlxk_conv_shape {
        func pair(_ x: (Int, Int)) -> (Int64, Int64) { (Int64(x.0), Int64(x.1)) }
        return rlxk_conv_shape(
            batch: Int64(batch), groups: Int64(groups), in_channels: Int64(groups * channels.0),
            in_height: Int64(size.0),
            in_width: Int64(size.1), out_channels: Int64(groups * channels.1), out_height: Int64(out.0),
            out_width: Int64(out.1), kernel_height: Int64(kernel.0), kernel_width: Int64(kernel.1),
            stride: pair(stride),
            dilation: pair(dilation), pad: pair(before))
    }

    /// All (x, w, y) indices that one multiplication joins.
    func forEachTerm(_ body: (_ x: Int, _ w: Int, _ y: Int) -> Void) {
        let (height, width) = out
        for n in 0..<batch {
            for g in 0..<groups {
                for o in 0..<channels.1 {
                    for c in 0..<channels.0 {
                        let plane = (n * groups * channels.0 + g * channels.0 + c) * size.0
                        let tap = ((g * channels.1 + o) * channels.0 + c) * kernel.0
                        let result = (n * groups * channels.1 + g * channels.1 + o) * height
                        for i in 0..<height {
                            for p in 0..<kernel.0 {
                                let row = i * stride.0 + p * dilation.0 - before.0
                                guard row >= 0 && row < size.0 else { continue }
                                for j in 0..<width {
                                    for q in 0..<kernel.1 {
                                        let column = j * stride.1 + q * dilation.1 - before.1
                                        guard column >= 0 && column < size.1 else { continue }
                                        body(
                                            (plane + row) * size.1 + column, (tap + p) * kernel.1 + q,
                                            (result + i) * width + j)
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// y, dx and dw.
private struct Results {
    var y: [Float]
    var dx: [Float]
    var dw: [Float]

    var bits: [UInt32] { (y + dx + dw).map(\.bitPattern) }
}

private struct Kernels {
    var isa: String
    var forward, inputGradient, weightSums, weightGradient: rlxk_kernel

    static var all: [Kernels] {
        instructionSets.compactMap { isa in
            guard let forward = rlxk_variant(rlxk_conv_forward_run, isa),
                let inputGradient = rlxk_variant(rlxk_conv_input_gradient_run, isa),
                let weightSums = rlxk_variant(rlxk_conv_weight_gradient_sums, isa),
                let weightGradient = rlxk_variant(rlxk_conv_weight_gradient_run, isa)
            else { return nil }
            return Kernels(
                isa: isa, forward: forward, inputGradient: inputGradient, weightSums: weightSums,
                weightGradient: weightGradient)
        }
    }
}

private struct Inputs {
    let conv: Conv
    let x, w, dy, bias: [Float]

    init(_ conv: Conv, seed: UInt64) {
        var random = Random(seed: seed)
        self.conv = conv
        x = random.floats(conv.counts.x)
        w = random.floats(conv.counts.w)
        dy = random.floats(conv.counts.y)
        bias = random.floats(conv.groups * conv.channels.1)
    }

    /// The exact results and the sums of the terms' sizes, from which errors are judged.
    func expected(relu: Bool) -> (values: [Double], sizes: [Double]) {
        let counts = conv.counts
        let plane = conv.out.0 * conv.out.1
        var y = (0..<counts.y).map { Double(bias[$0 / plane % bias.count]) }
        var dx = [Double](repeating: 0, count: counts.x)
        var dw = [Double](repeating: 0, count: counts.w)
        var sizes = y + dx + dw
        conv.forEachTerm { atX, atW, atY in
            let (x, w, dy) = (Double(x[atX]), Double(w[atW]), Double(dy[atY]))
            y[atY] += x * w
            dx[atX] += dy * w
            dw[atW] += dy * x
            sizes[atY] += abs(x * w)
            sizes[counts.y + atX] += abs(dy * w)
            sizes[counts.y + counts.x + atW] += abs(dy * x)
        }
        if relu { y = y.map { max($0, 0) } }
        return (y + dx + dw, sizes)
    }

    func run(_ kernels: Kernels, relu: Bool, workers: Int32) -> Results {
        var shape = conv.shape
        let rooms = [
            Workspace(floats: rlxk_conv_forward_workspace(&shape, workers)),
            Workspace(floats: rlxk_conv_input_gradient_workspace(&shape, workers)),
            Workspace(floats: rlxk_conv_weight_gradient_workspace(&shape, workers)),
        ]
        var results = Results(
            y: .init(repeating: .nan, count: conv.counts.y), dx: .init(repeating: .nan, count: conv.counts.x),
            dw: .init(repeating: .nan, count: conv.counts.w))
        x.withUnsafeBufferPointer { x in
            w.withUnsafeBufferPointer { w in
                dy.withUnsafeBufferPointer { dy in
                    bias.withUnsafeBufferPointer { bias in
                        results.y.withUnsafeMutableBufferPointer { y in
                            results.dx.withUnsafeMutableBufferPointer { dx in
                                results.dw.withUnsafeMutableBufferPointer { dw in
                                    var forward = rlxk_conv_forward(
                                        shape: shape, x: x.baseAddress, w: w.baseAddress, bias: bias.baseAddress,
                                        y: y.baseAddress, activation: Int32(relu ? RLXK_ACT_RELU : RLXK_ACT_NONE),
                                        clip: (0, 0), workspace: rooms[0].base)
                                    var input = rlxk_conv_input_gradient(
                                        shape: shape, dy: dy.baseAddress, w: w.baseAddress, bias: nil,
                                        dx: dx.baseAddress, activation: Int32(RLXK_ACT_NONE), clip: (0, 0),
                                        workspace: rooms[1].base)
                                    var weight = rlxk_conv_weight_gradient()
                                    (weight.shape, weight.workspace) = (shape, rooms[2].base)
                                    (weight.x, weight.dy, weight.dw) = (x.baseAddress, dy.baseAddress, dw.baseAddress)
                                    rlxk_conv_weight_gradient_contiguous(&weight)
                                    execute(kernels, &forward, &input, &weight, workers: workers)
                                }
                            }
                        }
                    }
                }
            }
        }
        return results
    }

    private func execute(
        _ kernels: Kernels, _ forward: UnsafePointer<rlxk_conv_forward>,
        _ input: UnsafePointer<rlxk_conv_input_gradient>,
        _ weight: UnsafePointer<rlxk_conv_weight_gradient>, workers: Int32
    ) {
        let list = [
            rlxk_instruction(run: kernels.forward, arguments: forward, flags: 0),
            rlxk_instruction(run: kernels.inputGradient, arguments: input, flags: 0),
            rlxk_instruction(run: kernels.weightSums, arguments: weight, flags: UInt32(RLXK_BARRIER)),
            rlxk_instruction(run: kernels.weightGradient, arguments: weight, flags: 0),
        ]
        rlxk_execute(list, list.count, workers)
    }
}

private func check(_ conv: Conv, relu: Bool = false, seed: UInt64 = 1) {
    let inputs = Inputs(conv, seed: seed)
    let (values, sizes) = inputs.expected(relu: relu)
    for kernels in Kernels.all {
        let result = inputs.run(kernels, relu: relu, workers: 1)
        let all = result.y + result.dx + result.dw
        let wrong = all.indices.first { !(abs(Double(all[$0]) - values[$0]) <= 0x1p-18 * (sizes[$0] + 1)) }
        #expect(wrong == nil, "\(kernels.isa) \(conv)")
        for workers in [2, 3, 4] as [Int32] {
            #expect(
                inputs.run(kernels, relu: relu, workers: workers).bits == result.bits,
                "\(kernels.isa) \(conv), \(workers) workers")
        }
    }
}

@Suite struct ConvTests {
    @Test func usualLayers() {
        check(
            Conv(batch: 2, channels: (1, 16), size: (12, 12), kernel: (3, 3), before: (1, 1), after: (1, 1)), relu: true
        )
        check(Conv(batch: 3, channels: (5, 20), size: (9, 7), kernel: (5, 5), before: (2, 2), after: (2, 2)))
        check(Conv(batch: 2, channels: (6, 15), size: (8, 8)), relu: true)
        check(
            Conv(
                batch: 2, channels: (4, 6), size: (11, 10), kernel: (3, 3), stride: (2, 2), before: (1, 1),
                after: (1, 1)))
        check(Conv(batch: 2, channels: (4, 6), size: (8, 9), stride: (2, 2)))
        check(
            Conv(
                batch: 2, channels: (3, 4), size: (12, 12), kernel: (3, 3), dilation: (2, 2), before: (2, 2),
                after: (2, 2)))
        check(
            Conv(batch: 2, groups: 3, channels: (2, 4), size: (7, 7), kernel: (3, 3), before: (1, 1), after: (1, 1)),
            relu: true)
        check(Conv(batch: 2, groups: 8, size: (6, 6), kernel: (3, 3), before: (1, 1), after: (1, 1)))
        check(
            Conv(
                batch: 2, groups: 3, size: (23, 35), kernel: (3, 3), stride: (2, 2), before: (1, 1), after: (1, 1)))
        check(
            Conv(
                groups: 3, size: (13, 18), kernel: (3, 2), stride: (3, 1), dilation: (1, 2), before: (2, 0),
                after: (0, 1)))
        check(Conv(groups: 2, size: (9, 200), kernel: (9, 5), before: (4, 2), after: (4, 2)))
    }

    /// Workers share output channels where pixels are few; images share a panel of columns, or not, where it is unfolded.
    @Test func fewPixels() {
        check(Conv(channels: (4, 260), size: (5, 5), kernel: (3, 3), before: (1, 1), after: (1, 1)), relu: true)
        check(Conv(batch: 9, channels: (20, 16), size: (14, 14), stride: (2, 2)))
        check(Conv(batch: 9, channels: (20, 16), size: (5, 5), stride: (2, 2)))
    }

    /// More channels than one part of the unfolded matrix takes, more images and rows than one block takes.
    @Test func manyChannelsImagesAndPixels() {
        check(Conv(batch: 2, channels: (130, 3), size: (4, 4), kernel: (3, 3), before: (1, 1), after: (1, 1)))
        check(Conv(batch: 70, channels: (1, 2), size: (3, 3), kernel: (2, 2)))
        check(Conv(channels: (24, 2), size: (40, 30), kernel: (3, 3), stride: (1, 2), before: (1, 1), after: (1, 1)))
    }

    @Test func pixelsThatNoTapMeets() {
        check(Conv(batch: 2, channels: (2, 3), size: (10, 11), kernel: (2, 2), stride: (3, 4)))
        check(
            Conv(
                batch: 1, channels: (2, 3), size: (9, 9), kernel: (2, 2), stride: (3, 3), dilation: (3, 3),
                after: (1, 2)))
    }

    @Test func croppedAndLargelyPadded() {
        check(Conv(batch: 2, channels: (2, 3), size: (9, 9), kernel: (3, 3), before: (-2, -1), after: (1, 0)))
        check(
            Conv(
                batch: 1, channels: (2, 3), size: (2, 3), kernel: (2, 2), stride: (2, 1), before: (4, 3), after: (3, 5))
        )
    }

    @Test func anEmptyBatch() {
        check(Conv(batch: 0, channels: (2, 3), size: (5, 5), kernel: (3, 3)))
    }

    @Test func aTransposedConvolutionHasBiasAndActivation() {
        let conv = Conv(
            batch: 2, groups: 2, channels: (3, 2), size: (7, 6), kernel: (3, 2), stride: (2, 1), before: (1, 0),
            after: (1, 1))
        let inputs = Inputs(conv, seed: 5)
        let bias = inputs.x.prefix(conv.groups * conv.channels.0).map { $0 * 2 }
        let plain = inputs.expected(relu: false).values[conv.counts.y...].prefix(conv.counts.x)
        let plane = conv.size.0 * conv.size.1
        let expected = plain.enumerated().map { max($1 + Double(bias[$0 / plane % bias.count]), 0) }
        var shape = conv.shape
        let workspace = Workspace(floats: rlxk_conv_input_gradient_workspace(&shape, 2))
        for (isa, kernel) in variants(of: rlxk_conv_input_gradient_run) {
            let dx = Workspace(floats: conv.counts.x)
            inputs.dy.withUnsafeBufferPointer { dy in
                inputs.w.withUnsafeBufferPointer { w in
                    bias.withUnsafeBufferPointer { bias in
                        var transposed = rlxk_conv_input_gradient(
                            shape: shape, dy: dy.baseAddress, w: w.baseAddress, bias: bias.baseAddress, dx: dx.base,
                            activation: Int32(RLXK_ACT_RELU), clip: (0, 0), workspace: workspace.base)
                        withUnsafePointer(to: &transposed) { transposed in
                            var only = rlxk_instruction(run: kernel, arguments: transposed, flags: 0)
                            rlxk_execute(&only, 1, 2)
                        }
                    }
                }
            }
            #expect(expected.indices.allSatisfy { abs(Double(dx.base[$0]) - expected[$0]) < 1e-5 }, "\(isa)")
        }
    }

    /// A forward pass whose kernel is an image, by the weight gradient of the convolution that it is the gradient of.
    @Test func aLargeKernelIsAWeightGradient() {
        let conv = Conv(
            batch: 4, channels: (3, 5), size: (9, 8), kernel: (7, 6), stride: (2, 1), dilation: (1, 1), before: (1, 1),
            after: (1, 1))
        let inputs = Inputs(conv, seed: 6)
        let expected = inputs.expected(relu: false).values.prefix(conv.counts.y).enumerated().map { index, y in
            y - Double(inputs.bias[index / (conv.out.0 * conv.out.1) % inputs.bias.count])
        }
        var swapped = conv.shape
        (swapped.batch, swapped.in_channels) = (conv.shape.in_channels, conv.shape.batch)
        (swapped.out_height, swapped.out_width) = (conv.shape.kernel_height, conv.shape.kernel_width)
        (swapped.kernel_height, swapped.kernel_width) = (conv.shape.out_height, conv.shape.out_width)
        (swapped.stride, swapped.dilation) = (conv.shape.dilation, conv.shape.stride)
        let (image, kernel, result) = (Int64(9 * 8), Int64(7 * 6), Int64(conv.out.0 * conv.out.1))
        let workspace = Workspace(floats: rlxk_conv_weight_gradient_workspace(&swapped, 3))
        let y = Workspace(floats: conv.counts.y)
        inputs.x.withUnsafeBufferPointer { x in
            inputs.w.withUnsafeBufferPointer { w in
                var gradient = rlxk_conv_weight_gradient(
                    shape: swapped, x: x.baseAddress, dy: w.baseAddress, x_stride: (image, 0, 3 * image),
                    dy_stride: (kernel, 0, 3 * kernel), dw: y.base, dw_stride: (0, result, 5 * result),
                    workspace: workspace.base)
                withUnsafePointer(to: &gradient) { gradient in
                    let list = [
                        rlxk_instruction(
                            run: rlxk_conv_weight_gradient_sums, arguments: gradient, flags: UInt32(RLXK_BARRIER)),
                        rlxk_instruction(run: rlxk_conv_weight_gradient_run, arguments: gradient, flags: 0),
                    ]
                    rlxk_execute(list, 2, 3)
                }
            }
        }
        #expect(expected.indices.allSatisfy { abs(Double(y.base[$0]) - expected[$0]) < 1e-5 })
    }

    @Test func randomShapes() {
        var random = Random(seed: 3)
        var checked = 0
        while checked < 60 {
            func two(_ range: ClosedRange<Int>) -> (Int, Int) {
                (.random(in: range, using: &random), .random(in: range, using: &random))
            }
            let conv = Conv(
                batch: .random(in: 1...3, using: &random), groups: .random(in: 1...2, using: &random),
                channels: two(1...9),
                size: two(1...12), kernel: two(1...4), stride: two(1...3), dilation: two(1...3), before: two(0...3),
                after: two(0...3))
            guard conv.isValid else { continue }
            check(conv, relu: .random(using: &random), seed: UInt64(checked))
            checked += 1
        }
    }
}
