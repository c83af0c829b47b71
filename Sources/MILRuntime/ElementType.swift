// The element types that values have at run time, and their names in the file format and in the kernels.
import MILFormat
import RLXKernels

public enum ElementType: Sendable, Hashable, CaseIterable {
    case float32, float16, int32, bool, int8, uint8, int16, uint16

    /// The run-time type that a declared type has; nil for those that exist only in constants.
    public init?(_ type: DataType) {
        switch type {
        case .float32: self = .float32
        case .float16: self = .float16
        case .int32: self = .int32
        case .bool: self = .bool
        case .int8: self = .int8
        case .uint8: self = .uint8
        case .int16: self = .int16
        case .uint16: self = .uint16
        default: return nil
        }
    }

    /// The run-time type that holds the values of a type that exists only in constants; nil where none does.
    init?(carrying type: DataType) {
        switch type {
        case .uint1, .uint2, .uint3, .uint4, .uint6: self = .uint8
        case .int4: self = .int8
        case .uint32, .int64, .uint64: self = .int32
        case .float64: self = .float32
        default: self.init(type)
        }
    }

    /// The type whose number in `MIL.proto` this is.
    public init?(milCode code: Int32) {
        guard let type = DataType(rawValue: code) else { return nil }
        self.init(type)
    }

    public var milCode: Int32 { dataType.rawValue }

    public var dataType: DataType {
        switch self {
        case .float32: .float32
        case .float16: .float16
        case .int32: .int32
        case .bool: .bool
        case .int8: .int8
        case .uint8: .uint8
        case .int16: .int16
        case .uint16: .uint16
        }
    }

    /// Bytes of one element.
    public var size: Int {
        switch self {
        case .float32, .int32: 4
        case .float16, .int16, .uint16: 2
        case .bool, .int8, .uint8: 1
        }
    }

    public var isFloat: Bool { self == .float32 || self == .float16 }

    /// The type in which the kernels hold a value while they compute with it.
    var register: ElementType { isFloat ? .float32 : .int32 }

    var kernelType: rlxk_type {
        switch self {
        case .float32: RLXK_F32
        case .float16: RLXK_F16
        case .int32: RLXK_I32
        case .bool: RLXK_BOOL
        case .int8: RLXK_I8
        case .uint8: RLXK_U8
        case .int16: RLXK_I16
        case .uint16: RLXK_U16
        }
    }
}

extension ElementType: CustomStringConvertible {
    /// The name that MIL programs use.
    public var description: String {
        switch self {
        case .float32: "fp32"
        case .float16: "fp16"
        case .int32: "int32"
        case .bool: "bool"
        case .int8: "int8"
        case .uint8: "uint8"
        case .int16: "int16"
        case .uint16: "uint16"
        }
    }

    init?(name: String) {
        guard let type = Self.allCases.first(where: { $0.description == name }) else { return nil }
        self = type
    }
}
