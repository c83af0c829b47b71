// Views of foreign memory, and copies between them and memory in C order. Knows bytes, not numbers.

/// Elements of `elementSize` bytes at `base` plus, for each index, the sum of index times stride.
package struct StridedBytes {
    package let base: UnsafeMutableRawPointer?
    package let shape: [Int]
    /// In bytes; may be zero or negative.
    package let strides: [Int]
    package let elementSize: Int
    /// The product of the shape.
    package let count: Int

    /// `strides` nil means C order. The view borrows `base`.
    ///
    /// Throws `badShape` on negative or overflowing sizes and `invalidArgument` on a null base of a view that
    /// has elements.
    package init(
        base: UnsafeMutableRawPointer?, shape: [Int], strides: [Int]?, elementSize: Int
    ) throws(RLXError) {
        guard let count = elementCount(shape), let contiguous = cOrderStrides(shape, elementSize: elementSize)
        else { throw .tooLarge(shape) }
        let strides = strides ?? contiguous
        guard strides.count == shape.count, Self.isAddressable(shape, strides) else { throw .tooLarge(shape) }
        guard base != nil || count == 0 else {
            throw RLXError(.invalidArgument, "a tensor of shape \(shape.text) has no data: its pointer is NULL")
        }
        self.base = base
        self.shape = shape
        self.strides = strides
        self.elementSize = elementSize
        self.count = count
    }

    /// Whether no offset between two elements overflows.
    private static func isAddressable(_ shape: [Int], _ strides: [Int]) -> Bool {
        var reach = 0
        for (size, stride) in zip(shape, strides) where size > 1 {
            let (extent, tooFar) = stride.multipliedReportingOverflow(by: size - 1)
            guard !tooFar, extent != .min else { return false }
            let (sum, overflow) = reach.addingReportingOverflow(abs(extent))
            guard !overflow else { return false }
            reach = sum
        }
        return true
    }

    /// Copies all elements to `destination`, which is in C order and as large as the view's elements.
    package func copy(to destination: UnsafeMutableRawPointer) {
        forEachRun { view, offset, length in
            (destination + offset).copyMemory(from: view, byteCount: length)
        }
    }

    /// A copy of all elements in C order.
    func bytes() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count * elementSize) { buffer, size in
            if let base = buffer.baseAddress { copy(to: base) }
            size = count * elementSize
        }
    }

    /// Copies all elements from `source`, which is in C order and as large as the view's elements.
    package func copy(from source: UnsafeRawPointer) {
        forEachRun { view, offset, length in
            view.copyMemory(from: source + offset, byteCount: length)
        }
    }

    /// Visits the largest runs that are contiguous in the view too, in C order: address in the view, offset in
    /// C-ordered memory, length in bytes.
    private func forEachRun(_ body: (UnsafeMutableRawPointer, Int, Int) -> Void) {
        guard let base, count > 0 else { return }
        var length = elementSize
        var outer = shape.count
        while outer > 0, strides[outer - 1] == length || shape[outer - 1] == 1 {
            outer -= 1
            length *= shape[outer]
        }
        var index = [Int](repeating: 0, count: outer)
        var position = 0
        for offset in stride(from: 0, to: count * elementSize, by: length) {
            body(base + position, offset, length)
            for axis in (0..<outer).reversed() {
                if index[axis] + 1 < shape[axis] {
                    index[axis] += 1
                    position += strides[axis]
                    break
                }
                position -= strides[axis] * index[axis]
                index[axis] = 0
            }
        }
    }
}

/// The product of a shape; nil when a size is negative or the product too large.
package func elementCount(_ shape: [Int]) -> Int? {
    var count = 1
    var isEmpty = false
    for size in shape {
        guard size >= 0 else { return nil }
        isEmpty = isEmpty || size == 0
        let (product, overflow) = count.multipliedReportingOverflow(by: max(size, 1))
        guard !overflow else { return nil }
        count = product
    }
    return isEmpty ? 0 : count
}

/// Byte strides of C order; nil when the whole does not fit.
package func cOrderStrides(_ shape: [Int], elementSize: Int) -> [Int]? {
    var strides = [Int](repeating: 0, count: shape.count)
    var stride = elementSize
    for axis in shape.indices.reversed() {
        strides[axis] = stride
        let (product, overflow) = stride.multipliedReportingOverflow(by: max(shape[axis], 1))
        guard !overflow else { return nil }
        stride = product
    }
    return strides
}
