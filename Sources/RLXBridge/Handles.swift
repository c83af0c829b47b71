// Ownership across the C boundary: how an object becomes a handle and comes back. Knows no object in particular.

import Foundation

/// What stands behind an opaque pointer of `rlx.h`.
class Handle {
    init() { LiveHandles.shared.add(1) }
    deinit { LiveHandles.shared.add(-1) }
}

/// Gives the caller one reference.
func retained(_ handle: Handle) -> OpaquePointer {
    OpaquePointer(Unmanaged.passRetained(handle).toOpaque())
}

/// The object for the length of a call; nil for NULL and for a handle of another kind.
func borrowed<T: Handle>(_ pointer: OpaquePointer?, as type: T.Type = T.self) -> T? {
    guard let pointer else { return nil }
    return Unmanaged<Handle>.fromOpaque(UnsafeRawPointer(pointer)).takeUnretainedValue() as? T
}

/// Takes the caller's reference back; NULL has none.
func released(_ pointer: OpaquePointer?) {
    guard let pointer else { return }
    Unmanaged<Handle>.fromOpaque(UnsafeRawPointer(pointer)).release()
}

/// Counts what clients have not given back.
final class LiveHandles: @unchecked Sendable {
    static let shared = LiveHandles()
    private let lock = NSLock()
    private var count: Int64 = 0

    var current: Int64 { lock.withLock { count } }

    func add(_ change: Int64) { lock.withLock { count += change } }
}

/// A C string that lives as long as its owner.
final class CString: @unchecked Sendable {
    let pointer: UnsafePointer<CChar>

    init(_ string: String) {
        let characters = Array(string.utf8CString)
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: characters.count)
        copy.initialize(from: characters, count: characters.count)
        pointer = UnsafePointer(copy)
    }

    deinit { pointer.deallocate() }
}

/// A shape that lives as long as its owner.
final class CShape: @unchecked Sendable {
    let pointer: UnsafePointer<Int64>
    let rank: Int32

    init(_ shape: [Int]) {
        let copy = UnsafeMutablePointer<Int64>.allocate(capacity: max(shape.count, 1))
        for (axis, size) in shape.enumerated() { (copy + axis).initialize(to: Int64(size)) }
        pointer = UnsafePointer(copy)
        rank = Int32(clamping: shape.count)
    }

    deinit { pointer.deallocate() }
}
