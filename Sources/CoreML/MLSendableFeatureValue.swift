// MLSendableFeatureValue: a feature value that may cross threads, since nobody can change it.
import Foundation

@available(macOS 15, iOS 18, *)
public struct MLSendableFeatureValue: Equatable, Sendable {
    fileprivate enum Content: Equatable, Sendable {
        case undefined(MLFeatureType)
        case integer(Int), float16(Float16), float(Float), double(Double), string(String)
        case strings([String]), stringKeys([String: Double]), integerKeys([Int: Double])
        case array(FrozenArray)
    }

    fileprivate let content: Content

    public init(undefined type: MLFeatureType) { content = .undefined(type) }
    public init(_ value: Int) { content = .integer(value) }
    public init(_ value: Int32) { content = .integer(Int(value)) }
    public init(_ value: Float16) { content = .float16(value) }
    public init(_ value: Float) { content = .float(value) }
    public init(_ value: Double) { content = .double(value) }
    public init(_ value: String) { content = .string(value) }
    public init(_ value: [String]) { content = .strings(value) }
    public init(_ value: [String: Double]) { content = .stringKeys(value) }
    public init(_ value: [String: Int]) { content = .stringKeys(value.mapValues(Double.init)) }
    public init(_ value: [Int: Double]) { content = .integerKeys(value) }
    public init(_ value: [Int: Int]) { content = .integerKeys(value.mapValues(Double.init)) }

    public init<Scalar>(_ value: MLShapedArray<Scalar>) where Scalar: MLShapedArrayScalar {
        content = .array(FrozenArray(MLMultiArray(value)))
    }

    /// A copy; nil for what has no sendable form, such as a sequence of integers.
    public init?(_ value: MLFeatureValue) {
        guard let content = Content(value) else { return nil }
        self.content = content
    }

    public var type: MLFeatureType { MLFeatureValue(self).type }

    public var isUndefined: Bool {
        if case .undefined = content { true } else { false }
    }

    public var isScalar: Bool {
        switch content {
        case .integer, .float16, .float, .double, .string: true
        default: false
        }
    }

    public var isShapedArray: Bool {
        if case .array = content { true } else { false }
    }

    public var integerValue: Int? {
        if case .integer(let value) = content { value } else { nil }
    }

    public var float16Value: Float16? {
        if case .float16(let value) = content { value } else { nil }
    }

    public var floatValue: Float? {
        if case .float(let value) = content { value } else { nil }
    }

    public var doubleValue: Double? {
        if case .double(let value) = content { value } else { nil }
    }

    public var stringValue: String? {
        if case .string(let value) = content { value } else { nil }
    }

    public var stringArrayValue: [String]? {
        if case .strings(let value) = content { value } else { nil }
    }

    public var stringDictionaryValue: [String: Double]? {
        if case .stringKeys(let value) = content { value } else { nil }
    }

    public var integerDictionaryValue: [Int: Double]? {
        if case .integerKeys(let value) = content { value } else { nil }
    }

    /// Nil unless the value is an array of that element type.
    public func shapedArrayValue<Scalar>(of type: Scalar.Type) -> MLShapedArray<Scalar>?
    where Scalar: MLShapedArrayScalar {
        if case .array(let array) = content { array.feature.shapedArrayValue(of: type) } else { nil }
    }
}

@available(macOS 15, iOS 18, *)
extension MLSendableFeatureValue.Content {
    fileprivate init?(_ value: MLFeatureValue) {
        if value.isUndefined {
            self = .undefined(value.type)
            return
        }
        switch value.type {
        case .int64: self = .integer(Int(value.int64Value))
        case .double: self = .double(value.doubleValue)
        case .string: self = .string(value.stringValue)
        case .multiArray:
            guard let array = value.multiArrayValue, let copy = array.copied else { return nil }
            self = .array(FrozenArray(copy))
        case .sequence:
            guard let sequence = value.sequenceValue, sequence.type == .string else { return nil }
            self = .strings(sequence.stringValues)
        case .dictionary:
            let pairs = value.dictionaryValue
            if let named = pairs as? [String: NSNumber] {
                self = .stringKeys(named.mapValues(\.doubleValue))
            } else {
                var numbered: [Int: Double] = [:]
                for (key, value) in pairs {
                    guard let key = (key.base as? Int64).map(Int.init) else { return nil }
                    numbered[key] = value.doubleValue
                }
                self = .integerKeys(numbered)
            }
        case .invalid, .image, .state: return nil
        }
    }
}

@available(macOS 15, iOS 18, *)
extension MLSendableFeatureValue: CustomDebugStringConvertible {
    public var debugDescription: String { "MLSendableFeatureValue(\(content))" }
}

/// An array that nobody else holds and that is never written to.
private struct FrozenArray: Equatable, @unchecked Sendable {
    let feature: MLFeatureValue

    init(_ array: MLMultiArray) { feature = MLFeatureValue(multiArray: array) }

    static func == (a: FrozenArray, b: FrozenArray) -> Bool { a.feature.isEqual(to: b.feature) }
}

extension MLMultiArray {
    fileprivate var copied: MLMultiArray? {
        guard let layout = ArrayLayout(cOrder: layout.shape) else { return nil }
        let copy = MLMultiArray(layout: layout, dataType: dataType)
        view.copy(to: copy.view)
        return copy
    }
}

extension MLFeatureValue {
    @available(macOS 15, iOS 18, *)
    public convenience init(_ value: MLSendableFeatureValue) { self.init(sharing: value.feature) }
}

@available(macOS 15, iOS 18, *)
extension MLSendableFeatureValue {
    /// Arrays are copied, since whoever gets a feature value may write to its array.
    fileprivate var feature: MLFeatureValue {
        switch content {
        case .undefined(let type): MLFeatureValue(undefined: type)
        case .integer(let value): MLFeatureValue(int64: Int64(value))
        case .float16(let value): MLFeatureValue(double: Double(value))
        case .float(let value): MLFeatureValue(double: Double(value))
        case .double(let value): MLFeatureValue(double: value)
        case .string(let value): MLFeatureValue(string: value)
        case .strings(let values): MLFeatureValue(sequence: MLSequence(strings: values))
        case .stringKeys(let pairs):
            MLFeatureValue(checked: Dictionary(uniqueKeysWithValues: pairs.map { ($0, NSNumber(value: $1)) }))
        case .integerKeys(let pairs):
            MLFeatureValue(
                checked: Dictionary(
                    uniqueKeysWithValues: pairs.map { (Int64($0), NSNumber(value: $1)) }))
        case .array(let array):
            array.feature.multiArrayValue?.copied.map { MLFeatureValue(multiArray: $0) } ?? array.feature
        }
    }
}
