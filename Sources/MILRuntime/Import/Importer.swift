// Reads operations of an ML Program into a graph: names, constants, declared types. Knows no operation by itself.
import MILFormat

struct Importer {
    let graph: GraphBuilder
    let constants: ConstantReader
    private let opset: Int
    private var names: [String: Bound] = [:]
    /// The values that states have after the operations so far.
    private var states: [String: View] = [:]
    private var writtenStates: Set<String> = []

    private(set) var inputs: [Feature] = []
    private(set) var inputViews: [View] = []
    private(set) var outputs: [(name: String, view: View)] = []

    /// `folded` may come from another importer of the same constants.
    init(opset: String, blobs: any BlobSource, folded: FoldedConstants = FoldedConstants()) {
        graph = GraphBuilder(folded: folded)
        self.opset = Int(opset.drop { !$0.isNumber }) ?? 5
        constants = ConstantReader(blobs: blobs)
    }

    /// All of a function: its inputs, its operations and its outputs.
    init(_ function: Function, blobs: any BlobSource) throws(RuntimeError) {
        self.init(opset: function.opset, blobs: blobs)
        guard let body = function.body else {
            throw .invalid(.noBody(opset: function.opset), .boundary("function"))
        }
        for input in function.inputs {
            let (type, shape) = try tensor(input.type, .boundary(input.name))
            try add(input: input.name, type, shape)
        }
        for operation in body.operations { try add(operation) }
        for name in body.outputs { try add(output: name) }
    }

    // MARK: Boundary

    mutating func add(input name: String, _ type: ElementType, _ shape: [Int]) throws(RuntimeError) {
        let view = try graph.input(name, type, shape)
        try define(name, .view(view), .boundary(name))
        inputs.append(Feature(name: name, type: type, shape: shape))
        inputViews.append(view)
    }

    /// An input that `read_state` and `write_state` may name.
    mutating func add(state name: String, _ type: ElementType, _ shape: [Int]) throws(RuntimeError) {
        try add(input: name, type, shape)
        states[name] = inputViews[inputViews.count - 1]
    }

    /// A value that is known.
    mutating func add(constant name: String, _ value: Constant) throws(RuntimeError) {
        let bound: Bound =
            switch value {
            case .tensor(let storage): .view(graph.constant(storage))
            case .strings(let strings, let isScalar): .strings(strings, isScalar: isScalar)
            }
        try define(name, bound, .boundary(name))
    }

    /// A name that stands for several outputs is one.
    mutating func add(output name: String) throws(RuntimeError) {
        guard case .view(let view)? = names[name] else { throw .invalid(.undefinedName(name), .boundary(name)) }
        if !outputs.contains(where: { $0.name == name }) { outputs.append((name, view)) }
    }

    /// Makes outputs of the states that were written; from a state to the name of its output.
    mutating func addStateOutputs() -> [String: String] {
        var result: [String: String] = [:]
        for name in writtenStates.sorted() {
            guard let view = states[name] else { continue }
            result[name] = "write_state(\(name))"
            outputs.append(("write_state(\(name))", view))
        }
        return result
    }

    func isDefined(_ name: String) -> Bool { names[name] != nil }

    /// The value of a name that stands for a constant or for strings.
    func constant(_ name: String) throws(RuntimeError) -> Constant? {
        switch names[name] {
        case .strings(let strings, let isScalar): return .strings(strings, isScalar: isScalar)
        case .view(let view):
            guard let (address, owner) = graph.constantMemory(view), view.isDense else { return nil }
            return .tensor(Storage(borrowing: address, type: view.type, shape: view.shape, owner: owner))
        case nil: return nil
        }
    }

    private mutating func define(_ name: String, _ value: Bound, _ place: RuntimeError.Place) throws(RuntimeError) {
        guard names.updateValue(value, forKey: name) == nil else { throw .invalid(.redefinedName(name), place) }
    }

    private func tensor(
        _ type: ValueType, _ place: RuntimeError.Place
    ) throws(RuntimeError) -> (ElementType, [Int]) {
        guard case .tensor(let tensor) = type else { throw .unsupported(.type(type.name), place) }
        guard let element = ElementType(tensor.dataType) else {
            throw .unsupported(.type("\(tensor.dataType)"), place)
        }
        guard let shape = tensor.shape else { throw .unsupported(.flexibleShape, place) }
        guard byteCount(element, shape) != nil else { throw .invalid(.tooLarge(shape), place) }
        return (element, shape)
    }

    // MARK: Operations

    /// - Parameter shape: of the first output, where the caller knows more than the operation declares.
    mutating func add(_ operation: Operation, shape: [Int]? = nil) throws(RuntimeError) {
        let place = operation.place
        switch operation.type {
        case "const": return try add(constant: operation, place)
        case "read_state", "write_state": return try add(stateAccess: operation, place)
        default: break
        }
        guard let rule = OperationTable.rules[operation.type] else { throw .unsupported(.operation, place) }
        let bindings = try bindings(of: operation, rule, place)
        let firstNode = graph.graph.nodes.count
        graph.place = place
        graph.operationStart = firstNode
        let call = Call(
            place: place, graph: graph, opset: opset, parameters: rule.parameters, bindings: bindings,
            outputCount: operation.outputs.count, declaredShape: shape ?? declaredShape(operation))
        let results = try rule.lower(call)
        guard results.count == operation.outputs.count else {
            throw .invalid(.outputCount(declared: operation.outputs.count, expected: results.count), place)
        }
        for (view, declared) in zip(results, operation.outputs) {
            try check(view, declared, place)
            try define(declared.name, .view(view), place)
        }
        let start = min(firstNode, graph.graph.nodes.count)
        try graph.foldConstants(from: start, always: operation.isCompressedConstant)
    }

