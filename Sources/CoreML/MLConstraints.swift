// Constraints that feature descriptions carry, one class for each kind of feature.
import Foundation
import MILFormat

open class MLMultiArrayConstraint: NSObject {
    public let shape: [NSNumber]
    public let dataType: MLMultiArrayDataType
    public let shapeConstraint: MLMultiArrayShapeConstraint

    init(_ feature: ArrayFeature) throws {
        shape = feature.shape.map { NSNumber(value: $0) }
        dataType = try MLMultiArrayDataType(feature.dataType)
        shapeConstraint = MLMultiArrayShapeConstraint(feature)
    }
}

extension MLMultiArrayDataType {
    init(_ type: ArrayDataType) throws {
        guard let value = MLMultiArrayDataType(rawValue: Int(type.rawValue)) else {
            throw MLModelError(.featureType, "multi arrays cannot hold \(type)")
        }
        self = value
    }
}

public enum MLMultiArrayShapeConstraintType: Int, Sendable {
    case unspecified = 1, enumerated, range
}

open class MLMultiArrayShapeConstraint: NSObject {
    public let type: MLMultiArrayShapeConstraintType
    /// An NSRange for each dimension.
    public let sizeRangeForDimension: [NSValue]
    public let enumeratedShapes: [[NSNumber]]
    private let feature: ArrayFeature

    init(_ feature: ArrayFeature) {
        self.feature = feature
        switch feature.flexibility {
        case .fixed:
            type = feature.shape.isEmpty ? .unspecified : .enumerated
            enumeratedShapes = feature.shape.isEmpty ? [] : [feature.shape.map { NSNumber(value: $0) }]
            sizeRangeForDimension = feature.shape.map { NSValue(range: NSRange(location: $0, length: 1)) }
        case .enumerated(let shapes):
            type = .enumerated
            enumeratedShapes = shapes.map { $0.map { NSNumber(value: $0) } }
            sizeRangeForDimension = []
        case .ranges(let ranges):
            type = .range
            enumeratedShapes = []
            sizeRangeForDimension = ranges.map { range in
                let length = range.upper.map { max($0 - range.lower, 0) + 1 } ?? Int(Int32.max)
                return NSValue(range: NSRange(location: range.lower, length: length))
            }
        }
    }

    func allows(_ shape: [Int]) -> Bool {
        switch feature.flexibility {
        case .fixed: return shape == feature.shape || feature.shape.isEmpty
        case .enumerated(let shapes): return shapes.contains(shape)
        case .ranges(let ranges):
            return shape.count == ranges.count
                && zip(shape, ranges).allSatisfy { $0 >= $1.lower && $0 <= $1.upper ?? .max }
        }
    }
}

open class MLDictionaryConstraint: NSObject {
    public let keyType: MLFeatureType

    init(keyType: MLFeatureType) { self.keyType = keyType }
}

open class MLSequenceConstraint: NSObject {
    public let valueDescription: MLFeatureDescription
    public let countRange: NSRange

    init(valueDescription: MLFeatureDescription, countRange: NSRange) {
        self.valueDescription = valueDescription
        self.countRange = countRange
    }
}

@available(macOS 15, iOS 18, *)
open class MLStateConstraint: NSObject {
    public let bufferShape: [Int]
    public let dataType: MLMultiArrayDataType

    init(_ feature: ArrayFeature) throws {
        bufferShape = feature.shape
        dataType = try MLMultiArrayDataType(feature.dataType)
    }
}

open class MLNumericConstraint: NSObject {
    public let minNumber: NSNumber
    public let maxNumber: NSNumber
    public let enumeratedNumbers: Set<NSNumber>?

    init(minNumber: NSNumber, maxNumber: NSNumber, enumeratedNumbers: Set<NSNumber>?) {
        self.minNumber = minNumber
        self.maxNumber = maxNumber
        self.enumeratedNumbers = enumeratedNumbers
    }
}

open class MLParameterDescription: NSObject {
    public let key: MLParameterKey
    public let defaultValue: Any
    public let numericConstraint: MLNumericConstraint?

    init(key: MLParameterKey, defaultValue: Any, numericConstraint: MLNumericConstraint?) {
        self.key = key
        self.defaultValue = defaultValue
        self.numericConstraint = numericConstraint
    }
}
