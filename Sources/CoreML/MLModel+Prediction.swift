// Predictions that are awaited, which a task may cancel before they begin.
import Foundation

extension MLModel {
    public func prediction(
        from input: any MLFeatureProvider, options: MLPredictionOptions = MLPredictionOptions()
    ) async throws -> any MLFeatureProvider {
        try checkNotCancelled()
        return try engine.predict(input, options: options)
    }

    @available(macOS 15, iOS 18, *)
    public func prediction(
        from input: any MLFeatureProvider, using state: MLState,
        options: MLPredictionOptions = MLPredictionOptions()
    ) async throws -> any MLFeatureProvider {
        try checkNotCancelled()
        return try engine.predict(input, state: state, options: options)
    }

    func checkNotCancelled() throws {
        if Task.isCancelled { throw MLModelError(.predictionCancelled, "the prediction was cancelled") }
    }
}
