// Which processor Core ML plans for each operation of a model. Runs nothing, and does not know whether a plan is kept.

import CoreML
import Foundation
import MILFormat

/// What Core ML's compute plan says of each operation.
///
///     let report = try await PlacementReport.load(contentsOf: url, units: .all)
///     for step in report.steps where step.preferred != .neuralEngine { print(step.operation, step.outputs) }
///
/// As JSON: `units`, `counts` (steps by preferred device) and `steps` in the order of the model, each with `function`,
/// `operation`, `outputs`, `supported`, and with `preferred` and `cost` where Core ML says anything.
public struct PlacementReport: Sendable, Hashable, Encodable {
    /// A processor that Core ML may use.
    public enum Device: String, Sendable, Hashable, CaseIterable, Encodable {
        /// The CPU.
        case cpu
        /// The GPU.
        case gpu
        /// Apple's Neural Engine.
        case neuralEngine = "ane"
        /// A device that is newer than this library.
        case other
    }

    /// An operation of an ML Program, or a layer of a neural network; what lies in branches and loops follows its owner.
    public struct Step: Sendable, Hashable, Encodable {
        /// The function, or the name of the model inside of a pipeline; "" for a neural network by itself.
        public let function: String
        /// As Core ML writes it: "ios17.add", or the kind of a layer.
        public let operation: String
        /// The values that it makes.
        public let outputs: [String]
        /// Nil where Core ML plans nothing.
        public let preferred: Device?
        /// Where Core ML could run it.
        public let supported: [Device]
        /// The share of the whole that Core ML estimates, in 0...1; nil where it does not.
        public let cost: Double?
    }

    /// What the plan was asked for.
    public let units: ComputeUnits
    /// Without constants, which do not run.
    public let steps: [Step]

    /// How many steps each device is planned for.
    public var counts: [Device: Int] {
        steps.reduce(into: [:]) { counts, step in
            if let device = step.preferred { counts[device, default: 0] += 1 }
        }
    }

    /// Compiles an `.mlpackage` or `.mlmodel` (or takes an `.mlmodelc`) and asks for its plan.
    ///
    /// `function` nil takes the default function. Throws `unavailable` where there is no Core ML or one before macOS 14.4
    /// and iOS 17.4, `io` and `badPackage` for files that cannot be read, `notFound` for the function's name, and
    /// `unsupported` for a model that Core ML does not show the structure of.
    public static func load(
        contentsOf url: URL, function: String? = nil, units: ComputeUnits = .all
    ) async throws(RLXError) -> PlacementReport {
        try RLX.Device.coreML.check()
        do {
            guard #available(macOS 14.4, iOS 17.4, *) else {
                throw RLXError(.unavailable, "Core ML tells its plans from macOS 14.4 and iOS 17.4 on")
            }
            let model = try await CompiledForPlan(url)
            let configuration = try CoreMLModel.configuration(function: function, units)
            let plan = try await MLComputePlan.load(contentsOf: model.url, configuration: configuration)
            return try withExtendedLifetime(model) {
                let wanted = function ?? model.defaultFunctionName
                return PlacementReport(
                    units: units, steps: try plan.steps(plan.modelStructure, function: wanted, owner: ""))
            }
        } catch {
            throw RLXError(coreML: error, doing: "plan the model")
        }
    }

    /// As `load`, for threads that may wait. A task must not wait so: it holds what the plan needs to be made.
    package static func loadAndWait(
        contentsOf url: URL, function: String? = nil, units: ComputeUnits = .all
    ) throws(RLXError) -> PlacementReport {
        let ended = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var result: Result<PlacementReport, RLXError>?
        Task {
            do throws(RLXError) {
                result = .success(try await load(contentsOf: url, function: function, units: units))
            } catch {
                result = .failure(error)
            }
            ended.signal()
        }
        ended.wait()
        guard let result else { throw RLXError(.internal, "the plan was not made") }
        return try result.get()
    }

    /// The text that the type's own comment describes.
    package func json() throws(RLXError) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        guard let data = try? encoder.encode(self) else { throw RLXError(.internal, "the report cannot be written") }
        return String(decoding: data, as: UTF8.self)
    }

    private enum CodingKeys: CodingKey { case units, counts, steps }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(units.rawValue, forKey: .units)
        try container.encode(
            Dictionary(uniqueKeysWithValues: counts.map { ($0.key.rawValue, $0.value) }), forKey: .counts)
        try container.encode(steps, forKey: .steps)
    }
}

