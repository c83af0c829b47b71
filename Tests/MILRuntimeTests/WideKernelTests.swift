// A kernel that dilation spreads far beyond the output: all but its first element fall outside.
import MILFormat
import Testing

@testable import MILRuntime

struct WideKernelTests {
    @Test(arguments: [[100, 1000], [70_000, 1 << 20], [294_649_873, 44_040_193]])
    func onlyTheFirstElementCounts(dilations: [Int]) throws {
        var p = ProgramBuilder()
        p.input("x", .floats([1, 2, 2, 3], []))
        p.input("w", .floats([2, 1, 2, 2], []))
        p.const("valid", string: "valid")
        p.add(
            "conv_transpose",
            [
                "x": "x", "weight": "w", "pad_type": "valid", "dilations": .ints(dilations.map(Double.init)),
                "output_shape": .ints([1, 1, 2, 3]),
            ], "y", [1, 1, 2, 3])
        let plan = try Plan(p.function(["y"]), blobs: NoBlobs(), options: PlanOptions(workers: 2))
        let x = (0..<12).map(Double.init)
        Tensor.floats([1, 2, 2, 3], x).write(to: plan.buffer(named: "x")!)
        Tensor.floats([2, 1, 2, 2], [3, 9, 9, 9, 5, 9, 9, 9]).write(to: plan.buffer(named: "w")!)
        try plan.run()
        let want = (0..<6).map { 3 * x[$0] + 5 * x[$0 + 6] }
        #expect(
            Tensor(plan.buffer(named: "y")!).difference(from: .floats([1, 1, 2, 3], want), tolerance: 0) == nil)
    }
}
