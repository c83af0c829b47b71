// A loop that decodes token after token with a state, in the style of language-model apps.
import CoreML

@available(macOS 15.0, iOS 18.0, *)
actor Decoder {
    private let model: MLModel
    private var state: MLState?

    init(contentsOf url: URL) throws {
        let config = MLModelConfiguration()
        config.computeUnits = .cpuAndNeuralEngine
        config.optimizationHints.reshapeFrequency = .infrequent
        model = try MLModel(contentsOf: url, configuration: config)
    }

    func reset() {
        state = model.makeState()
    }

    /// Adds up to `maxNewTokens` steps; each feeds its token's embedding.
    func decode(_ embeddings: [[Float]]) throws -> [[Float]] {
        if state == nil { reset() }
        guard let state else { return [] }
        var outputs: [[Float]] = []
        for embedding in embeddings {
            let inputArray = try MLMultiArray(shape: [1, embedding.count as NSNumber], dataType: .float16)
            for (i, value) in embedding.enumerated() {
                inputArray[[0, i] as [NSNumber]] = NSNumber(value: value)
            }
            let inputs = try MLDictionaryFeatureProvider(dictionary: ["x": MLFeatureValue(multiArray: inputArray)])
            let result = try predict(inputs, state)
            guard let y = result.featureValue(for: "y")?.multiArrayValue else { continue }
            outputs.append(MLShapedArray<Float>(converting: y).scalars)
        }
        return outputs
    }

    /// The synchronous form, as in an asynchronous context the other one would be chosen.
    private func predict(_ inputs: MLFeatureProvider, _ state: MLState) throws -> MLFeatureProvider {
        try model.prediction(from: inputs, using: state, options: MLPredictionOptions())
    }

    func cache(named name: String) -> [Float] {
        state?.withMultiArray(for: name) { array in
            array.withUnsafeBufferPointer(ofType: Float16.self) { $0.map(Float.init) }
        } ?? []
    }

    /// Goes back to an earlier cache.
    func restore(_ values: [Float], named name: String) {
        state?.withMultiArray(for: name) { array in
            array.withUnsafeMutableBufferPointer(ofType: Float16.self) { buffer, strides in
                for (i, value) in values.enumerated() { buffer[i * strides.last!] = Float16(value) }
            }
        }
    }
}
