// MLShapedArray: numbers with a shape as a Swift value. The scalars are in ShapedBuffer.swift.
import Foundation

public struct MLShapedArray<Scalar: MLShapedArrayScalar>: MLShapedArrayProtocol, @unchecked Sendable {
    public typealias ArrayLiteralElement = Scalar
    public typealias Element = MLShapedArraySlice<Scalar>
    public typealias SubSequence = MLShapedArraySlice<Scalar>
    public typealias Index = Int
    public typealias Indices = Range<Int>
    public typealias Iterator = IndexingIterator<MLShapedArray<Scalar>>

    var buffer: ShapedBuffer<Scalar>

    init(_ buffer: ShapedBuffer<Scalar>) { self.buffer = buffer }

    public init(bytesNoCopy bytes: UnsafeRawPointer, shape: [Int], strides: [Int], deallocator: Data.Deallocator) {
        buffer = ShapedBuffer(foreign: bytes, .checked(shape, strides), deallocator)
    }

    public init(
        unsafeUninitializedShape shape: [Int],
        initializingWith initializer: (inout UnsafeMutableBufferPointer<Scalar>, [Int]) throws -> Void
    ) rethrows {
        buffer = ShapedBuffer(.checked(shape))
        try buffer.withMutable { try initializer(&$0, $1.strides) }
    }

    public init(scalar: Scalar) { self.init(repeating: scalar, shape: []) }

    /// The bytes of the scalars, in C order.
    public init(data: Data, shape: [Int]) { buffer = ShapedBuffer(bytes: data, .checked(shape)) }

    /// The bytes of the scalars; `strides` are counted in scalars.
    public init(data: Data, shape: [Int], strides: [Int]) {
        buffer = ShapedBuffer(bytes: data, .checked(shape, strides))
    }

    @available(macOS 15, iOS 18, *)
    public init<S: Sequence>(scalars: S, shape: [Int]) where S.Element == Scalar {
        self.init(inCOrder: scalars, shape)
    }

    public init<S: Sequence>(concatenating shapedArrays: S, alongAxis: Int)
    where S.Element: MLShapedArrayProtocol, S.Element.Scalar == Scalar {
        buffer = ShapedBuffer(concatenating: Array(shapedArrays), alongAxis)
    }

    /// A copy of an array of the same element type, whatever its layout.
    @available(macOS 15, iOS 18, *)
    public init(_ multiArray: MLMultiArray) { self.init(sameType: multiArray) }

    public var shape: [Int] { buffer.layout.shape }
    public var strides: [Int] { buffer.layout.strides }
    public var startIndex: Int { 0 }
    public var endIndex: Int { shape.first ?? 0 }
    public var indices: Range<Int> { 0..<endIndex }

    public subscript(index: Int) -> MLShapedArraySlice<Scalar> {
        get { self[CollectionOfOne(index)] }
        set { self[CollectionOfOne(index)] = newValue }
    }

    public subscript<C: Collection>(indices: C) -> MLShapedArraySlice<Scalar> where C.Element == Int {
        get { MLShapedArraySlice(buffer.part(at: indices)) }
        set { buffer.replace({ $0.part(at: indices) }, with: newValue.buffer) }
    }

    public subscript<C: Collection>(sliceRanges: C) -> MLShapedArraySlice<Scalar> where C.Element == Range<Int> {
        get { MLShapedArraySlice(buffer.part(in: sliceRanges)) }
        set { buffer.replace({ $0.part(in: sliceRanges) }, with: newValue.buffer) }
    }

    public subscript<C: Collection>(scalarAt indices: C) -> Scalar where C.Element == Int {
        get { buffer.scalar(at: indices) }
        set { buffer.set(newValue, at: indices) }
    }

    public func withUnsafeShapedBufferPointer<R>(
        _ body: (UnsafeBufferPointer<Scalar>, [Int], [Int]) throws -> R
    ) rethrows -> R {
        try buffer.withPointer { try body($0, shape, strides) }
    }

    public mutating func withUnsafeMutableShapedBufferPointer<R>(
        _ body: (inout UnsafeMutableBufferPointer<Scalar>, [Int], [Int]) throws -> R
    ) rethrows -> R {
        try buffer.withMutable { try body(&$0, $1.shape, $1.strides) }
    }
}

@available(macOS 15, iOS 18, *)
extension MLShapedArray {
    public func reshaped(to newShape: [Int]) -> MLShapedArray { MLShapedArray(buffer.reshaped(to: newShape)) }

    /// Without the axes of size one.
    public func squeezingShape() -> MLShapedArray { MLShapedArray(buffer.squeezed()) }

    /// With an axis of size one at that place.
    public func expandingShape(at axis: Int) -> MLShapedArray { MLShapedArray(buffer.expanded(at: axis)) }

    /// With the axes in reverse order.
    public func transposed() -> MLShapedArray { transposed(permutation: shape.indices.reversed()) }

    /// With axis `axes[i]` as axis `i`.
    public func transposed(permutation axes: [Int]) -> MLShapedArray { MLShapedArray(buffer.transposed(axes)) }

    public func changingLayout(to bufferLayout: MLShapedArrayBufferLayout) -> MLShapedArray {
        MLShapedArray(buffer.copied(to: bufferLayout.layout(shape)))
    }

    /// The body sees the scalars in that layout, which they keep.
    public mutating func withUnsafeMutableShapedBufferPointer<R>(
        using bufferLayout: MLShapedArrayBufferLayout,
        _ body: (inout UnsafeMutableBufferPointer<Scalar>, [Int], [Int]) throws -> R
    ) rethrows -> R {
        buffer.move(to: bufferLayout.layout(shape))
        return try withUnsafeMutableShapedBufferPointer(body)
    }
}

@available(macOS 14, iOS 17, *)
extension MLShapedArray: Equatable where Scalar: Equatable {
    public static func == (lhs: MLShapedArray, rhs: MLShapedArray) -> Bool {
        lhs.shape == rhs.shape && lhs.scalars == rhs.scalars
    }
}

extension MLShapedArray: Encodable where Scalar: Encodable {
    public func encode(to encoder: any Encoder) throws { try CodedShapedArray(self).encode(to: encoder) }
}

extension MLShapedArray: Decodable where Scalar: Decodable {
    public init(from decoder: any Decoder) throws {
        let coded = try CodedShapedArray<Scalar>(from: decoder)
        self.init(scalars: coded.scalars, shape: coded.shape)
    }
}

extension MLShapedArray: CustomStringConvertible {
    public var description: String {
        let size = shape.isEmpty ? "scalar" : shape.map(String.init).joined(separator: " × ")
        let shown = scalars.prefix(32).map { "\($0)" }.joined(separator: ", ")
        return "\(Scalar.self) \(size) array\n[\(shown)\(scalarCount > 32 ? ", ..." : "")]"
    }
}

// MARK: Other forms of the same numbers

extension MLMultiArray {
    /// A copy.
    public convenience init<ShapedArray: MLShapedArrayProtocol>(_ shapedArray: ShapedArray) {
        self.init(layout: .checked(shapedArray.shape), dataType: ShapedArray.Scalar.multiArrayDataType)
        shapedArray.withUnsafeShapedBufferPointer { scalars, shape, strides in
            ArrayView(scalars, .checked(shape, strides)).copy(to: view)
        }
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
