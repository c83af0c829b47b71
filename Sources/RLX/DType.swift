// The element types that cross the boundary of a program.

import MILFormat
import MILRuntime

/// Element types of tensors; raw values are those of MIL's `DataType`.
public enum DType: Int32, Sendable, CaseIterable, CustomStringConvertible {
    /// A truth value in one byte. At the boundary of Core ML programs it travels as `int32`.
    case bool = 1
    /// IEEE half precision.
    case float16 = 10
    /// IEEE single precision: weights, state and losses.
    case float32 = 11
    /// Labels and indices.
    case int32 = 23

    /// Bytes of one element.
    public var size: Int {
        switch self {
        case .bool: 1
        case .float16: 2
        case .float32, .int32: 4
        }
    }

    public var description: String {
        switch self {
        case .bool: "bool"
        case .float16: "f16"
        case .float32: "f32"
        case .int32: "i32"
        }
    }

    init?(_ type: DataType) { self.init(rawValue: type.rawValue) }

    var element: ElementType {
        switch self {
        case .bool: .bool
        case .float16: .float16
        case .float32: .float32
        case .int32: .int32
        }
    }
}

/// Name, element type and shape of one input or output.
public struct Feature: Sendable, Hashable {
    /// As the model calls it.
    public let name: String
    /// The type of each element.
    public let dtype: DType
    /// The size along each axis; empty for a single number.
    public let shape: [Int]

    /// A description of a tensor called `name`.
    public init(name: String, dtype: DType, shape: [Int]) {
        self.name = name
        self.dtype = dtype
        self.shape = shape
    }
}
