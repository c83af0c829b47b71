// The public face of the runtime: a function of an ML Program, planned once, run many times.
import MILFormat
import RLXKernels

/// An input or output: its name, element type and shape.
public struct Feature: Sendable, Hashable {
    public let name: String
    public let type: ElementType
    public let shape: [Int]
}

public struct PlanOptions: Sendable {
    /// Inputs that are read from storage of the caller's instead of a buffer of the plan's.
    public var residents: [String: Storage]
    /// Input name to output name: after each run the output's value stands in the resident input's storage.
    public var donated: [String: String]
    /// The same for inputs that are not resident: the new value stands where the input was read from.
    public var updated: [String: String]
    /// For int32 inputs: every element must be in the range, or a run changes nothing and throws.
    public var ranges: [String: Range<Int32>]
    /// Threads that a run uses.
    public var workers: Int

    public init(
        residents: [String: Storage] = [:], donated: [String: String] = [:], updated: [String: String] = [:],
        ranges: [String: Range<Int32>] = [:], workers: Int = Int(rlxk_default_workers())
    ) {
        self.residents = residents
        self.donated = donated
        self.updated = updated
        self.ranges = ranges
        self.workers = workers
    }
}

public struct Statistics: Sendable, Hashable {
    /// Kernel launches in one run.
    public let instructions: Int
    /// Memory for values that live inside a run.
    public let arenaBytes: Int
}

/// A function compiled for its shapes, with its own buffers. Runs of one plan must not overlap.
public final class Plan: @unchecked Sendable {
    /// The inputs that are fed: those that are not resident.
    public let inputs: [Feature]
    /// The outputs that are results: those that are not donated.
    public let outputs: [Feature]
    public let statistics: Statistics

    private let buffers: [String: Storage]
    private let residents: [Storage]
    private let resultRanges: [Range<UInt>]
    /// The own buffers of the fed inputs, in the order of `inputs`.
    private let homes: [UnsafeMutableRawBufferPointer]
    /// Where each fed input is read from.
    private var sources: [UnsafeRawPointer]
    /// The own buffers of the results, in the order of `outputs`, and where each is written.
    private let resultHomes: [UnsafeMutableRawBufferPointer]
    private var targets: [UnsafeMutableRawPointer?]
    private let checks: [RangeCheck]
    private let indexChecks: IndexChecks?
    private let weights: ConstantReader
    private let code: Code

    /// Verifies, simplifies and plans `function`, whose shapes must all be numbers.
    /// - Throws: `RuntimeError.unsupported` for what this runtime does not have, `.invalid` for a program that breaks
    ///   MIL's rules, `.badOption` for options that do not fit the function.
    public convenience init(
        _ function: Function, blobs: some BlobSource, options: PlanOptions = .init()
    ) throws(RuntimeError) {
        try self.init(Importer(function, blobs: blobs), options: options)
    }

