// Update tasks: what they compute, what they tell, and how they end.
import CoreML
import Testing

/// What happened in a task, collected from whatever thread it ran on.
final class UpdateLog: @unchecked Sendable {
    private let lock = NSLock()
    private var lockedEvents: [String] = []
    private var lockedLosses: [Double] = []

    var events: [String] { lock.withLock { lockedEvents } }
    var losses: [Double] { lock.withLock { lockedLosses } }

    func add(_ context: MLUpdateContext) {
        lock.withLock {
            let epoch = (context.metrics[.epochIndex] as? NSNumber)?.intValue
            let batch = (context.metrics[.miniBatchIndex] as? NSNumber)?.intValue
            switch context.event {
            case .trainingBegin: lockedEvents.append("begin \(context.metrics.count)")
            case .miniBatchEnd:
                lockedEvents.append("batch \(epoch ?? -1).\(batch ?? -1)")
                lockedLosses.append((context.metrics[.lossValue] as? NSNumber)?.doubleValue ?? .nan)
            case .epochEnd: lockedEvents.append("epoch \(epoch ?? -1)")
            default: lockedEvents.append("other")
            }
        }
    }
}

/// The context that a task ended with.
struct Ended: @unchecked Sendable { let context: MLUpdateContext }

func update(
    _ url: URL, _ data: MLBatchProvider, _ parameters: [MLParameterKey: Any]? = nil,
    events: MLUpdateProgressEvent = [], progress: ((MLUpdateContext) -> Void)? = nil
) async throws -> MLUpdateContext {
    let configuration = MLModelConfiguration()
    configuration.parameters = parameters
    return try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Ended, any Error>) in
        do {
            let handlers = MLUpdateProgressHandlers(forEvents: events, progressHandler: progress) {
                continuation.resume(returning: Ended(context: $0))
            }
            try MLUpdateTask(
                forModelAt: url, trainingData: data, configuration: configuration, progressHandlers: handlers
            ).resume()
        } catch {
            continuation.resume(throwing: error)
        }
    }.context
}

@Suite struct UpdateTests {
    private func expectWeights(_ model: MLModel, _ expected: [String: [Double]], _ name: String) throws {
        for (key, values) in expected {
            let parts = key.split(separator: ".").map(String.init)
            let base: MLParameterKey = parts[1] == "weights" ? .weights : .biases
            let array = try #require(try model.parameterValue(for: base.scoped(to: parts[0])) as? MLMultiArray)
            expectClose(numbers(array).map(Double.init), values, 1e-5, "\(name) \(key)")
        }
    }

    private func samples(_ name: String, _ recorded: RecordedNetwork) throws -> MLArrayBatchProvider {
        switch name {
        case "regression":
            return try recorded.samples(input: "x", shape: [3]) {
                ("y_true", try array(recorded.targets[$0], [2], .double))
            }
        case "convnet_max", "convnet_average":
            return try recorded.samples(input: "image", shape: [1, 8, 8]) {
                ("animal", ["cat", "dog", "élan"][Int(recorded.targets[$0][0])])
            }
        default:
            return try recorded.samples(input: "x", shape: [4]) {
                ("probabilities_true", try array(recorded.targets[$0], [1], .int32))
            }
        }
    }

    @Test(arguments: ["mlp_sgd", "mlp_exact", "regression", "convnet_max", "convnet_average"])
    func numbersAreThoseOfJax(_ name: String) async throws {
        let recorded = try RecordedNetwork.load(name)
        let log = UpdateLog()
        let context = try await update(
            RecordedNetwork.compile(name), samples(name, recorded), events: [.miniBatchEnd], progress: log.add)
        #expect(context.task.state == .completed)
        #expect(context.task.error == nil)
        expectClose(log.losses, recorded.losses, 1e-5, name)
        try expectWeights(context.model, recorded.weights, name)
    }

