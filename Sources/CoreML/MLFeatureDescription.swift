// What a model says of one input, output or state.
import Foundation
import MILFormat

open class MLFeatureDescription: NSObject, NSCopying {
    public let name: String
    public let type: MLFeatureType
    public let isOptional: Bool
    public let multiArrayConstraint: MLMultiArrayConstraint?
    public let imageConstraint: MLImageConstraint?
    public let dictionaryConstraint: MLDictionaryConstraint?
    public let sequenceConstraint: MLSequenceConstraint?
    @available(macOS 15, iOS 18, *)
    public let stateConstraint: MLStateConstraint?

    /// What an optional array holds when it is not given.
    let defaultValue: Double

    init(_ feature: FeatureDescription) throws {
        var array: MLMultiArrayConstraint?
        var image: MLImageConstraint?
        var dictionary: MLDictionaryConstraint?
        var sequence: MLSequenceConstraint?
        var state: MLStateConstraint?
        var defaultValue = 0.0
        switch feature.type {
        case .int64: type = .int64
        case .double: type = .double
        case .string: type = .string
        case .image(let feature):
            type = .image
            image = MLImageConstraint(feature)
        case .multiArray(let feature):
            type = .multiArray
            array = try MLMultiArrayConstraint(feature)
            defaultValue = feature.defaultValue?.double ?? 0
        case .dictionary(let key):
            type = .dictionary
            dictionary = MLDictionaryConstraint(keyType: key.type)
        case .sequence(let element, let minimum, let maximum):
            type = .sequence
            sequence = MLSequenceConstraint(
                valueDescription: MLFeatureDescription(name: "", type: element.type),
                countRange: NSRange(location: minimum, length: max((maximum ?? .max) - minimum, 0)))
        case .state(let feature):
            type = .state
            state = try MLStateConstraint(feature)
        }
        name = feature.name
        isOptional = feature.isOptional
        multiArrayConstraint = array
        imageConstraint = image
        dictionaryConstraint = dictionary
        sequenceConstraint = sequence
        stateConstraint = state
        self.defaultValue = defaultValue
    }

    private init(name: String, type: MLFeatureType) {
        self.name = name
        self.type = type
        isOptional = false
        multiArrayConstraint = nil
        imageConstraint = nil
        dictionaryConstraint = nil
        sequenceConstraint = nil
        stateConstraint = nil
        defaultValue = 0
    }

    public func isAllowedValue(_ value: MLFeatureValue) -> Bool {
        if value.isUndefined { return isOptional }
        guard value.type == type else { return false }
        guard let constraint = multiArrayConstraint, let array = value.multiArrayValue else { return true }
        return constraint.shapeConstraint.allows(array.layout.shape)
    }

    public func copy(with zone: NSZone? = nil) -> Any { self }

    open override var description: String {
        "\(name) : \(type)\(multiArrayConstraint.map { " (\($0.dataType), \($0.shape))" } ?? "")"
    }
}

extension FeatureType.ScalarKind {
    fileprivate var type: MLFeatureType {
        switch self {
        case .int64: .int64
        case .string: .string
        }
    }
}

extension ArrayFeature.Fill {
    fileprivate var double: Double {
        switch self {
        case .int(let value): Double(value)
        case .float(let value): Double(value)
        case .double(let value): value
        }
    }
}
