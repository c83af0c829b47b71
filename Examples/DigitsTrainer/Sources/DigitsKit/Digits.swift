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

    /// Whole batches in an order that the seed decides.
    public func batches(of size: Int, seed: UInt64) throws -> [Batch] {
        var random = SplitMix(state: seed)
        let order = Array(0..<count).shuffled(using: &random)
        return try stride(from: 0, through: count - size, by: size).map { start in
            let rows = order[start..<start + size]
            return [
                "x": try Tensor(rows.flatMap { image($0) }, shape: [size, Self.pixels]),
                "y": try Tensor(rows.map { labels[$0] }, shape: [size]),
            ]
        }
    }

    /// The share of images that a session takes for what they are. The last batch is filled up with its first image.
    public func accuracy(of session: TrainingSession, batch size: Int) async throws -> Double {
        var right = 0
        for start in stride(from: 0, to: count, by: size) {
            let rows = (start..<start + size).map { $0 < count ? $0 : start }
            let x = try Tensor(rows.flatMap { image($0) }, shape: [size, Self.pixels])
            guard let logits = try await session.predict(["x": x])["logits"] else { continue }
            let scores = try logits.scalars(as: Float.self)
            let classes = scores.count / size
            for (row, index) in zip(0..<size, start..<min(start + size, count)) {
                let own = scores[row * classes..<(row + 1) * classes]
                let best = own.indices.max { own[$0] < own[$1] } ?? own.startIndex
                if best - own.startIndex == Int(labels[index]) { right += 1 }
            }
        }
        return Double(right) / Double(max(count, 1))
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
