// Programs to run, the devices to run them on, and what the stand-in for Core ML may be told to do.
import Foundation
import RLX

#if os(Linux)
import CoreML
#endif

enum Fixture {
    static func url(_ name: String) -> URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("MILFormatTests/Fixtures/\(name).mlpackage")
    }

    /// A neural network of the CoreML module's tests.
    static func network(_ name: String) -> URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("CoreMLTests/Networks/\(name).mlmodel")
    }

    static func program(_ name: String, function: String? = nil) throws(RLXError) -> LoadedProgram {
        try LoadedProgram(contentsOf: url(name).path, function: function)
    }

    static func bytes(_ name: String) throws -> (model: [UInt8], weights: [UInt8]?) {
        let folder = url(name).appendingPathComponent("Data/com.apple.CoreML")
        let model = try Data(contentsOf: folder.appendingPathComponent("model.mlmodel"))
        let weights = try? Data(contentsOf: folder.appendingPathComponent("weights/weight.bin"))
        return (Array(model), weights.map(Array.init))
    }

    static func program(model: [UInt8], weights: [UInt8]?) throws -> LoadedProgram {
        try model.withUnsafeBytes { model in
            guard let weights else { return try LoadedProgram(model: model, weights: nil) }
            return try weights.withUnsafeBytes { try LoadedProgram(model: model, weights: $0) }
        }
    }

    static func programFromMemory(_ name: String) throws -> LoadedProgram {
        let (model, weights) = try bytes(name)
        return try program(model: model, weights: weights)
    }
}

/// Ways to run a program. All of them must give the same numbers.
enum Way: CaseIterable {
    case cpu
    /// Core ML that does what one hopes for; on Linux our module.
    case coreML
    /// Core ML that pads output rows and ignores backings.
    case unkindCoreML

    static var all: [Way] {
        #if os(Linux)
        allCases
        #else
        [.cpu, .coreML]
        #endif
    }

    var device: Device { self == .cpu ? .cpu : .coreML }

    func callAsFunction<R>(_ body: (ProgramSession.Options) throws -> R) throws -> R {
        var options = ProgramSession.Options()
        options.device = device
        options.units = .cpuOnly
        #if os(Linux)
        let isUnkind = self == .unkindCoreML
        return try Device.$coreMLIsPresent.withValue(true) {
            try Unkindness.$current.withValue(Unkindness(padsRows: isUnkind, ignoresBackings: isUnkind)) {
                try body(options)
            }
        }
        #else
        return try body(options)
        #endif
    }
}
