// Runs a function of an ML Program whatever it holds: shapes that come with the inputs, branches, loops, lists, states.
import MILFormat
import RLXKernels

/// What a function gives.
public enum Output: @unchecked Sendable {
    case tensor(Storage)
    /// Of a classifier: the place of its label among the classes, and their probabilities in order.
    case label(Int)
    case probabilities(Storage)
}

public struct EvaluatorOptions: Sendable {
    /// Threads that a run uses.
    public var workers: Int
    /// Rounds of one loop after which a run is given up.
    public var largestLoopCount: Int
    /// Seconds after which a run is given up at the next round of a loop; nil for no limit.
    public var seconds: Double?
    /// Sets of input shapes whose plans are kept, the last ones used, and about how much memory they may take together.
    public var keptShapes: Int
    public var keptBytes: Int
    /// Values of the function's body that a run gives beside the outputs.
    public var watched: Set<String>

    public init(
        workers: Int = Int(rlxk_default_workers()), largestLoopCount: Int = 1 << 20, seconds: Double? = nil,
        keptShapes: Int = 64, keptBytes: Int = 256 << 20, watched: Set<String> = []
    ) {
        self.workers = workers
        self.largestLoopCount = largestLoopCount
        self.seconds = seconds
        self.keptShapes = keptShapes
        self.keptBytes = keptBytes
        self.watched = watched
    }
}

/// Runs operations in stretches as long as plans can be: each is planned once for the shapes that come, and kept. What
/// depends on values (the number of rounds of a loop, a shape that was computed) is done between them. Runs must not
/// overlap.
public final class Evaluator: @unchecked Sendable {
    /// As the file declares them; states are apart.
    public let inputs: [NamedType]
    public let states: [NamedType]
    public let outputs: [String]
    /// Operations that this runtime does not have.
    public let missing: [RuntimeError.Place]

    let opset: String
    let blobs: any BlobSource
    let options: EvaluatorOptions
    let foldedConstants = FoldedConstants()
    private let body: BlockNode
    private var kept: [(shapes: [String: [Int]], segments: SegmentCache)] = []
    // Of the run that goes on
    private(set) var segments = SegmentCache()
    private var start = ContinuousClock.now
    private var overwritten: [(state: Storage, before: Storage)] = []
    /// Takes the times of its steps.
    private(set) var profiler: Profiler?

    /// - Throws: `RuntimeError.invalid(.noBody)`, `.badOption` for a watched name that nothing has; what is missing is an
    ///   error of the runs.
    public init(
        _ function: Function, blobs: any BlobSource, options: EvaluatorOptions = .init()
    ) throws(RuntimeError) {
        guard let block = function.body else {
            throw .invalid(.noBody(opset: function.opset), .boundary("function"))
        }
        inputs = function.inputs.filter { !$0.type.isState }
        states = function.inputs.filter { $0.type.isState }
        outputs = block.outputs
        opset = function.opset
        self.blobs = blobs
        self.options = options
        let known = Set(block.operations.flatMap { $0.outputs.map(\.name) } + function.inputs.map(\.name))
        if let name = options.watched.subtracting(known).min() { throw .badOption(.unknownWatched(name: name)) }
        body = BlockNode(block, watched: options.watched)
        missing = body.missingOperations
    }

    /// Plans as much as can be planned for inputs of these shapes before values are known.
    /// - Returns: the shapes of the values that are known by then, outputs among them.
    /// - Throws: as `run`.
    public func prepare(_ shapes: [String: [Int]]) throws(RuntimeError) -> [String: [Int]] {
        if let place = missing.first { throw .unsupported(.operation, place) }
        var zeros: [String: Storage] = [:]
        for input in inputs {
            guard case .tensor(let tensor) = input.type, let type = ElementType(tensor.dataType) else {
                throw .unsupported(.type(input.type.name), .boundary(input.name))
            }
            guard let shape = shapes[input.name] else { return [:] }
            zeros[input.name] = try Storage(type: type, shape: shape)
        }
        let scope = try scope(zeros, makeStates())
        return try body.prepare(scope, self)
    }

    /// Zeros for each state.
    public func makeStates() throws(RuntimeError) -> [String: Storage] {
        var result: [String: Storage] = [:]
        for state in states {
            guard case .state(let tensor) = state.type, let type = ElementType(tensor.dataType) else {
                throw .unsupported(.type(state.type.name), .boundary(state.name))
            }
            guard let shape = tensor.shape else { throw .unsupported(.flexibleShape, .boundary(state.name)) }
            result[state.name] = try Storage(type: type, shape: shape)
        }
        return result
    }

