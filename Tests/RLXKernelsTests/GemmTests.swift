// Matrix products against a loop in double precision: strides, batches, epilogues, edge shapes, every instruction set.
import RLXKernels
import Testing

/// A strided operand in a buffer that has just the elements that it needs, and NaN between them.
private struct Operand {
    var row: Int
    var col: Int
    var batch: [Int]
    var count: Int

    /// `transposed`: the first index is the contiguous one. `gap` unused elements lie between lines.
    init(rows: Int, cols: Int, batch sizes: [Int], transposed: Bool = false, gap: Int = 0, broadcast: [Bool]? = nil) {
        let line = (transposed ? rows : cols) + gap
        (row, col) = transposed ? (1, line) : (line, 1)
        count = max(line * (transposed ? cols : rows), 1)
        batch = [0, 0, 0]
        for axis in [2, 1, 0] where !(broadcast?[axis] ?? false) {
            batch[axis] = count
            count *= max(sizes[axis], 1)
        }
    }

    func start(_ at: [Int]) -> Int { at[0] * batch[0] + at[1] * batch[1] + at[2] * batch[2] }
}

private struct Case: CustomStringConvertible {
    var m, n, k: Int
    var batch = [1, 1, 1]
    var aTransposed = false
    var bTransposed = false
    var gap = 0
    var aBroadcast = [false, false, false]
    var bBroadcast = [false, false, false]
    var bias = false
    var gate = false
    var relu = false
    var accumulate = false
    var alpha: Float = 1

    var description: String {
        "\(m)x\(n)x\(k) batch \(batch) T \(aTransposed)/\(bTransposed) gap \(gap) broadcast \(aBroadcast)/\(bBroadcast)"
            + " bias \(bias) gate \(gate) relu \(relu) accumulate \(accumulate) alpha \(alpha)"
    }
}

/// The product of one case: inputs, the expected values with their error bounds, and runs of a kernel.
private struct Product {
    let at: Case
    let a, b, c: Operand
    let aValues, bValues, old, bias, gate: [Float]
    private(set) var expected: [Double] = []
    private(set) var bound: [Double] = []

    init(_ at: Case, seed: UInt64) {
        self.at = at
        var random = Random(seed: seed)
        a = Operand(
            rows: at.m, cols: at.k, batch: at.batch, transposed: at.aTransposed, gap: at.gap, broadcast: at.aBroadcast)
        b = Operand(
            rows: at.k, cols: at.n, batch: at.batch, transposed: at.bTransposed, gap: at.gap, broadcast: at.bBroadcast)
        c = Operand(rows: at.m, cols: at.n, batch: at.batch, gap: at.gap)
        aValues = random.floats(a.count)
        bValues = random.floats(b.count)
        old = random.floats(c.count)
        bias = random.floats(at.n)
        gate = random.floats(c.count)
        expect()
    }

    private mutating func expect() {
        expected = old.map(Double.init)
        bound = [Double](repeating: 0, count: c.count)
        for b0 in 0..<at.batch[0] {
            for b1 in 0..<at.batch[1] {
                for b2 in 0..<at.batch[2] {
                    for i in 0..<at.m { for j in 0..<at.n { expect(i, j, [b0, b1, b2]) } }
                }
            }
        }
    }

    private mutating func expect(_ i: Int, _ j: Int, _ batch: [Int]) {
        var sum = 0.0
        var size = 0.0
        var (inA, inB) = (a.start(batch) + i * a.row, b.start(batch) + j * b.col)
        for _ in 0..<at.k {
            let term = Double(aValues[inA]) * Double(bValues[inB])
            sum += term
            size += abs(term)
            inA += a.col
            inB += b.row
        }
        let place = c.start(batch) + i * c.row + j
        var value = Double(at.alpha) * sum
        if at.bias { value += Double(bias[j]) }
        if at.accumulate { value += Double(old[place]) }
        if at.relu { value = max(value, 0) }
        if at.gate { value *= gate[place] > 0 ? 1 : 0 }
        expected[place] = value
        bound[place] = (Double(at.k) + 4) * 0x1p-24 * (abs(Double(at.alpha)) * size + 2)
    }

