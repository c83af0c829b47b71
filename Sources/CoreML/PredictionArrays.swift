// What a prediction is given, checked against the model's description: input arrays and output backings.
import Foundation

/// One array for each input of the model, or an error that names what is wrong.
struct InputArrays {
    private(set) var arrays: [String: MLMultiArray] = [:]

    init(_ features: any MLFeatureProvider, _ description: MLModelDescription) throws {
        for (name, input) in description.inputDescriptionsByName {
            let value = features.featureValue(for: name)
            guard let value, !value.isUndefined else {
                guard input.isOptional else { throw MLModelError(.generic, "the input '\(name)' is not given") }
                arrays[name] = try input.defaultArray()
                continue
            }
            guard let array = try value.multiArrayValue ?? value.scalarArray(input.type) else {
                throw MLModelError(.featureType, "the input '\(name)' is a \(value.type), not a multiArray")
            }
            guard input.isAllowedValue(value) else {
                let expected = input.multiArrayConstraint?.shape ?? []
                throw MLModelError(
                    .generic,
                    "the input '\(name)' has the shape \(array.shape), which the model does not allow (\(expected))")
            }
            arrays[name] = array
        }
    }

    var shapes: [String: [Int]] { arrays.mapValues(\.layout.shape) }
}

/// The arrays that a caller wants outputs in.
struct OutputBackings {
    private(set) var arrays: [String: MLMultiArray] = [:]

    init(_ options: MLPredictionOptions, _ description: MLModelDescription, _ inputs: InputArrays) throws {
        for (name, backing) in options.outputBackings {
            guard let output = description.outputDescriptionsByName[name] else {
                throw MLModelError(.generic, "there is no output '\(name)' for an output backing")
            }
            guard let array = backing as? MLMultiArray, array.dataType == output.multiArrayConstraint?.dataType,
                output.isAllowedValue(MLFeatureValue(multiArray: array))
            else { throw MLModelError(.generic, "the output backing of '\(name)' does not fit the output") }
            // Core ML does not check this; the results of such a call are undefined there.
            if let input = inputs.arrays.first(where: { $0.value.overlaps(array) }) {
                throw MLModelError(.generic, "the output backing of '\(name)' lies over the input '\(input.key)'")
            }
            arrays[name] = array
        }
    }
}

extension MLFeatureValue {
    /// A number for an input that is one.
    fileprivate func scalarArray(_ expected: MLFeatureType) throws -> MLMultiArray? {
        guard type == expected else { return nil }
        switch type {
        case .double: return try MLMultiArray([doubleValue])
        case .int64: return try MLMultiArray([Double(int64Value)])
        default: return nil
        }
    }
}

extension MLMultiArray {
    fileprivate func overlaps(_ other: MLMultiArray) -> Bool {
        dataPointer < other.dataPointer + other.bytes.count && other.dataPointer < dataPointer + bytes.count
    }
}

extension MLFeatureDescription {
    fileprivate func defaultArray() throws -> MLMultiArray {
        guard let constraint = multiArrayConstraint else {
            throw MLModelError(.featureType, "the input '\(name)' has no default value")
        }
        let array = try MLMultiArray(shape: constraint.shape, dataType: constraint.dataType)
        for index in 0..<array.count { array[index] = NSNumber(value: defaultValue) }
        return array
    }
}

extension MLModelDescription {
    var defaultShapes: [String: [Int]] {
        inputDescriptionsByName.compactMapValues { $0.multiArrayConstraint?.shape.map(\.intValue) }
    }
}
