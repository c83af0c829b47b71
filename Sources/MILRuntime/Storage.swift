// Memory of one array: aligned, zeroed, at a fixed address. Knows nothing of programs.
import RLXKernels

/// An array in C order whose address never changes while the object lives.
public final class Storage: @unchecked Sendable {
    public let type: ElementType
    public let shape: [Int]
    /// 64-byte aligned. Empty when a dimension is zero.
    public let bytes: UnsafeMutableRawBufferPointer
    private let owner: AnyObject?

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
        self.owner = nil
    }

    /// Memory of `owner`'s, which keeps it: as many bytes as `shape` elements take. Must not be written.
    init(borrowing address: UnsafeRawPointer, type: ElementType, shape: [Int], owner: AnyObject) {
        self.type = type
        self.shape = shape
        self.bytes = UnsafeMutableRawBufferPointer(
            start: UnsafeMutableRawPointer(mutating: address), count: shape.reduce(type.size, *))
        self.owner = owner
    }

    deinit {
        if owner == nil { rlxk_deallocate(bytes.baseAddress) }
    }

    /// The same values in memory of its own.
    func copy() throws(RuntimeError) -> Storage {
        let copy = try Storage(type: type, shape: shape)
        copy.bytes.copyMemory(from: UnsafeRawBufferPointer(bytes))
        return copy
    }
}

/// The number of elements of `shape`, or nil when it is negative or does not fit. The other sizes beside a zero must fit
/// too: strides and parts of shapes are products of them.
func elementCount(_ shape: [Int]) -> Int? {
    if shape.contains(where: { $0 < 0 }) { return nil }
    var count = 1
    for size in shape where size != 0 {
        let (product, overflow) = count.multipliedReportingOverflow(by: size)
        guard !overflow, product <= largestElementCount else { return nil }
        count = product
    }
    return shape.contains(0) ? 0 : count
}

/// More than any machine has.
private let largestElementCount = 1 << 46

/// The bytes of `shape` elements, or nil when they are more than any machine has.
func byteCount(_ type: ElementType, _ shape: [Int]) -> Int? { elementCount(shape).map { $0 * type.size } }
