// What gradients are multiplied by on their way through half precision, and how it moves.

/// As a checkpoint keeps it. The scale and its counter are the only things that a skipped step changes.
struct LossScale: Codable, Hashable, Sendable {
    /// Whether gradients are scaled, and an update with a non-finite gradient is skipped.
    var active: Bool
    /// Whether the scale moves.
    var dynamic: Bool
    var scale: Double
    /// Updates since it last moved.
    var good: Int

    /// Where it may move, and after how many good updates it grows.
    struct Bounds: Codable, Hashable, Sendable {
        let lowest: Double
        let highest: Double
        let patience: Int
    }

    /// Takes note of one update, applied or skipped.
    mutating func observe(applied: Bool, _ bounds: Bounds) {
        guard dynamic else { return }
        if !applied {
            (scale, good) = (max(scale / 2, bounds.lowest), 0)
        } else if good >= bounds.patience - 1 {
            (scale, good) = (min(scale * 2, bounds.highest), 0)
        } else {
            good += 1
        }
    }
}
