// Gives buffers their places in one block of memory, each only for as long as it is in use.

/// A plan of the places of things that live and die in order.
struct Arena {
    static let alignment = 64
    /// Enough for everything that was ever alive.
    private(set) var size = 0
    /// Free ranges below `size`, by start; neighbours are merged.
    private var free: [(start: Int, size: Int)] = []

    /// The smallest free range that fits, or new memory at the end.
    mutating func take(_ bytes: Int) -> Int {
        let needed = Self.rounded(bytes)
        var best: Int?
        for index in free.indices where free[index].size >= needed {
            if best == nil || free[index].size < free[best!].size { best = index }
        }
        if let best {
            let start = free[best].start
            free[best] = (start + needed, free[best].size - needed)
            if free[best].size == 0 { free.remove(at: best) }
            return start
        }
        // A free range at the end grows.
        var start = size
        if let last = free.last, last.start + last.size == size {
            start = last.start
            free.removeLast()
        }
        size = start + needed
        return start
    }

    mutating func release(_ start: Int, _ bytes: Int) {
        var range = (start: start, size: Self.rounded(bytes))
        var index = free.firstIndex { $0.start > start } ?? free.count
        if index < free.count, range.start + range.size == free[index].start {
            range.size += free[index].size
            free.remove(at: index)
        }
        if index > 0, free[index - 1].start + free[index - 1].size == range.start {
            index -= 1
            range = (free[index].start, free[index].size + range.size)
            free.remove(at: index)
        }
        free.insert(range, at: index)
    }

    static func rounded(_ bytes: Int) -> Int {
        (bytes + alignment - 1) / alignment * alignment
    }
}
