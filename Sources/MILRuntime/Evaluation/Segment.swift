// A stretch of operations that one plan does, and the memory of those that were planned.
import MILFormat

/// Operations `range` of a block, planned for values of certain types and shapes.
private final class Segment {
    struct Source: Hashable {
        var name: String
        var type: ElementType
        var shape: [Int]
        var isState: Bool
    }

    /// A parameter that was computed: the plan holds for this value of it only.
    struct Parameter {
        var name: String
        var value: Storage
    }

    /// Operands that say where a part of fixed size is: the plan holds for all places in the whole.
    struct Window {
        var begin: String
        var end: String
        var count: [Int]
        var size: [Int]

        func fits(_ scope: Scope) -> Bool {
            guard let begin = scope.integers(begin), let end = scope.integers(end), begin.count == size.count,
                end.count == size.count
            else { return false }
            return size.indices.allSatisfy { axis in
                begin[axis] >= 0 && end[axis] <= size[axis] && end[axis] - begin[axis] == count[axis]
            }
        }
    }

    let end: Int
    /// What the plan reads.
    let sources: [Source]
    let parameters: [Parameter]
    private let window: Window?
    private let plan: Plan
    /// What later operations read.
    private let results: [String]
    /// Literals that later operations read.
    private let constants: [(name: String, value: Constant)]
    /// The states that it writes.
    private let newStates: [String]
    /// For each input of the plan, which of the sources it is.
    private let sourceOf: [Int]

    init(
        end: Int, sources: [Source], parameters: [Parameter] = [], window: Window? = nil, plan: Plan,
        results: [String], constants: [(name: String, value: Constant)] = [], newStates: [String] = []
    ) {
        self.end = end
        self.sources = sources
        self.parameters = parameters
        self.window = window
        self.plan = plan
        self.results = results
        self.constants = constants
        self.newStates = newStates
        let places = Dictionary(uniqueKeysWithValues: sources.enumerated().map { ($1.name, $0) })
        sourceOf = plan.inputs.compactMap { places[$0.name] }
    }

    var shapes: [String: [Int]] {
        Dictionary(plan.outputs.map { ($0.name, $0.shape) }) { one, _ in one }
    }

    func fits(_ scope: Scope) -> Bool {
        sources.allSatisfy { source in
            switch scope.find(source.name) {
            case .tensor(let storage): !source.isState && storage.type == source.type && storage.shape == source.shape
            case .state: source.isState
            default: false
            }
        }
            && parameters.allSatisfy { parameter in
                guard let value = scope.find(parameter.name)?.storage else { return false }
                return value === parameter.value || value.hasSameValue(as: parameter.value)
            } && window?.fits(scope) ?? true
    }

    var bytes: Int { plan.bytes }

    /// Inputs are read where they are, and states written there. Results are copies, since the plan's own memory is
    /// written again by the next run.
    func run(_ scope: Scope, _ block: BlockNode, from start: Int, _ evaluator: Evaluator) throws(RuntimeError) {
        let place = block.operations[start].place
        for (input, source) in sourceOf.enumerated() {
            switch scope.find(sources[source].name) {
            case .tensor(let value), .state(let value): try plan.read(input, from: UnsafeRawBufferPointer(value.bytes))
            default: throw .invalid(.undefinedName(sources[source].name), place)
            }
        }
        for name in newStates {
            guard case .state(let state) = scope.find(name) else { throw .invalid(.undefinedName(name), place) }
            try evaluator.keep(state, writtenBy: block, before: end)
        }
        if let profiler = evaluator.profiler { try profiler.run(plan) } else { try plan.run() }
        for name in results {
            guard let buffer = plan.buffer(named: name) else { throw .invalid(.undefinedName(name), place) }
            try scope.define(name, .tensor(buffer.copy()), place)
        }
        for (name, value) in constants { try scope.define(name, .constant(value), place) }
    }
}

/// The segments of one function for one set of input shapes.
final class SegmentCache {
    private struct Start: Hashable {
        var block: ObjectIdentifier
        var index: Int
    }

