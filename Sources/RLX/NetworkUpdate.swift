// Core ML's own training of an updatable neural network: one task from start to end. Knows no stores and sessions.

import CoreML
import Foundation
import MILFormat

/// What one update task is to do; nil is the model's own number.
public struct NetworkUpdateOptions: Sendable, Hashable {
    /// How often all samples are gone through.
    public var epochs: Int?
    /// Samples for one update.
    public var miniBatchSize: Int?
    /// The rate of the optimizer that is in the model.
    public var learningRate: Double?
    /// Whether samples are put into another order in each epoch.
    public var shuffle: Bool?
    /// Decides that order.
    public var seed: Int?

    /// All as the model has it.
    public init() {}
}

/// The weights and losses that an update task left.
///
///     let data = ["x": images, "prediction_true": labels]
///     let update = try NetworkUpdate.run(model: bytes, data: data)
///     let weights = try update.parameter("dense", .weights)
public final class NetworkUpdate: Sendable {
    /// Which of a layer's values.
    public enum Parameter: Int32, Sendable, CaseIterable {
        /// What inputs are multiplied by.
        case weights = 0
        /// What is added after it.
        case bias
    }

    /// The mean loss of each mini-batch before its step.
    public let losses: [Double]
    private let parameters: [String: [Parameter: Tensor]]

    init(losses: [Double], parameters: [String: [Parameter: Tensor]]) {
        self.losses = losses
        self.parameters = parameters
    }

    /// The names of the layers that were trained.
    public var layers: [String] { parameters.keys.sorted() }

    /// Throws `notFound` for a layer that was not trained and for a bias that it does not have.
    public func parameter(_ layer: String, _ kind: Parameter) throws(RLXError) -> Tensor {
        guard let tensor = parameters[layer]?[kind] else {
            let known = layers.map { "'\($0)'" }.joined(separator: ", ")
            throw RLXError(
                .notFound, "no \(kind) of a layer '\(layer)' were trained; trained were \(known)", subject: layer)
        }
        return tensor
    }

    /// Trains a copy of the model in a temporary directory and waits for the end.
    ///
    /// `model` is the bytes of an updatable `.mlmodel`; `data` has a tensor for each training input, samples along
    /// the first axis. `progress` gets each mini-batch's loss on a thread of Core ML's and ends the task early by
    /// returning false.
    ///
    /// Throws `unavailable` where there is no Core ML, `badPackage` and `unsupported` for a model that cannot be
    /// updated, `badFeed` for data that do not fit, `invalidArgument` for numbers that the model does not allow.
    public static func run(
        model: Data, data: [String: Tensor], options: NetworkUpdateOptions = .init(),
        progress: (@Sendable (Double) -> Bool)? = nil
    ) throws(RLXError) -> NetworkUpdate {
        try Device.coreML.check()
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("rlx-" + UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: directory) }
        do {
            let package = try Package(model: model, weightFiles: [:])
            let compiled = try UpdatableCopy(package, model, directory)
            return try NetworkUpdateRun(progress).run(compiled, data, options)
        } catch {
            throw RLXError(coreML: error, doing: "update the model")
        }
    }
}

/// A compiled model on disk, which is what update tasks want, and what its description says of training.
private struct UpdatableCopy {
    let url: URL
    let inputs: [String: MLFeatureDescription]
    let layers: [String]

    init(_ package: Package, _ model: Data, _ directory: URL) throws {
        guard package.model.isUpdatable, case .network(let network) = package.model.content else {
            throw RLXError(.unsupported, "the model is no updatable neural network")
        }
        layers = network.layers.filter(\.isUpdatable).map(\.name)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let file = directory.appendingPathComponent(directory.lastPathComponent + ".mlmodel")
        try model.write(to: file)
        (url, inputs) = try CoreMLModel.queue.sync {
            try callingCoreML {
                let compiled = try MLModel.compileModel(at: file)
                let kept = directory.appendingPathComponent(compiled.lastPathComponent)
                try FileManager.default.moveItem(at: compiled, to: kept)
                return (kept, try MLModel(contentsOf: kept).modelDescription.trainingInputDescriptionsByName)
            }
        }
    }
}

/// One task with the thread that waits for it.
private final class NetworkUpdateRun: @unchecked Sendable {
    private let progress: (@Sendable (Double) -> Bool)?
    private let lock = NSLock()
    private let ended = DispatchSemaphore(value: 0)
    private var losses: [Double] = []
    private var isCancelled = false
    private var result: Result<[String: [NetworkUpdate.Parameter: Tensor]], any Error>?

