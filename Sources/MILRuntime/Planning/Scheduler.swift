// Puts the work in order and joins elementwise work and folds over one space into chains. Knows nothing of memory.

/// What one launch (or a few) will do.
enum Step {
    /// Maps and folds over one space, element by element.
    case chain([Node], space: [Int])
    case single(Node)
}

/// Walks the nodes in program order. Maps and folds stay in open groups, which later ones may join, until something
/// else needs a value of the group or nothing can follow.
struct Scheduler {
    private struct Group {
        var nodes: [Int]
        var space: [Int]
        /// Open groups that must run before.
        var after: Set<Int> = []
        var reads: Set<Int> = []
        /// The nodes' results by buffer.
        var results: [Int: View] = [:]
        /// For each dimension of `space`, whether the group's folds reduce it; nil without folds.
        var folded: [Bool]?
    }

    private static let largestGroup = 64

    private let graph: Graph
    /// Computed buffers that are to take the place of an input, and that input.
    private let inPlace: [Int: Int]
    private var open: [Int: Group] = [:]
    private var writersOpen: [Int: Set<Int>] = [:]
    private var readersOpen: [Int: Set<Int>] = [:]
    /// Reads by nodes that were not reached yet, by buffer.
    private var readersLeft: [Int: Int] = [:]
    private var waiting: [Int: [Int]] = [:]
    private var nextGroup = 0
    private var steps: [Step] = []

    static func steps(of graph: Graph, live: [Int], inPlace: [Int: Int]) -> [Step] {
        var scheduler = Scheduler(graph: graph, inPlace: inPlace)
        for index in live {
            for buffer in Set(graph.nodes[index].reads.map(\.buffer)) { scheduler.readersLeft[buffer, default: 0] += 1 }
        }
        for index in live { scheduler.place(index) }
        for id in scheduler.open.keys.sorted() { scheduler.close(id) }
        return scheduler.steps
    }

    private init(graph: Graph, inPlace: [Int: Int]) {
        self.graph = graph
        self.inPlace = inPlace
        for (output, input) in inPlace { waiting[input, default: []].append(output) }
    }

    private mutating func place(_ index: Int) {
        let node = graph.nodes[index]
        let reads = Set(node.reads.map(\.buffer))
        let writes = Set(node.writes.map(\.buffer))
        var needed: Set<Int> = []
        for buffer in reads { needed.formUnion(writersOpen[buffer] ?? []) }
        for buffer in writes {
            needed.formUnion(writersOpen[buffer] ?? [])
            needed.formUnion(readersOpen[buffer] ?? [])
        }
        if let space = node.space {
            join(index, node, space, needed)
        } else {
            for id in needed.sorted() { close(id) }
            steps.append(.single(node))
        }
        for buffer in reads { readersLeft[buffer]! -= 1 }
        closeFinished(around: reads.union(writes))
    }

    // MARK: Joining

    private mutating func join(_ index: Int, _ node: Node, _ space: [Int], _ needed: Set<Int>) {
        var group = Group(nodes: [index], space: space.filter { $0 != 1 })
        group.after = needed
        group.reads = Set(node.reads.map(\.buffer))
        for view in node.writes { group.results[view.buffer] = view }
        if case .fold(let fold) = node.work {
            group.folded = zip(fold.result.shape, fold.result.strides).filter { $0.0 != 1 }.map { $0.1 == 0 }
        }
        var id = nextGroup
        nextGroup += 1
        insert(group, id)

        // Groups whose values the node reads, the latest first, then groups that read what it reads.
        let producers = node.reads.flatMap { writersOpen[$0.buffer] ?? [] }
        let sharers = node.reads.flatMap { readersOpen[$0.buffer] ?? [] }
        var tried: Set<Int> = [id]
        for other in producers.sorted(by: >) + sharers.sorted(by: >) where tried.insert(other).inserted {
            if let merged = merge(other, id) { id = merged }
        }
    }

    /// Makes one group of two when that keeps the order of everything else; returns its number.
    private mutating func merge(_ first: Int, _ second: Int) -> Int? {
        guard let a = open[first], let b = open[second], a.nodes.count + b.nodes.count <= Self.largestGroup,
            let space = commonSpace(a, b), !isBetween(first, second), !isBetween(second, first)
        else { return nil }
        var folded: [Bool]?
        switch (a.folded, b.folded) {
        case (nil, nil): break
        case (let mask?, nil): folded = spread(mask, a.space, over: space)
        case (nil, let mask?): folded = spread(mask, b.space, over: space)
        case (let one?, let other?):
            folded = spread(one, a.space, over: space)
            if folded != spread(other, b.space, over: space) { return nil }
        }

        remove(first)
        remove(second)
        var group = Group(nodes: (a.nodes + b.nodes).sorted(), space: space)
        group.after = a.after.union(b.after).subtracting([first, second])
        group.reads = a.reads.union(b.reads)
        group.results = a.results.merging(b.results) { one, _ in one }
        group.folded = folded
        for id in open.keys where open[id]!.after.contains(first) || open[id]!.after.contains(second) {
            open[id]!.after.subtract([first, second])
            open[id]!.after.insert(second)
        }
        insert(group, second)
        return second
    }

