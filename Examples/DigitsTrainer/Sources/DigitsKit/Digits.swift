// Images of digits from a file, cut into batches.

import Foundation
import RLX

/// Images of 64 pixels with their labels.
public struct Digits: Sendable {
    private let images: [Float]
    private let labels: [Int32]

    public static let pixels = 64

    public var count: Int { labels.count }

    /// Reads the part called `name`, "train" or "test", of a file that `make_bundle.py` wrote.
    public init(contentsOf url: URL, part name: String) throws {
        let tensors = try SafeTensors(contentsOf: url).tensors
        guard let images = tensors["\(name)/x"], let labels = tensors["\(name)/y"],
            images.count == labels.count * Self.pixels
        else { throw RLXError(.notFound, "'\(url.lastPathComponent)' has no images and labels '\(name)'") }
        self.images = try images.scalars(as: Float.self)
        self.labels = try labels.scalars(as: Int32.self)
    }

    /// Batches in an order that the seed decides; the last has what is left, a size that the bundle has too.
    public func batches(of size: Int, seed: UInt64) throws -> [Batch] {
        var random = SplitMix(state: seed)
        return try batches(of: size, in: Array(0..<count).shuffled(using: &random))
    }

    /// The share of images that a session takes for what they are.
    public func accuracy(of session: TrainingSession, batch size: Int) async throws -> Double {
        var right = 0
        for batch in try batches(of: size, in: Array(0..<count)) {
            guard let logits = try await session.predict(batch)["logits"], let labels = batch["y"] else { continue }
            let (scores, truth) = (try logits.scalars(as: Float.self), try labels.scalars(as: Int32.self))
            let classes = scores.count / truth.count
            for (row, label) in truth.enumerated() {
                let own = scores[row * classes..<(row + 1) * classes]
                let best = own.indices.max { own[$0] < own[$1] } ?? own.startIndex
                if best - own.startIndex == Int(label) { right += 1 }
            }
        }
        return Double(right) / Double(max(count, 1))
    }

    private func batches(of size: Int, in order: [Int]) throws -> [Batch] {
        try stride(from: 0, to: order.count, by: size).map { start in
            let rows = order[start..<min(start + size, order.count)]
            return [
                "x": try Tensor(rows.flatMap { image($0) }, shape: [rows.count, Self.pixels]),
                "y": try Tensor(rows.map { labels[$0] }, shape: [rows.count]),
            ]
        }
    }

    private func image(_ index: Int) -> ArraySlice<Float> {
        images[index * Self.pixels..<(index + 1) * Self.pixels]
    }
}

/// The same numbers for the same seed, on every platform.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