    @Test func events() async throws {
        let recorded = try RecordedNetwork.load("mlp_sgd")
        let log = UpdateLog()
        _ = try await update(
            RecordedNetwork.compile("mlp_sgd"), samples("mlp_sgd", recorded), [.epochs: 2, .miniBatchSize: 4],
            events: [.trainingBegin, .miniBatchEnd, .epochEnd], progress: log.add)
        #expect(
            log.events == [
                "begin 0", "batch 0.0", "batch 0.1", "batch 0.2", "epoch 0", "batch 1.0", "batch 1.1", "batch 1.2",
                "epoch 1",
            ])
    }

    @Test func writtenModelsGoOn() async throws {
        let recorded = try RecordedNetwork.load("convnet_max")
        let url = try RecordedNetwork.compile("convnet_max")
        let data = try samples("convnet_max", recorded)
        let first = try await update(url, data, [.epochs: 1])
        #expect(throws: MLModelError.self) { try first.model.write(to: url) }
        let written = url.deletingLastPathComponent().appendingPathComponent("updated.mlmodelc")
        try first.model.write(to: written)
        try FileManager.default.removeItem(at: url)
        try FileManager.default.moveItem(at: written, to: url)
        let second = try await update(url, data, [.epochs: 1])
        try expectWeights(second.model, recorded.weights, "two tasks of one epoch each")
        let fresh = try MLModel(contentsOf: url)
        let image = try array(recorded.inputs[0], [1, 8, 8])
        let (a, b) = (try predict(fresh, ["image": image]), try predict(first.model, ["image": image]))
        #expect(
            a.featureValue(for: "probabilities")?.dictionaryValue
                == b.featureValue(for: "probabilities")?.dictionaryValue)
    }

    @Test func shufflingHangsOnTheSeedAlone() async throws {
        let recorded = try RecordedNetwork.load("mlp_sgd")
        let url = try RecordedNetwork.compile("mlp_sgd")
        func weights(_ seed: Int) async throws -> [Float] {
            let context = try await update(url, samples("mlp_sgd", recorded), [.shuffle: true, .seed: seed])
            return numbers(try context.model.parameterValue(for: .weights.scoped(to: "out")) as? MLMultiArray)
        }
        let (one, again, two) = (try await weights(1), try await weights(1), try await weights(2))
        #expect(one == again)
        #expect(one != two)
    }

    @Test func parametersCanChangeOnTheWay() async throws {
        let recorded = try RecordedNetwork.load("mlp_sgd")
        let context = try await update(
            RecordedNetwork.compile("mlp_sgd"), samples("mlp_sgd", recorded), [.epochs: 2], events: [.epochEnd]
        ) { $0.task.resume(withParameters: [.learningRate: 0.0]) }
        #expect(context.parameters[.learningRate] as? Double == 0)
        // Nothing moves in the second epoch.
        let after = try await update(
            RecordedNetwork.compile("mlp_sgd"), samples("mlp_sgd", recorded), [.epochs: 1], events: [.epochEnd])
        try expectEqualWeights(context.model, after.model)
    }

    private func expectEqualWeights(_ a: MLModel, _ b: MLModel) throws {
        let key = MLParameterKey.weights.scoped(to: "out")
        #expect(
            numbers(try a.parameterValue(for: key) as? MLMultiArray)
                == numbers(try b.parameterValue(for: key) as? MLMultiArray))
    }

    @Test func parametersOutOfBounds() async throws {
        let recorded = try RecordedNetwork.load("mlp_sgd")
        let bad: [[MLParameterKey: Any]] = [
            [.learningRate: 2.0], [.epochs: 4], [.miniBatchSize: 3], [.beta1: 0.5], [.learningRate: "fast"],
        ]
        for parameters in bad {
            let context = try await update(
                RecordedNetwork.compile("mlp_sgd"), samples("mlp_sgd", recorded), parameters)
            #expect(context.task.state == .failed)
            #expect((context.task.error as? MLModelError)?.code == .parameters)
        }
    }

    @Test func badData() async throws {
        let url = try RecordedNetwork.compile("mlp_sgd")
        let x = try array([1, 2, 3, 4], [4])
        let bad: [[String: Any]] = [
            ["x": x], ["probabilities_true": try array([0], [1], .int32)],
            ["x": x, "probabilities_true": try array([3], [1], .int32)],
            ["x": x, "probabilities_true": try array([-1], [1], .int32)],
            ["x": x, "probabilities_true": try array([.nan], [1])], ["x": 3, "probabilities_true": 1],
            ["x": try array([1, 2], [2]), "probabilities_true": 1],
        ]
        for values in bad {
            let context = try await update(url, MLArrayBatchProvider(array: [features(values)]))
            #expect(context.task.state == .failed)
            #expect((context.task.error as? MLModelError)?.code == .update)
        }
        let empty = try await update(url, MLArrayBatchProvider(array: []))
        #expect(empty.task.state == .failed)
    }

    @Test func cancelling() async throws {
        let recorded = try RecordedNetwork.load("mlp_sgd")
        let log = UpdateLog()
        let context = try await update(
            RecordedNetwork.compile("mlp_sgd"), samples("mlp_sgd", recorded), [.epochs: 50], events: [.miniBatchEnd]
        ) { context in
            log.add(context)
            context.task.cancel()
            #expect(context.task.state == .cancelling)
        }
        #expect(log.events == ["batch 0.0"])
        #expect(context.task.state == .failed)
        #expect(context.task.error != nil)
    }

    @Test func whatIsNoUpdatableModel() throws {
        let data = MLArrayBatchProvider(array: [])
        let program = try MLModel.compileModel(at: Fixture.url("linear32"))
        for url in [program, try RecordedNetwork.compile("activations"), RecordedNetwork.url("mlp_sgd", "mlmodel")] {
            #expect(throws: MLModelError.self) {
                try MLUpdateTask(forModelAt: url, trainingData: data) { _ in }
            }
        }
    }

    @Test func tasksStartSuspended() throws {
        let recorded = try RecordedNetwork.load("mlp_sgd")
        let task = try MLUpdateTask(
            forModelAt: RecordedNetwork.compile("mlp_sgd"), trainingData: samples("mlp_sgd", recorded)
        ) { _ in }
        #expect(task.state == .suspended)
        #expect(!task.taskIdentifier.isEmpty)
    }
}