    private var segments: [Start: [Segment]] = [:]
    /// Operations that need values that were computed.
    private var needsValues: Set<Start> = []
    /// Memory of all plans, about.
    private(set) var bytes = 0
    /// Of one start: shapes that a loop changes are not kept without end, nor are values of parameters.
    private static let limit = 8
    private static let valuesLimit = 64

    /// Runs operations from `index` on and returns the index of the first that was not run.
    func run(
        _ block: BlockNode, from index: Int, _ scope: Scope, _ evaluator: Evaluator
    ) throws(RuntimeError) -> Int {
        let start = Start(block: ObjectIdentifier(block), index: index)
        let segment: Segment
        if let known = segments[start]?.last(where: { $0.fits(scope) }) {
            segment = known
        } else if !needsValues.contains(start), let made = try make(block, from: index, scope, evaluator) {
            segment = made
            keep(made, start)
        } else {
            needsValues.insert(start)
            segment = try SegmentBuilder(block, from: index, scope, evaluator).buildFirst()
            keep(segment, start)
        }
        try segment.run(scope, block, from: index, evaluator)
        return segment.end
    }

    /// Plans a block's first segment and returns the shapes of its results.
    func prepare(
        _ block: BlockNode, _ scope: Scope, _ evaluator: Evaluator
    ) throws(RuntimeError) -> [String: [Int]] {
        guard let segment = try make(block, from: 0, scope, evaluator) else { return [:] }
        keep(segment, Start(block: ObjectIdentifier(block), index: 0))
        return segment.shapes
    }

    private func make(
        _ block: BlockNode, from index: Int, _ scope: Scope, _ evaluator: Evaluator
    ) throws(RuntimeError) -> Segment? {
        var builder = SegmentBuilder(block, from: index, scope, evaluator)
        return try builder.build()
    }

    private func keep(_ segment: Segment, _ start: Start) {
        segments[start, default: []].append(segment)
        bytes += segment.bytes
        let limit = segment.parameters.isEmpty ? Self.limit : Self.valuesLimit
        if segments[start, default: []].count > limit, let dropped = segments[start]?.removeFirst() {
            bytes -= dropped.bytes
        }
    }
}

private struct SegmentBuilder {
    private let block: BlockNode
    private let start: Int
    private let scope: Scope
    private let evaluator: Evaluator
    private var importer: Importer
    private var sources: [Segment.Source] = []

    init(_ block: BlockNode, from start: Int, _ scope: Scope, _ evaluator: Evaluator) {
        self.block = block
        self.start = start
        self.scope = scope
        self.evaluator = evaluator
        importer = Importer(opset: evaluator.opset, blobs: evaluator.blobs, folded: evaluator.foldedConstants)
    }

    /// The longest segment that can be planned without values; nil when there is none.
    mutating func build() throws(RuntimeError) -> Segment? {
        var end = start
        while end < block.operations.count, ValueOperations.all[block.operations[end].type] == nil {
            let operation = block.operations[end]
            try evaluator.checkStop()
            guard try bindReads(of: operation, index: end) else { break }
            do throws(RuntimeError) {
                try importer.add(operation)
            } catch {
                guard case .invalid(.notConstant, _) = error else { throw error }
                break
            }
            end += 1
        }
        if end == start { return nil }

        var results: [String] = []
        var constants: [(name: String, value: Constant)] = []
        for operation in block.operations[start..<end] {
            for output in operation.outputs where block.lastRead[output.name, default: -1] >= end {
                let isLiteral = operation.type == "const" || operation.isCompressedConstant
                if isLiteral, let value = try importer.constant(output.name) {
                    constants.append((output.name, value))
                } else if importer.isDefined(output.name), !results.contains(output.name) {
                    try importer.add(output: output.name)
                    results.append(output.name)
                }
            }
        }
        let newStates = importer.addStateOutputs()
        let plan = try Plan(
            importer, options: PlanOptions(updated: newStates, workers: evaluator.options.workers))
        return Segment(
            end: end, sources: sources, plan: plan, results: results, constants: constants,
            newStates: newStates.keys.sorted())
    }

