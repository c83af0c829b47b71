// A driver of on-device updates in the style of apps that personalise a model and of federated-learning clients.
import CoreML

final class OnDeviceUpdater: @unchecked Sendable {
    enum UpdateFailure: Error { case modelNotLoaded, failed(Error?) }

    private let defaultModelURL: URL
    private let updatedModelURL: URL
    private let temporaryModelURL: URL
    private(set) var losses: [Double] = []

    init(defaultModelURL: URL, directory: URL) {
        self.defaultModelURL = defaultModelURL
        updatedModelURL = directory.appendingPathComponent("personalized.mlmodelc")
        temporaryModelURL = directory.appendingPathComponent("personalized_tmp.mlmodelc")
    }

    private var currentModelURL: URL {
        FileManager.default.fileExists(atPath: updatedModelURL.path) ? updatedModelURL : defaultModelURL
    }

    func trainingData(images: [MLMultiArray], labels: [String]) -> MLBatchProvider {
        var featureProviders = [MLFeatureProvider]()
        for (image, label) in zip(images, labels) {
            let dataPointFeatures: [String: MLFeatureValue] = [
                "image": MLFeatureValue(multiArray: image),
                "animal": MLFeatureValue(string: label),
            ]
            if let provider = try? MLDictionaryFeatureProvider(dictionary: dataPointFeatures) {
                featureProviders.append(provider)
            }
        }
        return MLArrayBatchProvider(array: featureProviders)
    }

    func update(
        with data: MLBatchProvider, epochs: Int, completion: @escaping @Sendable (Result<URL, Error>) -> Void
    ) {
        let configuration = MLModelConfiguration()
        configuration.computeUnits = .all
        configuration.parameters = [MLParameterKey.epochs: epochs, .miniBatchSize: 5, .shuffle: false]

        let progressHandler: (MLUpdateContext) -> Void = { [weak self] context in
            switch context.event {
            case .trainingBegin:
                self?.losses = []
            case .miniBatchEnd:
                let batchIndex = context.metrics[.miniBatchIndex] as! Int
                let batchLoss = context.metrics[.lossValue] as! Double
                precondition(batchIndex >= 0 && batchLoss.isFinite)
            case .epochEnd:
                if let loss = context.metrics[.lossValue] as? Double { self?.losses.append(loss) }
                if let epoch = context.metrics[.epochIndex] as? Int, epoch == 0 {
                    context.task.resume(withParameters: [.learningRate: 0.05])
                }
            default:
                print("Unknown event")
            }
        }

        let completionHandler: (MLUpdateContext) -> Void = { [self] context in
            guard context.task.state == .completed, context.task.error == nil else {
                completion(.failure(UpdateFailure.failed(context.task.error)))
                return
            }
            do {
                try save(context.model)
                completion(.success(updatedModelURL))
            } catch {
                completion(.failure(error))
            }
        }

        let handlers = MLUpdateProgressHandlers(
            forEvents: [.trainingBegin, .miniBatchEnd, .epochEnd], progressHandler: progressHandler,
            completionHandler: completionHandler)
        do {
            let updateTask = try MLUpdateTask(
                forModelAt: currentModelURL, trainingData: data, configuration: configuration,
                progressHandlers: handlers)
            updateTask.resume()
        } catch {
            completion(.failure(error))
        }
    }

    private func save(_ model: MLModel & MLWritable) throws {
        let fileManager = FileManager.default
        try? fileManager.removeItem(at: temporaryModelURL)
        try model.write(to: temporaryModelURL)
        try? fileManager.removeItem(at: updatedModelURL)
        try fileManager.moveItem(at: temporaryModelURL, to: updatedModelURL)
    }

    /// What a federated client sends to its server.
    static func weights(of modelURL: URL, layer: String) throws -> [Float] {
        let model = try MLModel(contentsOf: modelURL)
        guard let array = try model.parameterValue(for: MLParameterKey.weights.scoped(to: layer)) as? MLMultiArray
        else { throw UpdateFailure.modelNotLoaded }
        return (0..<array.count).map { array[$0].floatValue }
    }
}
