// MLShapedArraySlice: a part of a shaped array, as a value of its own that shares the memory until one of them writes.
import Foundation

/// Its own indices begin at zero.
public struct MLShapedArraySlice<Scalar: MLShapedArrayScalar>: MLShapedArrayProtocol, @unchecked Sendable {
    public typealias ArrayLiteralElement = Scalar
    public typealias SubSequence = MLShapedArraySlice<Scalar>
    public typealias Index = Int
    public typealias Indices = Range<Int>
    public typealias Iterator = IndexingIterator<MLShapedArraySlice<Scalar>>

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

extension MLShapedArraySlice {
    public typealias Element = MLShapedArraySlice<Scalar>
}

@available(macOS 15, iOS 18, *)
extension MLShapedArraySlice {
    public func reshaped(to newShape: [Int]) -> MLShapedArraySlice {
        MLShapedArraySlice(buffer.reshaped(to: newShape))
    }

    /// Without the axes of size one.
    public func squeezingShape() -> MLShapedArraySlice { MLShapedArraySlice(buffer.squeezed()) }

    /// With an axis of size one at that place.
    public func expandingShape(at axis: Int) -> MLShapedArraySlice { MLShapedArraySlice(buffer.expanded(at: axis)) }

    /// With the axes in reverse order.
    public func transposed() -> MLShapedArraySlice { transposed(permutation: shape.indices.reversed()) }

    /// With axis `axes[i]` as axis `i`.
    public func transposed(permutation axes: [Int]) -> MLShapedArraySlice {
        MLShapedArraySlice(buffer.transposed(axes))
    }

    public func changingLayout(to bufferLayout: MLShapedArrayBufferLayout) -> MLShapedArraySlice {
        MLShapedArraySlice(buffer.copied(to: bufferLayout.layout(shape)))
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
extension MLShapedArraySlice: Equatable where Scalar: Equatable {
    public static func == (lhs: MLShapedArraySlice, rhs: MLShapedArraySlice) -> Bool {
        lhs.shape == rhs.shape && lhs.scalars == rhs.scalars
    }
}

extension MLShapedArraySlice: Encodable where Scalar: Encodable {
    public func encode(to encoder: any Encoder) throws { try CodedShapedArray(self).encode(to: encoder) }
}

extension MLShapedArraySlice: Decodable where Scalar: Decodable {
    public init(from decoder: any Decoder) throws {
        let coded = try CodedShapedArray<Scalar>(from: decoder)
        self.init(scalars: coded.scalars, shape: coded.shape)
    }
}