    /// Plans what was imported.
    init(_ program: Importer, options: PlanOptions) throws(RuntimeError) {
        try Self.check(options, program)
        let graph = program.graph

        var buffers: [String: Storage] = [:]
        var addresses: [Int: UnsafeMutableRawPointer] = [:]
        var inputBuffers: [String: Int] = [:]
        var feeds: [Int] = []
        var homes: [UnsafeMutableRawBufferPointer] = []
        for (feature, view) in zip(program.inputs, program.inputViews) {
            let storage =
                if let resident = options.residents[feature.name] { resident } else {
                    try Storage(type: feature.type, shape: feature.shape)
                }
            if options.residents[feature.name] == nil {
                buffers[feature.name] = storage
                feeds.append(view.buffer)
                homes.append(storage.bytes)
            }
            addresses[view.buffer] = storage.bytes.baseAddress!
            inputBuffers[feature.name] = view.buffer
        }

        let overwritten = options.donated.merging(options.updated) { one, _ in one }
        let donatedTo = Dictionary(uniqueKeysWithValues: overwritten.map { ($0.value, $0.key) })
        var results: [Int: UnsafeMutableRawPointer] = [:]
        var inPlace: [Int: Int] = [:]
        var resultBuffers: [Int] = []
        var resultHomes: [UnsafeMutableRawBufferPointer] = []
        for (name, view) in program.outputs {
            if let input = donatedTo[name] {
                let target = inputBuffers[input]!
                if view.buffer == target, view.isDense { continue }
                let value = try graph.ownedResult(view, taken: results)
                results[value.buffer] = addresses[target]!
                inPlace[value.buffer] = target
            } else {
                let storage = try Storage(type: view.type, shape: view.shape)
                let value = try graph.ownedResult(view, taken: results)
                results[value.buffer] = storage.bytes.baseAddress!
                resultBuffers.append(value.buffer)
                resultHomes.append(storage.bytes)
                guard buffers.updateValue(storage, forKey: name) == nil else {
                    throw .invalid(.redefinedName(name), .boundary(name))
                }
            }
        }

        indexChecks = try IndexChecks(graph.graph, inputs: addresses, feeds: feeds)
        code = try Emitter.emit(
            graph.graph, results: results, inputs: addresses, inPlace: inPlace, movable: feeds + resultBuffers,
            workers: options.workers)
        statistics = Statistics(instructions: code.instructionCount, arenaBytes: code.arenaBytes)
        inputs = program.inputs.filter { options.residents[$0.name] == nil }
        outputs = program.outputs.filter { donatedTo[$0.name] == nil }.map { name, view in
            Feature(name: name, type: view.type, shape: view.shape)
        }
        residents = Array(options.residents.values)
        let fed = Dictionary(uniqueKeysWithValues: inputs.enumerated().map { ($1.name, $0) })
        checks = options.ranges.sorted { $0.key < $1.key }.map { name, range in
            RangeCheck(
                input: name, feed: fed[name], storage: buffers[name] ?? options.residents[name]!, range: range)
        }
        self.resultHomes = resultHomes
        targets = resultHomes.map(\.baseAddress)
        resultRanges = resultHomes.map { addressRange(UnsafeRawBufferPointer($0)) }
        self.buffers = buffers
        self.homes = homes
        sources = homes.map { UnsafeRawPointer($0.baseAddress!) }
        weights = program.constants
        try weights.verify()
    }

    /// Memory of the plan's own, about: without constants.
    var bytes: Int { buffers.values.reduce(code.arenaBytes) { $0 + $1.bytes.count } }

    /// The buffer of a fed input or of a result: at one address for the plan's life. Nil for other names.
    public func buffer(named name: String) -> Storage? { buffers[name] }

    /// Makes runs read input number `input` of `inputs` from `memory`, in C order, until told otherwise; nil goes back
    /// to the input's own buffer. What cannot be read in place is copied to that buffer at once.
    /// - Throws: `RuntimeError.badOption` when it has not as many bytes as the input.
    public func read(_ input: Int, from memory: UnsafeRawBufferPointer?) throws(RuntimeError) {
        let own = homes[input]
        guard let home = own.baseAddress else { return }
        var source = UnsafeRawPointer(home)
        if let memory, memory.count != own.count {
            throw .badOption(
                .mismatch(name: inputs[input].name, got: "\(memory.count) bytes", expected: "\(own.count) bytes"))
        }
        if let memory, let start = memory.baseAddress, start != source {
            if canReadInPlace(memory, inputs[input].type) {
                source = start
            } else {
                own.copyMemory(from: memory)
            }
        }
        if sources[input] == source { return }
        sources[input] = source
        code.move(input, to: source)
        indexChecks?.code.move(input, to: source)
    }

