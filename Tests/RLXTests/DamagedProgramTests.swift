// Damaged programs: whatever gets past the file format is refused by name or runs, and never crashes.
import RLX
import Testing

/// SplitMix64, so that a failure can be had again from its seed.
private struct Seeded: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

@Suite struct DamagedProgramTests {
    @Test(arguments: ["linreg", "swap", "linear32", "linear16"])
    func mutations(_ name: String) throws {
        let (model, weights) = try Fixture.bytes(name)
        var random = Seeded(state: UInt64(model.count))
        var ran = 0
        for _ in 0..<1000 {
            var damaged = model
            for _ in 0..<Int.random(in: 1...2, using: &random) {
                let place = Int.random(in: 0..<damaged.count, using: &random)
                let flipped = damaged[place] ^ 1 << UInt8.random(in: 0..<8, using: &random)
                damaged[place] = [flipped, UInt8.random(in: 0...12, using: &random)].randomElement(using: &random) ?? 0
            }
            do {
                let program = try Fixture.program(model: damaged, weights: weights)
                try ProgramSession(program, store: TensorStore()).run()
                ran += 1
            } catch is RLXError {}
        }
        #expect(ran > 100)
    }
}
