// What an app shows and does: everything but its views.

import Foundation
import Observation
import RLX

/// One training run as the main actor sees it.
@MainActor @Observable
public final class DigitsTraining {
    public private(set) var losses: [Double] = []
    public private(set) var accuracy: Double?
    public private(set) var problem: String?
    public var isRunning: Bool { task != nil }

    private let bundle: URL
    private let data: URL
    private let checkpoint: URL
    private let model: URL
    @ObservationIgnored private var task: Task<Void, Never>?

    /// `folder` is where the checkpoint and the trained model go.
    public init(bundle: URL, data: URL, folder: URL) {
        self.bundle = bundle
        self.data = data
        checkpoint = folder.appendingPathComponent("digits.ckpt")
        model = folder.appendingPathComponent("digits.mlpackage")
    }

    /// Goes on from the checkpoint, if there is one.
    public func start(epochs: Int, gate: SystemGate = SystemGate(runsInBackground: false)) {
        guard task == nil else { return }
        problem = nil
        task = Task {
            do { try await train(epochs: epochs, gate: gate) } catch is CancellationError {} catch {
                problem = "\(error)"
            }
            task = nil
        }
    }

    /// Ends the run between two updates; the checkpoint is left behind.
    public func stop() { task?.cancel() }

    public func wait() async { await task?.value }

    private func train(epochs: Int, gate: SystemGate) async throws {
        let session = try await TrainingSession.open(bundle)
        if FileManager.default.fileExists(atPath: checkpoint.path) { try await session.restore(from: checkpoint) }
        let size = session.inputs.first?.shape.first ?? 1
        let (train, test) = try await Self.load(data)
        for epoch in 0..<epochs {
            let batches = try train.batches(of: size, seed: UInt64(epoch))
            let options = FitOptions(checkpoint: checkpoint, gate: gate)
            let history = try await session.fit(batches, options: options) { [weak self] progress in
                await self?.show(progress.report.loss)
            }
            accuracy = try await test.accuracy(of: session, batch: size)
            if history.isStopped { break }
        }
        try await session.export(to: model)
    }

    private func show(_ loss: Double) { losses.append(loss) }

    /// Away from the main actor.
    private static func load(_ url: URL) async throws -> (Digits, Digits) {
        try await Task.detached {
            (try Digits(contentsOf: url, part: "train"), try Digits(contentsOf: url, part: "test"))
        }.value
    }
}
