// One operation of a program with its parameters resolved: what an operation rule sees.
import MILFormat

/// What a parameter is when a program leaves it out.
enum Default: ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByStringLiteral
{
    case required
    case absent
    case bool(Bool)
    case int(Int)
    case float(Float)
    case string(String)

    init(booleanLiteral value: Bool) { self = .bool(value) }
    init(integerLiteral value: Int) { self = .int(value) }
    init(floatLiteral value: Float) { self = .float(value) }
    init(stringLiteral value: String) { self = .string(value) }
}

/// One entry of the operation table: everything that the runtime knows of an operation.
struct OperationRule: Sendable {
    var name: String
    var parameters: [String: Default]
    /// Checks the operands and makes the nodes; returns the values of the operation's outputs.
    var lower: @Sendable (Call) throws(RuntimeError) -> [View]

    init(
        _ name: String, _ parameters: [String: Default],
        lower: @escaping @Sendable (Call) throws(RuntimeError) -> [View]
    ) {
        self.name = name
        self.parameters = parameters
        self.lower = lower
    }

    /// For operations with one output.
    init(
        _ name: String, _ parameters: [String: Default],
        value: @escaping @Sendable (Call) throws(RuntimeError) -> View
    ) {
        self.init(name, parameters, lower: { (call) throws(RuntimeError) in [try value(call)] })
    }
}

/// What a name of the program stands for.
enum Bound {
    case view(View)
    case strings([String], isScalar: Bool)
}

struct Call {
    let place: RuntimeError.Place
    let graph: GraphBuilder
    /// 5 for CoreML5 and so on.
    let opset: Int
    let parameters: [String: Default]
    let bindings: [String: [Bound]]
    let outputCount: Int
    /// The first output's shape as the program declares it; nil when it leaves a dimension open.
    let declaredShape: [Int]?
    var declaredCount: Int? { declaredShape.flatMap(elementCount) }

    func failure(_ fault: RuntimeError.Fault) -> RuntimeError { .invalid(fault, place) }

    func has(_ name: String) -> Bool { bindings[name] != nil }

    // MARK: Values

    func view(_ name: String) throws(RuntimeError) -> View {
        guard let view = try optionalView(name) else { throw failure(.missingParameter(name)) }
        return view
    }

    func optionalView(_ name: String) throws(RuntimeError) -> View? {
        guard let bound = bindings[name] else { return nil }
        guard bound.count == 1 else { throw failure(.severalBindings(name)) }
        guard case .view(let view) = bound[0] else {
            throw failure(.elementType(parameter: name, got: "string", expected: "a tensor of numbers"))
        }
        return view
    }

    /// A floating-point tensor.
    func float(view name: String) throws(RuntimeError) -> View {
        let view = try view(name)
        guard view.type.isFloat else {
            throw failure(.elementType(parameter: name, got: view.type.description, expected: "fp16 or fp32"))
        }
        return view
    }

    /// An integer tensor, as int32.
    func indices(_ name: String) throws(RuntimeError) -> View {
        let view = try view(name)
        guard !view.type.isFloat, view.type != .bool else {
            throw failure(.elementType(parameter: name, got: view.type.description, expected: "an integer type"))
        }
        return try graph.cast(view, to: .int32)
    }

    /// The values of a variadic parameter, all of one type.
    func views(_ name: String) throws(RuntimeError) -> [View] {
        var result: [View] = []
        for bound in bindings[name] ?? [] {
            guard case .view(let view) = bound else {
                throw failure(.elementType(parameter: name, got: "string", expected: "a tensor of numbers"))
            }
            if let first = result.first, first.type != view.type {
                throw failure(
                    .elementType(
                        parameter: name, got: view.type.description, expected: "\(first.type), as the first value"))
            }
            result.append(view)
        }
        if result.isEmpty { throw failure(.missingParameter(name)) }
        return result
    }

    // MARK: Constants

    /// All elements of an operand, which must be known.
    func elements(_ name: String) throws(RuntimeError) -> [Double] {
        guard let numbers = graph.constantNumbers(try view(name)) else { throw failure(.notConstant(name)) }
        return numbers
    }

    /// The elements of a constant, or nil when it is left out.
    func numbers(_ name: String) throws(RuntimeError) -> [Double]? {
        guard let view = try optionalView(name) else { return nil }
        guard view.rank <= 2, view.count <= Self.longestParameter else {
            throw failure(.shape(parameter: name, got: view.shape, expected: "a few numbers"))
        }
        guard let numbers = graph.constantNumbers(view) else { throw failure(.notConstant(name)) }
        return numbers
    }

