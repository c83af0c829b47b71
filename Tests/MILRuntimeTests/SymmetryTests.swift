// Products that are symmetric matrices, of which half is computed, against the same in double precision.
import MILFormat
import Testing

@testable import MILRuntime

struct SymmetryTests {
    /// (X Xᵀ)² is symmetric because X Xᵀ is; a product of two different values is not.
    @Test(arguments: [1, 2, 3]) func symmetricProductsAreWhole(workers: Int) throws {
        let (n, k) = (131, 5)
        var p = ProgramBuilder()
        for name in ["x", "y"] { p.input(name, .floats([n, k], [])) }
        p.add("matmul", ["x": "x", "y": "x", "transpose_y": .bool(true)], "a", [n, n])
        p.add("matmul", ["x": "a", "y": "a"], "aa", [n, n])
        p.add("matmul", ["x": "x", "y": "y", "transpose_y": .bool(true)], "b", [n, n])
        var random = SplitMix(state: 3)
        // Quarters, so that all sums are exact.
        func numbers() -> [Double] { (0..<(n * k)).map { _ in Double(Int(random.next() % 17) - 8) / 4 } }
        let (x, y) = (numbers(), numbers())
        let plan = try Plan(
            p.function(["a", "aa", "b"]), blobs: NoBlobs(), options: PlanOptions(workers: workers))
        for (name, values) in [("x", x), ("y", y)] {
            Tensor.floats([n, k], values).write(to: plan.buffer(named: name)!)
        }
        try plan.run()
        func product(_ a: [Double], _ b: [Double], _ depth: Int, bRow: Int, bCol: Int) -> [Double] {
            (0..<(n * n)).map { place in
                let (i, j) = (place / n, place % n)
                return (0..<depth).reduce(0) { $0 + a[i * depth + $1] * b[$1 * bRow + j * bCol] }
            }
        }
        let a = product(x, x, k, bRow: 1, bCol: k)
        #expect(Tensor(plan.buffer(named: "a")!).values == a)
        #expect(Tensor(plan.buffer(named: "b")!).values == product(x, y, k, bRow: 1, bCol: k))
        #expect(Tensor(plan.buffer(named: "aa")!).values == product(a, a, n, bRow: n, bCol: 1))
        #expect(plan.statistics.instructions == 5)
    }
}
