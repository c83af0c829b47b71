// The training loop over batches: epochs, windows, validation, progress, checkpoints, an end between two updates.

import Foundation

/// How a fit goes through its batches.
public struct FitOptions: Sendable {
    /// How often the batches are gone through.
    public var epochs: Int
    /// Batches for one update, weighted by their rows.
    public var accumulate: Int
    /// Batches whose mean loss is computed after each epoch.
    public var validation: [Batch]
    /// Where the run is saved at the end of each epoch and of the fit, and when the gate asks for it.
    public var checkpoint: URL?
    /// Asked between two updates.
    public var gate: (any TrainingGate)?

    /// Once through the batches, an update from each, and nothing saved.
    public init(
        epochs: Int = 1, accumulate: Int = 1, validation: [Batch] = [], checkpoint: URL? = nil,
        gate: (any TrainingGate)? = nil
    ) {
        self.epochs = epochs
        self.accumulate = accumulate
        self.validation = validation
        self.checkpoint = checkpoint
        self.gate = gate
    }
}

/// What a fit has done so far; shown after each update.
public struct FitProgress: Sendable, Hashable {
    /// From 1.
    public let epoch: Int
    /// Updates of this fit, applied or skipped.
    public let updates: Int
    /// The update that was just made.
    public let report: StepReport
}

/// What a fit did.
public struct FitHistory: Sendable, Hashable {
    /// The means of one epoch.
    public struct Epoch: Sendable, Hashable {
        /// The mean of a sample.
        public let loss: Double
        /// The mean over the validation batches; nil without those.
        public let validationLoss: Double?
    }

    /// The loss of each update.
    public internal(set) var losses: [Double] = []
    /// The epochs that came to their end.
    public internal(set) var epochs: [Epoch] = []
    /// Whether the gate ended it before its last epoch.
    public internal(set) var isStopped = false
}

extension TrainingSession {
    /// Trains for some epochs over a sequence of batches, which is iterated once for each.
    ///
    /// ```swift
    /// let fit = Task {
    ///     try await session.fit(batches, options: .init(epochs: 5, checkpoint: url)) { progress in
    ///         await model.show(progress)
    ///     }
    /// }
    /// fit.cancel()   // ends between two updates and leaves a valid checkpoint at `url`
    /// ```
    ///
    /// However it ends, the session is ready for the next step: micro-batches of an unfinished window are forgotten.
    /// An error that `progress` throws ends it.
    ///
    /// Throws `CancellationError` when the task is cancelled, after the checkpoint was written; `RLXError` as `step`
    /// does, and `invalidArgument` for an epoch without batches, and for losses that are no longer finite.
    @discardableResult
    public nonisolated func fit<S: Sequence & Sendable>(
        _ batches: S, options: FitOptions = FitOptions(),
        progress: @escaping @Sendable (FitProgress) async throws -> Void = { _ in }
    ) async throws -> FitHistory where S.Element == Batch {
        try await fit(Awaited(batches), options: options, progress: progress)
    }

    /// The same over an asynchronous sequence, such as batches that are read from files as they are needed.
    @discardableResult
    public nonisolated func fit<S: AsyncSequence & Sendable>(
        _ batches: S, options: FitOptions = FitOptions(),
        progress: @escaping @Sendable (FitProgress) async throws -> Void = { _ in }
    ) async throws -> FitHistory where S.Element == Batch {
        var loop = FitLoop(session: self, options: options, progress: progress)
        return try await loop.run(batches)
    }

    /// Saves and gives back memory that a step does not need.
    fileprivate func relieve(savingTo url: URL?) throws {
        run.dropIdlePrograms()
        if let url { try save(to: url) }
    }

    /// One epoch's loss for a schedule that watches it.
    fileprivate func observe(epochLoss: Double) { run.observe(epochLoss: epochLoss) }

    fileprivate func requireNothingPending() throws { try run.requireNothingPending("fit") }
}

/// A plain sequence where an asynchronous one is expected.
private struct Awaited<S: Sequence & Sendable>: AsyncSequence, Sendable {
    struct AsyncIterator: AsyncIteratorProtocol {
        var base: S.Iterator

        mutating func next() async -> S.Element? { base.next() }
    }

    private let base: S

    init(_ base: S) { self.base = base }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeIterator()) }
}