    /// All outputs by name, and what is watched where it is a tensor. The states' storage gets their new values.
    /// - Throws: `RuntimeError.badOption` for inputs and states that do not fit the function, `.unsupported`, `.invalid`,
    ///   `.outOfRange`, `.outOfMemory`, `.outOfTime`, `.stopped`, `.unreadableWeights`; then the states are as before, or,
    ///   where the whole run was done, all new.
    public func run(
        _ inputs: [String: Storage], states: [String: Storage] = [:]
    ) throws(RuntimeError) -> [String: Output] {
        if let place = missing.first { throw .unsupported(.operation, place) }
        start = .now
        overwritten = []
        do throws(RuntimeError) {
            return try results(of: scope(inputs, states), given: Array(inputs.values))
        } catch {
            for (state, before) in overwritten { state.bytes.copyMemory(from: UnsafeRawBufferPointer(before.bytes)) }
            throw error
        }
    }

    private func results(of scope: Scope, given: [Storage]) throws(RuntimeError) -> [String: Output] {
        try body.run(scope, self)
        var results: [String: Output] = [:]
        for name in options.watched {
            if let storage = scope.find(name)?.storage { results[name] = .tensor(try storage.copy()) }
        }
        for name in outputs {
            switch try scope.value(name, .boundary(name)) {
            case .tensor(let storage):
                // What the run made is the caller's.
                let isInput = given.contains { $0 === storage }
                results[name] = .tensor(isInput ? try storage.copy() : storage)
            case .constant(.tensor(let storage)): results[name] = .tensor(try storage.copy())
            case .label(let index): results[name] = .label(index)
            case .probabilities(let storage): results[name] = .probabilities(try storage.copy())
            case .constant(.strings), .list, .state:
                throw .unsupported(.type("of strings, lists or states as outputs"), .boundary(name))
            }
        }
        try ConstantReader(blobs: blobs).verify()
        return results
    }

    /// Where the time goes in the quickest of `runs` runs on these inputs, with states of zeros. Throws as `run`.
    public func profile(_ inputs: [String: Storage], runs: Int) throws(RuntimeError) -> Profile {
        _ = try run(inputs, states: makeStates())
        var quickest: Profile?
        defer { profiler = nil }
        for _ in 0..<max(runs, 1) {
            let states = try makeStates()
            let profiler = Profiler()
            self.profiler = profiler
            _ = try run(inputs, states: states)
            let profile = profiler.profile(duration: ContinuousClock.now - start)
            if quickest.map({ profile.duration < $0.duration }) ?? true { quickest = profile }
        }
        return quickest!
    }

    /// Called before operations up to `next` write a state. What it holds is kept unless they are the run's last.
    func keep(_ state: Storage, writtenBy block: BlockNode, before next: Int) throws(RuntimeError) {
        let isLast = block === body && next == block.operations.count
        if !isLast, !overwritten.contains(where: { $0.state === state }) {
            overwritten.append((state, try state.copy()))
        }
    }

    /// Called between operations, so that a run can be ended.
    func checkStop() throws(RuntimeError) {
        if rlxk_asked_to_stop() { throw .stopped }
    }

    /// Called where a run may go on without end.
    func checkTime(_ place: RuntimeError.Place) throws(RuntimeError) {
        guard let seconds = options.seconds, ContinuousClock.now - start > .seconds(seconds) else { return }
        throw .outOfTime(place, seconds: seconds)
    }

    private func scope(
        _ given: [String: Storage], _ states: [String: Storage]
    ) throws(RuntimeError) -> Scope {
        let scope = Scope(parent: nil)
        for name in given.keys where !inputs.contains(where: { $0.name == name }) {
            throw .badOption(.unknownInput(option: "inputs", name: name))
        }
        for input in inputs {
            guard let storage = given[input.name] else { throw .badOption(.missingInput(name: input.name)) }
            guard input.type.admits(storage.type, storage.shape) else {
                throw .badOption(
                    .mismatch(
                        name: input.name, got: "\(storage.type) \(storage.shape)", expected: input.type.name))
            }
            try scope.define(input.name, .tensor(storage), .boundary(input.name))
        }
        for state in self.states {
            guard let storage = states[state.name] else { throw .badOption(.missingInput(name: state.name)) }
            guard case .state(let tensor) = state.type, ValueType.tensor(tensor).admits(storage.type, storage.shape)
            else {
                throw .badOption(
                    .mismatch(
                        name: state.name, got: "\(storage.type) \(storage.shape)", expected: state.type.name))
            }
            try scope.define(state.name, .state(storage), .boundary(state.name))
        }
        choosePlans(given.mapValues(\.shape))
        return scope
    }

    private func choosePlans(_ shapes: [String: [Int]]) {
        if let index = kept.firstIndex(where: { $0.shapes == shapes }) {
            segments = kept[index].segments
            kept.append(kept.remove(at: index))
            return
        }
        segments = SegmentCache()
        kept.append((shapes, segments))
        var bytes = kept.reduce(0) { $0 + $1.segments.bytes }
        while kept.count > 1, kept.count > options.keptShapes || bytes > options.keptBytes {
            bytes -= kept.removeFirst().segments.bytes
        }
    }
}

extension ValueType {
    fileprivate var isState: Bool {
        if case .state = self { true } else { false }
    }
}
