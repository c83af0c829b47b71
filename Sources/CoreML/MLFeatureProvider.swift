// Named feature values, one set or many.
import Foundation

public protocol MLFeatureProvider: AnyObject {
    var featureNames: Set<String> { get }
    func featureValue(for featureName: String) -> MLFeatureValue?
}

open class MLDictionaryFeatureProvider: NSObject, MLFeatureProvider {
    open private(set) var dictionary: [String: MLFeatureValue]

    /// Values are feature values, or numbers, strings, multi arrays and dictionaries, which are wrapped.
    public init(dictionary: [String: Any]) throws {
        var values: [String: MLFeatureValue] = [:]
        for (name, value) in dictionary { values[name] = try MLFeatureValue(wrapping: value, name: name) }
        self.dictionary = values
    }

    open var featureNames: Set<String> { Set(dictionary.keys) }
    open func featureValue(for featureName: String) -> MLFeatureValue? { dictionary[featureName] }
    open subscript(featureName: String) -> MLFeatureValue? { dictionary[featureName] }
}

extension MLFeatureValue {
    fileprivate convenience init(wrapping value: Any, name: String) throws {
        switch value {
        case let value as MLFeatureValue: self.init(sharing: value)
        case let value as MLMultiArray: self.init(multiArray: value)
        case let value as String: self.init(string: value)
        case let value as any BinaryInteger: self.init(int64: Int64(truncatingIfNeeded: value))
        case let value as NSNumber:
            let isFloat = ["f", "d"].contains(String(cString: value.objCType))
            if isFloat { self.init(double: value.doubleValue) } else { self.init(int64: value.int64Value) }
        case let value as MLSequence: self.init(sequence: value)
        case let value as [AnyHashable: NSNumber]: try self.init(dictionary: value)
        default: throw MLModelError(.featureType, "the value of '\(name)' is a \(Swift.type(of: value))")
        }
    }
}

public protocol MLBatchProvider: AnyObject {
    var count: Int { get }
    func features(at index: Int) -> any MLFeatureProvider
}

open class MLArrayBatchProvider: NSObject, MLBatchProvider {
    open private(set) var array: [any MLFeatureProvider]

    public init(array: [any MLFeatureProvider]) { self.array = array }

    /// From one column of values a feature; the columns must be of one length.
    public init(dictionary: [String: [Any]]) throws {
        let count = dictionary.values.first?.count ?? 0
        guard dictionary.values.allSatisfy({ $0.count == count }) else {
            throw MLModelError(.generic, "the features of a batch differ in length")
        }
        array = try (0..<count).map { row in
            try MLDictionaryFeatureProvider(dictionary: dictionary.mapValues { $0[row] })
        }
    }

    open var count: Int { array.count }
    open func features(at index: Int) -> any MLFeatureProvider { array[index] }
}
