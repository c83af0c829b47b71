// Damaged files: whatever the bytes, an error of ours or a package, never a crash.
import MILFormat
import Testing

/// SplitMix64, so that a failure can be had again from its seed.
struct Seeded: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

@Suite struct MutationTests {
    @Test(arguments: Fixture.names + ["neural.mlmodel"]) func mutations(_ name: String) throws {
        let model = try Fixture.modelBytes(name)
        let weights = try Fixture.weightBytes(name)
        var random = Seeded(state: UInt64(model.count))
        var refused = 0
        for _ in 0..<4000 {
            let damagedModel = Bool.random(using: &random) || weights == nil ? damage(model, &random) : model
            let damagedWeights = weights.map { damage($0, &random) }
            do {
                try readEverything(damagedModel, damagedWeights)
            } catch is FormatError {
                refused += 1
            }
        }
        #expect(refused > 400)
    }

    @Test(arguments: Fixture.names) func everyPrefix(_ name: String) throws {
        let model = try Fixture.modelBytes(name)
        for count in 0..<model.count {
            do {
                try readEverything(Array(model[..<count]), nil)
            } catch is FormatError {}
        }
    }

    @Test func deepNesting() {
        // Values in tuples in values ..., inside one operation's attribute.
        var value: [UInt8] = []
        func wrap(_ number: UInt8, _ bytes: [UInt8]) -> [UInt8] {
            var length = bytes.count
            var prefix = [number << 3 | 2]
            while length >= 128 {
                prefix.append(UInt8(length & 127) | 128)
                length >>= 7
            }
            return prefix + [UInt8(length)] + bytes
        }
        for _ in 0..<3000 { value = wrap(3, wrap(2, wrap(1, value))) }
        let operation = wrap(3, wrap(5, wrap(2, value)))
        let function = wrap(3, wrap(2, operation))
        let program = wrap(2, wrap(2, function))
        var model: [UInt8] = [0xB2, 0x1F]
        model += wrap(0, program).dropFirst()
        #expect(throws: FormatError.nestedTooDeeply(limit: 100)) {
            try Fixture.package(model: model, weights: nil)
        }
    }

    /// Flips bits, cuts, repeats or overwrites bytes with values that lengths and tags like least.
    private func damage(_ bytes: [UInt8], _ random: inout Seeded) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
            let place = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 2: bytes[place] = [0, 0x7F, 0x80, 0xFF].randomElement(using: &random) ?? 0
            case 3: bytes.removeSubrange(place...)
            case 4: bytes.remove(at: place)
            default: bytes.insert(contentsOf: bytes[place..<min(bytes.count, place + 9)], at: place)
            }
        }
        return bytes
    }

    /// Reads all that a runtime would: each function and each blob to its last byte.
    private func readEverything(_ model: [UInt8], _ weights: [UInt8]?) throws {
        let package = try Fixture.package(model: model, weights: weights)
        let program = try package.model.program
        for name in program.functions.keys.sorted() {
            let function = try package.function(named: name)
            for operation in function.body?.operations ?? [] {
                for value in operation.attributes.values {
                    guard case .blob(let file, let offset) = value.payload else { continue }
                    let blob = try package.blob(fileName: file, offset: offset)
                    #expect(blob.count >= 0)
                    #expect(blob.bytes.reduce(0) { $0 ^ $1 } >= 0)
                }
            }
        }
    }
}
