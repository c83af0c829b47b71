// Owns the C structs that the instructions of one plan point to.

/// A bump allocator for plain C values: they stay at their addresses until it goes.
final class Arguments {
    private static let blockSize = 1 << 16
    private var blocks: [UnsafeMutableRawBufferPointer] = []
    private var used = Arguments.blockSize

    deinit {
        for block in blocks { block.deallocate() }
    }

    func store<T: BitwiseCopyable>(_ value: T) -> UnsafeMutablePointer<T> {
        store([value])
    }

    func store<T: BitwiseCopyable>(_ values: [T]) -> UnsafeMutablePointer<T> {
        let address = reserve(MemoryLayout<T>.stride * max(values.count, 1)).assumingMemoryBound(to: T.self)
        address.initialize(from: values, count: values.count)
        return address
    }

    /// Calls `body` with each word and with what stands in its place in `other`, which the same stores filled.
    func forEachWord(beside other: Arguments, _ body: (UnsafeMutablePointer<UInt>, UInt) -> Void) {
        for (mine, theirs) in zip(blocks, other.blocks) {
            let words = mine.assumingMemoryBound(to: UInt.self)
            for (index, word) in theirs.assumingMemoryBound(to: UInt.self).enumerated() {
                body(words.baseAddress! + index, word)
            }
        }
    }

    private func reserve(_ size: Int) -> UnsafeMutableRawPointer {
        let rounded = (size + 15) / 16 * 16
        if rounded > Self.blockSize / 4 {
            blocks.insert(Self.block(rounded), at: 0)
            return blocks[0].baseAddress!
        }
        if used + rounded > Self.blockSize {
            blocks.append(Self.block(Self.blockSize))
            used = 0
        }
        defer { used += rounded }
        return blocks[blocks.count - 1].baseAddress! + used
    }

    private static func block(_ size: Int) -> UnsafeMutableRawBufferPointer {
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
        block.initializeMemory(as: UInt8.self, repeating: 0)
        return block
    }
}

/// Sets the fixed array `tuple` of a C struct to `values` and zeros after them.
func fill<Tuple>(_ tuple: inout Tuple, _ values: [Int]) {
    withUnsafeMutableBytes(of: &tuple) { bytes in
        let elements = bytes.bindMemory(to: Int64.self)
        for index in elements.indices { elements[index] = index < values.count ? Int64(values[index]) : 0 }
    }
}
