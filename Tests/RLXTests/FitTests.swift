import Foundation
import Testing

@testable import RLX

/// Counts, from any thread.
private final class Counter: @unchecked Sendable {
    private let lock = NSLock()
    private var value = 0

    @discardableResult
    func next() -> Int {
        lock.lock()
        defer { lock.unlock() }
        value += 1
        return value
    }
}

/// Says what it is told to, one passage after the other, and `go` from then on.
private final class Script: TrainingGate, @unchecked Sendable {
    private let lock = NSLock()
    private var passages: [Passage]

    init(_ passages: [Passage]) { self.passages = passages }

    func passage() -> Passage {
        lock.lock()
        defer { lock.unlock() }
        return passages.isEmpty ? .go : passages.removeFirst()
    }
}

/// Batches from somewhere that, like a connection, ends by an error of its own when the task is cancelled.
private struct Connection: AsyncSequence, AsyncIteratorProtocol {
    struct Closed: Error {}

    let batches: [Batch]
    var index = 0

    func makeAsyncIterator() -> Connection { self }

    mutating func next() async throws -> Batch? {
        if Task.isCancelled { throw Closed() }
        index += 1
        return batches[index % batches.count]
    }
}

@Suite struct FitTests {
    /// Each is told of its own updates.
    @Test func fitsSideBySide() async throws {
        let batches = try Bundles.golden().batches()
        let session = try await TrainingSession.open(Bundles.url)
        try await session.setLearningRate(0.01)
        let many = (0..<40).map { batches[$0 % batches.count] }
        async let first = session.fit(many)
        async let second = session.fit(many)
        let losses = try await first.losses + second.losses
        #expect(losses.count == 80 && Set(losses).count == 80)
    }

    /// Nothing that a fit was given, and no session, lives on after it.
    @Test func sessionsAreGivenBack() async throws {
        let batches = try Bundles.golden().batches()
        weak var session: TrainingSession?
        weak var gate: SystemGate?
        do {
            let (made, asked) = (try await TrainingSession.open(Bundles.url), SystemGate(runsInBackground: true))
            (session, gate) = (made, asked)
            try await made.fit(batches, options: FitOptions(validation: [batches[0]], gate: asked)) { progress in
                withExtendedLifetime(made) { #expect(progress.epoch == 1) }
            }
        }
        for _ in 0..<100 where session != nil { try await Task.sleep(for: .milliseconds(10)) }
        #expect(session == nil && gate == nil)
    }

    @Test func cancelledWhileBatchesArrive() async throws {
        let scratch = try Scratch()
        let session = try await TrainingSession.open(Bundles.url)
        let batches = Connection(batches: try Bundles.golden().batches())
        let url = scratch.url("run.ckpt")
        let fit = Task {
            try await session.fit(batches, options: FitOptions(checkpoint: url)) { progress in
                if progress.updates == 3 { withUnsafeCurrentTask { $0?.cancel() } }
            }
        }
        await #expect(throws: Connection.Closed.self) { try await fit.value }
        let other = try await TrainingSession.open(Bundles.url)
        try await other.restore(from: url)
        #expect(await other.steps == 3)
    }

    @Test func aFitIsItsSteps() async throws {
        let batches = try Bundles.golden().batches()
        let (session, plain) = (
            try await TrainingSession.open(Bundles.url), try await TrainingSession.open(Bundles.url)
        )
        let seen = Counter()
        let options = FitOptions(epochs: 2, validation: [batches[0]])
        let history = try await session.fit(batches, options: options) { progress in
            #expect(progress.updates == seen.next())
            #expect(progress.epoch == (progress.updates <= batches.count ? 1 : 2))
        }
        var losses: [Double] = []
        for _ in 0..<2 { for batch in batches { losses.append(try await plain.step(batch).loss) } }
        #expect(history.losses == losses)
        #expect(abs(history.epochs[0].loss - losses.prefix(10).reduce(0, +) / 10) < 1e-12)
        #expect(try await history.epochs[1].validationLoss == plain.evaluate(batches[0]))
    }

    @Test func anAsynchronousSequenceInWindows() async throws {
        let batches = try Bundles.golden().batches()
        let session = try await TrainingSession.open(Bundles.url)
        let stream = AsyncStream<Batch> { continuation in
            for batch in batches { continuation.yield(batch) }
            continuation.finish()
        }
        let history = try await session.fit(stream, options: .init(accumulate: 4))
        #expect(history.losses.count == 3)  // 4, 4 and 2 batches
        #expect(await session.steps == 3)
        await #expect(throws: RLXError.self) { try await session.fit(stream) }  // read to its end
    }

    @Test func cancellationLeavesACheckpoint() async throws {
        let scratch = try Scratch()
        let batches = try Bundles.golden().batches()
        let session = try await TrainingSession.open(Bundles.url)
        let task = Task {
            try await session.fit(batches, options: .init(epochs: 10_000, checkpoint: scratch.url("run.ckpt"))) {
                if $0.updates == 5 { withUnsafeCurrentTask { $0?.cancel() } }
            }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(await session.steps == 5)
        let other = try await TrainingSession.open(Bundles.url)
        try await other.restore(from: scratch.url("run.ckpt"))
        #expect(await other.steps == 5)
        #expect(try await other.step(batches[0]).loss == session.step(batches[0]).loss)
        #expect(scratch.names == ["run.ckpt"])
    }

    @Test func anErrorForgetsTheWindow() async throws {
        struct Enough: Error {}
        let batches = try Bundles.golden().batches()
        let session = try await TrainingSession.open(Bundles.url)
        await #expect(throws: Enough.self) {
            try await session.fit(batches + [[:]], options: .init(accumulate: 3)) { _ in throw Enough() }
        }
        await #expect(throws: RLXError.self) {
            try await session.fit([batches[0], [:]], options: .init(accumulate: 3))
        }
        #expect(await session.pendingAccumulation == 0)
        try await session.step(batches[0])
    }

