// One function of a loaded model, planned for the shapes that come, and run on our own runtime.
import Foundation
import MILFormat
import MILRuntime

/// Calls take turns: a plan has one set of buffers.
final class Engine: @unchecked Sendable {
    let description: MLModelDescription
    private let package: Package
    private let lowered: LoweredFunction
    private let unkindness = Unkindness.current
    private let lock = NSLock()
    /// By the shapes of all inputs; a model of fixed shapes has one.
    private var plans: [[String: [Int]]: Plan] = [:]
    private static let planLimit = 8

    init(_ package: Package, functionName: String?) throws {
        do {
            self.package = package
            let described = try package.model.functionDescription(named: functionName)
            lowered =
                switch package.model.content {
                case .network(let network): try LoweredFunction(network, described)
                case .program, .other:
                    try LoweredFunction(
                        package.function(named: functionName), states: Set(described.states.map(\.name)))
                }
            description = try MLModelDescription(
                package.model, function: described, classLabels: lowered.classifier?.labels.map(\.any))
        } catch let error as FormatError {
            throw MLModelError(error)
        }
        // What cannot be planned is an error of loading, as it is on Apple systems.
        _ = try plan(for: description.defaultShapes)
    }

    func predict(
        _ features: any MLFeatureProvider, state: MLState? = nil, options: MLPredictionOptions
    ) throws -> any MLFeatureProvider {
        if let failure = Unkindness.failure { throw failure }
        let inputs = try InputArrays(features, description)
        let backings = try OutputBackings(options, description, inputs)
        let states = try stateArrays(state)
        return try lock.withLock {
            let plan = try plan(for: inputs.shapes)
            for (name, array) in inputs.arrays { try plan.view(name).fill(from: array) }
            for (name, array) in states { try plan.view(name).fill(from: array) }
            do throws(RuntimeError) {
                try plan.run()
            } catch {
                throw MLModelError(error)
            }
            for (name, output) in lowered.newStates {
                if let array = states[name] { try plan.view(output).copy(to: array.view) }
            }
            return try MLDictionaryFeatureProvider(dictionary: outputs(plan, backings))
        }
    }

    private func stateArrays(_ state: MLState?) throws -> [String: MLMultiArray] {
        let arrays = state?.arrays ?? [:]
        guard arrays.keys.sorted() == description.stateDescriptionsByName.keys.sorted() else {
            throw MLModelError(.generic, "the model has a state; predict with one that its makeState() made")
        }
        return arrays
    }

    // MARK: Plans

    private func plan(for shapes: [String: [Int]]) throws -> Plan {
        if let plan = plans[shapes] { return plan }
        var function = lowered.function
        for (index, input) in function.inputs.enumerated() {
            guard let shape = shapes[input.name], case .tensor(let tensor) = input.type else { continue }
            function.inputs[index].type = .tensor(TensorType(tensor.dataType, shape: shape))
        }
        let plan: Plan
        do {
            plan = try Plan(function, blobs: package)
        } catch {
            throw MLModelError(error)
        }
        if plans.count >= Self.planLimit { plans.removeAll() }
        plans[shapes] = plan
        return plan
    }

    // MARK: Outputs

    private func outputs(_ plan: Plan, _ backings: OutputBackings) throws -> [String: Any] {
        var outputs: [String: Any] = [:]
        for name in description.outputDescriptionsByName.keys where !isMadeByClassifier(name) {
            outputs[name] = try array(plan.view(name), name, backing: backings.arrays[name])
        }
        if let classifier = lowered.classifier {
            let probabilities = try plan.view(classifier.probabilities)
            let (label, dictionary) = classifier.read(probabilities)
            outputs[classifier.labelOutput] = label
            outputs[classifier.dictionaryOutput] = try MLFeatureValue(dictionary: dictionary)
        }
        return outputs
    }

    private func isMadeByClassifier(_ name: String) -> Bool {
        name == lowered.classifier?.labelOutput || name == lowered.classifier?.dictionaryOutput
    }

    /// In the type that the description says, which for networks may be wider than what was computed in.
    private func array(_ view: ArrayView, _ name: String, backing: MLMultiArray?) throws -> MLMultiArray {
        if let backing, !unkindness.ignoresBackings, backing.layout.shape == view.layout.shape {
            view.copy(to: backing.view)
            return backing
        }
        let dataType = description.outputDescriptionsByName[name]?.multiArrayConstraint?.dataType ?? view.dataType
        let rowBytes = unkindness.padsRows ? 64 : dataType.size
        guard let layout = ArrayLayout(cOrder: view.layout.shape, rowAlignment: rowBytes / dataType.size) else {
            throw MLModelError(.generic, "an output of shape \(view.layout.shape) is too large")
        }
        let array = MLMultiArray(layout: layout, dataType: dataType)
        view.copy(to: array.view)
        return array
    }
}

extension LoweredFunction.Classifier {
    fileprivate func read(_ view: ArrayView) -> (MLFeatureValue, [AnyHashable: NSNumber]) {
        let values = (0..<min(view.layout.count, labels.count)).map { view.load(view.layout.offset(linear: $0)) }
        var dictionary: [AnyHashable: NSNumber] = [:]
        for (label, value) in zip(labels, values) { dictionary[label.key] = NSNumber(value: value) }
        let best = values.indices.max { values[$0] < values[$1] } ?? 0
        return (labels[best].featureValue, dictionary)
    }
}

extension LoweredFunction.Label {
    var any: Any {
        switch self {
        case .string(let label): label
        case .int64(let label): NSNumber(value: label)
        }
    }

    fileprivate var key: AnyHashable {
        switch self {
        case .string(let label): AnyHashable(label)
        case .int64(let label): AnyHashable(label)
        }
    }

    fileprivate var featureValue: MLFeatureValue {
        switch self {
        case .string(let label): MLFeatureValue(string: label)
        case .int64(let label): MLFeatureValue(int64: label)
        }
    }
}

extension Plan {
    /// A feature's memory; scalars look like arrays of one element, as Core ML has no others.
    fileprivate func view(_ name: String) throws -> ArrayView {
        guard let storage = buffer(named: name), let base = storage.bytes.baseAddress,
            let layout = ArrayLayout(cOrder: storage.shape.isEmpty ? [1] : storage.shape)
        else { throw MLModelError(.generic, "the model has no feature '\(name)'") }
        return ArrayView(base: base, layout: layout, dataType: try MLMultiArrayDataType(storage.type))
    }
}

extension ArrayView {
    fileprivate func fill(from array: MLMultiArray) throws {
        guard array.layout.shape == layout.shape else {
            throw MLModelError(.generic, "the shape \(array.layout.shape) should be \(layout.shape)")
        }
        array.view.copy(to: self)
    }
}

extension MLMultiArrayDataType {
    fileprivate init(_ type: ElementType) throws {
        switch type {
        case .float32: self = .float32
        case .float16: self = .float16
        case .int32: self = .int32
        case .int8: self = .int8
        default: throw MLModelError(.featureType, "features cannot be of type \(type)")
        }
    }
}

extension MLModelError {
    init(_ error: FormatError) {
        switch error {
        case .io, .notAPackage, .badBlob: self.init(.io, error.description)
        default: self.init(.generic, error.description)
        }
    }

    init(_ error: RuntimeError) { self.init(.generic, error.description) }
}
