// Elementary functions of the chain kernel against Foundation's in double precision, on every instruction set.
import Foundation
import RLXKernels
import Testing

/// A chain of one step over all of `x` (and `y`, which may be one number for all).
private func apply(_ op: rlxk_op, _ x: [Float], _ y: [Float]? = nil, with kernel: rlxk_kernel) -> [Float] {
    var x = x
    var y = y ?? x
    let isScalar = y.count == 1
    let scratch = Workspace(floats: 16)
    let count = x.count
    var result = [Float](repeating: 0, count: count)
    x.withUnsafeMutableBufferPointer { xs in
        y.withUnsafeMutableBufferPointer { ys in
            result.withUnsafeMutableBufferPointer { out in
                func operand(_ data: UnsafeMutablePointer<Float>, _ slot: Int32) -> rlxk_operand {
                    var operand = rlxk_operand()
                    operand.data = UnsafeMutableRawPointer(data)
                    operand.stride.0 = 1
                    operand.type = RLXK_F32
                    operand.access = RLXK_DIRECT
                    operand.slot = slot
                    return operand
                }
                var inputs = [operand(xs.baseAddress!, 0), operand(ys.baseAddress!, 1)]
                var slots = [rlxk_slot](repeating: rlxk_slot(offset: 0, extent: RLXK_LANES_EXTENT), count: 3)
                if isScalar {
                    inputs[1].stride.0 = 0
                    inputs[1].access = RLXK_ONCE
                    slots[1].extent = RLXK_ONE_EXTENT
                }
                let outputs = [operand(out.baseAddress!, 2)]
                var step = rlxk_step()
                step.op = op
                (step.slot.0, step.slot.1, step.slot.2, step.slot.3) = (2, 0, 1, 1)
                step.scalars = isScalar ? 2 : 0
                inputs.withUnsafeBufferPointer { inputs in
                    outputs.withUnsafeBufferPointer { outputs in
                        slots.withUnsafeBufferPointer { slots in
                            withUnsafePointer(to: step) { step in
                                var chain = rlxk_chain()
                                (chain.dims, chain.split, chain.row) = (1, 0, 1)
                                chain.size.0 = Int64(count)
                                chain.step = 512
                                chain.tiles = Int64((count + 511) / 512)
                                chain.chunk_tiles = 1
                                (chain.inputs, chain.steps, chain.outputs, chain.slots) = (2, 1, 1, 3)
                                chain.input = inputs.baseAddress
                                chain.program = step
                                chain.output = outputs.baseAddress
                                chain.slot = slots.baseAddress
                                chain.scratch = scratch.base
                                kernel(&chain, 0, 1)
                            }
                        }
                    }
                }
            }
        }
    }
    return result
}

/// Distance in units in the last place of the right value; 0 where both are NaN, the same infinity, or equal.
private func error(_ got: Float, _ want: Double) -> Double {
    let rounded = Float(want)
    if got == rounded || got.isNaN && want.isNaN { return 0 }
    if got.isNaN || want.isNaN || got.isInfinite || rounded.isInfinite { return .infinity }
    return abs(Double(got) - want) / Double(max(rounded.ulp, Float.leastNormalMagnitude.ulp))
}

private let edges: [Float] = [
    0, -0.0, .infinity, -.infinity, .nan, .leastNonzeroMagnitude, -.leastNonzeroMagnitude, .leastNormalMagnitude, 1, -1,
    .greatestFiniteMagnitude, -.greatestFiniteMagnitude, 88.72, 88.73, -87.3, -103.9, -104.5, 0.625, 1e-20,
]

private func samples(_ ranges: [ClosedRange<Float>]) -> [Float] {
    edges
        + ranges.flatMap { range in
            (0...4000).map { range.lowerBound + (range.upperBound - range.lowerBound) * Float($0) / 4000 }
        }
}

struct ElementaryTests {
    private struct Function: Sendable {
        var op: rlxk_op
        var name: String
        var ulp: Double
        var ranges: [ClosedRange<Float>]
        var exact: @Sendable (Double) -> Double
    }

