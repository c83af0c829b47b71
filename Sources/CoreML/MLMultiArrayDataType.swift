// Element types of multi arrays.

public enum MLMultiArrayDataType: Int, Sendable {
    case double = 65600
    case float32 = 65568
    case float16 = 65552
    case int32 = 131104
    @available(macOS 26, iOS 26, *)
    case int8 = 131080

    public static var float64: MLMultiArrayDataType { .double }
    public static var float: MLMultiArrayDataType { .float32 }
}

extension MLMultiArrayDataType {
    /// Bytes of one element.
    var size: Int { (rawValue & 0xFF) / 8 }
}

/// Scalars of shaped arrays.
public protocol MLShapedArrayScalar {
    static var multiArrayDataType: MLMultiArrayDataType { get }
}

extension Int32: MLShapedArrayScalar {
    public static var multiArrayDataType: MLMultiArrayDataType { .int32 }
}

extension Float: MLShapedArrayScalar {
    public static var multiArrayDataType: MLMultiArrayDataType { .float32 }
}

extension Double: MLShapedArrayScalar {
    public static var multiArrayDataType: MLMultiArrayDataType { .double }
}

@available(macOS 15, iOS 16, *)
extension Float16: MLShapedArrayScalar {
    public static var multiArrayDataType: MLMultiArrayDataType { .float16 }
}
