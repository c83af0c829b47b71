// Constants that were made of other constants, shared by all plans of a function. Knows no graph.
import RLXKernels

/// Not safe across threads: plans of one function are made one after the other.
final class FoldedConstants {
    /// One elementwise operation on one constant.
    struct Key: Hashable {
        private let op: UInt32
        private let address: UnsafeRawPointer
        private let type: ElementType
        private let shape: [Int]
        private let strides: [Int]
        private let result: ElementType
        private let p: UInt32
        private let q: UInt32

        init(_ map: Map, address: UnsafeRawPointer) {
            let operand = map.operands[0]
            op = map.op.rawValue
            self.address = address + operand.offset * operand.type.size
            type = operand.type
            shape = operand.shape
            strides = operand.strides
            result = map.result.type
            p = map.p.bitPattern
            q = map.q.bitPattern
        }
    }

    /// The owner keeps the address of the key its own.
    private var entries: [Key: (value: Storage, owner: AnyObject)] = [:]
    /// Small ones are made again in less time than it takes to keep them in order.
    private static let smallest = 4096

    subscript(key: Key) -> Storage? { entries[key]?.value }

    func keep(_ value: Storage, _ key: Key, owner: AnyObject) {
        if value.bytes.count >= Self.smallest { entries[key] = (value, owner) }
    }
}
