// The scalars behind shaped arrays and their slices: memory that all copies share until one of them writes.
import Foundation

/// Some scalars of a memory that others may look at too.
struct ShapedBuffer<Scalar: MLShapedArrayScalar> {
    private var memory: ShapedMemory
    /// Of the first scalar.
    private var offset: Int
    private(set) var layout: ArrayLayout

    /// Contents are undefined.
    init(_ layout: ArrayLayout) {
        self.init(memory: ShapedMemory(byteCount: layout.span * MemoryLayout<Scalar>.stride), 0, layout)
    }

    /// Over foreign memory, which is never written.
    init(foreign bytes: UnsafeRawPointer, _ layout: ArrayLayout, _ deallocator: Data.Deallocator) {
        let size = layout.span * MemoryLayout<Scalar>.stride
        self.init(memory: ShapedMemory(foreign: bytes, byteCount: size, deallocator), 0, layout)
    }

    init(bytes data: Data, _ layout: ArrayLayout) {
        precondition(
            layout.span <= data.count / MemoryLayout<Scalar>.stride,
            "\(data.count) bytes do not hold shape \(layout.shape) with strides \(layout.strides)")
        self.init(layout)
        withMutable { pointer, _ in _ = data.copyBytes(to: pointer) }
    }

    private init(memory: ShapedMemory, _ offset: Int, _ layout: ArrayLayout) {
        self.memory = memory
        self.offset = offset
        self.layout = layout
    }

    var view: ArrayView {
        ArrayView(
            base: memory.base + offset * MemoryLayout<Scalar>.stride, layout: layout,
            dataType: Scalar.multiArrayDataType)
    }

    // MARK: Parts

    /// What stands at a place of the first axes.
    func part<C: Collection>(at indices: C) -> ShapedBuffer where C.Element == Int {
        precondition(
            indices.count <= layout.shape.count && zip(indices, layout.shape).allSatisfy { (0..<$1).contains($0) },
            "\(Array(indices)) is not in an array of shape \(layout.shape)")
        let start = zip(indices, layout.strides).reduce(offset) { $0 + $1.0 * $1.1 }
        return ShapedBuffer(memory: memory, start, layout.droppingAxes(indices.count))
    }

    /// Parts of the first axes; the others are kept whole.
    func part<C: Collection>(in ranges: C) -> ShapedBuffer where C.Element == Range<Int> {
        precondition(
            ranges.count <= layout.shape.count
                && zip(ranges, layout.shape).allSatisfy { $0.lowerBound >= 0 && $0.upperBound <= $1 },
            "\(Array(ranges)) is not in an array of shape \(layout.shape)")
        let isEmpty = ranges.contains { $0.isEmpty }
        let start = isEmpty ? offset : zip(ranges, layout.strides).reduce(offset) { $0 + $1.0.lowerBound * $1.1 }
        var part = layout
        for (axis, range) in ranges.enumerated() { part.shape[axis] = range.count }
        return ShapedBuffer(memory: memory, start, part)
    }

    /// Puts scalars of the same shape there, whoever has them.
    mutating func replace(_ part: (ShapedBuffer) -> ShapedBuffer, with other: ShapedBuffer) {
        let target = part(self).layout.shape
        precondition(target == other.layout.shape, "the shape \(other.layout.shape) does not fit \(target)")
        makeOwn()
        other.view.copy(to: part(self).view)
    }

    func scalar<C: Collection>(at indices: C) -> Scalar where C.Element == Int {
        withPointer { $0[Self.offset(indices, layout)] }
    }

    mutating func set<C: Collection>(_ value: Scalar, at indices: C) where C.Element == Int {
        withMutable { pointer, layout in pointer[Self.offset(indices, layout)] = value }
    }

    private static func offset<C: Collection>(_ indices: C, _ layout: ArrayLayout) -> Int where C.Element == Int {
        precondition(
            indices.count == layout.shape.count && zip(indices, layout.shape).allSatisfy { (0..<$1).contains($0) },
            "\(Array(indices)) is not in an array of shape \(layout.shape)")
        return zip(indices, layout.strides).reduce(0) { $0 + $1.0 * $1.1 }
    }

    // MARK: Layouts

