// Samples read from a batch provider, checked against the model.
import Foundation
import MILFormat

extension UpdatableNetwork {
    /// Throws for a sample that lacks a feature or whose shapes or labels do not fit.
    func samples(_ data: any MLBatchProvider) throws -> [TrainingSample] {
        guard data.count > 0 else { throw MLModelError(.update, "there are no training data") }
        return try (0..<data.count).map { try sample(data.features(at: $0), $0) }
    }

    private func sample(_ features: any MLFeatureProvider, _ index: Int) throws -> TrainingSample {
        func value(_ name: String) throws -> MLFeatureValue {
            guard let value = features.featureValue(for: name), !value.isUndefined else {
                throw MLModelError(.update, "training sample \(index) has no '\(name)'")
            }
            return value
        }
        let shape = graph.inputs.first { $0.name == input }?.declared ?? []
        guard let numbers = try value(input).numbers, numbers.count == shape.reduce(1, *) else {
            throw MLModelError(.update, "'\(input)' of training sample \(index) does not have the shape \(shape)")
        }
        return TrainingSample(input: numbers, target: try target(value(target), index))
    }

    private func target(_ value: MLFeatureValue, _ index: Int) throws -> TrainingSample.Target {
        let size = graph.shapes[path.last?.output ?? 0].reduce(1, *)
        if loss.kind == .meanSquaredError {
            guard let numbers = value.numbers, numbers.count == size else {
                throw MLModelError(.update, "'\(target)' of training sample \(index) does not have \(size) numbers")
            }
            return .values(numbers)
        }
        let label: Int?
        switch (classLabels, value.type) {
        case (.strings(let names)?, .string): label = names.firstIndex(of: value.stringValue)
        case (.integers(let numbers)?, .int64): label = numbers.firstIndex(of: value.int64Value)
        default: label = value.numbers?.first.flatMap { Int(exactly: $0) }
        }
        guard let label, (0..<size).contains(label) else {
            throw MLModelError(.update, "'\(target)' of training sample \(index) is none of \(size) classes: \(value)")
        }
        return .index(label)
    }
}

extension MLFeatureValue {
    fileprivate var numbers: [Float]? {
        switch type {
        case .int64: return [Float(int64Value)]
        case .double: return [Float(doubleValue)]
        case .multiArray:
            guard let array = multiArrayValue else { return nil }
            return (0..<array.count).map { Float(array.view.load(array.layout.offset(linear: $0))) }
        default: return nil
        }
    }
}

/// Numbers that a seed alone determines (splitmix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
