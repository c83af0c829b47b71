// Builds small programs for tests, reads the NumPy cases, compares arrays.
import Foundation
import MILFormat
import RLXKernels

@testable import MILRuntime

struct NoBlobs: BlobSource {
    struct Absent: Error {}
    func blob(fileName: String, offset: UInt64) throws -> Blob { throw Absent() }
    func verify() {}
}

/// An array of a test: numbers as doubles, whatever the element type.
struct Tensor: Hashable {
    var type: ElementType
    var shape: [Int]
    var values: [Double]

    init(_ type: ElementType, _ shape: [Int], _ values: [Double]) {
        self.type = type
        self.shape = shape
        self.values = values
    }

    static func floats(_ shape: [Int], _ values: [Double]) -> Tensor { Tensor(.float32, shape, values) }
    static func ints(_ shape: [Int], _ values: [Double]) -> Tensor { Tensor(.int32, shape, values) }

    var valueType: ValueType { .tensor(TensorType(type.dataType, shape: shape)) }

    var value: Value {
        let payload: Value.Payload =
            switch type {
            case .float32: .floats(values.map(Float.init))
            case .float16: .bytes(values.flatMap { bytes(rlxk_float_to_half(Float($0))) })
            case .int32, .int16, .uint16: .ints(values.map { Int32($0) })
            case .int8: .bytes(values.map { UInt8(bitPattern: Int8($0)) })
            case .uint8: .bytes(values.map { UInt8($0) })
            case .bool: .bools(values.map { $0 != 0 })
            }
        return Value(type: valueType, payload: payload)
    }

    func write(to storage: Storage) {
        let address = storage.bytes.baseAddress!
        for (index, value) in values.enumerated() {
            switch type {
            case .float32: address.storeBytes(of: Float(value), toByteOffset: 4 * index, as: Float.self)
            case .float16:
                address.storeBytes(of: rlxk_float_to_half(Float(value)), toByteOffset: 2 * index, as: UInt16.self)
            case .int32: address.storeBytes(of: Int32(value), toByteOffset: 4 * index, as: Int32.self)
            case .int16: address.storeBytes(of: Int16(value), toByteOffset: 2 * index, as: Int16.self)
            case .uint16: address.storeBytes(of: UInt16(value), toByteOffset: 2 * index, as: UInt16.self)
            case .int8: address.storeBytes(of: Int8(value), toByteOffset: index, as: Int8.self)
            case .uint8, .bool: address.storeBytes(of: UInt8(value), toByteOffset: index, as: UInt8.self)
            }
        }
    }

    init(_ storage: Storage) {
        let address = UnsafeRawPointer(storage.bytes.baseAddress!)
        let count = storage.shape.reduce(1, *)
        let values = (0..<count).map { index -> Double in
            switch storage.type {
            case .float32: Double(address.load(fromByteOffset: 4 * index, as: Float.self))
            case .float16: Double(rlxk_half_to_float(address.load(fromByteOffset: 2 * index, as: UInt16.self)))
            case .int32: Double(address.load(fromByteOffset: 4 * index, as: Int32.self))
            case .int16: Double(address.load(fromByteOffset: 2 * index, as: Int16.self))
            case .uint16: Double(address.load(fromByteOffset: 2 * index, as: UInt16.self))
            case .int8: Double(address.load(fromByteOffset: index, as: Int8.self))
            case .uint8, .bool: Double(address.load(fromByteOffset: index, as: UInt8.self))
            }
        }
        self.init(storage.type, storage.shape, values)
    }

    /// The first difference beyond `tolerance` (relative, and absolute below 1), or nil.
    func difference(from expected: Tensor, tolerance: Double) -> String? {
        guard type == expected.type, shape == expected.shape, values.count == expected.values.count else {
            return "got \(type) \(shape), expected \(expected.type) \(expected.shape)"
        }
        for (index, (got, want)) in zip(values, expected.values).enumerated() {
            let agrees =
                got.isNaN || want.isNaN || got.isInfinite || want.isInfinite
                ? got.isNaN && want.isNaN || got == want
                : abs(got - want) <= tolerance * max(1, abs(want))
            if !agrees { return "element \(index) is \(got), expected \(want)" }
        }
        return nil
    }
}

private func bytes(_ value: UInt16) -> [UInt8] { [UInt8(value & 0xff), UInt8(value >> 8)] }

/// A function of one block, built op by op.
struct ProgramBuilder {
    var inputs: [NamedType] = []
    var operations: [MILFormat.Operation] = []
    var opset = 7

    mutating func input(_ name: String, _ tensor: Tensor) {
        inputs.append(NamedType(name: name, type: tensor.valueType))
    }

    mutating func const(_ name: String, _ value: Value) {
        operations.append(
            Operation(type: "const", outputs: [NamedType(name: name, type: value.type)], attributes: ["val": value]))
    }

    mutating func const(_ name: String, string: String) {
        const(name, Value(type: .tensor(TensorType(.string, [])), payload: .strings([string])))
    }