    private static let longestParameter = 1 << 16

    func optionalInts(_ name: String) throws(RuntimeError) -> [Int]? {
        guard let numbers = try numbers(name) else { return nil }
        var result: [Int] = []
        for number in numbers {
            guard let int = Int(exactly: number), abs(int) <= 1 << 53 else {
                throw failure(.value(parameter: name, got: "\(number)", expected: "an integer"))
            }
            result.append(int)
        }
        return result
    }

    func ints(_ name: String) throws(RuntimeError) -> [Int] {
        guard let ints = try optionalInts(name) else { throw failure(.missingParameter(name)) }
        return ints
    }

    func optionalInt(_ name: String) throws(RuntimeError) -> Int? {
        guard let ints = try optionalInts(name) else { return nil }
        guard ints.count == 1 else {
            throw failure(.value(parameter: name, got: "\(ints)", expected: "one integer"))
        }
        return ints[0]
    }

    func int(_ name: String) throws(RuntimeError) -> Int {
        if let value = try optionalInt(name) { return value }
        guard case .int(let value)? = parameters[name] else { throw failure(.missingParameter(name)) }
        return value
    }

    func bools(_ name: String) throws(RuntimeError) -> [Bool]? {
        try numbers(name)?.map { $0 != 0 }
    }

    func bool(_ name: String) throws(RuntimeError) -> Bool {
        if let values = try bools(name) {
            guard values.count == 1 else {
                throw failure(.value(parameter: name, got: "\(values)", expected: "one bool"))
            }
            return values[0]
        }
        guard case .bool(let value)? = parameters[name] else { throw failure(.missingParameter(name)) }
        return value
    }

    /// A number that meets values of `type`: a default is rounded to that type as if it stood in the file.
    func float(_ name: String, for type: ElementType = .float32) throws(RuntimeError) -> Float {
        if let values = try numbers(name) {
            guard values.count == 1 else {
                throw failure(.value(parameter: name, got: "\(values)", expected: "one number"))
            }
            return Float(values[0])
        }
        guard case .float(let value)? = parameters[name] else { throw failure(.missingParameter(name)) }
        return type == .float16 ? roundToHalf(value) : value
    }

    func string(_ name: String) throws(RuntimeError) -> String {
        if let bound = bindings[name] {
            guard bound.count == 1, case .strings(let values, _) = bound[0], values.count == 1 else {
                throw failure(.elementType(parameter: name, got: "a tensor of numbers", expected: "one string"))
            }
            return values[0]
        }
        guard case .string(let value)? = parameters[name] else { throw failure(.missingParameter(name)) }
        return value
    }

    /// One of several words; programs may write them in upper case.
    func choice<Choice: RawRepresentable & CaseIterable>(
        _ name: String, _: Choice.Type
    ) throws(RuntimeError) -> Choice where Choice.RawValue == String {
        let word = try string(name)
        guard let choice = Choice(rawValue: word.lowercased()) else {
            let expected = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw failure(.value(parameter: name, got: "\"\(word)\"", expected: "one of \(expected)"))
        }
        return choice
    }

    // MARK: Axes

    /// `axis` of a value of rank `rank`, counted from the front.
    func normalized(_ axis: Int, rank: Int, _ name: String) throws(RuntimeError) -> Int {
        guard axis >= -rank, axis < rank else {
            throw failure(.value(parameter: name, got: "\(axis)", expected: "an axis of a tensor of rank \(rank)"))
        }
        return axis < 0 ? axis + rank : axis
    }

    func axis(_ name: String = "axis", rank: Int) throws(RuntimeError) -> Int {
        try normalized(int(name), rank: rank, name)
    }

    /// Sorted, without repeats; all axes when the parameter is left out.
    func axes(_ name: String = "axes", rank: Int) throws(RuntimeError) -> [Int] {
        guard let given = try optionalInts(name) else { return Array(0..<rank) }
        var result: Set<Int> = []
        for axis in given {
            guard result.insert(try normalized(axis, rank: rank, name)).inserted else {
                throw failure(.value(parameter: name, got: "\(given)", expected: "different axes"))
            }
        }
        return result.sorted()
    }
}
