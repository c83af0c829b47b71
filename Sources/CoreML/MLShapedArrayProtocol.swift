// What shaped arrays and their slices have in common, and the ranges that slices are named by.
import Foundation

public protocol MLShapedArrayProtocol<Scalar>: ExpressibleByArrayLiteral, MutableCollection, RandomAccessCollection
where Index == Int {
    associatedtype Scalar: MLShapedArrayScalar

    /// `strides` are counted in scalars.
    init(bytesNoCopy bytes: UnsafeRawPointer, shape: [Int], strides: [Int], deallocator: Data.Deallocator)
    init(
        unsafeUninitializedShape shape: [Int],
        initializingWith initializer: (inout UnsafeMutableBufferPointer<Scalar>, [Int]) throws -> Void) rethrows
    var shape: [Int] { get }
    /// Counted in scalars.
    var strides: [Int] { get }
    subscript<C: Collection>(sliceRanges: C) -> MLShapedArraySlice<Scalar> where C.Element == Range<Int> { get set }
    subscript<C: Collection>(indices: C) -> MLShapedArraySlice<Scalar> where C.Element == Int { get set }
    subscript<C: Collection>(scalarAt indices: C) -> Scalar where C.Element == Int { get set }
    func withUnsafeShapedBufferPointer<R>(
        _ body: (UnsafeBufferPointer<Scalar>, [Int], [Int]) throws -> R
    ) rethrows -> R
    mutating func withUnsafeMutableShapedBufferPointer<R>(
        _ body: (inout UnsafeMutableBufferPointer<Scalar>, [Int], [Int]) throws -> R
    ) rethrows -> R
}

// MARK: Making

extension MLShapedArrayProtocol {
    /// Of rank one.
    public init(arrayLiteral elements: Scalar...) { self.init(scalars: elements, shape: [elements.count]) }

    public init(repeating value: Scalar, shape: [Int]) {
        self.init(unsafeUninitializedShape: shape) { buffer, _ in buffer.initialize(repeating: value) }
    }

    /// The scalars in C order.
    public init<S: Sequence>(scalars: S, shape: [Int]) where S.Element == Scalar {
        self.init(inCOrder: scalars, shape)
    }

    public init(bytesNoCopy bytes: UnsafeRawPointer, shape: [Int], deallocator: Data.Deallocator) {
        let strides = ArrayLayout.checked(shape).strides
        self.init(bytesNoCopy: bytes, shape: shape, strides: strides, deallocator: deallocator)
    }

    /// A copy with another element type.
    public init<T: MLShapedArrayProtocol>(converting source: T) {
        self.init(unsafeUninitializedShape: source.shape) { buffer, _ in
            let target = ArrayView(&buffer, .checked(source.shape))
            source.withUnsafeShapedBufferPointer { scalars, shape, strides in
                ArrayView(scalars, .checked(shape, strides)).copy(to: target)
            }
        }
    }

    /// A copy of an array of the same element type, whatever its layout.
    public init(_ multiArray: MLMultiArray) { self.init(sameType: multiArray) }

    /// A copy of an array of any element type and layout.
    public init(converting multiArray: MLMultiArray) {
        self.init(unsafeUninitializedShape: multiArray.layout.shape) { buffer, _ in
            multiArray.view.copy(to: ArrayView(&buffer, .checked(multiArray.layout.shape)))
        }
    }
}

/// What the types declare again, since Apple's do.
extension MLShapedArrayProtocol {
    init<S: Sequence>(inCOrder scalars: S, _ shape: [Int]) where S.Element == Scalar {
        let scalars = Array(scalars)
        precondition(
            ArrayLayout(cOrder: shape)?.count == scalars.count, "shape \(shape) does not have \(scalars.count) scalars")
        self.init(unsafeUninitializedShape: shape) { buffer, _ in _ = buffer.initialize(from: scalars) }
    }

    init(sameType multiArray: MLMultiArray) {
        precondition(multiArray.dataType == Scalar.multiArrayDataType, "the array holds \(multiArray.dataType)")
        self.init(converting: multiArray)
    }
}

extension MLShapedArrayProtocol
where Scalar: BinaryFloatingPoint, Scalar.RawSignificand: FixedWidthInteger {
    public init(identityMatrixOfSize size: Int) { self.init(diagonal: 1, size) }

    public init(randomScalarsIn range: Range<Scalar>, shape: [Int]) {
        self.init(shape) { Scalar.random(in: range) }
    }
}

extension MLShapedArrayProtocol where Scalar: FixedWidthInteger {
    public init(identityMatrixOfSize size: Int) { self.init(diagonal: 1, size) }

    public init(randomScalarsIn range: Range<Scalar>, shape: [Int]) {
        self.init(shape) { Scalar.random(in: range) }
    }
}

extension MLShapedArrayProtocol {
    fileprivate init(_ shape: [Int], each scalar: () -> Scalar) {
        self.init(inCOrder: (0..<ArrayLayout.checked(shape).count).map { _ in scalar() }, shape)
    }
}

extension MLShapedArrayProtocol where Scalar: Numeric {
    fileprivate init(diagonal value: Scalar, _ size: Int) {
        self.init(repeating: 0, shape: [size, size])
        for index in 0..<size { self[scalarAt: [index, index]] = value }
    }
}

extension ArrayView {
    init<Scalar: MLShapedArrayScalar>(_ buffer: UnsafeBufferPointer<Scalar>, _ layout: ArrayLayout) {
        let base = UnsafeMutableRawPointer(mutating: buffer.baseAddress) ?? Self.nothing
        self.init(base: base, layout: layout, dataType: Scalar.multiArrayDataType)
    }

