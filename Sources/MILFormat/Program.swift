// A Core ML model as plain values: what the wire format says, and nothing it does not.

/// Element types of MIL; raw values are those of `MIL.proto`'s `DataType`.
public enum DataType: Int32, Sendable, CaseIterable {
    case bool = 1, string = 2
    case float16 = 10, float32 = 11, float64 = 12, bfloat16 = 13
    case int8 = 21, int16 = 22, int32 = 23, int64 = 24, int4 = 25
    case uint8 = 31, uint16 = 32, uint32 = 33, uint64 = 34
    case uint4 = 35, uint2 = 36, uint1 = 37, uint6 = 38, uint3 = 39
    case float8E4M3FN = 40, float8E5M2 = 41
}

public enum Dimension: Sendable, Hashable {
    case fixed(Int)
    case unknown(variadic: Bool)
}

public struct TensorType: Sendable, Hashable {
    public var dataType: DataType
    public var dimensions: [Dimension]

    public init(_ dataType: DataType, _ dimensions: [Dimension]) {
        self.dataType = dataType
        self.dimensions = dimensions
    }

    public init(_ dataType: DataType, shape: [Int]) {
        self.init(dataType, shape.map(Dimension.fixed))
    }

    /// The shape when every dimension is known.
    public var shape: [Int]? {
        var result: [Int] = []
        for case .fixed(let size) in dimensions { result.append(size) }
        return result.count == dimensions.count ? result : nil
    }
}

public indirect enum ValueType: Sendable, Hashable {
    case tensor(TensorType)
    case list(ValueType, length: Dimension)
    case tuple([ValueType])
    case dictionary(key: ValueType, value: ValueType)
    case state(TensorType)
}

/// A constant with its type. Raw `bytes` are little endian; sub-byte types are packed from the low bit on.
public struct Value: Sendable, Hashable {
    public indirect enum Payload: Sendable, Hashable {
        case floats([Float]), doubles([Double]), ints([Int32]), longInts([Int64])
        case bools([Bool]), strings([String]), bytes([UInt8])
        case tuple([Value]), list([Value]), dictionary([Pair])
        /// Offset of the record in the blob file, not of its data.
        case blob(fileName: String, offset: UInt64)
    }

    public struct Pair: Sendable, Hashable {
        public var key: Value
        public var value: Value
        public init(key: Value, value: Value) {
            self.key = key
            self.value = value
        }
    }

    public var type: ValueType
    public var payload: Payload

    public init(type: ValueType, payload: Payload) {
        self.type = type
        self.payload = payload
    }
}

public struct NamedType: Sendable, Hashable {
    public var name: String
    public var type: ValueType
    public init(name: String, type: ValueType) {
        self.name = name
        self.type = type
    }
}

/// What an operation's input is bound to.
public enum Binding: Sendable, Hashable {
    case name(String)
    case value(Value)
}

public struct Operation: Sendable, Hashable {
    public var type: String
    /// Most inputs have one binding; variadic ones (`values` of concat) have several.
    public var inputs: [String: [Binding]]
    public var outputs: [NamedType]
    public var blocks: [Block]
    public var attributes: [String: Value]

    public init(
        type: String, inputs: [String: [Binding]] = [:], outputs: [NamedType], blocks: [Block] = [],
        attributes: [String: Value] = [:]
    ) {
        self.type = type
        self.inputs = inputs
        self.outputs = outputs
        self.blocks = blocks
        self.attributes = attributes
    }
}

public struct Block: Sendable, Hashable {
    public var inputs: [NamedType]
    public var outputs: [String]
    public var operations: [Operation]
    public init(inputs: [NamedType] = [], outputs: [String], operations: [Operation]) {
        self.inputs = inputs
        self.outputs = outputs
        self.operations = operations
    }
}

public struct Function: Sendable, Hashable {
    public var inputs: [NamedType]
    public var opset: String
    /// Bodies by opset; the function's own opset names the one to run.
    public var specializations: [String: Block]
    public init(inputs: [NamedType], opset: String, specializations: [String: Block]) {
        self.inputs = inputs
        self.opset = opset
        self.specializations = specializations
    }

    public var body: Block? { specializations[opset] }
}

public struct Program: Sendable, Hashable {
    public var functions: [String: Function]
    public init(functions: [String: Function]) {
        self.functions = functions
    }
}
