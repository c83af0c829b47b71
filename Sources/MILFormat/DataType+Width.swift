// How wide element types are in constants.

extension DataType {
    /// Bits of one element in packed bytes; zero for strings, which are never packed.
    public var bitWidth: Int {
        switch self {
        case .string: 0
        case .uint1: 1
        case .uint2: 2
        case .uint3: 3
        case .int4, .uint4: 4
        case .uint6: 6
        case .bool, .int8, .uint8, .float8E4M3FN, .float8E5M2: 8
        case .float16, .bfloat16, .int16, .uint16: 16
        case .float32, .int32, .uint32: 32
        case .float64, .int64, .uint64: 64
        }
    }
}
