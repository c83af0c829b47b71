// Compiled fixture models, and arrays of numbers.
import CoreML

enum Fixture {
    /// The fixtures' weight: (0..<24 - 7.5) / 4, of shape (4, 6).
    static let weight = (0..<24).map { (Float($0) - 7.5) / 4 }

    static func url(_ name: String) -> URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("MILFormatTests/Fixtures/\(name).mlpackage")
    }

    static func model(_ name: String, function: String? = nil) throws -> MLModel {
        let compiled = try MLModel.compileModel(at: url(name))
        defer { try? FileManager.default.removeItem(at: compiled.deletingLastPathComponent()) }
        let configuration = MLModelConfiguration()
        configuration.functionName = function
        return try MLModel(contentsOf: compiled, configuration: configuration)
    }

    /// x @ weight for rows of four.
    static func product(_ x: [Float]) -> [Float] {
        var result: [Float] = []
        for row in 0..<x.count / 4 {
            for column in 0..<6 {
                var sum: Float = 0
                for k in 0..<4 { sum += x[row * 4 + k] * weight[k * 6 + column] }
                result.append(sum)
            }
        }
        return result
    }
}

func array(_ values: [Float], _ shape: [Int], _ type: MLMultiArrayDataType = .float32) throws -> MLMultiArray {
    let array = try MLMultiArray(shape: shape.map { NSNumber(value: $0) }, dataType: type)
    for (index, value) in values.enumerated() { array[index] = NSNumber(value: value) }
    return array
}

func numbers(_ array: MLMultiArray?) -> [Float] {
    guard let array else { return [] }
    return (0..<array.count).map { array[$0].floatValue }
}

func features(_ values: [String: Any]) throws -> MLDictionaryFeatureProvider {
    try MLDictionaryFeatureProvider(dictionary: values)
}

/// Picks the synchronous form, in asynchronous tests too.
func predict(
    _ model: MLModel, _ values: [String: Any], _ options: MLPredictionOptions = MLPredictionOptions()
) throws -> any MLFeatureProvider {
    try model.prediction(from: features(values), options: options)
}
