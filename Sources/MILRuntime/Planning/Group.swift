// Elementwise work and folds that can run as one chain, and the rules by which two such groups become one.
import RLXKernels

/// A node of a chain. A row member has one element for each row of the chain's space; others have one for each lane.
struct ChainMember {
    var node: Node
    /// Its place in the program.
    var index: Int
    var isRow = false

    /// The strides by which a view of the node is walked over a space whose rows begin at dimension `row`.
    func strides(of view: View, over space: [Int], row: Int) -> [Int]? {
        if !isRow { return splitStrides(of: view, over: space) }
        guard let outer = splitStrides(of: view, over: Array(space[..<row])) else { return nil }
        return outer + Array(repeating: 0, count: space.count - row)
    }
}

struct Group {
    /// In the order of the program.
    var members: [ChainMember]
    /// Dimensions larger than 1.
    var space: [Int]
    /// Dimensions from here on make up a row; nil while nothing in the group cares.
    var row: Int?
    /// Open groups that must run before.
    var after: Set<Int> = []
    var reads: Set<Int>
    /// Members' positions in `members` by the buffers that they write.
    var writers: [Int: Int]
    /// For the first fold that is not over rows: the dimensions that it folds, and how much it keeps.
    var sink: (folded: [Bool], kept: Int)?

    static let largestCount = 96
    /// Rows are held in the caches while their chain runs over them.
    static let longestRow = 4096

    init(_ node: Node, index: Int, space: [Int]) {
        members = [ChainMember(node: node, index: index)]
        self.space = space.filter { $0 != 1 }
        reads = Set(node.reads.map(\.buffer))
        writers = Dictionary(node.writes.map { ($0.buffer, 0) }) { one, _ in one }
        guard case .fold(let fold) = node.work else { return }
        if let row = fold.row {
            self.row = row
        } else {
            let folded = zip(fold.result.shape, fold.result.strides).filter { $0.0 != 1 }.map { $0.1 == 0 }
            sink = (folded, zip(self.space, folded).reduce(1) { $1.1 ? $0 : $0 * $1.0 })
        }
    }

    private var count: Int { space.reduce(1, *) }
    private var rowLength: Int? { row.map { space[$0...].reduce(1, *) } }

    /// Both as one group, or nil where a value that passes between them would not stay in place.
    func merged(with other: Group) -> Group? {
        guard members.count + other.members.count <= Self.largestCount, count > 0, other.count > 0,
            writers.keys.allSatisfy({ other.writers[$0] == nil })
        else { return nil }
        if count == other.count { return mergedOnOneLevel(with: other) }
        return mergedByRows(with: other) ?? other.mergedByRows(with: self)
    }

    private func mergedOnOneLevel(with other: Group) -> Group? {
        if let one = rowLength, let two = other.rowLength, one != two { return nil }
        guard let space = commonRefinement(space, other.space), space.count <= Launch.largestRank else { return nil }
        var result = self
        result.space = space
        if let length = rowLength ?? other.rowLength {
            guard let row = space.indices.first(where: { space[$0...].reduce(1, *) == length }) else { return nil }
            result.row = row
        }
        let mine = sink.map { (spread($0.folded, self.space, over: space), $0.kept) }
        let theirs = other.sink.map { (spread($0.folded, other.space, over: space), $0.kept) }
        if let mine, let theirs, mine.0 != theirs.0, max(mine.1, theirs.1) * 64 > count { return nil }
        result.sink = mine ?? theirs
        return result.absorbing(other, as: \.isRow)
    }

    /// `other` has one element for each row of this group.
    private func mergedByRows(with other: Group) -> Group? {
        guard let row, let length = rowLength, other.row == nil, other.count * length == count,
            let outer = commonRefinement(Array(space[..<row]), other.space)
        else { return nil }
        var result = self
        result.space = outer + space[row...]
        guard result.space.count <= Launch.largestRank else { return nil }
        result.row = outer.count
        // What a row member folds counts as folded along the row too: its value is there once.
        let along = space[row...].map { _ in true }
        let mine = sink.map { (spread($0.folded, space, over: result.space), $0.kept) }
        let theirs = other.sink.map { (spread($0.folded, other.space, over: outer) + along, $0.kept) }
        if let mine, let theirs, max(mine.1, theirs.1) * 64 > count { return nil }
        result.sink = mine ?? theirs
        return result.absorbing(other) { _ in true }
    }

    /// With the members of `other` too, unless a value that one side makes is read at another place by the other.
    private func absorbing(_ other: Group, as isRow: (ChainMember) -> Bool) -> Group? {
        var result = self
        let added = other.members.map { ChainMember(node: $0.node, index: $0.index, isRow: isRow($0)) }
        for (makers, readers, writers) in [(members, added, writers), (added, members, other.writers)] {
            for reader in readers {
                for view in reader.node.reads {
                    guard let maker = writers[view.buffer].map({ makers[$0] }) else { continue }
                    // What is written over an input must not reach those who read the input before.
                    guard maker.index < reader.index, result.passes(view, from: maker, to: reader) else { return nil }
                }
            }
        }
        result.members = (members + added).sorted { $0.index < $1.index }
        result.reads.formUnion(other.reads)
        result.after.formUnion(other.after)
        result.writers = [:]
        for (position, member) in result.members.enumerated() {
            for view in member.node.writes { result.writers[view.buffer] = position }
        }
        return result
    }

    /// Whether each element of `view` is read where the maker's value for it is at hand.
    private func passes(_ view: View, from maker: ChainMember, to reader: ChainMember) -> Bool {
        let row = row ?? space.count
        let result = maker.node.writes[0]
        if case .fold(let fold) = maker.node.work, maker.isRow || fold.row == nil { return false }
        return view.offset == result.offset
            && maker.strides(of: result, over: space, row: row) == reader.strides(of: view, over: space, row: row)
    }

    /// A mask over the dimensions of `coarse` as one over its refinement `fine`.
    private func spread(_ mask: [Bool], _ coarse: [Int], over fine: [Int]) -> [Bool] {
        var result: [Bool] = []
        var axis = -1
        var left = 1
        for size in fine {
            if left == 1 {
                axis += 1
                left = coarse[axis]
            }
            result.append(mask[axis])
            left /= size
        }
        return result
    }
}

extension Fold {
    /// Where the rows begin, over the dimensions larger than 1, of a fold that a chain can do row by row.
    var row: Int? {
        guard kind == RLXK_SUM || kind == RLXK_MAXIMUM || kind == RLXK_MINIMUM else { return nil }
        let dimensions = zip(result.shape, result.strides).filter { $0.0 != 1 }
        guard let first = dimensions.firstIndex(where: { $0.1 == 0 }), first > 0,
            dimensions[first...].allSatisfy({ $0.1 == 0 }),
            dimensions[first...].reduce(1, { $0 * $1.0 }) <= Group.longestRow
        else { return nil }
        return first
    }

    /// The step that folds a row.
    var rowStep: rlxk_op {
        switch kind {
        case RLXK_SUM: RLXK_ROW_SUM
        case RLXK_MAXIMUM: RLXK_ROW_MAX
        default: RLXK_ROW_MIN
        }
    }
}