    /// C after a run; `variant` nil is the dispatching kernel.
    func run(_ kernel: @escaping rlxk_kernel, workers: Int32) -> [Float] {
        var gemm = rlxk_gemm()
        (gemm.m, gemm.n, gemm.k) = (Int64(at.m), Int64(at.n), Int64(at.k))
        (gemm.a_row, gemm.a_col) = (Int64(a.row), Int64(a.col))
        (gemm.b_row, gemm.b_col) = (Int64(b.row), Int64(b.col))
        gemm.c_row = Int64(c.row)
        func three(_ x: [Int]) -> (Int64, Int64, Int64) { (Int64(x[0]), Int64(x[1]), Int64(x[2])) }
        gemm.batch = three(at.batch)
        (gemm.a_batch, gemm.b_batch, gemm.c_batch) = (three(a.batch), three(b.batch), three(c.batch))
        gemm.activation = Int32(at.relu ? RLXK_ACT_RELU : RLXK_ACT_NONE)
        gemm.accumulate = at.accumulate ? 1 : 0
        gemm.alpha = at.alpha
        let workspace = Workspace(floats: rlxk_gemm_workspace(&gemm, workers))
        gemm.workspace = workspace.base

        var result = old
        aValues.withUnsafeBufferPointer { a in
            bValues.withUnsafeBufferPointer { b in
                bias.withUnsafeBufferPointer { bias in
                    gate.withUnsafeBufferPointer { gate in
                        result.withUnsafeMutableBufferPointer { c in
                            (gemm.a, gemm.b, gemm.c) = (a.baseAddress, b.baseAddress, c.baseAddress)
                            if at.bias { gemm.bias = bias.baseAddress }
                            if at.gate { gemm.gate = gate.baseAddress }
                            withUnsafePointer(to: &gemm) { gemm in
                                var only = rlxk_instruction(run: kernel, arguments: gemm, flags: 0)
                                rlxk_execute(&only, 1, workers)
                            }
                        }
                    }
                }
            }
        }
        return result
    }
}

private func check(_ at: Case, seed: UInt64) {
    let product = Product(at, seed: seed)
    for (isa, kernel) in variants(of: rlxk_gemm_run) {
        let result = product.run(kernel, workers: 1)
        let wrong = result.indices.first { !(abs(Double(result[$0]) - product.expected[$0]) <= product.bound[$0]) }
        #expect(wrong == nil, "\(isa) \(at)")
        for workers in [2, 3, 4] as [Int32] {
            #expect(
                product.run(kernel, workers: workers).map(\.bitPattern) == result.map(\.bitPattern),
                "\(isa) \(at), \(workers) workers")
        }
    }
}

@Suite struct GemmTests {
    @Test func shapesAndTransposes() {
        let sizes = [
            (1, 1, 1), (1, 33, 7), (33, 1, 40), (14, 32, 16), (15, 31, 17), (5, 65, 3), (64, 10, 50), (2, 3, 200),
            (3, 100, 64), (130, 40, 33),
        ]
        for (number, (m, n, k)) in sizes.enumerated() {
            for form in 0..<4 {
                check(
                    Case(m: m, n: n, k: k, aTransposed: form & 1 != 0, bTransposed: form & 2 != 0),
                    seed: UInt64(number * 4 + form))
                check(
                    Case(m: m, n: n, k: k, aTransposed: form & 1 != 0, bTransposed: form & 2 != 0, gap: 3),
                    seed: UInt64(number))
            }
        }
    }

    @Test func everyNumberOfRowsAndColumnsOfATile() {
        for m in 1...15 { check(Case(m: m, n: 37, k: 5), seed: UInt64(m)) }
        for n in 1...34 { check(Case(m: 7, n: n, k: 4, bTransposed: n % 2 == 0), seed: UInt64(n)) }
    }

    @Test func emptyShapes() {
        check(Case(m: 0, n: 5, k: 3), seed: 1)
        check(Case(m: 5, n: 0, k: 3), seed: 2)
        check(Case(m: 5, n: 4, k: 3, batch: [1, 0, 2]), seed: 3)
        check(Case(m: 20, n: 40, k: 0, bias: true), seed: 4)
        check(Case(m: 1, n: 3, k: 0, bTransposed: true), seed: 5)
        check(Case(m: 3, n: 1, k: 0, aTransposed: true, accumulate: true), seed: 6)
    }

