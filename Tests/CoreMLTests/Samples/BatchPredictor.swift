// Predictions of many rows as apps write them: providers of their own, an actor, pointers into arrays.
@preconcurrency import CoreML

final class RowProvider: MLFeatureProvider {
    private let values: [Float]

    init(_ values: [Float]) { self.values = values }

    var featureNames: Set<String> { ["x"] }

    func featureValue(for featureName: String) -> MLFeatureValue? {
        guard featureName == "x", let array = try? MLMultiArray(shape: [2, 4], dataType: .float32) else { return nil }
        let pointer = array.dataPointer.bindMemory(to: Float.self, capacity: array.count)
        for (index, value) in values.enumerated() { pointer[index] = value }
        array[[0, 0] as [NSNumber]] = NSNumber(value: values[0])
        return MLFeatureValue(multiArray: array)
    }
}

final class RowBatch: MLBatchProvider {
    private let rows: [[Float]]

    init(rows: [[Float]]) { self.rows = rows }

    var count: Int { rows.count }
    func features(at index: Int) -> any MLFeatureProvider { RowProvider(rows[index]) }
}

actor BatchPredictor {
    private let model: MLModel

    init(contentsOf url: URL) async throws {
        let configuration = MLModelConfiguration()
        configuration.computeUnits = .cpuAndNeuralEngine
        if #available(macOS 15, iOS 18, *) {
            configuration.optimizationHints.reshapeFrequency = .infrequent
            configuration.optimizationHints.specializationStrategy = .fastPrediction
        }
        model = try await MLModel.load(contentsOf: url, configuration: configuration)
    }

    func predict(_ rows: [[Float]]) throws -> [[Float]] {
        let results = try model.predictions(fromBatch: RowBatch(rows: rows))
        return (0..<results.count).map { index in
            guard let array = results.features(at: index).featureValue(for: "y")?.multiArrayValue else { return [] }
            return array.withUnsafeBufferPointer(ofType: Float.self) { buffer in
                let (rows, columns) = (array.shape[0].intValue, array.shape[1].intValue)
                let strides = array.strides.map(\.intValue)
                return (0..<rows * columns).map { buffer[$0 / columns * strides[0] + $0 % columns * strides[1]] }
            }
        }
    }

    func predict(_ values: MLShapedArray<Float>) throws -> MLShapedArray<Float>? {
        let provider = try MLDictionaryFeatureProvider(dictionary: ["x": MLFeatureValue(shapedArray: values)])
        let output = try model.prediction(from: provider)
        return output.featureValue(for: "y")?.shapedArrayValue(of: Float.self)
    }
}
