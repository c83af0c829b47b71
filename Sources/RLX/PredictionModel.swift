// A function of a package that predicts, whatever its interface: flexible shapes, states, classes. Knows no images.

import Foundation
import MILFormat
import MILRuntime

/// One function of an ML Program on our own runtime. Any thread may call; predictions take turns.
public final class PredictionModel: @unchecked Sendable {
    /// The interface as JSON, for clients in other languages; see `InterfaceText`.
    public let interface: String
    private let evaluator: Evaluator
    private let lock = CallLock("model")

    /// Loads an `.mlpackage` directory or a bare model file; `function` nil takes the default function.
    ///
    /// `seconds` limits a prediction (it ends at the next round of a loop); `watched` names values of the function's body
    /// that predictions give too. Plans it for the default shapes. Throws `io` and `badPackage` for files that cannot be read, `notFound` for the
    /// function's name and `unsupported` for what this runtime does not have.
    public init(
        contentsOf path: String, function name: String? = nil, threads: Int = 0, seconds: Double? = nil,
        watched: Set<String> = []
    ) throws(RLXError) {
        let package: Package
        let described: FunctionDescription
        let function: Function
        do {
            package = try Package(contentsOf: path)
            function = try package.function(named: name)
            described = try package.model.functionDescription(named: name)
        } catch {
            throw RLXError(error)
        }
        var options = EvaluatorOptions(seconds: seconds, watched: watched)
        if threads > 0 { options.workers = threads }
        do {
            evaluator = try Evaluator(function, blobs: package, options: options)
            let text = InterfaceText(package.model, function, described)
            if evaluator.missing.count > 1 { throw RLXError(missing: evaluator.missing) }
            interface = try text.json(shapes: evaluator.prepare(text.defaultShapes))
        } catch let error as RLXError {
            throw error
        } catch let error as RuntimeError {
            throw RLXError(error)
        } catch {
            throw RLXError(.badPackage, "the model's interface cannot be told: \(error)")
        }
    }

    /// Inputs are read during the call. States get their new values.
    package func predict(
        _ inputs: [String: Storage], state: PredictionState?
    ) throws(RLXError) -> [(name: String, output: Output)] {
        try withLock { () throws(RLXError) in
            if let state, state.owner !== self {
                throw RLXError(.invalidArgument, "the state was made by another model", subject: "state")
            }
            do throws(RuntimeError) {
                let states = if let state { state.storage } else { try evaluator.makeStates() }
                let outputs = try evaluator.run(inputs, states: states)
                return outputs.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            } catch {
                throw RLXError(error)
            }
        }
    }

    /// Where the time of a prediction with states of zeros goes, as JSON; see `rlx_model_profile`.
    package func profile(_ inputs: [String: Storage], runs: Int) throws(RLXError) -> String {
        try withLock { () throws(RLXError) in
            do {
                return try evaluator.profile(inputs, runs: runs).json()
            } catch let error as RuntimeError {
                throw RLXError(error)
            } catch {
                throw RLXError(.internal, "the profile cannot be told: \(error)")
            }
        }
    }

    /// Zeros.
    package func makeState() throws(RLXError) -> PredictionState {
        do {
            return PredictionState(owner: self, storage: try evaluator.makeStates())
        } catch {
            throw RLXError(error)
        }
    }

    package func withLock<R>(_ body: () throws(RLXError) -> R) throws(RLXError) -> R {
        try lock.withLock(body)
    }
}

/// The values of a model's states between predictions.
package final class PredictionState: @unchecked Sendable {
    let owner: PredictionModel
    let storage: [String: Storage]

    init(owner: PredictionModel, storage: [String: Storage]) {
        self.owner = owner
        self.storage = storage
    }

    package func put(_ name: String, _ type: ElementType, _ value: StridedBytes) throws(RLXError) {
        let storage = try checked(name, type, value.shape)
        try owner.withLock { () throws(RLXError) in
            if let address = storage.bytes.baseAddress { value.copy(to: address) }
        }
    }

    package func get(_ name: String, _ type: ElementType, into value: StridedBytes) throws(RLXError) {
        let storage = try checked(name, type, value.shape)
        try owner.withLock { () throws(RLXError) in
            if let address = storage.bytes.baseAddress { value.copy(from: address) }
        }
    }

    private func checked(_ name: String, _ type: ElementType, _ shape: [Int]) throws(RLXError) -> Storage {
        guard let value = storage[name] else {
            let known = storage.keys.sorted().joined(separator: ", ")
            throw RLXError(.notFound, "there is no state '\(name)'; there are \(known)", subject: name)
        }
        guard value.type == type else {
            throw RLXError(.badDType, "the state '\(name)' is \(value.type), not \(type)", subject: name)
        }
        guard value.shape == shape else {
            throw .shapeMismatch(name, expected: value.shape, got: shape)
        }
        return value
    }
}

extension RLXError {
    fileprivate init(missing places: [RuntimeError.Place]) {
        let listed = places.map { "\n  \($0)" }.joined()
        self.init(.unsupported, "\(places.count) operations are not supported by this runtime:\(listed)")
    }
}

extension Storage {
    /// A view's elements in memory of its own.
    package static func copying(_ value: StridedBytes, _ type: ElementType) throws(RLXError) -> Storage {
        do {
            let storage = try Storage(type: type, shape: value.shape)
            if let address = storage.bytes.baseAddress { value.copy(to: address) }
            return storage
        } catch {
            throw RLXError(error)
        }
    }
}
