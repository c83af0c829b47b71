// Numbers of an optimizer as formulas of its count of updates and its rate, computed in float64 as Python does.

import Foundation

/// As the manifest writes it: a number, "step", "lr", or an array of an operator and formulas.
indirect enum Formula: Hashable, Sendable {
    case constant(Double)
    case step, rate
    case unary(Unary, Formula)
    case binary(Binary, Formula, Formula)
    case choice(Formula, Formula, Formula)
    /// term(1) ... term(count), zero from where it is below 1e-20 on.
    case product(term: Formula, count: Formula)

    enum Unary: String, Sendable {
        case sqrt, exp, log, cos, sin, tanh, floor, ceil, fabs
    }

    enum Binary: String, Sendable {
        case add = "+"
        case subtract = "-"
        case multiply = "*"
        case divide = "/"
        case floorDivide = "//"
        case remainder = "%"
        case power = "**"
        case less = "<"
        case lessOrEqual = "<="
        case equal = "=="
    }

    func value(step: Double, rate: Double) -> Double {
        switch self {
        case .constant(let value): value
        case .step: step
        case .rate: rate
        case .unary(let function, let x): function(x.value(step: step, rate: rate))
        case .binary(let function, let x, let y):
            function(x.value(step: step, rate: rate), y.value(step: step, rate: rate))
        case .choice(let condition, let yes, let no):
            (condition.value(step: step, rate: rate) != 0 ? yes : no).value(step: step, rate: rate)
        case .product(let term, let count):
            Self.product(of: term, upTo: count.value(step: step, rate: rate), rate: rate)
        }
    }

    private static let smallestProduct = 1e-20
    /// A product that has not vanished by then never will.
    private static let mostFactors = 1_000_000.0

    private static func product(of term: Formula, upTo count: Double, rate: Double) -> Double {
        var product = 1.0
        var index = 1.0
        while index <= min(count, mostFactors) {
            product *= term.value(step: index, rate: rate)
            if product < smallestProduct { return 0 }
            index += 1
        }
        return product
    }
}

extension Formula.Unary {
    func callAsFunction(_ x: Double) -> Double {
        switch self {
        case .sqrt: x.squareRoot()
        case .exp: Foundation.exp(x)
        case .log: Foundation.log(x)
        case .cos: Foundation.cos(x)
        case .sin: Foundation.sin(x)
        case .tanh: Foundation.tanh(x)
        case .floor: x.rounded(.down)
        case .ceil: x.rounded(.up)
        case .fabs: abs(x)
        }
    }
}

extension Formula.Binary {
    func callAsFunction(_ x: Double, _ y: Double) -> Double {
        switch self {
        case .add: x + y
        case .subtract: x - y
        case .multiply: x * y
        case .divide: x / y
        case .floorDivide: ((x - Self.remainder(x, y)) / y).rounded(.toNearestOrEven)
        case .remainder: Self.remainder(x, y)
        case .power: pow(x, y)
        case .less: x < y ? 1 : 0
        case .lessOrEqual: x <= y ? 1 : 0
        case .equal: x == y ? 1 : 0
        }
    }

    /// Of the divisor's sign, as in Python.
    private static func remainder(_ x: Double, _ y: Double) -> Double {
        let rest = x.truncatingRemainder(dividingBy: y)
        return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest
    }
}

extension Formula: Decodable {
    init(from decoder: any Decoder) throws {
        try decoder.requireShallow()
        if let value = try? decoder.singleValueContainer().decode(Double.self) {
            self = .constant(value)
            return
        }
        if let name = try? decoder.singleValueContainer().decode(String.self) {
            guard let variable = ["step": Formula.step, "lr": .rate][name] else {
                throw Self.fault(decoder, "there is no variable '\(name)'")
            }
            self = variable
            return
        }
        var container = try decoder.unkeyedContainer()
        let kind = try container.decode(String.self)
        var parts: [Formula] = []
        while !container.isAtEnd, parts.count < 4 { parts.append(try container.decode(Formula.self)) }
        guard let formula = Self.made(kind, parts) else {
            throw Self.fault(decoder, "there is no operator '\(kind)' of \(parts.count) formulas")
        }
        self = formula
    }

    private static func made(_ kind: String, _ parts: [Formula]) -> Formula? {
        switch parts.count {
        case 1: Unary(rawValue: kind).map { .unary($0, parts[0]) }
        case 2 where kind == "product": .product(term: parts[0], count: parts[1])
        case 2: Binary(rawValue: kind).map { .binary($0, parts[0], parts[1]) }
        case 3 where kind == "if": .choice(parts[0], parts[1], parts[2])
        default: nil
        }
    }

    private static func fault(_ decoder: any Decoder, _ text: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: text))
    }
}
