// Memory of one array: aligned, zeroed, at a fixed address. Knows nothing of programs.
import RLXKernels

/// An array in C order whose address never changes while the object lives.
public final class Storage: @unchecked Sendable {
    public let type: ElementType
    public let shape: [Int]
    /// 64-byte aligned. Empty when a dimension is zero.
    public let bytes: UnsafeMutableRawBufferPointer

    /// Zeroed memory for `shape` elements of `type`.
    /// - Throws: `RuntimeError.invalid(.tooLarge)` for a negative or overflowing shape, `.outOfMemory`.
    public init(type: ElementType, shape: [Int]) throws(RuntimeError) {
        guard let size = byteCount(type, shape) else {
            throw .invalid(.tooLarge(shape), .boundary("storage"))
        }
        guard let address = rlxk_allocate(size) else { throw .outOfMemory(bytes: size) }
        self.type = type
        self.shape = shape
        self.bytes = UnsafeMutableRawBufferPointer(start: address, count: size)
    }

    deinit {
        rlxk_deallocate(bytes.baseAddress)
    }
}

/// The number of elements of `shape`, or nil when it is negative or does not fit.
func elementCount(_ shape: [Int]) -> Int? {
    if shape.contains(where: { $0 < 0 }) { return nil }
    if shape.contains(0) { return 0 }
    var count = 1
    for size in shape {
        let (product, overflow) = count.multipliedReportingOverflow(by: size)
        if overflow { return nil }
        count = product
    }
    return count
}

/// The bytes of `shape` elements, or nil when they are more than any machine has.
func byteCount(_ type: ElementType, _ shape: [Int]) -> Int? {
    guard let count = elementCount(shape), count <= 1 << 46 else { return nil }
    return count * type.size
}
