// Which numbers describe a schedule: the ranges that the Python side has. Knows nothing of rates.

extension Schedule {
    /// Where a number may lie.
    private enum Range {
        case rate, factor, share, divisor
        case count(from: Int)

        var text: String {
            switch self {
            case .rate: "a finite number of at least 0"
            case .factor: "a number in (0, 1]"
            case .share: "a number in [0, 1)"
            case .divisor: "a finite number above 0"
            case .count(let least): "at least \(least)"
            }
        }

        func contains(_ number: Double) -> Bool {
            switch self {
            case .rate: number >= 0 && number < .infinity
            case .factor: number > 0 && number <= 1
            case .share: number >= 0 && number < 1
            case .divisor: number > 0 && number < .infinity
            case .count(let least): number >= Double(least)
            }
        }
    }

    private var numbers: [(name: String, value: Double, range: Range)] {
        switch self {
        case .constant(let rate): [("rate", rate, .rate)]
        case .step(let peak, let every, let factor):
            [("peak", peak, .rate), ("every", Double(every), .count(from: 1)), ("factor", factor, .factor)]
        case .exponential(let peak, let factor): [("peak", peak, .rate), ("factor", factor, .factor)]
        case .cosine(let peak, let total, let warmup, let final):
            [
                ("peak", peak, .rate), ("final", final, .rate), ("warmup", Double(warmup), .count(from: 0)),
                ("total", Double(total), .count(from: min(max(warmup, 0), .max - 1) + 1)),
            ]
        case .oneCycle(let peak, let total, let rise, let startDivisor, let finalDivisor):
            [
                ("peak", peak, .rate), ("total", Double(total), .count(from: 2)), ("rise", rise, .share),
                ("startDivisor", startDivisor, .divisor), ("finalDivisor", finalDivisor, .divisor),
            ]
        case .plateau(let it):
            [
                ("rate", it.rate, .rate), ("factor", it.factor, .factor), ("threshold", it.threshold, .share),
                ("lowest", it.lowest, .rate), ("patience", Double(it.patience), .count(from: 0)),
            ]
        }
    }

    /// What is wrong with the first number that is out of its range, or nil.
    var problem: String? {
        guard let wrong = numbers.first(where: { !$0.range.contains($0.value) }) else { return nil }
        return "\(wrong.name) is \(wrong.value); it must be \(wrong.range.text)"
    }
}