    @Test func epilogues() {
        for (m, n) in [(9, 33), (30, 2), (2, 30), (40, 1)] {
            for choice in 0..<32 {
                check(
                    Case(
                        m: m, n: n, k: 20, bTransposed: m == 2, gap: 1, bias: choice & 1 != 0, gate: choice & 2 != 0,
                        relu: choice & 4 != 0, accumulate: choice & 8 != 0, alpha: choice & 16 != 0 ? -0.3 : 1),
                    seed: UInt64(choice))
            }
        }
    }

    @Test func batchesAndBroadcasts() {
        check(Case(m: 6, n: 7, k: 5, batch: [2, 3, 4]), seed: 1)
        check(Case(m: 16, n: 20, k: 9, batch: [1, 1, 5], aTransposed: true, bTransposed: true), seed: 2)
        check(
            Case(
                m: 4, n: 35, k: 6, batch: [3, 1, 2], aBroadcast: [true, false, false], bBroadcast: [false, true, true]),
            seed: 3)
        check(
            Case(m: 4, n: 3, k: 6, batch: [2, 3, 2], bBroadcast: [true, false, true], gate: true, accumulate: true),
            seed: 4)
        check(Case(m: 5, n: 1, k: 40, batch: [1, 3, 2], bBroadcast: [true, true, true], bias: true), seed: 5)
        check(Case(m: 1, n: 50, k: 40, batch: [1, 3, 2], bTransposed: true), seed: 6)
    }

    /// More than one part of k, more than one block of columns, rows of B that lie far apart.
    @Test func deepAndWideProducts() {
        check(Case(m: 3, n: 5, k: 5000, bias: true, relu: true, accumulate: true, alpha: 0.5), seed: 1)
        check(Case(m: 16, n: 33, k: 2100, aTransposed: true, gate: true), seed: 2)
        check(Case(m: 5, n: 140, k: 2100), seed: 3)
        check(Case(m: 5, n: 140, k: 2100, bTransposed: true), seed: 4)
        check(Case(m: 33, n: 40, k: 200, gap: 1400), seed: 5)
        check(Case(m: 33, n: 261, k: 41, batch: [1, 1, 2], gap: 1000), seed: 6)
        check(Case(m: 30, n: 261, k: 41, aTransposed: true, gap: 1000, bias: true), seed: 7)
    }

    @Test func randomProducts() {
        var random = Random(seed: 7)
        for seed in 0..<60 {
            check(
                Case(
                    m: .random(in: 1...70, using: &random), n: .random(in: 1...70, using: &random),
                    k: .random(in: 0...90, using: &random),
                    batch: [1, 1, .random(in: 1...3, using: &random)], aTransposed: .random(using: &random),
                    bTransposed: .random(using: &random), gap: .random(in: 0...2, using: &random),
                    aBroadcast: [false, false, .random(using: &random)], bias: .random(using: &random),
                    gate: .random(using: &random),
                    relu: .random(using: &random), accumulate: .random(using: &random)),
                seed: UInt64(seed))
        }
    }

    @Test func nanAndInfinityPropagate() {
        for (m, n, k) in [(20, 40, 10), (3, 2, 100), (1, 40, 64), (30, 1, 64)] {
            for bTransposed in [false, true] {
                for (isa, kernel) in variants(of: rlxk_gemm_run) {
                    for special in [Float.nan, .infinity] {
                        let result = zeroTimes(special, m: m, n: n, k: k, bTransposed: bTransposed, kernel: kernel)
                        for i in 0..<m {
                            for j in 0..<n {
                                #expect(result[i * n + j].isNaN == (i == m - 1), "\(isa) \(m)x\(n)x\(k) at \(i), \(j)")
                            }
                        }
                    }
                }
            }
        }
    }