    init(_ progress: (@Sendable (Double) -> Bool)?) { self.progress = progress }

    func run(
        _ model: UpdatableCopy, _ data: [String: Tensor], _ options: NetworkUpdateOptions
    ) throws -> NetworkUpdate {
        let configuration = MLModelConfiguration()
        configuration.parameters = options.parameters
        let handlers = MLUpdateProgressHandlers(
            forEvents: .miniBatchEnd, progressHandler: { self.note($0) },
            completionHandler: { context in self.end(Result { try context.parameters(of: model.layers) }) })
        let samples = try samples(data, model.inputs)
        let task = try callingCoreML {
            let task = try MLUpdateTask(
                forModelAt: model.url, trainingData: samples, configuration: configuration, progressHandlers: handlers)
            task.resume()
            return task
        }
        ended.wait()
        return try withExtendedLifetime(task) {
            try lock.withLock {
                guard !isCancelled, let result else {
                    throw RLXError(.invalidArgument, "the update was cancelled")
                }
                return NetworkUpdate(losses: losses, parameters: try result.get())
            }
        }
    }

    private func note(_ context: MLUpdateContext) {
        let loss = (context.metrics[.lossValue] as? NSNumber)?.doubleValue ?? .nan
        let isOver = lock.withLock {
            losses.append(loss)
            return isCancelled
        }
        guard let progress, !isOver, !progress(loss) else { return }
        lock.withLock { isCancelled = true }
        context.task.cancel()
        // After a cancellation the completion handler may never be called.
        end(.success([:]))
    }

    private func end(_ result: Result<[String: [NetworkUpdate.Parameter: Tensor]], any Error>) {
        lock.withLock { if self.result == nil { self.result = result } }
        ended.signal()
    }
}

/// Rows of the tensors as feature providers, in the types that the model asks for.
private func samples(
    _ data: [String: Tensor], _ inputs: [String: MLFeatureDescription]
) throws -> MLArrayBatchProvider {
    for name in inputs.keys where data[name] == nil {
        throw RLXError(.badFeed, "the training input '\(name)' is not given", subject: name)
    }
    let counts = Set(data.values.map { $0.shape.first ?? 0 })
    guard counts.count == 1, let count = counts.first, count > 0 else {
        throw RLXError(.badFeed, "the training data need the same number of samples, at least one, in each tensor")
    }
    let rows = try (0..<count).map { index in
        var values: [String: Any] = [:]
        for (name, tensor) in data {
            guard let description = inputs[name] else {
                throw RLXError(.badFeed, "the model has no training input '\(name)'", subject: name)
            }
            values[name] = try tensor.row(index).multiArray(like: description)
        }
        return try MLDictionaryFeatureProvider(dictionary: values)
    }
    return MLArrayBatchProvider(array: rows)
}

extension Tensor {
    fileprivate func row(_ index: Int) -> Tensor {
        let size = bytes.count / max(shape.first ?? 1, 1)
        let rest = shape.count > 1 ? Array(shape.dropFirst()) : [1]
        return Tensor(bytes: Array(bytes[index * size..<(index + 1) * size]), dtype: dtype, shape: rest)
    }

    fileprivate func multiArray(like description: MLFeatureDescription) throws -> MLMultiArray {
        let array = try multiArray()
        guard let type = description.multiArrayConstraint?.dataType, type != array.dataType else { return array }
        let converted = try MLMultiArray(shape: array.shape, dataType: type)
        for index in 0..<array.count { converted[index] = array[index] }
        return converted
    }
}

extension MLUpdateContext {
    fileprivate func parameters(of layers: [String]) throws -> [String: [NetworkUpdate.Parameter: Tensor]] {
        if let error = task.error { throw error }
        var result: [String: [NetworkUpdate.Parameter: Tensor]] = [:]
        for layer in layers {
            for (kind, key) in [(NetworkUpdate.Parameter.weights, MLParameterKey.weights), (.bias, .biases)] {
                let value = try? model.parameterValue(for: key.scoped(to: layer))
                if let array = value as? MLMultiArray { result[layer, default: [:]][kind] = try Tensor(array) }
            }
        }
        return result
    }
}

extension NetworkUpdateOptions {
    fileprivate var parameters: [MLParameterKey: Any]? {
        var parameters: [MLParameterKey: Any] = [:]
        parameters[.epochs] = epochs
        parameters[.miniBatchSize] = miniBatchSize
        parameters[.learningRate] = learningRate
        parameters[.shuffle] = shuffle
        parameters[.seed] = seed
        return parameters.isEmpty ? nil : parameters
    }
}
