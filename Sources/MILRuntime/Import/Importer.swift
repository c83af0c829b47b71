// Reads a function of an ML Program into a graph: names, constants, declared types. Knows no operation by itself.
import MILFormat

struct Importer {
    let graph = GraphBuilder()
    private let blobs: any BlobSource
    private let opset: Int
    private var names: [String: Bound] = [:]

    private(set) var inputs: [Feature] = []
    private(set) var inputViews: [View] = []
    private(set) var outputs: [(name: String, view: View)] = []

    init(_ function: Function, blobs: any BlobSource) throws(RuntimeError) {
        self.blobs = blobs
        self.opset = Int(function.opset.drop { !$0.isNumber }) ?? 5
        guard let body = function.body else {
            throw .invalid(.noBody(opset: function.opset), .boundary("function"))
        }
        for input in function.inputs { try add(input: input) }
        for operation in body.operations { try add(operation) }
        for name in body.outputs {
            guard case .view(let view)? = names[name] else {
                throw .invalid(.undefinedName(name), .boundary(name))
            }
            if !outputs.contains(where: { $0.name == name }) { outputs.append((name, view)) }
        }
    }

    private mutating func add(input: NamedType) throws(RuntimeError) {
        let place = RuntimeError.Place.boundary(input.name)
        let (type, shape) = try tensor(input.type, place)
        let view = try graph.input(input.name, type, shape)
        try define(input.name, .view(view), place)
        inputs.append(Feature(name: input.name, type: type, shape: shape))
        inputViews.append(view)
    }

    private mutating func define(_ name: String, _ value: Bound, _ place: RuntimeError.Place) throws(RuntimeError) {
        guard names.updateValue(value, forKey: name) == nil else { throw .invalid(.redefinedName(name), place) }
    }

    private func tensor(
        _ type: ValueType, _ place: RuntimeError.Place
    ) throws(RuntimeError) -> (ElementType, [Int]) {
        guard case .tensor(let tensor) = type else { throw .unsupported(.type(name(of: type)), place) }
        guard let element = ElementType(tensor.dataType) else {
            throw .unsupported(.type("\(tensor.dataType)"), place)
        }
        guard let shape = tensor.shape else { throw .unsupported(.flexibleShape, place) }
        guard byteCount(element, shape) != nil else { throw .invalid(.tooLarge(shape), place) }
        return (element, shape)
    }

    // MARK: Operations

    private mutating func add(_ operation: Operation) throws(RuntimeError) {
        let place = RuntimeError.Place.operation(
            type: operation.type, output: operation.outputs.first?.name ?? "")
        if operation.type == "const" { return try add(constant: operation, place) }
        guard let rule = OperationTable.rules[operation.type] else { throw .unsupported(.operation, place) }

        var bindings: [String: [Bound]] = [:]
        for (parameter, bound) in operation.inputs {
            guard rule.parameters[parameter] != nil else { throw .invalid(.unknownParameter(parameter), place) }
            var values: [Bound] = []
            for binding in bound { values.append(try resolve(binding, place)) }
            bindings[parameter] = values
        }
        for case (let parameter, .required) in rule.parameters where bindings[parameter] == nil {
            throw .invalid(.missingParameter(parameter), place)
        }

        let firstNode = graph.graph.nodes.count
        graph.place = place
        let call = Call(
            place: place, graph: graph, opset: opset, parameters: rule.parameters, bindings: bindings,
            outputCount: operation.outputs.count, declaredCount: declaredCount(operation))
        let results = try rule.lower(call)
        guard results.count == operation.outputs.count else {
            throw .invalid(.outputCount(declared: operation.outputs.count, expected: results.count), place)
        }
        for (view, declared) in zip(results, operation.outputs) {
            try check(view, declared, place)
            try define(declared.name, .view(view), place)
        }
        try graph.foldConstants(from: firstNode)
    }

    private func declaredCount(_ operation: Operation) -> Int? {
        guard case .tensor(let tensor)? = operation.outputs.first?.type, let shape = tensor.shape else { return nil }
        return elementCount(shape)
    }

    private func resolve(_ binding: Binding, _ place: RuntimeError.Place) throws(RuntimeError) -> Bound {
        switch binding {
        case .name(let name):
            guard let value = names[name] else { throw .invalid(.undefinedName(name), place) }
            return value
        case .value(let value):
            return try constant(value, name: place.subject, place)
        }
    }

    /// A dimension that the file leaves open takes what was inferred.
    private func check(_ view: View, _ declared: NamedType, _ place: RuntimeError.Place) throws(RuntimeError) {
        let inferred = TensorType(view.type.dataType, shape: view.shape)
        if case .tensor(let tensor) = declared.type, tensor.dataType == inferred.dataType,
            tensor.dimensions.count == view.rank,
            zip(tensor.dimensions, inferred.dimensions).allSatisfy({ $0 == $1 || !$0.isFixed })
        {
            return
        }
        throw .invalid(
            .declaredType(
                output: declared.name, declared: name(of: declared.type), inferred: name(of: .tensor(inferred))),
            place)
    }

    // MARK: Constants

    private mutating func add(constant operation: Operation, _ place: RuntimeError.Place) throws(RuntimeError) {
        guard let value = operation.attributes["val"] else { throw .invalid(.missingParameter("val"), place) }
        guard operation.outputs.count == 1 else {
            throw .invalid(.outputCount(declared: operation.outputs.count, expected: 1), place)
        }
        let bound = try constant(value, name: operation.outputs[0].name, place)
        if case .view(let view) = bound { try check(view, operation.outputs[0], place) }
        try define(operation.outputs[0].name, bound, place)
    }

    private func constant(
        _ value: Value, name: String, _ place: RuntimeError.Place
    ) throws(RuntimeError) -> Bound {
        if case .tensor(let type) = value.type, type.dataType == .string, case .strings(let strings) = value.payload {
            return .strings(strings, isScalar: type.dimensions.isEmpty)
        }
        let (type, shape) = try tensor(value.type, place)
        if case .blob(let fileName, let offset) = value.payload {
            return .view(try blob(fileName, offset, type, shape, name, place))
        }
        guard let storage = try Storage.make(value.payload, type: type, shape: shape) else {
            throw .invalid(.constantPayload, place)
        }
        return .view(graph.constant(storage))
    }

    /// Used where it lies, unless its address is not what the element type needs.
    private func blob(
        _ fileName: String, _ offset: UInt64, _ type: ElementType, _ shape: [Int], _ name: String,
        _ place: RuntimeError.Place
    ) throws(RuntimeError) -> View {
        let blob: Blob
        do {
            blob = try blobs.blob(fileName: fileName, offset: offset)
        } catch {
            throw .unreadableConstant(name: name, reason: "\(error)")
        }
        guard blob.dataType == type.dataType, blob.bytes.count == byteCount(type, shape) else {
            throw .invalid(.constantPayload, place)
        }
        if let address = blob.bytes.baseAddress, UInt(bitPattern: address) % UInt(type.size) == 0 {
            return graph.constant(type, shape, at: address, owner: blob.owner)
        }
        let storage = try Storage(type: type, shape: shape)
        storage.bytes.copyMemory(from: blob.bytes)
        return graph.constant(storage)
    }
}

extension Dimension {
    var isFixed: Bool {
        if case .fixed = self { true } else { false }
    }
}

/// For messages.
private func name(of type: ValueType) -> String {
    switch type {
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
