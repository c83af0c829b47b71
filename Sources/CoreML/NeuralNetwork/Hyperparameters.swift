// The numbers that steer an update: the model's own, replaced by what the caller gives.
import Foundation
import MILFormat

struct Hyperparameters {
    private(set) var values: [MLParameterKey: NSNumber] = [:]
    let descriptions: [MLParameterKey: MLParameterDescription]
    private let reals: [MLParameterKey: NetworkUpdates.RealParameter]
    private let integers: [MLParameterKey: NetworkUpdates.IntegerParameter]

    init(_ updates: NetworkUpdates) {
        var reals: [MLParameterKey: NetworkUpdates.RealParameter] = [:]
        var integers: [MLParameterKey: NetworkUpdates.IntegerParameter] = [:]
        switch updates.optimizer {
        case .sgd(let rate, let batch, let momentum)?:
            (reals[.learningRate], reals[.momentum], integers[.miniBatchSize]) = (rate, momentum, batch)
        case .adam(let rate, let batch, let beta1, let beta2, let eps)?:
            (reals[.learningRate], integers[.miniBatchSize]) = (rate, batch)
            (reals[.beta1], reals[.beta2], reals[.eps]) = (beta1, beta2, eps)
        case nil: break
        }
        integers[.epochs] = updates.epochs
        integers[.seed] = updates.seed
        var descriptions: [MLParameterKey: MLParameterDescription] = [:]
        for (key, parameter) in reals { descriptions[key] = MLParameterDescription(key, parameter) }
        for (key, parameter) in integers { descriptions[key] = MLParameterDescription(key, parameter) }
        values = descriptions.compactMapValues { $0.defaultValue as? NSNumber }
        if let shuffle = updates.shuffle {
            values[.shuffle] = NSNumber(value: shuffle)
            descriptions[.shuffle] = MLParameterDescription(
                key: .shuffle, defaultValue: NSNumber(value: shuffle), numericConstraint: nil)
        }
        self.reals = reals
        self.integers = integers
        self.descriptions = descriptions
    }

    /// Replaces values. Throws for a number that the model does not allow and for what it has no parameter for;
    /// weights are left alone, as Core ML leaves them.
    mutating func set(_ parameters: [MLParameterKey: Any]) throws {
        for (key, value) in parameters
        where key.name != MLParameterKey.weights.name && key.name != MLParameterKey.biases.name {
            guard let number = value as? NSNumber else { throw Self.wrong(key, "\(value) is no number") }
            if key == .shuffle || key == .seed && integers[.seed] == nil {
                values[key] = number
            } else if let parameter = reals[key] {
                guard parameter.allows(number.doubleValue) else { throw Self.wrong(key, "it may not be \(number)") }
                values[key] = number
            } else if let parameter = integers[key] {
                guard parameter.allows(number.int64Value), key == .seed || number.int64Value > 0 else {
                    throw Self.wrong(key, "it may not be \(number)")
                }
                values[key] = number
            } else {
                throw Self.wrong(key, "the model has no such parameter")
            }
        }
    }

    private static func wrong(_ key: MLParameterKey, _ text: String) -> MLModelError {
        MLModelError(.parameters, "the parameter '\(key)': \(text)")
    }

    func real(_ key: MLParameterKey) -> Float { values[key]?.floatValue ?? 0 }
    var miniBatchSize: Int { max(values[.miniBatchSize]?.intValue ?? 1, 1) }
    var epochs: Int { max(values[.epochs]?.intValue ?? 1, 1) }
    var shuffles: Bool { values[.shuffle]?.boolValue ?? false }
    var seed: UInt64? { values[.seed].map { UInt64(bitPattern: $0.int64Value) } }
}

extension MLParameterDescription {
    fileprivate convenience init(_ key: MLParameterKey, _ parameter: NetworkUpdates.RealParameter) {
        self.init(
            key: key, defaultValue: NSNumber(value: parameter.defaultValue),
            numericConstraint: MLNumericConstraint(
                minNumber: NSNumber(value: parameter.minimum ?? -.greatestFiniteMagnitude),
                maxNumber: NSNumber(value: parameter.maximum ?? .greatestFiniteMagnitude), enumeratedNumbers: nil))
    }

    fileprivate convenience init(_ key: MLParameterKey, _ parameter: NetworkUpdates.IntegerParameter) {
        self.init(
            key: key, defaultValue: NSNumber(value: parameter.defaultValue),
            numericConstraint: MLNumericConstraint(
                minNumber: NSNumber(value: parameter.minimum ?? parameter.allowed?.min() ?? 0),
                maxNumber: NSNumber(value: parameter.maximum ?? parameter.allowed?.max() ?? .max),
                enumeratedNumbers: parameter.allowed.map { Set($0.map { NSNumber(value: $0) }) }))
    }
}