    /// `arguments` are names, or values that stand in the operation itself.
    mutating func add(_ type: String, _ arguments: [String: Binding], _ name: String, _ shape: [Int]) {
        add(type, arguments, name, .float32, shape)
    }

    mutating func add(
        _ type: String, _ arguments: [String: Binding], _ name: String, _ dataType: DataType, _ shape: [Int]
    ) {
        operations.append(
            Operation(
                type: type, inputs: arguments.mapValues { [$0] },
                outputs: [NamedType(name: name, type: .tensor(TensorType(dataType, shape: shape)))]))
    }

    func function(_ outputs: [String]) -> Function {
        let name = "CoreML\(opset)"
        return Function(
            inputs: inputs, opset: name, specializations: [name: Block(outputs: outputs, operations: operations)])
    }
}

extension Binding: ExpressibleByStringLiteral {
    public init(stringLiteral value: String) { self = .name(value) }

    static func literal(_ tensor: Tensor) -> Binding { .value(tensor.value) }
    static func floats(_ values: [Double]) -> Binding { .literal(.floats([values.count], values)) }
    static func float(_ value: Double) -> Binding { .literal(.floats([], [value])) }
    static func ints(_ values: [Double]) -> Binding { .literal(.ints([values.count], values)) }
    static func int(_ value: Double) -> Binding { .literal(.ints([], [value])) }
    static func bool(_ value: Bool) -> Binding { .literal(Tensor(.bool, [], [value ? 1 : 0])) }
}

/// One operation with its inputs and what NumPy says of it; made by Cases/generate.py.
struct OperationCase {
    enum Argument {
        case tensor(Tensor)
        case tensors([Tensor])
        case string(String)
    }

    var index: Int
    var op: String
    var opset: Int
    var tolerance: Double
    var folds: Bool
    var inputs: [String: Argument]
    var constants: [String: Argument]
    var outputs: [Tensor]

    static func load(_ family: String) throws -> [OperationCase] {
        let url = Bundle.module.url(forResource: family, withExtension: "json", subdirectory: "Cases")!
        let list = try JSONSerialization.jsonObject(with: Data(contentsOf: url)) as! [[String: Any]]
        return list.enumerated().map { index, object in
            OperationCase(
                index: index, op: object["op"] as! String, opset: object["opset"] as! Int,
                tolerance: (object["tolerance"] as! NSNumber).doubleValue, folds: object["folds"] as! Bool,
                inputs: (object["inputs"] as! [String: Any]).mapValues(argument),
                constants: (object["constants"] as! [String: Any]).mapValues(argument),
                outputs: (object["outputs"] as! [Any]).map(tensor))
        }
    }

    private static func argument(_ json: Any) -> Argument {
        if let string = json as? String { return .string(string) }
        if let list = json as? [Any] { return .tensors(list.map(tensor)) }
        return .tensor(tensor(json))
    }

    private static func tensor(_ json: Any) -> Tensor {
        let object = json as! [String: Any]
        let type = ElementType.allCases.first { $0.description == object["type"] as! String }!
        let storage = try! Storage(type: type, shape: object["shape"] as! [Int])
        storage.bytes.copyBytes(from: Data(base64Encoded: object["data"] as! String)!)
        return Tensor(storage)
    }

    /// Runs the operation; `folded` binds the inputs as constants too.
    func run(workers: Int, folded: Bool = false) throws -> [Tensor] {
        try run(workers: workers, folded: folded, instructionSet: nil)!
    }

    /// Nil where the processor does not have the instruction set.
    func run(workers: Int, folded: Bool = false, instructionSet: String?) throws -> [Tensor]? {
        var program = ProgramBuilder()
        program.opset = opset
        var feeds: [String: Tensor] = [:]
        var bindings: [String: [Binding]] = [:]
        for (parameter, argument) in constants { bindings[parameter] = bind(argument, parameter) { .value($0.value) } }
        for (parameter, argument) in inputs {
            bindings[parameter] = bind(argument, parameter) { tensor in
                if folded { return .value(tensor.value) }
                let name = "in\(feeds.count)"
                feeds[name] = tensor
                program.input(name, tensor)
                return .name(name)
            }
        }
        let names = outputs.indices.map { "out\($0)" }
        program.operations.append(
            Operation(
                type: op, inputs: bindings,
                outputs: zip(names, outputs).map { NamedType(name: $0, type: $1.valueType) }))
        let plan = try Plan(program.function(names), blobs: NoBlobs(), options: PlanOptions(workers: workers))
        for (name, tensor) in feeds { tensor.write(to: plan.buffer(named: name)!) }
        if let instructionSet {
            guard plan.run(instructionSet: instructionSet) else { return nil }
        } else {
            try plan.run()
        }
        return names.map { Tensor(plan.buffer(named: $0)!) }
    }

    private func bind(_ argument: Argument, _ parameter: String, _ body: (Tensor) -> Binding) -> [Binding] {
        switch argument {
        case .tensor(let tensor): [body(tensor)]
        case .tensors(let tensors): tensors.map(body)
        case .string(let string):
            [.value(Value(type: .tensor(TensorType(.string, [])), payload: .strings([string])))]
        }
    }
}