    /// Makes runs write output number `output` of `outputs` to `memory`, in C order, until told otherwise; nil goes back
    /// to the output's own buffer. Returns whether they do: not to memory of another size, or that does not suit the
    /// elements, or that an input is read from; then the own buffer is written.
    public func write(_ output: Int, to memory: UnsafeMutableRawBufferPointer?) -> Bool {
        let own = resultHomes[output]
        var target = own.baseAddress
        if let memory, canWrite(memory, output) { target = memory.baseAddress }
        if let target, targets[output] != target {
            targets[output] = target
            code.move(homes.count + output, to: target)
        }
        return memory == nil || target == memory?.baseAddress
    }

    private func canWrite(_ memory: UnsafeMutableRawBufferPointer, _ output: Int) -> Bool {
        let range = addressRange(UnsafeRawBufferPointer(memory))
        return memory.count == resultHomes[output].count && homes.count + outputs.count <= Relocation.largestCount
            && range.lowerBound % UInt(outputs[output].type.size) == 0
            && !zip(sources, homes).contains { source, home in
                addressRange(UnsafeRawBufferPointer(start: source, count: home.count)).overlaps(range)
            }
    }

    /// A run must not write what it still reads.
    private func canReadInPlace(_ memory: UnsafeRawBufferPointer, _ type: ElementType) -> Bool {
        let range = addressRange(memory)
        return range.lowerBound % UInt(type.size) == 0 && !resultRanges.contains { $0.overlaps(range) }
    }

    /// Runs once on what the buffers of the inputs hold, or the memory that they are read from instead.
    /// - Throws: `RuntimeError.outOfRange`, `.indexOutOfRange`, `.stopped`; then no input was changed.
    ///   `.unreadableWeights`.
    public func run() throws(RuntimeError) {
        try checkInputs()
        if !code.run() { throw .stopped }
        try weights.verify()
    }

    private func checkInputs() throws(RuntimeError) {
        for check in checks {
            let start = check.feed.map { sources[$0] } ?? UnsafeRawPointer(check.storage.bytes.baseAddress!)
            try check(UnsafeRawBufferPointer(start: start, count: check.storage.bytes.count))
        }
        try indexChecks?()
    }

    /// Runs once, one step after the other, and tells what each step is and took. Throws as `run`.
    func timedRun() throws(RuntimeError) -> [(cost: StepCost, time: Duration)] {
        try checkInputs()
        let times = code.timedRun()
        try weights.verify()
        return Array(zip(code.costs, times))
    }

    /// For tests: runs on one instruction set; false where the processor does not have it.
    func run(instructionSet: String) -> Bool { code.run(instructionSet: instructionSet) }

    // MARK: Options

    private static func check(_ options: PlanOptions, _ program: Importer) throws(RuntimeError) {
        let inputs = Dictionary(uniqueKeysWithValues: program.inputs.map { ($0.name, $0) })
        let outputs = Dictionary(program.outputs.map { ($0.name, $0.view) }) { one, _ in one }
        for (name, storage) in options.residents {
            guard let input = inputs[name] else {
                throw .badOption(.unknownInput(option: "residents", name: name))
            }
            guard storage.type == input.type, storage.shape == input.shape else {
                throw .badOption(
                    .mismatch(
                        name: name, got: "\(storage.type) \(storage.shape)", expected: "\(input.type) \(input.shape)"))
            }
        }
        var taken: Set<String> = []
        func checkTarget(_ name: String, _ output: String) throws(RuntimeError) {
            guard let input = inputs[name] else { throw .badOption(.unknownInput(option: "updated", name: name)) }
            guard let view = outputs[output] else { throw .badOption(.unknownOutput(name: output)) }
            guard taken.insert(output).inserted else { throw .badOption(.donatedTwice(name: output)) }
            guard view.type == input.type, view.shape == input.shape else {
                throw .badOption(
                    .mismatch(
                        name: name, got: "\(input.type) \(input.shape)", expected: "\(view.type) \(view.shape)"))
            }
        }
        for (name, output) in options.donated {
            guard options.residents[name] != nil else {
                throw .badOption(.unknownInput(option: "donated (which takes resident inputs only)", name: name))
            }
            try checkTarget(name, output)
        }
        for (name, output) in options.updated {
            guard options.residents[name] == nil else {
                throw .badOption(.unknownInput(option: "updated (which takes fed inputs only)", name: name))
            }
            try checkTarget(name, output)
        }
        for name in options.ranges.keys {
            guard let input = inputs[name] else { throw .badOption(.unknownInput(option: "ranges", name: name)) }
            guard input.type == .int32 else { throw .badOption(.rangeNeedsInt32(name: name)) }
        }
    }
}

