// Damaged bundles and checkpoints: an RLXError that says what and where, never a trap.
import Foundation
import Testing

@testable import RLX

@Suite struct BundleFaultTests {
    private func manifest(_ bundle: URL) -> URL { bundle.appendingPathComponent("manifest.json") }

    /// What opening gives after a change of the manifest's text; nil when it opens.
    private func error(_ change: (inout String) -> Void) throws -> RLXError? {
        let scratch = try Scratch()
        defer { withExtendedLifetime(scratch) {} }
        let bundle = try Bundles.copy(into: scratch)
        var text = try String(contentsOf: manifest(bundle), encoding: .utf8)
        change(&text)
        try Data(text.utf8).write(to: manifest(bundle))
        do {
            _ = try TrainingSession(contentsOf: bundle)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [
        ("\"format\": 1", "\"format\": 2", "format"), ("\"loss\": \"loss\"", "\"loss\": 3", "loss"),
        ("\"seed\": 5", "\"sead\": 5", "'seed' is missing"), ("\"f32\"", "\"f99\"", "no dtype 'f99'"),
        ("\"sqrt\"", "\"sprt\"", "no operator 'sprt'"), ("\"step\"", "\"stop\"", "no variable 'stop'"),
        ("train.mlpackage\"", "../train.mlpackage\"", "leads out of the bundle"),
        ("\"initial.safetensors\"", "\"/etc/passwd\"", "leads out of the bundle"),
        ("\"patience\": 2000", "\"patience\": 0", "a count is out of its range"),
        ("\"shape\": [\n    5", "\"shape\": [\n    -5", "fits no memory"),
        ("\"initial.safetensors\": \"", "\"other\": \"", "no hash of 'initial.safetensors'"),
        ("\"train.mlpackage/Data/", "\"train.mlpackage/Date/", "no hash of 'train.mlpackage/Data/"),
    ])
    func saysWhere(_ old: String, _ new: String, _ expected: String) throws {
        let error = try #require(try error { $0 = $0.replacingOccurrences(of: old, with: new) })
        #expect(error.code == .badPackage)
        #expect(error.message.contains(expected), "\(error.message)")
    }

    @Test func changedFilesAreNoticed() throws {
        let scratch = try Scratch()
        let bundle = try Bundles.copy(into: scratch)
        let file = bundle.appendingPathComponent("train.mlpackage/Data/com.apple.CoreML/model.mlmodel")
        var data = try Data(contentsOf: file)
        data[data.count / 2] ^= 1
        try data.write(to: file)
        let error = #expect(throws: RLXError.self) { try TrainingSession(contentsOf: bundle) }
        #expect(error?.code == .badPackage && error?.subject.hasPrefix("train.mlpackage") == true)
        let missing = #expect(throws: RLXError.self) { try TrainingSession(contentsOf: scratch.url("none")) }
        #expect(missing?.code == .io)
    }

    /// Bytes of the manifest changed at random: it opens and steps, or throws.
    @Test func randomDamage() async throws {
        var random = SystemRandomNumberGenerator()
        let scratch = try Scratch()
        let bundle = try Bundles.copy(into: scratch)
        let whole = try Data(contentsOf: manifest(bundle))
        let batch = try Bundles.golden().batches()[0]
        for _ in 0..<150 {
            var data = whole
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let at = Int.random(in: 0..<data.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: data[at] = UInt8.random(in: 32..<127, using: &random)
                case 1: data.remove(at: at)
                default: data[at] = UInt8(ascii: "9")
                }
            }
            try data.write(to: manifest(bundle))
            guard let session = try? TrainingSession(contentsOf: bundle) else { continue }
            _ = try? await session.step(batch)
            _ = try? await session.accumulate(batch)
            _ = try? await session.stepAccumulated()
            _ = try? await session.export(to: scratch.url("model.mlpackage"))
        }
    }

    @Test func damagedCheckpointsChangeNothing() async throws {
        var random = SystemRandomNumberGenerator()
        let scratch = try Scratch()
        let session = try await TrainingSession.open(Bundles.url)
        try await session.step(Bundles.golden().batches()[0])
        try await session.save(to: scratch.url("good"))
        let whole = try Data(contentsOf: scratch.url("good"))
        let header = 8 + Int(whole.prefix(2).reversed().reduce(0) { $0 << 8 | UInt64($1) })
        for round in 0..<200 {
            var data = whole
            if round % 4 == 0 {
                data = data.prefix(Int.random(in: 0..<data.count, using: &random))
            } else {
                data[Int.random(in: 0..<header, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            try data.write(to: scratch.url("bad"))
            do {
                try await session.restore(from: scratch.url("bad"))
                try await session.restore(from: scratch.url("good"))
            } catch {
                #expect(error.code == .badPackage)
            }
            try await session.save(to: scratch.url("after"))
            #expect(try Data(contentsOf: scratch.url("after")) == whole)
        }
    }

    @Test func deepNestingIsRefused() throws {
        let deep = String(repeating: "[\"sqrt\",", count: 400) + "1" + String(repeating: "]", count: 400)
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(Formula.self, from: Data(deep.utf8)) }
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(JSONValue.self, from: Data(deep.utf8)) }
    }
}

/// Values from the papers and standards.
@Suite struct PrimitiveTests {
    @Test func philox() {
        // Random123's kat_vectors for philox4x32-10.
        #expect(Philox.block(.zero, key: .zero) == SIMD4(0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8))
        #expect(
            Philox.block(SIMD4(repeating: .max), key: SIMD2(repeating: .max))
                == SIMD4(0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd))
        #expect(
            Philox.block(
                SIMD4(0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344), key: SIMD2(0xa409_3822, 0x299f_31d0))
                == SIMD4(0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1))
        #expect(Philox.crc32("123456789".utf8) == 0xcbf4_3926)
    }

    @Test func sha256() {
        #expect(
            sha256Hex(Data("abc".utf8)) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(sha256Hex(Data()) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        #expect(
            sha256Hex(Data(repeating: UInt8(ascii: "a"), count: 1_000_000))
                == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
    }

    @Test func halves() {
        #expect(Double(half: 0x3c00) == 1 && Double(half: 0xc000) == -2 && Double(half: 0x7bff) == 65504)
        #expect(Double(half: 0x0001) == 0x1p-24 && Double(half: 0x7c00) == .infinity && Double(half: 0x7e00).isNaN)
    }

    @Test func remaindersHaveTheDivisorsSign() {
        #expect(Formula.Binary.remainder(-7, 3) == 2 && Formula.Binary.remainder(7, -3) == -2)
        #expect(Formula.Binary.floorDivide(-7, 3) == -3 && Formula.Binary.floorDivide(7, 2) == 3)
    }
}
