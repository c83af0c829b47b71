// MLUpdateTask: trains the updatable layers of a neural network on the device.
import Foundation
import MILFormat

open class MLUpdateTask: MLTask {
    private let source: URL
    private let package: Package
    private let network: UpdatableNetwork
    private let data: any MLBatchProvider
    private let configuration: MLModelConfiguration
    private let handlers: MLUpdateProgressHandlers
    private let parameterLock = NSLock()
    private var changes: [[MLParameterKey: Any]] = []

    /// `modelURL` is a compiled model.
    public convenience init(
        forModelAt modelURL: URL, trainingData: any MLBatchProvider, configuration: MLModelConfiguration?,
        completionHandler: @escaping (MLUpdateContext) -> Void
    ) throws {
        let handlers = MLUpdateProgressHandlers(
            forEvents: [], progressHandler: nil, completionHandler: completionHandler)
        try self.init(
            forModelAt: modelURL, trainingData: trainingData, configuration: configuration, progressHandlers: handlers)
    }

    public convenience init(
        forModelAt modelURL: URL, trainingData: any MLBatchProvider, configuration: MLModelConfiguration?,
        progressHandlers: MLUpdateProgressHandlers
    ) throws {
        try self.init(modelURL, trainingData, configuration, progressHandlers)
    }

    public convenience init(
        forModelAt modelURL: URL, trainingData: any MLBatchProvider,
        completionHandler: @escaping (MLUpdateContext) -> Void
    ) throws {
        try self.init(
            forModelAt: modelURL, trainingData: trainingData, configuration: nil, completionHandler: completionHandler)
    }

    public convenience init(
        forModelAt modelURL: URL, trainingData: any MLBatchProvider, progressHandlers: MLUpdateProgressHandlers
    ) throws {
        try self.init(
            forModelAt: modelURL, trainingData: trainingData, configuration: nil, progressHandlers: progressHandlers)
    }

    private init(
        _ url: URL, _ data: any MLBatchProvider, _ configuration: MLModelConfiguration?,
        _ handlers: MLUpdateProgressHandlers
    ) throws {
        source = url
        package = try Package(compiledAt: url)
        network = try UpdatableNetwork(package.model)
        self.data = data
        self.configuration = configuration?.copy() as? MLModelConfiguration ?? MLModelConfiguration()
        self.handlers = handlers
    }

    /// From a progress handler: goes on with other numbers from the next mini-batch on.
    open func resume(withParameters updateParameters: [MLParameterKey: Any]) {
        parameterLock.withLock { changes.append(updateParameters) }
        resume()
    }

    private func takeChanges() -> [[MLParameterKey: Any]] {
        parameterLock.withLock {
            defer { changes = [] }
            return changes
        }
    }

    // MARK: Running

    override func run() {
        var run = Run(model: nil, parameters: Hyperparameters(network.updates))
        do {
            run.model = try UpdatedModel(package, configuration, source: source)
            try run.parameters.set(configuration.parameters ?? [:])
            try train(&run)
            finish(nil)
        } catch {
            finish(error)
        }
        if let model = run.model { handlers.completionHandler(run.context(self, model, [])) }
    }

    /// What is known at some moment of a run.
    private struct Run {
        /// The last one that a handler saw; the original at first.
        var model: UpdatedModel?
        var parameters: Hyperparameters
        var metrics: [MLMetricKey: Any] = [:]

        func context(_ task: MLUpdateTask, _ model: UpdatedModel, _ event: MLUpdateProgressEvent) -> MLUpdateContext {
            MLUpdateContext(
                task: task, model: model, event: event, metrics: metrics,
                parameters: parameters.values.mapValues { $0 as Any })
        }
    }

    private func train(_ run: inout Run) throws {
        try checkCancelled()
        let samples = try network.samples(data)
        let trainer = try NetworkTrainer(network)
        try tell(.trainingBegin, &run, trainer)
        var generator = SeededGenerator(seed: run.parameters.seed ?? .random(in: .min ... .max))
        var epoch = 0
        while epoch < run.parameters.epochs {
            let order = run.parameters.shuffles ? samples.shuffled(using: &generator) : samples
            try trainEpoch(epoch, order, &run, trainer)
            epoch += 1
        }
        run.model = try model(trainer)
    }

    private func trainEpoch(
        _ epoch: Int, _ samples: [TrainingSample], _ run: inout Run, _ trainer: NetworkTrainer
    ) throws {
        var sum = 0.0
        var start = 0
        var index = 0
        while start < samples.count {
            try checkCancelled()
            for change in takeChanges() { try run.parameters.set(change) }
            let batch = Array(samples[start..<min(start + run.parameters.miniBatchSize, samples.count)])
            let loss = trainer.step(batch, run.parameters)
            sum += loss * Double(batch.count)
            start += batch.count
            run.metrics = metrics(loss, epoch, index)
            try tell(.miniBatchEnd, &run, trainer)
            index += 1
        }
        run.metrics = metrics(sum / Double(samples.count), epoch, index - 1)
        try tell(.epochEnd, &run, trainer)
    }

    private func metrics(_ loss: Double, _ epoch: Int, _ miniBatch: Int) -> [MLMetricKey: Any] {
        [
            .lossValue: NSNumber(value: loss), .epochIndex: NSNumber(value: epoch),
            .miniBatchIndex: NSNumber(value: miniBatch),
        ]
    }

    private func tell(_ event: MLUpdateProgressEvent, _ run: inout Run, _ trainer: NetworkTrainer) throws {
        guard handlers.interestedEvents.contains(event), let handler = handlers.progressHandler else { return }
        let model = try model(trainer)
        run.model = model
        handler(run.context(self, model, event))
        for change in takeChanges() { try run.parameters.set(change) }
    }

    private func model(_ trainer: NetworkTrainer) throws -> UpdatedModel {
        do {
            return try UpdatedModel(package.replacing(trainer.weights), configuration, source: source)
        } catch let error as FormatError {
            throw MLModelError(error)
        }
    }

    private func checkCancelled() throws {
        if isCancelled { throw MLModelError(.update, "the update was cancelled") }
    }
}
