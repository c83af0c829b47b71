// Puts the work in order and joins elementwise work and folds into chains. Knows nothing of memory.
import RLXKernels

/// What one launch (or a few) will do.
enum Step {
    case chain(Group)
    case single(Node)
}

/// Walks the nodes in program order. Maps and folds stay in open groups, which later ones may join, until something
/// else needs a value of the group or nothing can follow.
struct Scheduler {
    private let graph: Graph
    /// Computed buffers that are to take the place of an input, and that input.
    private let inPlace: [Int: Int]
    /// For an input, the computed buffers that are to take its place.
    private let waiting: [Int: [Int]]
    private var open: [Int: Group] = [:]
    private var writersOpen: [Int: Set<Int>] = [:]
    private var readersOpen: [Int: Set<Int>] = [:]
    /// Reads by nodes that were not reached yet, by buffer.
    private var readersLeft: [Int: Int] = [:]
    private var nextGroup = 0
    private var steps: [Step] = []

    static func steps(of graph: Graph, inPlace: [Int: Int]) -> [Step] {
        var scheduler = Scheduler(graph: graph, inPlace: inPlace)
        for node in graph.nodes {
            for buffer in Set(node.reads.map(\.buffer)) { scheduler.readersLeft[buffer, default: 0] += 1 }
        }
        for index in graph.nodes.indices { scheduler.place(index) }
        for id in scheduler.open.keys.sorted() { scheduler.close(id) }
        return scheduler.steps
    }

    private init(graph: Graph, inPlace: [Int: Int]) {
        self.graph = graph
        self.inPlace = inPlace
        waiting = Dictionary(grouping: inPlace.keys) { inPlace[$0]! }
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
            var group = Group(node, index: index, space: space)
            group.after = needed
            join(group, node)
        } else {
            for id in needed.sorted() { close(id) }
            steps.append(.single(node))
        }
        for buffer in reads { readersLeft[buffer]! -= 1 }
        closeFinished(around: reads.union(writes))
    }

    // MARK: Joining

    private mutating func join(_ group: Group, _ node: Node) {
        var id = nextGroup
        nextGroup += 1
        insert(group, id)
        // Groups whose values the node reads, the latest first, then groups that read what it reads.
        let producers = node.reads.flatMap { writersOpen[$0.buffer] ?? [] }
        let sharers = node.reads.flatMap { readersOpen[$0.buffer] ?? [] }
        var tried: Set<Int> = [id]
        var candidates = producers.sorted(by: >) + sharers.sorted(by: >)
        while !candidates.isEmpty {
            for other in candidates where tried.insert(other).inserted {
                if let merged = merge(other, id) { id = merged }
            }
            // A group that has grown may fit groups that its parts did not fit.
            candidates = open[id]!.after.subtracting(tried).sorted(by: >)
        }
    }

    /// Makes one group of two when that keeps the order of everything else; returns its number.
    private mutating func merge(_ first: Int, _ second: Int) -> Int? {
        guard let a = open[first], let b = open[second], var group = a.merged(with: b),
            !isBetween(first, second), !isBetween(second, first)
        else { return nil }
        group.after.subtract([first, second])
        remove(first)
        remove(second)
        for id in open.keys where open[id]!.after.contains(first) {
            open[id]!.after.remove(first)
            open[id]!.after.insert(second)
        }
        insert(group, second)
        return second
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

    // MARK: Bookkeeping

    private mutating func insert(_ group: Group, _ id: Int) {
        for buffer in group.reads { readersOpen[buffer, default: []].insert(id) }
        for buffer in group.writers.keys { writersOpen[buffer, default: []].insert(id) }
        open[id] = group
    }

    private mutating func remove(_ id: Int) {
        guard let group = open.removeValue(forKey: id) else { return }
        for buffer in group.reads { readersOpen[buffer]?.remove(id) }
        for buffer in group.writers.keys { writersOpen[buffer]?.remove(id) }
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
                steps.append(.chain(group))
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
            guard let group = open[id], group.writers.keys.allSatisfy({ readersLeft[$0, default: 0] == 0 }) else {
                continue
            }
            let overwritten = group.writers.keys.compactMap { inPlace[$0] }
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
        case .product, .convolution, .kernel: nil
        }
    }
}