    /// A is 0 but for `special` in its last row, B is 0; relu and a closed gate must let NaN through.
    private func zeroTimes(_ special: Float, m: Int, n: Int, k: Int, bTransposed: Bool, kernel: @escaping rlxk_kernel)
        -> [Float]
    {
        var a = [Float](repeating: 0, count: m * k)
        a[m * k - 1] = special
        let b = [Float](repeating: 0, count: k * n)
        let gate = [Float](repeating: 0, count: m * n)
        var c = [Float](repeating: 1, count: m * n)
        a.withUnsafeBufferPointer { a in
            b.withUnsafeBufferPointer { b in
                gate.withUnsafeBufferPointer { gate in
                    c.withUnsafeMutableBufferPointer { c in
                        var gemm = rlxk_gemm()
                        (gemm.m, gemm.n, gemm.k, gemm.batch) = (Int64(m), Int64(n), Int64(k), (1, 1, 1))
                        (gemm.a, gemm.a_row, gemm.a_col) = (a.baseAddress, Int64(k), 1)
                        (gemm.b, gemm.b_row, gemm.b_col) = (
                            b.baseAddress, bTransposed ? 1 : Int64(n), bTransposed ? Int64(k) : 1
                        )
                        (gemm.c, gemm.c_row, gemm.gate) = (c.baseAddress, Int64(n), gate.baseAddress)
                        (gemm.activation, gemm.alpha) = (Int32(RLXK_ACT_RELU), 1)
                        let workspace = Workspace(floats: rlxk_gemm_workspace(&gemm, 2))
                        gemm.workspace = workspace.base
                        withUnsafePointer(to: &gemm) { gemm in
                            var only = rlxk_instruction(run: kernel, arguments: gemm, flags: 0)
                            rlxk_execute(&only, 1, 2)
                        }
                    }
                }
            }
        }
        return c
    }

    /// Half of X Xᵀ and its mirror image are all of it, to the last bit, and nothing around it is touched.
    @Test(arguments: [1, 15, 31, 33, 64, 130]) func symmetricProducts(n: Int) {
        let k = n == 33 ? 600 : 7
        var random = Random(seed: UInt64(n))
        let x = random.floats(n * k)
        let row = n + 3
        func run(_ isa: String, isHalf: Bool, workers: Int32) -> [UInt32] {
            var c = [Float](repeating: .nan, count: n * row)
            x.withUnsafeBufferPointer { x in
                c.withUnsafeMutableBufferPointer { c in
                    var gemm = rlxk_gemm()
                    (gemm.m, gemm.n, gemm.k, gemm.alpha) = (Int64(n), Int64(n), Int64(k), 1)
                    (gemm.a_row, gemm.a_col, gemm.b_row, gemm.b_col) = (Int64(k), 1, 1, Int64(k))
                    (gemm.a, gemm.b, gemm.c, gemm.c_row) = (x.baseAddress, x.baseAddress, c.baseAddress, Int64(row))
                    gemm.batch = (1, 1, 1)
                    gemm.symmetric = isHalf ? 1 : 0
                    let workspace = Workspace(floats: rlxk_gemm_workspace(&gemm, workers))
                    gemm.workspace = workspace.base
                    var mirror = rlxk_mirror(c: c.baseAddress, n: Int64(n), row: Int64(row))
                    withUnsafePointer(to: &gemm) { gemm in
                        withUnsafePointer(to: &mirror) { mirror in
                            var list = [
                                rlxk_instruction(
                                    run: rlxk_variant(rlxk_gemm_run, isa), arguments: gemm, flags: UInt32(RLXK_BARRIER)),
                                rlxk_instruction(run: rlxk_variant(rlxk_mirror_run, isa), arguments: mirror, flags: 0),
                            ]
                            rlxk_execute(&list, isHalf ? 2 : 1, workers)
                        }
                    }
                }
            }
            return c.map(\.bitPattern)
        }
        for (isa, _) in variants(of: rlxk_gemm_run) {
            let whole = run(isa, isHalf: false, workers: 1)
            for workers in [1, 2, 3, 5] as [Int32] {
                #expect(run(isa, isHalf: true, workers: workers) == whole, "\(isa), \(workers) workers")
            }
        }
    }
}
