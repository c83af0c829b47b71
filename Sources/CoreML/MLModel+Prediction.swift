// Predictions: one or many, with and without state, waiting or not.
import Foundation

extension MLModel {
    public func prediction(from input: any MLFeatureProvider) throws -> any MLFeatureProvider {
        try engine.predict(input, options: MLPredictionOptions())
    }

    public func prediction(
        from input: any MLFeatureProvider, options: MLPredictionOptions
    ) throws -> any MLFeatureProvider {
        try engine.predict(input, options: options)
    }

    public func prediction(
        from input: any MLFeatureProvider, options: MLPredictionOptions = MLPredictionOptions()
    ) async throws -> any MLFeatureProvider {
        try engine.predict(input, options: options)
    }

    public func predictions(fromBatch inputBatch: any MLBatchProvider) throws -> any MLBatchProvider {
        try predictions(from: inputBatch, options: MLPredictionOptions())
    }

    /// Output backings are ignored.
    public func predictions(
        from inputBatch: any MLBatchProvider, options: MLPredictionOptions
    ) throws -> any MLBatchProvider {
        MLArrayBatchProvider(
            array: try (0..<inputBatch.count).map { index in
                try engine.predict(inputBatch.features(at: index), options: MLPredictionOptions())
            })
    }

    // MARK: State

    /// Zeros; an empty state for a model without state.
    @available(macOS 15, iOS 18, *)
    public func makeState() -> MLState { MLState(modelDescription.stateDescriptionsByName) }

    @available(macOS 15, iOS 18, *)
    public func prediction(
        from inputFeatures: any MLFeatureProvider, using state: MLState
    ) throws -> any MLFeatureProvider {
        try engine.predict(inputFeatures, state: state, options: MLPredictionOptions())
    }

    @available(macOS 15, iOS 18, *)
    public func prediction(
        from inputFeatures: any MLFeatureProvider, using state: MLState, options: MLPredictionOptions
    ) throws -> any MLFeatureProvider {
        try engine.predict(inputFeatures, state: state, options: options)
    }

    @available(macOS 15, iOS 18, *)
    public func prediction(
        from input: any MLFeatureProvider, using state: MLState,
        options: MLPredictionOptions = MLPredictionOptions()
    ) async throws -> any MLFeatureProvider {
        try engine.predict(input, state: state, options: options)
    }
}