/// A promise about an integer input, kept before a run.
private struct RangeCheck {
    let input: String
    /// Its number among the fed inputs, if it is one.
    let feed: Int?
    let storage: Storage
    let range: Range<Int32>

    func callAsFunction(_ memory: UnsafeRawBufferPointer) throws(RuntimeError) {
        let values = memory.assumingMemoryBound(to: Int32.self)
        guard hasOutside(values) else { return }
        for index in values.indices where !range.contains(values[index]) {
            throw .outOfRange(input: input, index: index, value: values[index], range: range)
        }
    }

    /// One comparison an element and no branch: so it vectorises.
    private func hasOutside(_ values: UnsafeBufferPointer<Int32>) -> Bool {
        let width = UInt32(truncatingIfNeeded: Int64(range.upperBound) - Int64(range.lowerBound))
        var outside: UInt32 = 0
        for value in values { outside |= UInt32(bitPattern: value &- range.lowerBound) >= width ? 1 : 0 }
        return outside != 0
    }
}

/// The checks of indices that the program itself asks for: what they need is computed ahead of a run.
private struct IndexChecks {
    let code: Code
    let checks: [Graph.IndexCheck]
    let failures: Storage

    init?(_ graph: Graph, inputs: [Int: UnsafeMutableRawPointer], feeds: [Int]) throws(RuntimeError) {
        // Those of constant indices were made when the constants were.
        checks = graph.checks.filter { graph.buffers[$0.failure].isComputed }
        for check in graph.checks {
            guard case .constant(let address, _) = graph.buffers[check.failure].origin else { continue }
            try Self.judge(check, address.load(as: Int32.self))
        }
        if checks.isEmpty { return nil }
        failures = try Storage(type: .int32, shape: [checks.count])
        var results: [Int: UnsafeMutableRawPointer] = [:]
        for (index, check) in checks.enumerated() {
            results[check.failure] = failures.bytes.baseAddress! + 4 * index
        }
        code = try Emitter.emit(graph, results: results, inputs: inputs, movable: feeds, workers: 1)
    }

    private static func judge(_ check: Graph.IndexCheck, _ failure: Int32) throws(RuntimeError) {
        if failure != 0 { throw .indexOutOfRange(check.place, index: Int(failure) - 1, size: check.size) }
    }

    func callAsFunction() throws(RuntimeError) {
        if !code.run() { throw .stopped }
        let values = failures.bytes.assumingMemoryBound(to: Int32.self)
        for (check, failure) in zip(checks, values) { try Self.judge(check, failure) }
    }
}

private func addressRange(_ memory: UnsafeRawBufferPointer) -> Range<UInt> {
    let start = UInt(bitPattern: memory.baseAddress)
    return start..<start + UInt(memory.count)
}

extension GraphBuilder {
    /// A dense computed value whose buffer holds nothing else and is no other result: a copy where that is needed.
    fileprivate func ownedResult(
        _ view: View, taken: [Int: UnsafeMutableRawPointer]
    ) throws(RuntimeError) -> View {
        let buffer = graph.buffers[view.buffer]
        if buffer.isComputed, view.isDense, view.offset == 0, view.count == buffer.count, taken[view.buffer] == nil {
            return view
        }
        let copy = try empty(view.type, view.shape)
        self.copy(view, into: copy)
        return copy
    }
}