/// One fit under way. Not isolated: it hops to the session for each batch, and other calls may come in between.
private struct FitLoop {
    private static let mostBadLosses = 3
    private static let mostSkips = 50

    let session: TrainingSession
    let options: FitOptions
    let progress: @Sendable (FitProgress) async throws -> Void
    private var history = FitHistory()
    private var badLosses = 0
    private var skips = 0

    init(
        session: TrainingSession, options: FitOptions,
        progress: @escaping @Sendable (FitProgress) async throws -> Void
    ) {
        (self.session, self.options, self.progress) = (session, options, progress)
    }

    mutating func run<S: AsyncSequence>(_ batches: S) async throws -> FitHistory where S.Element == Batch {
        guard options.epochs > 0, options.accumulate > 0 else {
            throw RLXError(.invalidArgument, "fit: epochs and accumulate must be at least 1", subject: "fit")
        }
        try await session.requireNothingPending()
        do {
            for number in 1...options.epochs where !history.isStopped { try await epoch(number, batches) }
        } catch {
            try? await session.discardAccumulated()
            // A sequence that reads from elsewhere may end by an error of its own when it is cancelled.
            if error is CancellationError || Task.isCancelled { try await save() }
            throw error
        }
        return history
    }

    private mutating func epoch<S: AsyncSequence>(_ number: Int, _ batches: S) async throws
    where S.Element == Batch {
        var (loss, rows, windowRows) = (0.0, 0.0, 0.0)
        for try await batch in batches {
            try Task.checkCancellation()
            if try await isClosed() { break }
            let size = Double(batch.rows)
            windowRows += size
            guard let report = try await update(batch, weight: size) else { continue }
            loss += windowRows * report.loss
            try await took(report, number)
            (rows, windowRows) = (rows + windowRows, 0)
        }
        try Task.checkCancellation()  // an asynchronous sequence may have ended for that
        if let report = try await session.applyPending() {
            loss += windowRows * report.loss
            try await took(report, number)
            rows += windowRows
        }
        guard rows > 0 || history.isStopped else { throw RLXError.noBatches(epoch: number) }
        if rows > 0, !history.isStopped { try await end(meanLoss: loss / rows) }
        try await save()
    }

    /// The update that the batch completes, if it does.
    private func update(_ batch: Batch, weight: Double) async throws -> StepReport? {
        guard options.accumulate > 1 else { return try await session.step(batch) }
        try await session.accumulate(batch, weight: weight)
        return await session.pendingAccumulation < options.accumulate ? nil : try await session.applyPending()
    }

    /// Takes note of an update of this fit.
    private mutating func took(_ report: StepReport, _ epoch: Int) async throws {
        skips = report.skipped ? skips + 1 : 0
        badLosses = report.skipped || report.loss.isFinite ? 0 : badLosses + 1
        guard badLosses < Self.mostBadLosses, skips < Self.mostSkips else { throw RLXError.notFinite(skips: skips) }
        history.losses.append(report.loss)
        try await progress(FitProgress(epoch: epoch, updates: history.losses.count, report: report))
    }

    private mutating func end(meanLoss: Double) async throws {
        var validation: Double?
        var (sum, rows) = (0.0, 0.0)
        for batch in options.validation {
            sum += Double(batch.rows) * (try await session.evaluate(batch))
            rows += Double(batch.rows)
        }
        if rows > 0 { validation = sum / rows }
        await session.observe(epochLoss: validation ?? meanLoss)
        history.epochs.append(.init(loss: meanLoss, validationLoss: validation))
    }

    /// Whether the gate ends the fit; returns once it is open, and saves when it asks for that.
    private mutating func isClosed() async throws -> Bool {
        guard let gate = options.gate else { return false }
        var passage = gate.passage()
        if passage == .go { return false }
        try await session.relieve(savingTo: options.checkpoint)
        while passage == .pause {
            try await Task.sleep(for: .milliseconds(200))
            passage = gate.passage()
        }
        history.isStopped = passage == .stop
        return history.isStopped
    }

    private func save() async throws {
        if let url = options.checkpoint { try await session.save(to: url) }
    }
}

extension Batch {
    /// The number of samples, by which losses and micro-batches are weighted: the leading size of the first input.
    fileprivate var rows: Int {
        sorted { $0.key < $1.key }.lazy.compactMap(\.value.shape.first).first ?? 1
    }
}
