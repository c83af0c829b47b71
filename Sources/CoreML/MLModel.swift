// MLModel: loading, and the predictions that subclasses may override. Others are in MLModel+Prediction.swift.
import Foundation
import MILFormat

open class MLModel: NSObject {
    open private(set) var configuration: MLModelConfiguration
    let engine: Engine
    let package: Package

    open var modelDescription: MLModelDescription { engine.description }

    init(_ package: Package, _ configuration: MLModelConfiguration) throws {
        self.configuration = configuration
        self.package = package
        engine = try Engine(package, functionName: configuration.functionName)
    }

    public convenience init(contentsOf url: URL) throws {
        try self.init(contentsOf: url, configuration: MLModelConfiguration())
    }

    /// Loads what `compileModel` made.
    public convenience init(contentsOf url: URL, configuration: MLModelConfiguration) throws {
        try self.init(try Package(compiledAt: url), configuration)
    }

    public class func load(
        contentsOf url: URL, configuration: MLModelConfiguration = MLModelConfiguration()
    ) async throws -> MLModel {
        try MLModel(contentsOf: url, configuration: configuration)
    }

    public class func load(
        contentsOf url: URL, configuration: MLModelConfiguration = MLModelConfiguration(),
        completionHandler handler: @escaping (Result<MLModel, any Error>) -> Void
    ) {
        onBackground { handler(Result { try MLModel(contentsOf: url, configuration: configuration) }) }
    }

    open class func load(
        _ asset: MLModelAsset, configuration: MLModelConfiguration,
        completionHandler handler: @escaping @Sendable (MLModel?, (any Error)?) -> Void
    ) {
        onBackground {
            do {
                handler(try MLModel(asset.package, configuration), nil)
            } catch {
                handler(nil, error)
            }
        }
    }

    open class func load(asset: MLModelAsset, configuration: MLModelConfiguration) async throws -> MLModel {
        try MLModel(asset.package, configuration)
    }

    /// Weights and biases by the name of their layer, as arrays; of updatable models the numbers of their updates.
    open func parameterValue(for key: MLParameterKey) throws -> Any {
        guard let value = try package.model.parameterValue(key, configuration) else {
            throw MLModelError(.parameters, "the model has no parameter '\(key)'")
        }
        return value
    }

    public static var availableComputeDevices: [MLComputeDevice] { MLComputeDevice.allComputeDevices }

    // MARK: Predictions

    open func prediction(from input: any MLFeatureProvider) throws -> any MLFeatureProvider {
        try engine.predict(input, options: MLPredictionOptions())
    }

    open func prediction(
        from input: any MLFeatureProvider, options: MLPredictionOptions
    ) throws -> any MLFeatureProvider {
        try engine.predict(input, options: options)
    }

    open func predictions(fromBatch inputBatch: any MLBatchProvider) throws -> any MLBatchProvider {
        try predictions(from: inputBatch, options: MLPredictionOptions())
    }

    /// Output backings are ignored.
    open func predictions(
        from inputBatch: any MLBatchProvider, options: MLPredictionOptions
    ) throws -> any MLBatchProvider {
        MLArrayBatchProvider(
            array: try (0..<inputBatch.count).map { index in
                try engine.predict(inputBatch.features(at: index), options: MLPredictionOptions())
            })
    }

    /// Zeros; an empty state for a model without state.
    @available(macOS 15, iOS 18, *)
    open func makeState() -> MLState { MLState(modelDescription.stateDescriptionsByName) }

    @available(macOS 15, iOS 18, *)
    open func prediction(
        from inputFeatures: any MLFeatureProvider, using state: MLState
    ) throws -> any MLFeatureProvider {
        try engine.predict(inputFeatures, state: state, options: MLPredictionOptions())
    }

    @available(macOS 15, iOS 18, *)
    open func prediction(
        from inputFeatures: any MLFeatureProvider, using state: MLState, options: MLPredictionOptions
    ) throws -> any MLFeatureProvider {
        try engine.predict(inputFeatures, state: state, options: options)
    }
}

/// Core ML calls handlers on some queue of its own, whatever they capture.
func onBackground(_ body: @escaping () -> Void) {
    nonisolated(unsafe) let body = body
    DispatchQueue.global().async { body() }
}

extension Package {
    convenience init(compiledAt url: URL) throws {
        guard url.pathExtension == "mlmodelc" else {
            throw MLModelError(
                .io, "\(url.path) is not a compiled model; compile it with MLModel.compileModel(at:) first")
        }
        do {
            try self.init(contentsOf: url.path)
        } catch {
            throw MLModelError(error)
        }
    }
}