    private static let functions: [Function] = [
        Function(op: RLXK_EXP, name: "exp", ulp: 1.1, ranges: [-1...1, -110...90], exact: exp),
        Function(op: RLXK_EXP2, name: "exp2", ulp: 1.2, ranges: [-1...1, -150...130], exact: exp2),
        Function(op: RLXK_LOG, name: "log", ulp: 1, ranges: [0.5...2, 0...1e-3, 1...1e30], exact: log),
        Function(op: RLXK_TANH, name: "tanh", ulp: 2, ranges: [-1...1, -12...12], exact: tanh),
        Function(op: RLXK_ERF, name: "erf", ulp: 1.5, ranges: [-1.2...1.2, -5...5], exact: erf),
        Function(op: RLXK_GELU, name: "gelu", ulp: 3, ranges: [0...1, 0...10]) {
            0.5 * $0 * erfc(-$0 / 2.0.squareRoot())
        },
        Function(op: RLXK_SIGMOID, name: "sigmoid", ulp: 3, ranges: [-20...20, -100...100]) { 1 / (1 + exp(-$0)) },
        Function(op: RLXK_SOFTPLUS, name: "softplus", ulp: 2.5, ranges: [-20...20, -100...100]) {
            max($0, 0) + log1p(exp(-abs($0)))
        },
        Function(op: RLXK_SIN, name: "sin", ulp: 1.5, ranges: [-4...4, -1e4...1e4], exact: sin),
        Function(op: RLXK_COS, name: "cos", ulp: 1.5, ranges: [-4...4, -1e4...1e4], exact: cos),
        Function(op: RLXK_TAN, name: "tan", ulp: 2.5, ranges: [-1.5...1.5, -1e4...1e4], exact: tan),
        Function(op: RLXK_ASIN, name: "asin", ulp: 2.5, ranges: [-1.01...1.01, -1e-3...1e-3], exact: asin),
        Function(op: RLXK_ACOS, name: "acos", ulp: 1.5, ranges: [-1.01...1.01, 0.999...1], exact: acos),
        Function(op: RLXK_ATAN, name: "atan", ulp: 2.2, ranges: [-3...3, -1e6...1e6], exact: atan),
        Function(op: RLXK_SINH, name: "sinh", ulp: 1.8, ranges: [-1.5...1.5, -90...90], exact: sinh),
        Function(op: RLXK_COSH, name: "cosh", ulp: 1.6, ranges: [-1...1, -90...90], exact: cosh),
        Function(op: RLXK_ATANH, name: "atanh", ulp: 1.5, ranges: [-1.01...1.01, -1e-3...1e-3], exact: atanh),
        Function(op: RLXK_SQRT, name: "sqrt", ulp: 0.5, ranges: [0...10, 0...1e20]) { $0.squareRoot() },
    ]

    @Test func areAccurateEverywhere() {
        for (isa, kernel) in variants(of: rlxk_chain_run) {
            for function in Self.functions {
                let xs = samples(function.ranges)
                for (x, got) in zip(xs, apply(function.op, xs, with: kernel)) {
                    let want = function.exact(Double(x))
                    #expect(error(got, want) <= function.ulp, "\(isa): \(function.name)(\(x)) is \(got), not \(want)")
                }
            }
        }
    }

    @Test func powersFollowTheRulesOfC() {
        var xs: [Float] = []
        var ys: [Float] = []
        for x in edges + [2, -2, 0.5, -0.5, 3, 10, 1e-5] {
            for y in edges + [2, -2, 0.5, -0.5, 3, -3, 0.1, 31, -7.5] {
                xs.append(x)
                ys.append(y)
            }
        }
        for (isa, kernel) in variants(of: rlxk_chain_run) {
            for ((x, y), got) in zip(zip(xs, ys), apply(RLXK_POW, xs, ys, with: kernel)) {
                let want = pow(Double(x), Double(y))
                #expect(error(got, want) <= 0.6, "\(isa): \(x) to the \(y) is \(got), not \(want)")
            }
        }
    }