    @Test func aGatePausesSavesAndStops() async throws {
        let scratch = try Scratch()
        let batches = try Bundles.golden().batches()
        let session = try await TrainingSession.open(Bundles.url)
        let gate = Script([.go, .save, .pause, .pause, .go, .stop])
        let history = try await session.fit(
            batches, options: .init(epochs: 3, checkpoint: scratch.url("run.ckpt"), gate: gate))
        #expect(history.isStopped)
        #expect(history.losses.count == 3)
        #expect(history.epochs.isEmpty)
        let other = try await TrainingSession.open(Bundles.url)
        try await other.restore(from: scratch.url("run.ckpt"))
        #expect(await other.steps == 3)
    }

    @Test func theSystemWorksAGate() {
        let gate = SystemGate(runsInBackground: false)
        let task = SystemGate(runsInBackground: true)
        func post(_ name: String) { NotificationCenter.default.post(name: .init(name), object: nil) }
        #expect(gate.passage() == .go)
        post("UIApplicationDidEnterBackgroundNotification")
        #expect(gate.passage() == .pause)
        #expect(task.passage() == .go)
        post("UIApplicationWillEnterForegroundNotification")
        post("UIApplicationDidReceiveMemoryWarningNotification")
        #expect(gate.passage() == .save)
        #expect(gate.passage() == .go)
        gate.stop()
        #expect(gate.passage() == .stop)
    }

    /// The main actor is free while a session computes.
    @Test @MainActor func theMainActorGoesOn() async throws {
        let batches = try Bundles.golden().batches()
        let session = try await TrainingSession.open(Bundles.url)
        let fit = Task.detached { try await session.fit(batches, options: .init(epochs: 20)) }
        var turns = 0
        while await session.steps < 100 {
            turns += 1
            await Task.yield()
        }
        #expect(turns > 0)
        _ = try await fit.value
    }
}