    /// The space in which every value that passes between the two groups has the same place in both, or nil.
    private func commonSpace(_ a: Group, _ b: Group) -> [Int]? {
        let count = a.space.reduce(1, *)
        guard count > 0, count == b.space.reduce(1, *), a.results.keys.allSatisfy({ b.results[$0] == nil }),
            let space = commonRefinement(a.space, b.space), space.count <= Launch.largestRank
        else { return nil }
        for (group, other) in [(a, b), (b, a)] {
            for index in group.nodes {
                for view in graph.nodes[index].reads {
                    guard let result = other.results[view.buffer] else { continue }
                    guard view.offset == result.offset, !result.repeats,
                        splitStrides(of: view, over: space) == splitStrides(of: result, over: space)
                    else { return nil }
                }
            }
        }
        return space
    }

    /// Whether `last` depends on `first` through some other open group.
    private func isBetween(_ first: Int, _ last: Int) -> Bool {
        var seen: Set<Int> = []
        var queue = open[last]!.after.filter { $0 != first }
        while let id = queue.popFirst() {
            guard seen.insert(id).inserted, let group = open[id] else { continue }
            if group.after.contains(first) { return true }
            queue.formUnion(group.after)
        }
        return false
    }

    /// A mask over the dimensions of `coarse` as one over its refinement `fine`.
    private func spread(_ mask: [Bool], _ coarse: [Int], over fine: [Int]) -> [Bool] {
        var result: [Bool] = []
        var axis = 0
        var left = coarse.first ?? 1
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

    // MARK: Bookkeeping

    private mutating func insert(_ group: Group, _ id: Int) {
        for buffer in group.reads { readersOpen[buffer, default: []].insert(id) }
        for buffer in group.results.keys { writersOpen[buffer, default: []].insert(id) }
        open[id] = group
    }

    private mutating func remove(_ id: Int) {
        guard let group = open.removeValue(forKey: id) else { return }
        for buffer in group.reads { readersOpen[buffer]?.remove(id) }
        for buffer in group.results.keys { writersOpen[buffer]?.remove(id) }
    }

    /// Emits a group after all that must run before it.
    private mutating func close(_ id: Int) {
        var stack = [id]
        while let top = stack.last {
            guard let group = open[top] else {
                stack.removeLast()
                continue
            }
            let before = group.after.filter { open[$0] != nil }
            if before.isEmpty {
                steps.append(.chain(group.nodes.map { graph.nodes[$0] }, space: group.space))
                remove(top)
                stack.removeLast()
            } else {
                stack += before.sorted(by: >)
            }
        }
    }

    /// Emits the groups that nothing can join any more. A group that writes over an input waits for its readers.
    private mutating func closeFinished(around buffers: Set<Int>) {
        var candidates: Set<Int> = []
        for buffer in buffers {
            candidates.formUnion(writersOpen[buffer] ?? [])
            for output in waiting[buffer] ?? [] { candidates.formUnion(writersOpen[output] ?? []) }
        }
        for id in candidates.sorted() {
            guard let group = open[id], group.results.keys.allSatisfy({ readersLeft[$0, default: 0] == 0 }) else {
                continue
            }
            let overwritten = group.results.keys.compactMap { inPlace[$0] }
            guard overwritten.allSatisfy({ readersLeft[$0, default: 0] == 0 }) else { continue }
            for input in overwritten {
                for reader in readersOpen[input] ?? [] where reader != id && !isBefore(id, reader) {
                    open[id]!.after.insert(reader)
                }
            }
            close(id)
        }
    }

    private func isBefore(_ first: Int, _ last: Int) -> Bool {
        open[last]!.after.contains(first) || isBetween(first, last)
    }
}

extension Node {
    /// The space that a map or a fold runs over; nil for other work.
    var space: [Int]? {
        switch work {
        case .map(let map): map.result.shape
        case .fold(let fold): fold.operand.shape
        case .product, .kernel: nil
        }
    }
}

extension View {
    /// Whether some elements stand at several indices.
    var repeats: Bool {
        zip(shape, strides).contains { $0 > 1 && $1 == 0 }
    }
}