    @Test func remaindersAreExact() {
        let values = edges + [7, -7, 2.5, -2.5, 0.1, 3, -3, 123456.7, 0x1p30, -0x1.fffffep29, 1e-3]
        let xs = values.flatMap { x in values.map { _ in x } }
        let ys = values.flatMap { _ in values }
        for (isa, kernel) in variants(of: rlxk_chain_run) {
            let mods = apply(RLXK_MOD, xs, ys, with: kernel)
            let quotients = apply(RLXK_FLOOR_DIV, xs, ys, with: kernel)
            for (((x, y), mod), quotient) in zip(zip(zip(xs, ys), mods), quotients) {
                let rest = Float(fmod(Double(x), Double(y)))
                let want = rest == 0 ? Float(signOf: y, magnitudeOf: 0) : (rest < 0) != (y < 0) ? rest + y : rest
                let agrees = mod == want && (mod != 0 || mod.sign == y.sign) || mod.isNaN && want.isNaN
                #expect(agrees, "\(isa): \(x) mod \(y) is \(mod)")
                if x == 0, y != 0, !y.isNaN {
                    #expect(quotient == 0 && quotient.sign == (x / y).sign, "\(isa): \(x) over \(y) is \(quotient)")
                }
                guard y.isFinite, abs(Double(x) / Double(y)) < 0x1p24 else { continue }
                #expect(Double(quotient) == floor(Double(x) / Double(y)), "\(isa): \(x) over \(y) is \(quotient)")
            }
        }
    }

    @Test func wholeNumbersDivideAsTheyShould() {
        let values: [Int32] = [0, 1, -1, 2, -2, 3, -3, 7, -7, 46341, .max, .max - 1, .min, .min + 1, 1 << 30]
        let xs = values.flatMap { x in values.map { _ in x } }
        let ys = values.flatMap { _ in values }
        func bits(_ numbers: [Int32]) -> [Float] { numbers.map { Float(bitPattern: UInt32(bitPattern: $0)) } }
        for (isa, kernel) in variants(of: rlxk_chain_run) {
            let results = [RLXK_DIV_I32, RLXK_FLOOR_DIV_I32, RLXK_MOD_I32].map { op in
                apply(op, bits(xs), bits(ys), with: kernel).map { Int32(bitPattern: $0.bitPattern) }
            }
            for (index, (x, y)) in zip(xs, ys).enumerated() {
                let quotient = y == 0 ? 0 : x.dividedReportingOverflow(by: y).partialValue
                let rest = y == 0 ? 0 : x.remainderReportingOverflow(dividingBy: y).partialValue
                let isDown = y != 0 && rest != 0 && (x < 0) != (y < 0)
                let want = [quotient, isDown ? quotient - 1 : quotient, isDown ? rest + y : rest]
                #expect(results.map { $0[index] } == want, "\(isa): \(x) by \(y)")
            }
        }
    }

    @Test func halvesRoundToNearestEven() {
        var xs: [Float] = []
        for bits in UInt16.min...UInt16.max {
            let x = rlxk_half_to_float(bits)
            #expect(rlxk_float_to_half(x) == bits || x.isNaN)
            guard x.isFinite else { continue }
            // The value, its neighbours, and the middle between it and the next half.
            let next = rlxk_half_to_float(bits &+ 1)
            xs += [x, x.nextUp, x.nextDown]
            if next.isFinite, next.sign == x.sign { xs.append((x + next) / 2) }
        }
        let plain = xs.map { rlxk_half_to_float(rlxk_float_to_half($0)) }
        for (isa, kernel) in variants(of: rlxk_chain_run) {
            #expect(apply(RLXK_ROUND_F16, xs, with: kernel) == plain, "\(isa)")
        }
        #expect(rlxk_half_to_float(rlxk_float_to_half(65520)) == .infinity)
        #expect(rlxk_half_to_float(rlxk_float_to_half(65519)) == 65504)
        #expect(rlxk_half_to_float(rlxk_float_to_half(1 + 0x1p-11)) == 1)
        #expect(rlxk_half_to_float(rlxk_float_to_half(1 + 3 * 0x1p-11)) == 1 + 0x1p-9)
        #expect(rlxk_half_to_float(rlxk_float_to_half(0x1p-25)) == 0)
        #expect(rlxk_half_to_float(rlxk_float_to_half(1.5 * 0x1p-25)) == 0x1p-24)
    }

    @Test func divisionByPowersOfTwoIsExact() {
        let xs = samples([-10...10])
        for (isa, kernel) in variants(of: rlxk_chain_run) {
            for divisor: Float in [1, 2, -4, 0.125, 3, 0, .infinity, 0x1p-126, 0x1p127, .nan] {
                for (x, got) in zip(xs, apply(RLXK_DIV, xs, [divisor], with: kernel)) {
                    let want = x / divisor
                    #expect(got == want || got.isNaN && want.isNaN, "\(isa): \(x) / \(divisor) is \(got)")
                }
            }
        }
    }
}
