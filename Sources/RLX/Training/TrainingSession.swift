// The public training session: an actor over one run, on a thread of its own.

import Foundation

/// A batch: a value for each input of the graph.
public typealias Batch = [String: Tensor]

/// How a step updated the weights.
public enum UpdatePath: String, Sendable, Hashable, Codable {
    /// The optimizer ran inside of the device program.
    case fused
}

/// One update.
public struct StepReport: Sendable, Hashable {
    /// As it was before the update.
    public let loss: Double
    /// How the weights were updated.
    public let path: UpdatePath
    /// Whether a gradient was not finite. A skipped step changed nothing but the loss scale.
    public let skipped: Bool
    /// The graph's other outputs of rank 0.
    public let outputs: [String: Double]
}

/// Trains a model on the device from a bundle that Python exported; no Python is needed.
///
/// ```swift
/// let session = try TrainingSession(contentsOf: bundleURL)
/// for batch in batches {
///     let report = try await session.step(batch)
///     print(report.loss)
/// }
/// try await session.save(to: checkpointURL)
/// try await session.export(to: modelURL)   // an .mlpackage with the trained weights
/// ```
///
/// From the same checkpoint, and on the cpu device of the same machine, Python and Swift compute the same bits.
/// Steps run on a thread of the session's own: awaiting one blocks neither the main actor nor the shared pool.
/// Whatever a call throws, the session goes on as if the call had not been made.
public actor TrainingSession {
    /// Where programs run.
    public struct Configuration: Sendable, Hashable {
        /// What runs the programs.
        public var device: Model.Preference

        /// By default on Core ML where it exists.
        public init(device: Model.Preference = .automatic) { self.device = device }
    }

    /// The inputs that a batch must have, in the order of their names, with the shapes that the bundle names first.
    public nonisolated var inputs: [Feature] { inputSizes[0] }

    /// The same for each choice of sizes that the bundle was exported with. A batch must fit one of them.
    ///
    /// ```swift
    /// // From `ts.export_bundle("digits.rlxbundle", sizes={"B": [32, 29, 1]})`
    /// let batchSizes = session.inputSizes.compactMap { $0.first?.shape.first }   // [32, 29, 1]
    /// ```
    public nonisolated let inputSizes: [[Feature]]
    private let executor = QueueExecutor()
    let run: TrainingRun
    /// That of the last update.
    public private(set) var lastReport: StepReport?

    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Opens a bundle and makes its training program, in the calling thread; see also `open(_:)`.
    ///
    /// Throws `io` for what cannot be read, `badPackage` with the place and the fault for a bundle that is not
    /// whole, `unsupported` and `unavailable` for a program or device that cannot run here.
    public init(contentsOf url: URL, configuration: Configuration = Configuration()) throws(RLXError) {
        let bundle = try TrainingBundle(contentsOf: url)
        inputSizes = bundle.manifest.forms.map { form in
            form.inputs.sorted { $0.key < $1.key }
                .map { Feature(name: $0.key, dtype: $0.value.dtype, shape: $0.value.shape) }
        }
        run = try TrainingRun(bundle, device: configuration.device.device)
    }

    /// The same away from the calling actor, for an app's main one.
    public static func open(
        _ url: URL, configuration: Configuration = Configuration()
    ) async throws -> TrainingSession {
        try await Task.detached { try TrainingSession(contentsOf: url, configuration: configuration) }.value
    }

    // MARK: Training

    /// One update from one batch.
    ///
    /// Throws `notFound`, `badShape`, `badDType` and `badFeed` for a batch that does not fit the inputs, and
    /// `invalidArgument` while micro-batches are pending.
    @discardableResult
    public func step(_ batch: Batch) throws(RLXError) -> StepReport { report(try run.step(batch)) }

    /// Adds a micro-batch's gradient, times `weight`, to the pending ones; returns its loss.
    @discardableResult
    public func accumulate(_ batch: Batch, weight: Double = 1) throws(RLXError) -> Double {
        try run.accumulate(batch, weight: weight)
    }

    /// One update from the weighted mean of the pending gradients; how many micro-batches it was, 0 if none.
    @discardableResult
    public func stepAccumulated() throws(RLXError) -> Int {
        let count = run.state.window.count
        _ = try applyPending()
        return count
    }

    /// The update from the pending gradients; nil if there are none.
    func applyPending() throws(RLXError) -> StepReport? {
        guard let outcome = try run.applyWindow() else { return nil }
        return report(outcome)
    }

    /// How many micro-batches wait for `stepAccumulated`.
    public var pendingAccumulation: Int { run.state.window.count }

    /// Forgets the pending micro-batches.
    public func discardAccumulated() throws(RLXError) { try run.discardWindow() }

    /// The loss of a batch and the gradient of each trained param; changes nothing. Throws as `step` does.
    ///
    /// ```swift
    /// // Federated averaging: gradients of many devices become one update.
    /// let (loss, gradients) = try await session.gradients(batch)
    /// let mean = try await server.mean(of: gradients)
    /// try await session.applyGradients(mean)
    /// ```
    public func gradients(_ batch: Batch) throws(RLXError) -> (loss: Double, gradients: [String: Tensor]) {
        try run.gradients(batch)
    }

    /// One update from gradients made elsewhere, f32, one for each trained param; whether it was applied.
    ///
    /// It is skipped when the loss is scaled and one of them is not finite. It counts as one micro-batch. Throws
    /// `notFound`, `badShape` and `badDType` for gradients that do not fit the trained params, and
    /// `invalidArgument` while micro-batches are pending.
    @discardableResult
    public func applyGradients(_ gradients: [String: Tensor]) throws(RLXError) -> Bool { try run.apply(gradients) }

    private func report(_ outcome: TrainingRun.Outcome) -> StepReport {
        let report = StepReport(
            loss: outcome.loss, path: .fused, skipped: !outcome.applied, outputs: outcome.outputs)
        lastReport = report
        return report
    }

    /// The loss of a batch in the graph's inference form; changes nothing. Throws as `step` does.
    public func evaluate(_ batch: Batch) throws(RLXError) -> Double { try run.evaluate(batch) }

    /// The outputs other than the loss, from the inputs that these need; changes nothing.
    ///
    /// Inputs that only the loss reads may be given or left out.
    public func predict(_ values: Batch) throws(RLXError) -> [String: Tensor] { try run.predict(values) }

    // MARK: Counters and rates

    /// How many updates have been applied.
    public var steps: Int { run.state.counters.steps }

    /// What gradients are multiplied by on their way through half precision; 1 without.
    public var lossScale: Double { run.state.scale.scale }

    /// The rate of each update.
    public var schedule: Schedule { run.state.schedule }

    /// Replaces the schedule; compiles nothing. Throws `invalidArgument` for numbers that describe none, such as a
    /// `total` that is not above `warmup`.
    public func setSchedule(_ schedule: Schedule) throws(RLXError) {
        if let problem = schedule.problem { throw .badSchedule(problem) }
        run.setSchedule(schedule)
    }

    /// Replaces the schedule by one rate. Throws `invalidArgument` unless it is finite and at least 0.
    public func setLearningRate(_ rate: Double) throws(RLXError) { try setSchedule(.constant(rate)) }

    /// The rate of the next update. Throws `invalidArgument` when the schedule gives none.
    public func learningRate() throws(RLXError) -> Double { try schedule.rate(at: steps) }

    // MARK: Values

    /// A copy of a param's or buffer's value, f32. Throws `notFound`.
    public func parameter(_ name: String) throws(RLXError) -> Tensor { try run.value(name) }

    /// Copies of all params and buffers by name.
    public func parameters() throws(RLXError) -> [String: Tensor] {
        let manifest = run.bundle.manifest
        var values: [String: Tensor] = [:]
        for name in [String](manifest.params.keys) + [String](manifest.buffers.keys) {
            values[name] = try run.value(name)
        }
        return values
    }

    /// Gives a param or buffer another value. Throws `notFound`, `badShape` or `badDType`.
    public func setParameter(_ name: String, to value: Tensor) throws(RLXError) { try run.put([name: value]) }

    /// Gives params and buffers other values, all or none.
    public func setParameters(_ values: [String: Tensor]) throws(RLXError) { try run.put(values) }

    /// Copies of the optimizer's state of one trained param, by slot. Throws `notFound`.
    public func state(of param: String) throws(RLXError) -> [String: Tensor] {
        try run.kept("state/", for: param)
    }

    /// Copies of the running averages of the trained params. Throws `notFound` when the run keeps none.
    public func averages() throws(RLXError) -> [String: Tensor] {
        let values = try run.averages()
        guard !values.isEmpty else { throw .noAverages() }
        return values
    }

    // MARK: Files

    /// Writes everything that the run is as one file, whole or not at all; Python's `TrainingSession.load` takes it.
    ///
    /// The file can be read behind a locked screen, once the device was unlocked after a start. Throws `io`.
    public func save(to url: URL) throws(RLXError) { try run.captured().write(to: url) }

    /// Becomes the run of a checkpoint that this library or Python wrote, all or nothing.
    ///
    /// Throws `io`, and `badPackage` for a file that is not whole or of another run, with what differs.
    public func restore(from url: URL) throws(RLXError) {
        let subject = url.lastPathComponent
        let file = try SafeTensors(contentsOf: url)
        let settings = try RunSettings(file.metadata, subject: subject)
        try settings.requireSameRun(as: run.settings, subject: subject)
        try run.take(file, settings, subject: subject)
        lastReport = nil
    }

    /// Writes the inference form as an `.mlpackage`, with the trained weights inside, or with their running averages.
    ///
    /// It takes the smallest of the sizes that the bundle was exported with. Throws `io`, and `notFound` for
    /// averages that the run does not keep.
    public func export(to url: URL, averages: Bool = false) throws(RLXError) {
        try run.export(to: url, with: averages ? self.averages() : [:])
    }
}
