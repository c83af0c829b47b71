// A package compiled and loaded by Core ML, for as long as it is needed. Knows nothing of stores and sessions.

import CoreML
import Foundation
import MILFormat

/// A loaded model and the directory that it is mapped from.
final class CoreMLModel {
    let model: MLModel
    private let directory: URL

    /// All Core ML calls of the process take turns: several live models on the Neural Engine disturb each other.
    static let queue = DispatchQueue(label: "rlx.coreml")

    init(_ program: LoadedProgram, units: ComputeUnits) throws(RLXError) {
        // Core ML names what it compiles after the package, in a folder that it shares: no two may be alike.
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("rlx-" + UUID().uuidString)
        self.directory = directory
        do {
            model = try Self.queue.sync {
                try callingCoreML {
                    let configuration = try Self.configuration(function: program.functionName, units)
                    let compile = { try Self.compile(program.package, in: directory) }
                    let load = { try MLModel(contentsOf: $0, configuration: configuration) }
                    guard let cache = CompiledModelCache.standard else { return try load(compile()) }
                    return try cache.model(of: program.package, compile: compile, load: load).0
                }
            }
        } catch {
            try? FileManager.default.removeItem(at: directory)
            throw RLXError(coreML: error, doing: "load the program")
        }
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    /// The result is in the directory, which is made.
    static func compile(_ package: Package, in directory: URL) throws -> URL {
        let written = directory.appendingPathComponent(directory.lastPathComponent + ".mlpackage")
        try package.write(to: written.path)
        let compiled = try MLModel.compileModel(at: written)
        let kept = directory.appendingPathComponent(compiled.lastPathComponent)
        try FileManager.default.moveItem(at: compiled, to: kept)
        try FileManager.default.removeItem(at: written)
        return kept
    }

    static func configuration(function: String?, _ units: ComputeUnits) throws -> MLModelConfiguration {
        let configuration = MLModelConfiguration()
        configuration.computeUnits = units.coreML
        if let name = function {
            guard #available(macOS 15, iOS 18, *) else {
                throw RLXError(.unsupported, "functions can be chosen from macOS 15 and iOS 18 on", subject: name)
            }
            configuration.functionName = name
        }
        return configuration
    }
}

extension ComputeUnits {
    fileprivate var coreML: MLComputeUnits {
        switch self {
        case .cpuOnly: .cpuOnly
        case .cpuAndGPU: .cpuAndGPU
        case .all: .all
        case .cpuAndNeuralEngine: .cpuAndNeuralEngine
        }
    }
}

extension RLXError {
    /// Core ML's own text is kept whole.
    init(coreML error: any Error, doing task: String) {
        if let error = error as? RLXError {
            self = error
            return
        }
        if let error = error as? FormatError {
            self.init(error)
            return
        }
        let error = error as NSError
        let cause = (error.userInfo[NSUnderlyingErrorKey] as? NSError).map { "\n\($0)" } ?? ""
        self.init(
            .internal, "Core ML could not \(task): \(error.localizedDescription)",
            detail: "\(error.domain) \(error.code): \(error.localizedDescription)\(cause)")
    }
}
