// How a chain's space is cut into tiles, and how each operand is reached in a tile.
import RLXKernels

struct ChainTiling {
    /// A tile takes `step` indices of dimension `split` and all of the dimensions inside it.
    private(set) var split: Int
    private(set) var step = 1
    private(set) var count: Int
    private let space: [Int]
    private let row: Int

    /// Where the chain is worth sharing out, a small space is cut into more tiles than its size asks for.
    /// `isOneStep` says that no step reads what another made, so that a tile need not stay in the first-level cache.
    init(space: [Int], row: Int, isShared: Bool, isOneStep: Bool) {
        self.space = space
        self.row = row
        let largest = isOneStep ? 4 * Int(RLXK_TILE) : Int(RLXK_TILE)
        let limit = isShared ? min(largest, max(128, space.reduce(1, *) / 8)) : largest
        // A row is never cut.
        var inside = space[row...].reduce(1, *)
        split = row - 1
        while split > 0, inside * space[split] <= limit {
            inside *= space[split]
            split -= 1
        }
        let fitting = max(1, limit / max(inside, 1))
        if space[split] <= fitting {
            step = max(space[split], 1)
        } else {
            // Even tiles, in whole vectors where the innermost dimension is cut.
            let pieces = (space[split] + fitting - 1) / fitting
            step = (space[split] + pieces - 1) / pieces
            if inside == 1, row == space.count { step = min((step + 15) / 16 * 16, fitting) }
        }
        count = 0
        if !space.contains(0) { count = space[..<split].reduce(1, *) * alongSplit }
    }

    var alongSplit: Int { (space[split] + step - 1) / step }

    /// Elements of a value of this extent in the largest tile.
    func elements(_ extent: ChainProgram.Extent) -> Int {
        switch extent {
        case .one: 1
        case .rows: space[(split + 1)..<row].reduce(step, *)
        case .lanes: space[(split + 1)...].reduce(step, *)
        }
    }

    /// Whether a tile's part of the operand is just as a slot of the extent would hold it.
    func isPlain(_ operand: ChainProgram.Operand, _ extent: ChainProgram.Extent) -> Bool {
        guard operand.type.size == 4, extent != .one else { return false }
        var expected = 1
        let end = extent == .lanes ? space.count : row
        for axis in stride(from: end - 1, through: split, by: -1) {
            if operand.strides[axis] != expected { return false }
            expected *= space[axis]
        }
        return true
    }

    func access(_ operand: ChainProgram.Operand, _ extent: ChainProgram.Extent) -> rlxk_access {
        if isPlain(operand, extent) { return RLXK_DIRECT }
        if extent == .one || count <= 1 { return RLXK_ONCE }
        return operand.strides[...split].allSatisfy { $0 == 0 } ? RLXK_ONCE : RLXK_MOVED
    }
}

/// How the tiles are dealt out in chunks, and what part of each sink a chunk works on.
struct ChainChunks {
    struct Part: Equatable {
        var begin = 0
        var count: Int
        var total: Int
        /// Elements from one chunk's partial results to the next one's; 0 where chunks write the result itself.
        var shift = 0
    }

    var tiles = 1
    var count: Int
    var parts: [Part] = []

    /// By kept outer indices where there are enough of them, else by tiles, with partial results for each chunk.
    init(_ program: ChainProgram, _ tiling: ChainTiling) {
        count = tiling.count
        guard let first = program.sinks.first else { return }
        let kept = program.sinks.map { sink in
            zip(program.space, sink.target.strides).reduce(1) { $1.1 == 0 ? $0 : $0 * $1.0 }
        }
        let isKept = first.target.strides.map { $0 != 0 }
        let alike = program.sinks.allSatisfy { sink in sink.target.strides.map { $0 != 0 } == isKept }
        if tiling.count > 8 {
            if alike, cutByKeptIndices(program, tiling, isKept, kept[0]) { return }
            if cutByTiles(program, tiling, kept) { return }
        }
        tiles = max(tiling.count, 1)
        count = 1
        parts = kept.map { Part(count: $0, total: $0) }
    }

    private mutating func cutByKeptIndices(
        _ program: ChainProgram, _ tiling: ChainTiling, _ isKept: [Bool], _ kept: Int
    ) -> Bool {
        let space = program.space
        let prefix = isKept.firstIndex(of: false) ?? space.count
        let outer = space[..<prefix].reduce(1, *)
        guard outer >= 16 else { return false }
        // The fewest tiles that always hold whole outer indices, and how many of these they hold.
        let split = tiling.split
        var unit = 1
        var indices = 1
        if split >= prefix {
            unit = space[prefix..<split].reduce(1, *) * tiling.alongSplit
        } else if split == 0 || space[split] % tiling.step == 0 {
            indices = space[(split + 1)..<prefix].reduce(tiling.step, *)
        } else {
            unit = tiling.alongSplit
            indices = space[split..<prefix].reduce(1, *)
        }
        let units = (tiling.count + unit - 1) / unit
        let grouped = max(1, units / 32)
        let elements = grouped * indices * (kept / outer)
        tiles = unit * grouped
        count = (units + grouped - 1) / grouped
        parts = program.sinks.map { _ in Part(begin: elements, count: elements, total: kept) }
        return true
    }

    private mutating func cutByTiles(_ program: ChainProgram, _ tiling: ChainTiling, _ kept: [Int]) -> Bool {
        // Partial results are set, written and joined: they must be few beside what is read. Even, for pairs of cores.
        let affordable = program.space.reduce(1, *) / (8 * max(kept.max()!, 1))
        let most = min(16, tiling.count / 8, affordable)
        let wanted = most - most % 2
        guard wanted > 1 else { return false }
        tiles = (tiling.count + wanted - 1) / wanted
        count = (tiling.count + tiles - 1) / tiles
        parts = kept.map { Part(count: $0, total: $0, shift: $0) }
        return true
    }

    /// Elements of partial results of each sink; empty where there are none.
    var partials: [Int] { parts.first.map { $0.shift } ?? 0 > 0 ? parts.map { $0.shift * count } : [] }
}
