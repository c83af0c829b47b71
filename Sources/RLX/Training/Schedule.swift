// Learning rates as functions of the number of applied updates. The same float64 as the Python side computes.

import Foundation

/// What the learning rate of each update is, `n` counting the applied updates from 0.
///
/// ```swift
/// try await session.setSchedule(.cosine(peak: 1e-3, total: 1000, warmup: 50))
/// ```
public enum Schedule: Hashable, Sendable {
    /// The same rate at every update.
    case constant(Double)
    /// peak * factor^(n / every), the division without rest.
    case step(peak: Double, every: Int, factor: Double = 0.1)
    /// peak * factor^n.
    case exponential(peak: Double, factor: Double)
    /// A linear rise over `warmup` updates to `peak`, then half a cosine down to `final` at update `total`.
    case cosine(peak: Double, total: Int, warmup: Int = 0, final: Double = 0)
    /// Half a cosine up to `peak` over the first `rise` of `total` updates, then half a cosine down.
    case oneCycle(
        peak: Double, total: Int, rise: Double = 0.3, startDivisor: Double = 25, finalDivisor: Double = 1e4)
    /// Multiplied by a factor when the loss has not become smaller for some epochs of `fit`.
    case plateau(Plateau)

    /// The rate and what has been seen so far.
    public struct Plateau: Hashable, Sendable {
        /// The present rate.
        public var rate: Double
        /// What the rate is multiplied by when it falls.
        public var factor: Double
        /// Epochs without a smaller loss that are let pass.
        public var patience: Int
        /// Smaller means below `best * (1 - threshold)`.
        public var threshold: Double
        /// The rate never falls below it.
        public var lowest: Double
        /// The smallest loss so far; nil before the first.
        public private(set) var best: Double?
        /// Epochs since the best loss.
        public private(set) var waited: Int

        /// Falls when the loss has not become better by a share of `threshold` for more than `patience` epochs.
        public init(
            rate: Double, factor: Double = 0.1, patience: Int = 10, threshold: Double = 1e-4, lowest: Double = 0
        ) {
            self.init(rate, factor, patience, threshold, lowest, best: nil, waited: 0)
        }

        fileprivate init(
            _ rate: Double, _ factor: Double, _ patience: Int, _ threshold: Double, _ lowest: Double, best: Double?,
            waited: Int
        ) {
            (self.rate, self.factor, self.patience) = (rate, factor, patience)
            (self.threshold, self.lowest, self.best, self.waited) = (threshold, lowest, best, waited)
        }

        /// One more epoch with the given loss; NaN and infinities are not smaller than anything.
        mutating func observe(_ loss: Double) {
            if loss.isFinite, best.map({ loss < $0 * (1 - threshold) }) ?? true {
                (best, waited) = (loss, 0)
                return
            }
            waited = waited.addingReportingOverflow(1).partialValue
            if waited > patience { (rate, waited) = (min(rate, max(rate * factor, lowest)), 0) }
        }
    }

    /// The rate of the update that follows `n` others.
    ///
    /// Throws `invalidArgument` when it is no finite number of at least 0.
    public func rate(at n: Int) throws(RLXError) -> Double {
        let rate = value(at: n)
        guard rate.isFinite, rate >= 0 else { throw .badRate(rate, update: n) }
        return rate
    }

    private func value(at n: Int) -> Double {
        switch self {
        case .constant(let rate): return rate
        case .step(let peak, let every, let factor): return peak * pow(factor, Double(n / max(every, 1)))
        case .exponential(let peak, let factor): return peak * pow(factor, Double(n))
        case .cosine(let peak, let total, let warmup, let final):
            if n < warmup { return peak * (Double(n) + 1) / Double(warmup) }
            return Self.cosine(peak, final, (Double(n) - Double(warmup)) / (Double(total) - Double(warmup)))
        case .oneCycle(let peak, let total, let rise, let startDivisor, let finalDivisor):
            let (start, top, end) = (peak / startDivisor, rise * Double(total) - 1, Double(total) - 1)
            if Double(n) <= top { return top > 0 ? Self.cosine(start, peak, Double(n) / top) : peak }
            return Self.cosine(peak, start / finalDivisor, (Double(n) - top) / (end - top))
        case .plateau(let plateau): return plateau.rate
        }
    }

    private static func cosine(_ start: Double, _ end: Double, _ part: Double) -> Double {
        end + (start - end) * (1 + cos(Double.pi * min(max(part, 0), 1))) / 2
    }

    /// One more epoch of `fit` with the given loss.
    mutating func observe(_ loss: Double) {
        guard case .plateau(var plateau) = self else { return }
        plateau.observe(loss)
        self = .plateau(plateau)
    }
}

extension Schedule: Codable {
    private enum Key: String, CodingKey {
        case name, lr, every, factor, total, warmup, final, rise, patience, threshold, lowest, best, waited
        case startDivisor = "start_divisor"
        case finalDivisor = "final_divisor"
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        func number(_ key: Key) throws -> Double { try container.decode(Double.self, forKey: key) }
        func count(_ key: Key) throws -> Int { try container.decode(Int.self, forKey: key) }
        let name = try container.decode(String.self, forKey: .name)
        let lr = try number(.lr)
        switch name {
        case "Constant": self = .constant(lr)
        case "Step": self = .step(peak: lr, every: try count(.every), factor: try number(.factor))
        case "Exponential": self = .exponential(peak: lr, factor: try number(.factor))
        case "Cosine":
            self = .cosine(peak: lr, total: try count(.total), warmup: try count(.warmup), final: try number(.final))
        case "OneCycle":
            self = .oneCycle(
                peak: lr, total: try count(.total), rise: try number(.rise),
                startDivisor: try number(.startDivisor), finalDivisor: try number(.finalDivisor))
        case "Plateau":
            self = .plateau(
                Plateau(
                    lr, try number(.factor), try count(.patience), try number(.threshold), try number(.lowest),
                    best: try container.decodeIfPresent(Double.self, forKey: .best), waited: try count(.waited)))
        default:
            throw DecodingError.dataCorruptedError(
                forKey: .name, in: container, debugDescription: "there is no schedule '\(name)'")
        }
        if let problem {
            throw DecodingError.dataCorruptedError(forKey: .name, in: container, debugDescription: problem)
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        func put(_ name: String, lr: Double, _ numbers: [(Key, Double)], _ counts: [(Key, Int)] = []) throws {
            try container.encode(name, forKey: .name)
            for (key, value) in [(.lr, lr)] + numbers { try container.encode(value, forKey: key) }
            for (key, value) in counts { try container.encode(value, forKey: key) }
        }
        switch self {
        case .constant(let lr): try put("Constant", lr: lr, [])
        case .step(let lr, let every, let factor): try put("Step", lr: lr, [(.factor, factor)], [(.every, every)])
        case .exponential(let lr, let factor): try put("Exponential", lr: lr, [(.factor, factor)])
        case .cosine(let lr, let total, let warmup, let final):
            try put("Cosine", lr: lr, [(.final, final)], [(.total, total), (.warmup, warmup)])
        case .oneCycle(let lr, let total, let rise, let start, let final):
            try put(
                "OneCycle", lr: lr, [(.rise, rise), (.startDivisor, start), (.finalDivisor, final)], [(.total, total)])
        case .plateau(let it):
            try put(
                "Plateau", lr: it.rate,
                [(.factor, it.factor), (.threshold, it.threshold), (.lowest, it.lowest)],
                [(.patience, it.patience), (.waited, it.waited)])
            try container.encode(it.best, forKey: .best)
        }
    }
}