/// A compiled model on disk for as long as its plan is read.
private final class CompiledForPlan: Sendable {
    let url: URL
    /// Nil when only Core ML knows it.
    let defaultFunctionName: String?
    private let directory: URL?

    /// Core ML ends the process when asked for the plan of a package that is not compiled.
    init(_ source: URL) async throws {
        if source.pathExtension == "mlmodelc" {
            (url, defaultFunctionName, directory) = (source, nil, nil)
            return
        }
        let package = try Package(contentsOf: source.path)
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("rlx-" + UUID().uuidString)
        self.directory = directory
        defaultFunctionName = package.model.defaultFunctionName
        url = try await withCheckedThrowingContinuation { continuation in
            CoreMLModel.queue.async {
                continuation.resume(
                    with: Result { try callingCoreML { try CoreMLModel.compile(package, in: directory) } })
            }
        }
    }

    deinit { if let directory { try? FileManager.default.removeItem(at: directory) } }
}

@available(macOS 14.4, iOS 17.4, *)
extension MLComputePlan {
    /// `owner` is the pipeline's name for the model, or "".
    fileprivate func steps(
        _ structure: MLModelStructure, function name: String?, owner: String
    ) throws -> [PlacementReport.Step] {
        if case .program(let program) = structure {
            let wanted = name ?? (program.functions.count == 1 ? program.functions.keys.first : nil) ?? "main"
            guard let function = program.functions[wanted] else {
                throw RLXError.noSuchFunction(wanted, among: Array(program.functions.keys))
            }
            return steps(function.block, owner.isEmpty ? wanted : owner)
        }
        if case .neuralNetwork(let network) = structure { return network.layers.map { step($0, owner) } }
        if case .pipeline(let pipeline) = structure {
            return try zip(pipeline.subModelNames, pipeline.subModels).flatMap { subName, model in
                try steps(model, function: nil, owner: owner.isEmpty ? subName : owner + "/" + subName)
            }
        }
        throw RLXError(.unsupported, "Core ML does not show the structure of such a model")
    }

    private func steps(_ block: MLModelStructure.Program.Block, _ owner: String) -> [PlacementReport.Step] {
        block.operations.filter { $0.operatorName != "const" }.flatMap { operation in
            let usage = deviceUsage(for: operation)
            let step = PlacementReport.Step(
                function: owner, operation: operation.operatorName, outputs: operation.outputs.map(\.name),
                preferred: (usage?.preferred).map(PlacementReport.Device.init),
                supported: (usage?.supported ?? []).map(PlacementReport.Device.init),
                cost: estimatedCost(of: operation)?.weight)
            return [step] + operation.blocks.flatMap { steps($0, owner) }
        }
    }

    private func step(_ layer: MLModelStructure.NeuralNetwork.Layer, _ owner: String) -> PlacementReport.Step {
        let usage = deviceUsage(for: layer)
        return PlacementReport.Step(
            function: owner, operation: layer.type, outputs: layer.outputNames,
            preferred: (usage?.preferred).map(PlacementReport.Device.init),
            supported: (usage?.supported ?? []).map(PlacementReport.Device.init), cost: nil)
    }
}

extension PlacementReport.Device {
    fileprivate init(_ device: MLComputeDevice) {
        if case .cpu = device {
            self = .cpu
        } else if case .gpu = device {
            self = .gpu
        } else if case .neuralEngine = device {
            self = .neuralEngine
        } else {
            self = .other
        }
    }
}