    private func bindings(
        of operation: Operation, _ rule: OperationRule, _ place: RuntimeError.Place
    ) throws(RuntimeError) -> [String: [Bound]] {
        var bindings: [String: [Bound]] = [:]
        if operation.isCompressedConstant {
            // Up to CoreML7 their parameters are attributes.
            for (parameter, value) in operation.attributes where rule.parameters[parameter] != nil {
                bindings[parameter] = [try constants.read(value, name: place.subject, graph, place)]
            }
        }
        for (parameter, bound) in operation.inputs {
            guard rule.parameters[parameter] != nil else { throw .invalid(.unknownParameter(parameter), place) }
            var values: [Bound] = []
            for binding in bound { values.append(try resolve(binding, place)) }
            bindings[parameter] = values
        }
        for case (let parameter, .required) in rule.parameters where bindings[parameter] == nil {
            throw .invalid(.missingParameter(parameter), place)
        }
        return bindings
    }

    private func declaredShape(_ operation: Operation) -> [Int]? {
        guard case .tensor(let tensor)? = operation.outputs.first?.type else { return nil }
        return tensor.shape
    }

    private func resolve(_ binding: Binding, _ place: RuntimeError.Place) throws(RuntimeError) -> Bound {
        switch binding {
        case .name(let name):
            guard let value = names[name] else { throw .invalid(.undefinedName(name), place) }
            return value
        case .value(let value): return try constants.read(value, name: place.subject, graph, place)
        }
    }

    private mutating func add(constant operation: Operation, _ place: RuntimeError.Place) throws(RuntimeError) {
        guard let value = operation.attributes["val"] else { throw .invalid(.missingParameter("val"), place) }
        guard operation.outputs.count == 1 else {
            throw .invalid(.outputCount(declared: operation.outputs.count, expected: 1), place)
        }
        let bound = try constants.read(value, name: operation.outputs[0].name, graph, place)
        if case .view(let view) = bound { try check(view, operation.outputs[0], place) }
        try define(operation.outputs[0].name, bound, place)
    }

    private mutating func add(stateAccess operation: Operation, _ place: RuntimeError.Place) throws(RuntimeError) {
        guard case .name(let state)? = operation.inputs["input"]?.first, let old = states[state] else {
            throw .invalid(.notAState, place)
        }
        if operation.type == "write_state" {
            guard let data = operation.inputs["data"]?.first, case .view(let new) = try resolve(data, place) else {
                throw .invalid(.missingParameter("data"), place)
            }
            guard new.type == old.type, new.shape == old.shape else {
                throw .invalid(.shape(parameter: "data", got: new.shape, expected: "\(old.type) \(old.shape)"), place)
            }
            states[state] = new
            writtenStates.insert(state)
        }
        guard let current = states[state], operation.outputs.count <= 1 else {
            throw .invalid(.outputCount(declared: operation.outputs.count, expected: 1), place)
        }
        for output in operation.outputs {
            try check(current, output, place)
            try define(output.name, .view(current), place)
        }
    }

    /// A dimension that the file leaves open takes what was inferred.
    private func check(_ view: View, _ declared: NamedType, _ place: RuntimeError.Place) throws(RuntimeError) {
        if declared.type.admits(view.type, view.shape) { return }
        let inferred = TensorType(view.type.dataType, shape: view.shape)
        throw .invalid(
            .declaredType(
                output: declared.name, declared: declared.type.name, inferred: ValueType.tensor(inferred).name),
            place)
    }
}

extension Operation {
    var place: RuntimeError.Place { .operation(type: type, output: outputs.first?.name ?? "") }

    /// Such operations make weights of compressed ones, when a program is loaded.
    var isCompressedConstant: Bool { type.hasPrefix("constexpr_") }
}

extension ValueType {
    /// Whether a value of this run-time type and shape may be declared so.
    func admits(_ type: ElementType, _ shape: [Int]) -> Bool {
        guard case .tensor(let tensor) = self, ElementType(carrying: tensor.dataType) == type else { return false }
        if tensor.dimensions.contains(.unknown(variadic: true)) { return true }
        return tensor.dimensions.count == shape.count
            && zip(tensor.dimensions, shape).allSatisfy { $0 == .fixed($1) || !$0.isFixed }
    }

    /// For messages.
    var name: String {
        switch self {
        case .tensor(let tensor):
            let sizes = tensor.dimensions.map { if case .fixed(let size) = $0 { "\(size)" } else { "?" } }
            let element = ElementType(tensor.dataType)?.description ?? "\(tensor.dataType)"
            return "tensor<\(element), [\(sizes.joined(separator: ", "))]>"
        case .list: return "list"
        case .tuple: return "tuple"
        case .dictionary: return "dictionary"
        case .state: return "state"
        }
    }
}

extension Dimension {
    var isFixed: Bool {
        if case .fixed = self { true } else { false }
    }
}