    init<Scalar: MLShapedArrayScalar>(_ buffer: inout UnsafeMutableBufferPointer<Scalar>, _ layout: ArrayLayout) {
        self.init(UnsafeBufferPointer(buffer), layout)
    }

    /// Arrays without elements may have no address.
    private static var nothing: UnsafeMutableRawPointer {
        UnsafeMutableRawPointer(bitPattern: 64) ?? .allocate(byteCount: 1, alignment: 1)
    }
}

// MARK: Scalars

extension MLShapedArrayProtocol {
    public var isScalar: Bool { shape.isEmpty }
    /// The size of the first axis.
    public var count: Int { shape.first ?? 0 }
    public var scalarCount: Int { shape.reduce(1, *) }

    /// In C order.
    public var scalars: [Scalar] {
        get {
            withUnsafeShapedBufferPointer { buffer, shape, strides in
                let from = ArrayView(buffer, .checked(shape, strides))
                return [Scalar](unsafeUninitializedCapacity: from.layout.count) { target, count in
                    from.copy(to: ArrayView(&target, .checked(shape)))
                    count = from.layout.count
                }
            }
        }
        set {
            precondition(newValue.count == scalarCount, "the shape \(shape) has \(scalarCount) scalars")
            newValue.withUnsafeBufferPointer { scalars in
                withUnsafeMutableShapedBufferPointer { buffer, shape, strides in
                    ArrayView(scalars, .checked(shape)).copy(to: ArrayView(&buffer, .checked(shape, strides)))
                }
            }
        }
    }

    /// Nil when there is a shape.
    public var scalar: Scalar? {
        get { isScalar ? self[scalarAt: []] : nil }
        set {
            guard isScalar, let newValue else { preconditionFailure("only an array without axes has one scalar") }
            self[scalarAt: []] = newValue
        }
    }

    public mutating func fill(with value: Scalar) { scalars = Array(repeating: value, count: scalarCount) }

    /// In C order; a shorter collection begins anew at its end.
    public mutating func fill<C: Collection>(with collection: C) where C.Element == Scalar {
        precondition(!collection.isEmpty || scalarCount == 0, "there is nothing to fill with")
        let values = Array(collection)
        scalars = (0..<scalarCount).map { values[$0 % values.count] }
    }

    public subscript(scalarAt indices: Int...) -> Scalar {
        get { self[scalarAt: indices] }
        set { self[scalarAt: indices] = newValue }
    }
}

// MARK: Slices

extension MLShapedArrayProtocol {
    public func index(after index: Int) -> Int { index + 1 }
    public func index(_ index: Int, offsetBy distance: Int) -> Int { index + distance }

    public subscript(index: Int) -> MLShapedArraySlice<Scalar> {
        get { self[CollectionOfOne(index)] }
        set { self[CollectionOfOne(index)] = newValue }
    }

    public subscript(indices: Int...) -> MLShapedArraySlice<Scalar> {
        get { self[indices] }
        set { self[indices] = newValue }
    }

    public subscript(sliceRange: Range<Int>) -> MLShapedArraySlice<Scalar> {
        get { self[CollectionOfOne(sliceRange)] }
        set { self[CollectionOfOne(sliceRange)] = newValue }
    }

    public subscript(sliceRange: any MLShapedArrayRangeExpression) -> MLShapedArraySlice<Scalar> {
        get { self[ranges([sliceRange])] }
        set { self[ranges([sliceRange])] = newValue }
    }

    public subscript(sliceRanges: any MLShapedArrayRangeExpression...) -> MLShapedArraySlice<Scalar> {
        get { self[ranges(sliceRanges)] }
        set { self[ranges(sliceRanges)] = newValue }
    }

    public subscript<C: Collection>(partialSliceRanges: C) -> MLShapedArraySlice<Scalar>
    where C.Element == any MLShapedArrayRangeExpression {
        get { self[ranges(partialSliceRanges)] }
        set { self[ranges(partialSliceRanges)] = newValue }
    }

    /// The whole.
    public subscript(_: (UnboundedRange_) -> Void) -> MLShapedArraySlice<Scalar> {
        get { self[[Range<Int>]()] }
        set { self[[Range<Int>]()] = newValue }
    }

    private func ranges<C: Collection>(_ expressions: C) -> [Range<Int>]
    where C.Element == any MLShapedArrayRangeExpression {
        precondition(expressions.count <= shape.count, "there are \(expressions.count) ranges for the shape \(shape)")
        return zip(expressions, shape).map { $0.relative(toShapedArrayAxis: 0..<$1) }
    }
}

/// What may stand for a range of an axis.
public protocol MLShapedArrayRangeExpression {
    func relative(toShapedArrayAxis range: Range<Int>) -> Range<Int>
}

extension Range: MLShapedArrayRangeExpression where Bound == Int {
    public func relative(toShapedArrayAxis range: Range<Int>) -> Range<Int> { self }
}

extension ClosedRange: MLShapedArrayRangeExpression where Bound == Int {
    public func relative(toShapedArrayAxis range: Range<Int>) -> Range<Int> { lowerBound..<upperBound + 1 }
}

extension PartialRangeFrom: MLShapedArrayRangeExpression where Bound == Int {
    public func relative(toShapedArrayAxis range: Range<Int>) -> Range<Int> { lowerBound..<range.upperBound }
}

extension PartialRangeUpTo: MLShapedArrayRangeExpression where Bound == Int {
    public func relative(toShapedArrayAxis range: Range<Int>) -> Range<Int> { range.lowerBound..<upperBound }
}

extension PartialRangeThrough: MLShapedArrayRangeExpression where Bound == Int {
    public func relative(toShapedArrayAxis range: Range<Int>) -> Range<Int> { range.lowerBound..<upperBound + 1 }
}
