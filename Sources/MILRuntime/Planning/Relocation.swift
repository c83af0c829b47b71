// Finds where a plan's arguments point into buffers that a run may find elsewhere: feeds and results in other memory.

/// The pointers into one buffer.
struct Relocation {
    private var pointers: [(word: UnsafeMutablePointer<UInt>, offset: UInt)] = []

    func move(to address: UnsafeRawPointer) {
        let address = UInt(bitPattern: address)
        for (word, offset) in pointers { word.pointee = address &+ offset }
    }

    /// One for each of `buffers`, from what `write` stores at the addresses given and at others: the words that follow a
    /// buffer's address are the pointers into it. What is `inPlace` of a buffer is where the buffer is.
    static func find(
        in arguments: Arguments, buffers: [Int], of memory: Memory, sizes: [Int], inPlace: [Int: Int],
        write: (Arguments, Memory) -> Void
    ) -> [Relocation] {
        var result = Array(repeating: Relocation(), count: buffers.count)
        guard !buffers.isEmpty, buffers.count <= largestCount else { return result }
        var moved = memory
        for (index, buffer) in buffers.enumerated() { moved.addresses[buffer] += distance(index) }
        for (output, input) in inPlace where memory.addresses[output] == memory.addresses[input] {
            moved.addresses[output] = moved.addresses[input]
        }
        let elsewhere = Arguments()
        write(elsewhere, moved)
        arguments.forEachWord(beside: elsewhere) { word, other in
            let index = Int(bitPattern: other &- word.pointee) >> distanceBits - 1
            guard buffers.indices.contains(index), other &- word.pointee == UInt(distance(index)) else { return }
            let offset = word.pointee &- UInt(bitPattern: memory.addresses[buffers[index]])
            if offset <= UInt(sizes[index]) { result[index].pointers.append((word, offset)) }
        }
        return result
    }

    /// Farther apart than any two addresses, and another distance for each buffer.
    private static func distance(_ index: Int) -> Int { (index + 1) << distanceBits }
    private static let distanceBits = 48
    static let largestCount = 1 << 14
}