    /// Makes the names that an operation reads from around the segment known to the importer; false where one stands
    /// for something that no plan can take.
    private mutating func bindReads(of operation: Operation, index: Int) throws(RuntimeError) -> Bool {
        for name in block.reads[index] where !importer.isDefined(name) {
            switch try scope.value(name, operation.place) {
            case .constant(let value): try importer.add(constant: name, value)
            case .tensor(let storage):
                try importer.add(input: name, storage.type, storage.shape)
                sources.append(.init(name: name, type: storage.type, shape: storage.shape, isState: false))
            case .state(let storage):
                try importer.add(state: name, storage.type, storage.shape)
                sources.append(.init(name: name, type: storage.type, shape: storage.shape, isState: true))
            case .list, .label, .probabilities: return false
            }
        }
        return true
    }

    /// A plan of the first operation for the values that its parameters have now: those of its operands that can be
    /// parameters, or all of them where that is not enough.
    func buildFirst() throws(RuntimeError) -> Segment {
        if let segment = try buildWindow() { return segment }
        do throws(RuntimeError) {
            return try buildFirst { $0.canBeParameter }
        } catch {
            guard case .invalid(.notConstant, _) = error else { throw error }
            return try buildFirst { _ in true }
        }
    }

    /// A plan of a slice whose size the program leaves open, for all slices of the size that it has now.
    private func buildWindow() throws(RuntimeError) -> Segment? {
        let operation = block.operations[start]
        guard operation.type == "slice_by_index", case .name(let x)? = operation.inputs["x"]?.first,
            case .name(let begin)? = operation.inputs["begin"]?.first,
            case .name(let end)? = operation.inputs["end"]?.first,
            let from = scope.integers(begin), let to = scope.integers(end),
            let size = scope.find(x)?.storage?.shape, from.count == size.count, to.count == size.count
        else { return nil }
        let count = zip(from, to).map { $1 - $0 }
        let window = Segment.Window(begin: begin, end: end, count: count, size: size)
        guard window.fits(scope) else { return nil }
        do throws(RuntimeError) {
            return try buildFirst(window) { _ in false }
        } catch {
            guard case .invalid(.notConstant, _) = error else { throw error }
            return nil
        }
    }

    private func buildFirst(
        _ window: Segment.Window? = nil, taking isParameter: (Storage) -> Bool
    ) throws(RuntimeError) -> Segment {
        let operation = block.operations[start]
        var importer = Importer(opset: evaluator.opset, blobs: evaluator.blobs, folded: evaluator.foldedConstants)
        var sources: [Segment.Source] = []
        var parameters: [Segment.Parameter] = []
        for name in block.reads[start].sorted() {
            switch try scope.value(name, operation.place) {
            case .constant(let value): try importer.add(constant: name, value)
            case .tensor(let storage) where isParameter(storage):
                try importer.add(constant: name, .tensor(storage))
                parameters.append(.init(name: name, value: storage))
            case .tensor(let storage):
                try importer.add(input: name, storage.type, storage.shape)
                sources.append(.init(name: name, type: storage.type, shape: storage.shape, isState: false))
            case .list, .label, .probabilities, .state:
                throw .invalid(
                    .elementType(parameter: name, got: "no tensor", expected: "a tensor"), operation.place)
            }
        }
        try importer.add(operation, shape: window?.count)
        let names = operation.outputs.map(\.name)
        for name in names { try importer.add(output: name) }
        let plan = try Plan(importer, options: PlanOptions(workers: evaluator.options.workers))
        return Segment(
            end: start + 1, sources: sources, parameters: parameters, window: window, plan: plan, results: names)
    }
}

extension Scope {
    /// The few elements of an integer tensor.
    fileprivate func integers(_ name: String) -> [Int]? {
        guard let storage = find(name)?.storage, storage.canBeParameter else { return nil }
        return storage.numbers.map { Int($0) }
    }
}

extension Storage {
    private static let largestParameter = 1024

    fileprivate var canBeParameter: Bool { !type.isFloat && bytes.count <= Self.largestParameter }

    fileprivate func hasSameValue(as other: Storage) -> Bool {
        type == other.type && shape == other.shape && bytes.elementsEqual(other.bytes)
    }
}
