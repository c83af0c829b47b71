// MLFeatureValue: one value of any kind that goes into or comes out of a model.
import Foundation

open class MLFeatureValue: NSObject, NSCopying {
    private enum Content {
        case undefined(MLFeatureType)
        case int64(Int64), double(Double), string(String)
        case multiArray(MLMultiArray), dictionary([AnyHashable: NSNumber]), sequence(MLSequence)
    }

    private let content: Content

    private init(_ content: Content) { self.content = content }

    convenience init(sharing value: MLFeatureValue) { self.init(value.content) }
    public convenience init(int64 value: Int64) { self.init(.int64(value)) }
    public convenience init(double value: Double) { self.init(.double(value)) }
    public convenience init(string value: String) { self.init(.string(value)) }
    public convenience init(multiArray value: MLMultiArray) { self.init(.multiArray(value)) }
    public convenience init(sequence: MLSequence) { self.init(.sequence(sequence)) }
    public convenience init(undefined type: MLFeatureType) { self.init(.undefined(type)) }

    /// The keys are all integers or all strings.
    convenience init(checked value: [AnyHashable: NSNumber]) { self.init(.dictionary(value)) }

    /// Throws when the keys are not all integers or all strings.
    public convenience init(dictionary value: [AnyHashable: NSNumber]) throws {
        let isNamed = value.keys.allSatisfy { $0.base is String }
        self.init(.dictionary(isNamed ? value : try Self.numbered(value)))
    }

    /// Integers of every type become those that generated classes cast to; such a key is found by every integer.
    private static func numbered(_ value: [AnyHashable: NSNumber]) throws -> [AnyHashable: NSNumber] {
        var numbered: [AnyHashable: NSNumber] = [:]
        for (key, number) in value {
            let integer = (key.base as? any BinaryInteger).map { Int64(exactly: $0) }
            guard let integer = integer ?? (key.base as? NSNumber)?.int64Value else {
                throw MLModelError(.featureType, "the keys of a dictionary must be all strings or all integers")
            }
            numbered[integer] = number
        }
        return numbered
    }

    open var type: MLFeatureType {
        switch content {
        case .undefined(let type): type
        case .int64: .int64
        case .double: .double
        case .string: .string
        case .multiArray: .multiArray
        case .dictionary: .dictionary
        case .sequence: .sequence
        }
    }

    open var isUndefined: Bool {
        if case .undefined = content { true } else { false }
    }

    open var int64Value: Int64 {
        if case .int64(let value) = content { value } else { 0 }
    }

    open var doubleValue: Double {
        if case .double(let value) = content { value } else { 0 }
    }

    open var stringValue: String {
        if case .string(let value) = content { value } else { "" }
    }

    open var multiArrayValue: MLMultiArray? {
        if case .multiArray(let value) = content { value } else { nil }
    }

    open var dictionaryValue: [AnyHashable: NSNumber] {
        if case .dictionary(let value) = content { value } else { [:] }
    }

    open var sequenceValue: MLSequence? {
        if case .sequence(let value) = content { value } else { nil }
    }

    open func copy(with zone: NSZone? = nil) -> Any { self }

    open func isEqual(to value: MLFeatureValue) -> Bool {
        switch (content, value.content) {
        case (.undefined(let a), .undefined(let b)): a == b
        case (.int64(let a), .int64(let b)): a == b
        case (.double(let a), .double(let b)): a == b
        case (.string(let a), .string(let b)): a == b
        case (.multiArray(let a), .multiArray(let b)): a === b || a.hasElements(of: b)
        case (.dictionary(let a), .dictionary(let b)): a == b
        case (.sequence(let a), .sequence(let b)): a.isEqual(b)
        default: false
        }
    }

    open override func isEqual(_ object: Any?) -> Bool {
        (object as? MLFeatureValue).map { isEqual(to: $0) } ?? false
    }

    open override var hash: Int { type.rawValue }

    open override var description: String {
        switch content {
        case .undefined(let type): "Undefined : \(type)"
        case .int64(let value): "Int64 : \(value)"
        case .double(let value): "Double : \(value)"
        case .string(let value): "String : \(value)"
        case .multiArray(let value): "MultiArray : \(value)"
        case .dictionary(let value): "Dictionary : \(value)"
        case .sequence(let value): "Sequence : \(value)"
        }
    }
}

extension MLMultiArray {
    fileprivate func hasElements(of other: MLMultiArray) -> Bool {
        guard layout.shape == other.layout.shape, dataType == other.dataType else { return false }
        return (0..<count).allSatisfy { self[$0] == other[$0] }
    }
}

open class MLSequence: NSObject {
    public let type: MLFeatureType
    public let stringValues: [String]
    public let int64Values: [NSNumber]

    public init(empty type: MLFeatureType) {
        self.type = type
        stringValues = []
        int64Values = []
    }

    public init(strings: [String]) {
        type = .string
        stringValues = strings
        int64Values = []
    }

    public init(int64s: [NSNumber]) {
        type = .int64
        stringValues = []
        int64Values = int64s
    }

    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? MLSequence else { return false }
        return type == other.type && stringValues == other.stringValues && int64Values == other.int64Values
    }

    open override var hash: Int { stringValues.hashValue ^ int64Values.hashValue }
}
