// A convolution of whose result a program reads a rectangle: the plan computes that alone.
import MILFormat
import Testing

@testable import MILRuntime

struct CropTests {
    struct Case: CustomStringConvertible {
        var transposed: Bool
        var stride: (Int, Int)
        /// Of the part: its first row and column, and its size.
        var start: (Int, Int)
        var size: (Int, Int)
        var description: String { "\(transposed ? "conv_transpose" : "conv") by \(stride), \(size) from \(start)" }
    }

    static let cases = [
        Case(transposed: true, stride: (1, 1), start: (1, 1), size: (5, 6)),
        Case(transposed: true, stride: (2, 1), start: (2, 0), size: (7, 3)),
        Case(transposed: true, stride: (2, 3), start: (3, 4), size: (1, 9)),
        Case(transposed: false, stride: (1, 1), start: (0, 2), size: (3, 2)),
        Case(transposed: false, stride: (2, 1), start: (1, 1), size: (1, 3)),
    ]
    private let batch = 2, inputs = 3, outputs = 4, height = 9, width = 10, kernel = 3

    @Test(arguments: cases, [1, 2]) func computesWhatIsRead(_ test: Case, workers: Int) throws {
        let whole =
            test.transposed
            ? ((height - 1) * test.stride.0 + kernel, (width - 1) * test.stride.1 + kernel)
            : ((height - kernel) / test.stride.0 + 1, (width - kernel) / test.stride.1 + 1)
        let weightShape = test.transposed ? [inputs, outputs, kernel, kernel] : [outputs, inputs, kernel, kernel]
        var random = SplitMix(state: 5)
        func integers(_ count: Int) -> [Double] { (0..<count).map { _ in Double(random.next() % 9) - 4 } }
        let x = integers(batch * inputs * height * width)
        let weight = integers(inputs * outputs * kernel * kernel)

        var p = ProgramBuilder()
        func ints(_ values: [Int]) -> Binding { .ints(values.map(Double.init)) }
        p.input("x", .floats([batch, inputs, height, width], []))
        p.input("w", .floats(weightShape, []))
        p.const("valid", string: "valid")
        p.add(
            test.transposed ? "conv_transpose" : "conv",
            ["x": "x", "weight": "w", "pad_type": "valid", "strides": ints([test.stride.0, test.stride.1])], "y",
            [batch, outputs, whole.0, whole.1])
        let part = [batch, outputs, test.size.0, test.size.1]
        p.add(
            "slice_by_size", ["x": "y", "begin": ints([0, 0, test.start.0, test.start.1]), "size": ints(part)], "part",
            part)
        p.add("relu", ["x": "part"], "out", part)
        let plan = try Plan(p.function(["out"]), blobs: NoBlobs(), options: PlanOptions(workers: workers))
        Tensor.floats([batch, inputs, height, width], x).write(to: plan.buffer(named: "x")!)
        Tensor.floats(weightShape, weight).write(to: plan.buffer(named: "w")!)
        try plan.run()

        let want = (0..<part.reduce(1, *)).map { index -> Double in
            let (column, row) = (index % part[3] + test.start.1, index / part[3] % part[2] + test.start.0)
            let (output, image) = (index / part[3] / part[2] % outputs, index / part[3] / part[2] / outputs)
            var sum = 0.0
            for input in 0..<inputs {
                for i in 0..<kernel {
                    for j in 0..<kernel {
                        let (r, c) =
                            test.transposed
                            ? (row - i, column - j) : (row * test.stride.0 + i, column * test.stride.1 + j)
                        if test.transposed, r % test.stride.0 != 0 || c % test.stride.1 != 0 { continue }
                        let (y, z) = test.transposed ? (r / test.stride.0, c / test.stride.1) : (r, c)
                        guard r >= 0, c >= 0, y < height, z < width else { continue }
                        let pair = test.transposed ? input * outputs + output : output * inputs + input
                        sum +=
                            x[((image * inputs + input) * height + y) * width + z]
                            * weight[(pair * kernel + i) * kernel + j]
                    }
                }
            }
            return max(sum, 0)
        }
        let result = Tensor(plan.buffer(named: "out")!)
        #expect(result.difference(from: .floats(part, want), tolerance: 0) == nil, "\(test)")
        #expect(plan.statistics.instructions == 1, "\(test): \(plan.statistics)")
    }
}
