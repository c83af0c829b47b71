// MLShapedArray: numbers with a shape as a Swift value, in C order.
import Foundation

public struct MLShapedArray<Scalar: MLShapedArrayScalar> {
    public let shape: [Int]
    /// In C order.
    public var scalars: [Scalar] {
        didSet { precondition(scalars.count == oldValue.count, "the shape \(shape) has \(oldValue.count) scalars") }
    }

    private init(unchecked scalars: [Scalar], _ shape: [Int]) {
        self.shape = shape
        self.scalars = scalars
    }

    public init<S: Sequence>(scalars: S, shape: [Int]) where S.Element == Scalar {
        let scalars = Array(scalars)
        precondition(
            ArrayLayout(cOrder: shape)?.count == scalars.count, "shape \(shape) does not have \(scalars.count) scalars")
        self.init(unchecked: scalars, shape)
    }

    public init(repeating value: Scalar, shape: [Int]) {
        guard let layout = ArrayLayout(cOrder: shape) else { preconditionFailure("shape \(shape) is not possible") }
        self.init(unchecked: Array(repeating: value, count: layout.count), shape)
    }

    public init(scalar: Scalar) { self.init(unchecked: [scalar], []) }

    /// The bytes of the scalars, in C order.
    public init(data: Data, shape: [Int]) {
        let count = data.count / MemoryLayout<Scalar>.size
        self.init(
            scalars: data.withUnsafeBytes { bytes in
                (0..<count).map { bytes.loadUnaligned(fromByteOffset: $0 * MemoryLayout<Scalar>.size, as: Scalar.self) }
            }, shape: shape)
    }

    /// The bytes of the scalars; `strides` are counted in scalars.
    public init(data: Data, shape: [Int], strides: [Int]) {
        let size = MemoryLayout<Scalar>.size
        guard let layout = ArrayLayout(shape: shape, strides: strides), layout.span <= data.count / size else {
            preconditionFailure("\(data.count) bytes do not hold shape \(shape) with strides \(strides)")
        }
        self.init(
            scalars: data.withUnsafeBytes { bytes in
                (0..<layout.count).map {
                    bytes.loadUnaligned(fromByteOffset: layout.offset(linear: $0) * size, as: Scalar.self)
                }
            }, shape: shape)
    }

    /// Here the bytes are copied, and released at once.
    public init(bytesNoCopy bytes: UnsafeRawPointer, shape: [Int], deallocator: Data.Deallocator) {
        guard let layout = ArrayLayout(cOrder: shape) else { preconditionFailure("shape \(shape) is not possible") }
        self.init(bytesNoCopy: bytes, shape: shape, strides: layout.strides, deallocator: deallocator)
    }

    /// Here the bytes are copied, and released at once.
    public init(
        bytesNoCopy bytes: UnsafeRawPointer, shape: [Int], strides: [Int], deallocator: Data.Deallocator
    ) {
        guard let layout = ArrayLayout(shape: shape, strides: strides) else {
            preconditionFailure("shape \(shape) with strides \(strides) is not possible")
        }
        let data = Data(
            bytesNoCopy: UnsafeMutableRawPointer(mutating: bytes), count: layout.span * MemoryLayout<Scalar>.size,
            deallocator: deallocator)
        self.init(data: data, shape: shape, strides: strides)
    }

    public init(
        unsafeUninitializedShape shape: [Int],
        initializingWith initializer: (inout UnsafeMutableBufferPointer<Scalar>, [Int]) throws -> Void
    ) rethrows {
        guard let layout = ArrayLayout(cOrder: shape) else { preconditionFailure("shape \(shape) is not possible") }
        let scalars = try [Scalar](unsafeUninitializedCapacity: layout.count) { buffer, count in
            var whole = UnsafeMutableBufferPointer(rebasing: buffer[..<layout.count])
            try initializer(&whole, layout.strides)
            count = layout.count
        }
        self.init(unchecked: scalars, shape)
    }

    /// A copy of an array of the same element type, whatever its layout.
    public init(_ multiArray: MLMultiArray) {
        precondition(multiArray.dataType == Scalar.multiArrayDataType, "the array holds \(multiArray.dataType)")
        self.init(converting: multiArray)
    }

    /// A copy of an array of any element type and layout.
    public init(converting multiArray: MLMultiArray) {
        self.init(unsafeUninitializedShape: multiArray.layout.shape) { buffer, strides in
            guard let base = buffer.baseAddress, let layout = ArrayLayout(cOrder: multiArray.layout.shape) else {
                return
            }
            multiArray.view.copy(
                to: ArrayView(base: UnsafeMutableRawPointer(base), layout: layout, dataType: Scalar.multiArrayDataType))
        }
    }

    /// Counted in scalars.
    public var strides: [Int] { ArrayLayout(cOrder: shape)?.strides ?? [] }
    public var scalarCount: Int { scalars.count }
    public var isScalar: Bool { shape.isEmpty }
    public var scalar: Scalar? { isScalar ? scalars.first : nil }
    /// The size of the first axis.
    public var count: Int { shape.first ?? 0 }

    public mutating func fill(with value: Scalar) { scalars = Array(repeating: value, count: scalars.count) }

    public subscript(scalarAt indices: Int...) -> Scalar {
        get { self[scalarAt: indices] }
        set { self[scalarAt: indices] = newValue }
    }

    public subscript<C: Collection>(scalarAt indices: C) -> Scalar where C.Element == Int {
        get { scalars[offset(indices)] }
        set { scalars[offset(indices)] = newValue }
    }

    private func offset<C: Collection>(_ indices: C) -> Int where C.Element == Int {
        precondition(
            indices.count == shape.count && zip(indices, shape).allSatisfy { (0..<$1).contains($0) },
            "\(Array(indices)) is not in an array of shape \(shape)")
        return zip(indices, strides).reduce(0) { $0 + $1.0 * $1.1 }
    }

    public func withUnsafeShapedBufferPointer<R>(
        _ body: (UnsafeBufferPointer<Scalar>, [Int], [Int]) throws -> R
    ) rethrows -> R {
        try scalars.withUnsafeBufferPointer { try body($0, shape, strides) }
    }

    public mutating func withUnsafeMutableShapedBufferPointer<R>(
        _ body: (inout UnsafeMutableBufferPointer<Scalar>, [Int], [Int]) throws -> R
    ) rethrows -> R {
        let (shape, strides) = (shape, strides)
        return try scalars.withUnsafeMutableBufferPointer { try body(&$0, shape, strides) }
    }
}

extension MLShapedArray: @unchecked Sendable {}
extension MLShapedArray: Equatable where Scalar: Equatable {}

extension MLMultiArray {
    /// A copy.
    public convenience init<Scalar>(_ shapedArray: MLShapedArray<Scalar>) {
        guard let layout = ArrayLayout(cOrder: shapedArray.shape) else {
            preconditionFailure("shape \(shapedArray.shape) is not possible")
        }
        self.init(layout: layout, dataType: Scalar.multiArrayDataType)
        shapedArray.scalars.withUnsafeBytes { bytes.copyMemory(from: $0) }
    }
}

extension MLFeatureValue {
    public convenience init<Scalar>(shapedArray: MLShapedArray<Scalar>) {
        self.init(multiArray: MLMultiArray(shapedArray))
    }

    /// Nil unless the value is an array of that element type.
    public func shapedArrayValue<Scalar>(of type: Scalar.Type) -> MLShapedArray<Scalar>? {
        guard let array = multiArrayValue, array.dataType == Scalar.multiArrayDataType else { return nil }
        return MLShapedArray(array)
    }
}
