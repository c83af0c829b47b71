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
        let package = directory.appendingPathComponent(directory.lastPathComponent + ".mlpackage")
        self.directory = directory
        do {
            try program.package.write(to: package.path)
            model = try Self.queue.sync {
                try withAutoreleasePool {
                    try Self.load(package, into: directory, try Self.configuration(program, units))
                }
            }
        } catch {
            try? FileManager.default.removeItem(at: directory)
            throw RLXError(coreML: error, doing: "load the program")
        }
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    private static func load(
        _ package: URL, into directory: URL, _ configuration: MLModelConfiguration
    ) throws -> MLModel {
        let compiled = try MLModel.compileModel(at: package)
        let kept = directory.appendingPathComponent(compiled.lastPathComponent)
        try FileManager.default.moveItem(at: compiled, to: kept)
        try FileManager.default.removeItem(at: package)
        return try MLModel(contentsOf: kept, configuration: configuration)
    }

    private static func configuration(
        _ program: LoadedProgram, _ units: ComputeUnits
    ) throws -> MLModelConfiguration {
        let configuration = MLModelConfiguration()
        configuration.computeUnits = units.coreML
        if let name = program.functionName {
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
