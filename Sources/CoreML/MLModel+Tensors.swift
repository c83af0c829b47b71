// Predictions from tensors to tensors.
import Foundation

@available(macOS 15, iOS 18, *)
extension MLModel {
    public func prediction(from inputs: [String: MLTensor]) async throws -> [String: MLTensor] {
        try checkNotCancelled()
        return try tensors(of: engine.predict(arrays(inputs), options: MLPredictionOptions()))
    }

    public func prediction(from inputs: [String: MLTensor], using state: MLState) async throws -> [String: MLTensor] {
        try checkNotCancelled()
        return try tensors(of: engine.predict(arrays(inputs), state: state, options: MLPredictionOptions()))
    }

    private func arrays(_ tensors: [String: MLTensor]) throws -> MLDictionaryFeatureProvider {
        try MLDictionaryFeatureProvider(dictionary: tensors.mapValues { try $0.multiArray() })
    }

    /// Outputs that are no arrays are left out.
    private func tensors(of features: any MLFeatureProvider) throws -> [String: MLTensor] {
        var result: [String: MLTensor] = [:]
        for name in features.featureNames {
            if let array = features.featureValue(for: name)?.multiArrayValue { result[name] = try MLTensor(array) }
        }
        return result
    }
}

@available(macOS 15, iOS 18, *)
extension MLTensor {
    fileprivate init(_ array: MLMultiArray) throws {
        let type: any MLTensorScalar.Type =
            switch array.dataType {
            case .float16: Float16.self
            case .float32, .double: Float.self
            case .int32: Int32.self
            case .int8: Int8.self
            }
        self.init((0..<array.count).map { array.view.load(array.layout.offset(linear: $0)) }, array.layout.shape, type)
    }

    fileprivate func multiArray() throws -> MLMultiArray {
        let type: MLMultiArrayDataType =
            scalarType == Float.self ? .float32 : scalarType == Float16.self ? .float16 : .int32
        let array = try MLMultiArray(shape: (shape.isEmpty ? [1] : shape).map { NSNumber(value: $0) }, dataType: type)
        for (index, value) in values.enumerated() { array.view.store(value, index) }
        return array
    }
}
