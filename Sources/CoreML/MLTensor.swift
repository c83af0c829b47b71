// MLTensor: numbers with a shape that are computed with. Here every operation is done at once, on the CPU.
import Foundation

/// Types of a tensor's elements.
@available(macOS 15, iOS 18, *)
public protocol MLTensorScalar: Sendable, BitwiseCopyable {}

@available(macOS 15, iOS 18, *)
extension Float: MLTensorScalar {}
@available(macOS 15, iOS 18, *)
extension Float16: MLTensorScalar {}
@available(macOS 15, iOS 18, *)
extension Int8: MLTensorScalar {}
@available(macOS 15, iOS 18, *)
extension Int16: MLTensorScalar {}
@available(macOS 15, iOS 18, *)
extension Int32: MLTensorScalar {}
@available(macOS 15, iOS 18, *)
extension UInt8: MLTensorScalar {}
@available(macOS 15, iOS 18, *)
extension UInt16: MLTensorScalar {}
@available(macOS 15, iOS 18, *)
extension UInt32: MLTensorScalar {}
@available(macOS 15, iOS 18, *)
extension Bool: MLTensorScalar {}

/// Shapes that do not fit an operation end the program, as they do on Apple systems.
@available(macOS 15, iOS 18, *)
public struct MLTensor: Sendable {
    public let shape: [Int]
    public let scalarType: any MLTensorScalar.Type
    /// In C order. A double holds every value of the scalar types.
    let values: [Double]

    /// Rounds the values to the type.
    init(_ values: [Double], _ shape: [Int], _ type: any MLTensorScalar.Type) {
        precondition(
            ArrayLayout(cOrder: shape)?.count == values.count, "shape \(shape) does not have \(values.count) scalars")
        self.shape = shape
        scalarType = type
        self.values = type == Float.self ? values.map { Double(Float($0)) } : values.map(type.rounded)
    }

    static func count(_ shape: [Int]) -> Int {
        guard let count = ArrayLayout(cOrder: shape)?.count else {
            preconditionFailure("shape \(shape) is not possible")
        }
        return count
    }

    public var rank: Int { shape.count }
    public var scalarCount: Int { values.count }
    public var isScalar: Bool { shape.isEmpty }

    /// The only way back to numbers. The tensor must be of that scalar type.
    public func shapedArray<Scalar: MLTensorScalar & MLShapedArrayScalar>(
        of scalarType: Scalar.Type
    ) async -> MLShapedArray<Scalar> {
        precondition(self.scalarType == scalarType, "the tensor holds \(self.scalarType), not \(scalarType)")
        return MLShapedArray(scalars: values.map(Scalar.scalar), shape: shape)
    }

    public func cast<Scalar: MLTensorScalar>(to scalarType: Scalar.Type) -> MLTensor {
        MLTensor(values, shape, scalarType)
    }

    public func cast(like other: MLTensor) -> MLTensor { MLTensor(values, shape, other.scalarType) }
}

@available(macOS 15, iOS 18, *)
extension MLTensor: CustomStringConvertible, CustomReflectable {
    public var description: String { "MLTensor(shape: \(shape), scalarType: \(scalarType))" }
    public var customMirror: Mirror { Mirror(self, children: ["shape": shape, "scalarType": scalarType]) }
}

@available(macOS 15, iOS 18, *)
extension MLTensorScalar {
    /// One whose bytes can be read: all types are of that kind.
    static func loaded(_ bytes: UnsafeRawBufferPointer, _ index: Int) -> Double {
        precondition(bytes.count >= (index + 1) * MemoryLayout<Self>.size, "there are too few bytes")
        return double(bytes.loadUnaligned(fromByteOffset: index * MemoryLayout<Self>.size, as: Self.self))
    }

    static func double(_ value: Self) -> Double {
        switch value {
        case let value as Float: Double(value)
        case let value as Float16: Double(value)
        case let value as Bool: value ? 1 : 0
        case let value as any BinaryInteger: Double(value)
        default: 0
        }
    }

    /// Floats round to the nearest, integers cut towards zero and stay within their bounds.
    static func rounded(_ value: Double) -> Double {
        switch self {
        case is Float.Type: Double(Float(value))
        case is Float16.Type: Double(Float16(value))
        case is Bool.Type: value == 0 ? 0 : 1
        case let type as any FixedWidthInteger.Type: type.bounded(value)
        default: value
        }
    }

    static func scalar(_ value: Double) -> Self {
        let result: Any =
            switch self {
            case is Float.Type: Float(value)
            case is Float16.Type: Float16(value)
            case is Bool.Type: value != 0
            case let type as any FixedWidthInteger.Type: type.init(value)
            default: value
            }
        guard let result = result as? Self else { preconditionFailure("\(self) is no scalar type of tensors") }
        return result
    }
}

extension FixedWidthInteger {
    fileprivate static func bounded(_ value: Double) -> Double {
        value.isNaN ? 0 : Swift.min(Swift.max(value.rounded(.towardZero), Double(Self.min)), Double(Self.max))
    }
}
