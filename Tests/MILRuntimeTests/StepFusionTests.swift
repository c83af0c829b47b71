// The forms that optimizers have, which become steps of several operations, against the same in double precision.
import Foundation
import MILFormat
import Testing

@testable import MILRuntime

struct StepFusionTests {
    /// What of a step of AdamW differs from the usual one.
    enum Variant: CaseIterable {
        case usual, withoutDecay, rootIsRead, meanIsReadEarly
        var hasExtra: Bool { self == .rootIsRead || self == .meanIsReadEarly }
    }

    /// A step of AdamW as a program writes it.
    private func program(_ count: Int, _ variant: Variant) -> ProgramBuilder {
        var p = ProgramBuilder()
        for name in ["w", "g", "m", "v"] { p.input(name, .floats([count], [])) }
        for name in ["lr", "scale"] { p.input(name, .floats([1], [])) }
        func add(_ type: String, _ x: Binding, _ y: Binding, _ name: String) {
            p.add(type, ["x": x, "y": y], name, [count])
        }
        p.add("mul", ["x": "lr", "y": .float(0.25)], "decay", [1])
        add("mul", "decay", "w", "shrunk")
        add("sub", "w", "shrunk", "w1")
        add("mul", .float(0.75), "m", "ma")
        add("mul", .float(0.25), "g", "mb")
        add("add", "ma", "mb", "m1")
        p.add("square", ["x": "g"], "gg", [count])
        add("mul", "gg", .float(0.125), "vb")
        add("mul", .float(0.875), "v", "va")
        add("add", "vb", "va", "v1")
        p.add("sqrt", ["x": "v1"], "root", [count])
        add("mul", "root", "scale", "scaled")
        add("add", "scaled", .float(0.0625), "divisor")
        if variant == .meanIsReadEarly { add("maximum", "m1", "gg", "also") }
        add("real_div", "m1", "divisor", "move")
        add("mul", "move", "lr", "moved")
        add("sub", variant == .withoutDecay ? "w" : "w1", "moved", "w2")
        if variant == .rootIsRead { add("add", "root", "gg", "also") }
        return p
    }

    @Test(arguments: [1, 3, 16, 17, 1000, 40_000], Variant.allCases)
    func agreesWithDoubles(count: Int, variant: Variant) throws {
        var random = SplitMix(state: UInt64(count))
        func numbers(_ low: Double, _ high: Double) -> [Double] {
            (0..<count).map { _ in Double(Float(low + (high - low) * Double(random.next() % 1024) / 1024)) }
        }
        let (w, g, m) = (numbers(-2, 2), numbers(-1, 1), numbers(-1, 1))
        var v = numbers(0, 1)
        // The divisor at its smallest, and what must pass through.
        if count > 16 { (v[0], v[16]) = (0, .infinity) }
        let (lr, scale, decay) = (0.5, 1.5, variant == .withoutDecay ? 0 : 0.25)
        let m1 = zip(m, g).map { 0.75 * $0 + 0.25 * $1 }
        let v1 = zip(v, g).map { 0.875 * $0 + 0.125 * $1 * $1 }
        let also = zip(m1, g).map { max($0, $1 * $1) }
        let w2 = w.indices.map { w[$0] - lr * decay * w[$0] - lr * m1[$0] / (v1[$0].squareRoot() * scale + 0.0625) }

        let outputs = ["w2", "m1", "v1"] + (variant.hasExtra ? ["also"] : [])
        let function = program(count, variant).function(outputs)
        for instructionSet in ["avx512", "avx2", "neon", "baseline"] {
            let plan = try Plan(function, blobs: NoBlobs(), options: PlanOptions(workers: 2))
            for (name, values) in [("w", w), ("g", g), ("m", m), ("v", v)] {
                Tensor.floats([count], values).write(to: plan.buffer(named: name)!)
            }
            Tensor.floats([1], [lr]).write(to: plan.buffer(named: "lr")!)
            Tensor.floats([1], [scale]).write(to: plan.buffer(named: "scale")!)
            guard plan.run(instructionSet: instructionSet) else { continue }
            let early = variant == .meanIsReadEarly ? [("also", also)] : []
            for (name, want) in [("w2", w2), ("m1", m1), ("v1", v1)] + early {
                let got = Tensor(plan.buffer(named: name)!)
                let difference = got.difference(from: .floats([count], want), tolerance: 1e-6)
                #expect(difference == nil, "\(instructionSet) \(name): \(difference ?? "")")
            }
        }
    }
}
