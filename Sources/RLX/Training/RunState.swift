// What a run is beside its arrays: counters, the loss scale, the open window, the schedule. As checkpoints keep it.

import Foundation

/// The part of a checkpoint's settings that changes from step to step.
struct RunState: Codable, Hashable, Sendable {
    struct Counters: Codable, Hashable, Sendable {
        /// Updates applied.
        var steps = 0
        /// Batches whose gradients went into updates or wait for one; keys the random numbers.
        var microBatches = 0
        /// Updates skipped in a row.
        var skips = 0

        private enum CodingKeys: String, CodingKey {
            case steps, skips
            case microBatches = "micro_batches"
        }
    }

    /// The micro-batches that wait for one update.
    struct Window: Codable, Hashable, Sendable {
        struct Estimate: Codable, Hashable, Sendable {
            let every: Int
            let estimator: String
        }

        var count = 0
        var weight = 0.0
        var loss = TextDouble(0)
        /// `Counters.microBatches` before the first.
        var start = 0
        /// The estimates made on the first.
        var fresh: [Estimate] = []
    }

    var counters: Counters
    var scale: LossScale
    var window: Window
    var schedule: Schedule
}

/// The settings of a checkpoint: the state, and what is carried along as it came.
struct RunSettings: Sendable {
    private static let key = "rlx"
    private static let format = JSONValue.integer(1)
    /// What two checkpoints of one run have in common.
    private static let identity = ["graph", "loss", "trainable", "policy", "config", "open_sizes", "since"]

    private var values: [String: JSONValue]
    var state: RunState

    /// Throws `badPackage` for settings that are not whole.
    init(_ metadata: [String: String], subject: String) throws(RLXError) {
        guard let text = metadata[Self.key] else {
            throw .badCheckpoint(subject, "it is a safetensors file, but no checkpoint of a run")
        }
        do {
            values = try JSONDecoder().decode([String: JSONValue].self, from: Data(text.utf8))
            guard values["format"] == Self.format else {
                throw RLXError.badCheckpoint(subject, "its format is none that this version knows")
            }
            state = try JSONDecoder().decode(RunState.self, from: Data(text.utf8))
        } catch {
            throw error as? RLXError ?? .undecodable(subject, error)
        }
        let counts = [state.counters.steps, state.counters.microBatches, state.counters.skips, state.window.count]
        guard counts.allSatisfy({ 0...(1 << 53) ~= $0 }), 0...(1 << 53) ~= state.window.start,
            state.scale.good >= 0, state.scale.scale > 0, state.scale.scale.isFinite,
            state.window.count == 0 || state.window.weight > 0
        else { throw .badCheckpoint(subject, "a counter is out of its range") }
    }

    /// Throws `badPackage` when the other settings are those of another run, and names what differs.
    func requireSameRun(as other: RunSettings, subject: String) throws(RLXError) {
        for key in Self.identity where values[key] != other.values[key] {
            throw .badCheckpoint(subject, "it is of another run: its '\(key)' is not that of this session")
        }
        guard state.scale.active == other.state.scale.active else {
            throw .badCheckpoint(subject, "it is of another run: one of them scales its loss")
        }
    }

    /// The metadata of a checkpoint that the Python side and this one load.
    func metadata(kernel: String) throws(RLXError) -> [String: String] {
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            var all = values
            let now = try JSONDecoder().decode([String: JSONValue].self, from: encoder.encode(state))
            all.merge(now) { $1 }
            all["gemm_kernel"] = .string(kernel)
            all["fused"] = .bool(true)
            return [Self.key: String(decoding: try encoder.encode(all), as: UTF8.self)]
        } catch {
            throw RLXError(.internal, "the settings of the run cannot be written", detail: "\(error)")
        }
    }
}
