// A block with what is worked out once: which names each operation reads, and when a name is read for the last time.
import MILFormat

final class BlockNode {
    let inputs: [NamedType]
    let outputs: [String]
    let operations: [Operation]
    /// The blocks of each operation.
    let blocks: [[BlockNode]]
    /// The names that each operation reads, those of its blocks included.
    let reads: [Set<String>]
    /// For each name that is read here, the last operation that does; outputs are read after all.
    let lastRead: [String: Int]
    /// The names made here that are read for the last time by each operation.
    let dying: [[String]]

    /// What is `watched` is kept to the end, as outputs are.
    init(_ block: Block, watched: Set<String> = []) {
        inputs = block.inputs
        outputs = block.outputs
        operations = block.operations
        blocks = block.operations.map { $0.blocks.map { BlockNode($0) } }
        var reads: [Set<String>] = []
        var lastRead: [String: Int] = [:]
        for (index, operation) in block.operations.enumerated() {
            var names: Set<String> = []
            for case .name(let name) in operation.inputs.values.joined() { names.insert(name) }
            for node in blocks[index] { names.formUnion(node.free) }
            for name in names { lastRead[name] = index }
            reads.append(names)
        }
        for name in watched.union(block.outputs) { lastRead[name] = block.operations.count }
        self.reads = reads
        self.lastRead = lastRead
        var dying = Array(repeating: [String](), count: block.operations.count)
        for (index, operation) in block.operations.enumerated() {
            for output in operation.outputs {
                let last = lastRead[output.name] ?? index
                if last < block.operations.count { dying[max(last, index)].append(output.name) }
            }
        }
        self.dying = dying
    }

    /// The names that the block reads from around it, and maybe some of its own.
    private var free: Set<String> { reads.reduce(into: Set(outputs)) { $0.formUnion($1) } }

    var missingOperations: [RuntimeError.Place] {
        var places: [RuntimeError.Place] = []
        for (index, operation) in operations.enumerated() {
            if !Self.isKnown(operation.type) { places.append(operation.place) }
            for node in blocks[index] { places += node.missingOperations }
        }
        return places
    }

    private static func isKnown(_ type: String) -> Bool {
        type == "const" || type == "read_state" || type == "write_state" || ValueOperations.all[type] != nil
            || OperationTable.rules[type] != nil
    }

    // MARK: Running

    func run(_ scope: Scope, _ evaluator: Evaluator) throws(RuntimeError) {
        var index = 0
        while index < operations.count {
            try evaluator.checkStop()
            let next: Int
            if let perform = ValueOperations.all[operations[index].type] {
                try perform(ValueCall(block: self, index: index, scope: scope, evaluator: evaluator))
                next = index + 1
            } else {
                next = try evaluator.segments.run(self, from: index, scope, evaluator)
            }
            for done in index..<next { scope.forget(dying[done]) }
            index = next
        }
    }

    /// Plans the first stretch of the block and returns the shapes of what it gives.
    func prepare(_ scope: Scope, _ evaluator: Evaluator) throws(RuntimeError) -> [String: [Int]] {
        guard let first = operations.first, ValueOperations.all[first.type] == nil else { return [:] }
        return try evaluator.segments.prepare(self, scope, evaluator)
    }
}
