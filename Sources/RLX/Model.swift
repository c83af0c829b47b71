// A model to predict with: the simplest way into the library.

import Foundation

/// A Core ML package loaded for prediction. Any thread may call; predictions take turns.
///
/// ```swift
/// let model = try Model(contentsOf: url)
/// let logits = try model.predict(["x": Tensor(pixels, shape: [1, 64])])["logits"]?.scalars(as: Float.self)
/// ```
public final class Model: Sendable {
    /// Where a model is to run.
    public enum Preference: Sendable, Hashable {
        /// Core ML where it exists, our own runtime elsewhere.
        case automatic
        /// Our own runtime.
        case cpu
        /// Core ML; opening throws `unavailable` where it does not exist.
        case coreML

        var device: Device {
            switch self {
            case .cpu: .cpu
            case .coreML: .coreML
            case .automatic: Device.coreML.isPresent ? .coreML : .cpu
            }
        }
    }

    /// How a model is to be loaded.
    public struct Configuration: Sendable, Hashable {
        /// Where it is to run.
        public var device: Preference
        /// Read by Core ML only.
        public var units: ComputeUnits
        /// Nil: the model's default function.
        public var function: String?

        /// By default the model's own function, where Core ML chooses if it exists.
        public init(device: Preference = .automatic, units: ComputeUnits = .all, function: String? = nil) {
            self.device = device
            self.units = units
            self.function = function
        }
    }

    /// What `predict` takes.
    public let inputs: [Feature]
    /// What `predict` gives.
    public let outputs: [Feature]
    private let session: ProgramSession
    private let turn = NSLock()

    /// Loads an `.mlpackage` directory.
    ///
    /// Throws `io`, `badPackage`, `notFound`, `unsupported` and `unavailable`, as `LoadedProgram` and
    /// `ProgramSession` do.
    public init(contentsOf url: URL, configuration: Configuration = Configuration()) throws(RLXError) {
        let program = try LoadedProgram(contentsOf: url.path, function: configuration.function)
        var options = ProgramSession.Options()
        options.device = configuration.device.device
        options.units = configuration.units
        inputs = program.inputs
        outputs = program.outputs
        session = try ProgramSession(program, store: TensorStore(), options: options)
    }

    /// All outputs by name, for a value of each input.
    ///
    /// Throws `notFound` for a missing or unknown input, `badShape` and `badDType` for one that does not fit.
    public func predict(_ values: [String: Tensor]) throws(RLXError) -> [String: Tensor] {
        for name in values.keys { _ = try inputs.feature(name) }
        turn.lock()
        defer { turn.unlock() }
        for input in inputs {
            guard let value = values[input.name] else { throw .missingFeed(input.name) }
            try session.feed(input.name, value)
        }
        try session.run()
        var results: [String: Tensor] = [:]
        for output in outputs { results[output.name] = try session.result(output.name) }
        return results
    }
}
