// Finds where a plan's arguments point into the buffers of feeds, so that a run can read a feed from other memory.

/// The pointers into one feed's buffer.
struct Relocation {
    private var pointers: [(word: UnsafeMutablePointer<UInt>, offset: UInt)] = []

    func move(to address: UnsafeRawPointer) {
        let address = UInt(bitPattern: address)
        for (word, offset) in pointers { word.pointee = address &+ offset }
    }

    /// One for each of `feeds`, from what `write` stores at the addresses given and at others: the words that follow a
    /// feed's address are the pointers into it. What is `inPlace` of a feed is where the feed is.
    static func find(
        in arguments: Arguments, feeds: [Int], of memory: Memory, sizes: [Int], inPlace: [Int: Int],
        write: (Arguments, Memory) -> Void
    ) -> [Relocation] {
        var result = Array(repeating: Relocation(), count: feeds.count)
        guard !feeds.isEmpty, feeds.count <= largestCount else { return result }
        var moved = memory
        for (index, feed) in feeds.enumerated() { moved.addresses[feed] += distance(index) }
        for (output, input) in inPlace where memory.addresses[output] == memory.addresses[input] {
            moved.addresses[output] = moved.addresses[input]
        }
        let elsewhere = Arguments()
        write(elsewhere, moved)
        arguments.forEachWord(beside: elsewhere) { word, other in
            let index = Int(bitPattern: other &- word.pointee) >> distanceBits - 1
            guard feeds.indices.contains(index), other &- word.pointee == UInt(distance(index)) else { return }
            let offset = word.pointee &- UInt(bitPattern: memory.addresses[feeds[index]])
            if offset <= UInt(sizes[index]) { result[index].pointers.append((word, offset)) }
        }
        return result
    }

    /// Farther apart than any two addresses, and another distance for each feed.
    private static func distance(_ index: Int) -> Int { (index + 1) << distanceBits }
    private static let distanceBits = 48
    private static let largestCount = 1 << 14
}