    /// One array after the other along an axis.
    init<A: MLShapedArrayProtocol>(concatenating arrays: [A], _ axis: Int) where A.Scalar == Scalar {
        guard var shape = arrays.first?.shape else { preconditionFailure("there is nothing to concatenate") }
        precondition(shape.indices.contains(axis), "there is no axis \(axis) in shape \(shape)")
        shape[axis] = arrays.reduce(0) { $0 + $1.shape[axis] }
        self.init(.checked(shape))
        var start = 0
        for array in arrays {
            var ranges = shape.map { 0..<$0 }
            ranges[axis] = start..<start + array.shape[axis]
            let target = part(in: ranges).view
            precondition(target.layout.shape == array.shape, "the arrays differ in more than axis \(axis)")
            array.withUnsafeShapedBufferPointer { scalars, shape, strides in
                ArrayView(scalars, .checked(shape, strides)).copy(to: target)
            }
            start = ranges[axis].upperBound
        }
    }

    func copied(to layout: ArrayLayout) -> ShapedBuffer {
        let copy = ShapedBuffer(layout)
        view.copy(to: copy.view)
        return copy
    }

    /// The same scalars in C order under another shape.
    func reshaped(to shape: [Int]) -> ShapedBuffer {
        let target = ArrayLayout.checked(shape)
        precondition(target.count == layout.count, "the shape \(layout.shape) cannot become \(shape)")
        let copy = copied(to: .checked(layout.shape))
        return ShapedBuffer(memory: copy.memory, copy.offset, target)
    }

    func squeezed() -> ShapedBuffer { reshaped(to: layout.shape.filter { $0 != 1 }) }

    func expanded(at axis: Int) -> ShapedBuffer {
        let shape = layout.shape
        precondition((0...shape.count).contains(axis), "there is no place \(axis) in shape \(shape)")
        return reshaped(to: shape[..<axis] + [1] + shape[axis...])
    }

    mutating func move(to layout: ArrayLayout) {
        if layout != self.layout { self = copied(to: layout) }
    }

    func transposed(_ permutation: [Int]) -> ShapedBuffer {
        precondition(permutation.sorted() == Array(layout.shape.indices), "\(permutation) does not name each axis once")
        let moved = ArrayLayout.checked(permutation.map { layout.shape[$0] }, permutation.map { layout.strides[$0] })
        return ShapedBuffer(memory: memory, offset, moved).copied(to: .checked(moved.shape))
    }

    // MARK: Memory

    func withPointer<R>(_ body: (UnsafeBufferPointer<Scalar>) throws -> R) rethrows -> R {
        try withExtendedLifetime(memory) { try body(UnsafeBufferPointer(pointer)) }
    }

    mutating func withMutable<R>(
        _ body: (inout UnsafeMutableBufferPointer<Scalar>, ArrayLayout) throws -> R
    ) rethrows -> R {
        makeOwn()
        var pointer = pointer
        return try withExtendedLifetime(memory) { try body(&pointer, layout) }
    }

    private var pointer: UnsafeMutableBufferPointer<Scalar> {
        UnsafeMutableBufferPointer(start: view.base.assumingMemoryBound(to: Scalar.self), count: layout.span)
    }

    /// Before writing: nobody else may see it.
    private mutating func makeOwn() {
        if memory.isForeign || !isKnownUniquelyReferenced(&memory) { self = copied(to: layout.packed) }
    }
}

/// Bytes that go when the last shaped array does.
private final class ShapedMemory {
    let base: UnsafeMutableRawPointer
    private let foreign: Data?

    var isForeign: Bool { foreign != nil }

    init(byteCount: Int) {
        base = .allocate(byteCount: max(byteCount, 1), alignment: 64)
        foreign = nil
    }

    init(foreign bytes: UnsafeRawPointer, byteCount: Int, _ deallocator: Data.Deallocator) {
        base = UnsafeMutableRawPointer(mutating: bytes)
        foreign = Data(bytesNoCopy: base, count: byteCount, deallocator: deallocator)
    }

    deinit { if !isForeign { base.deallocate() } }
}

extension ArrayLayout {
    /// What a shaped array may have; anything else ends the program, as on Apple systems.
    static func checked(_ shape: [Int], _ strides: [Int]? = nil) -> ArrayLayout {
        let layout = strides.map { ArrayLayout(shape: shape, strides: $0) } ?? ArrayLayout(cOrder: shape)
        guard let layout else {
            preconditionFailure("the shape \(shape) with strides \(strides ?? []) is not possible")
        }
        return layout
    }

    fileprivate func droppingAxes(_ count: Int) -> ArrayLayout {
        var rest = self
        rest.shape.removeFirst(count)
        rest.strides.removeFirst(count)
        return rest
    }

    /// Without gaps, with the axes in the same order of memory.
    fileprivate var packed: ArrayLayout {
        var packed = self
        var stride = 1
        for axis in shape.indices.sorted(by: { (strides[$0], -$0) < (strides[$1], -$1) }) {
            packed.strides[axis] = stride
            stride *= max(shape[axis], 1)
        }
        return packed
    }
}
