// From a graph to instructions: schedule, compile, place in memory, decide on barriers, write arguments.
import RLXKernels

struct Emitter {
    private var graph: Graph
    private let results: [Int: UnsafeMutableRawPointer]
    private let inputs: [Int: UnsafeMutableRawPointer]
    private let inPlace: [Int: Int]
    private let movable: [Int]
    private let workers: Int
    private var launches: [Launch] = []
    private var costs: [StepCost] = []

    /// - Parameters:
    ///   - results: the computed buffers that are wanted, and where their values go.
    ///   - inputs: where the values of input buffers are.
    ///   - inPlace: for some results the input whose memory they take over; it is the address of both.
    ///   - movable: the inputs and results that runs may find elsewhere.
    static func emit(
        _ graph: Graph, results: [Int: UnsafeMutableRawPointer], inputs: [Int: UnsafeMutableRawPointer] = [:],
        inPlace: [Int: Int] = [:], movable: [Int] = [], workers: Int
    ) throws(RuntimeError) -> Code {
        var emitter = Emitter(
            graph: graph, results: results, inputs: inputs, inPlace: inPlace, movable: movable, workers: workers)
        try emitter.compile()
        return try emitter.place()
    }

    private init(
        graph: Graph, results: [Int: UnsafeMutableRawPointer], inputs: [Int: UnsafeMutableRawPointer],
        inPlace: [Int: Int], movable: [Int], workers: Int
    ) {
        self.graph = graph
        self.results = results
        self.inputs = inputs
        self.inPlace = inPlace
        self.movable = movable
        self.workers = min(max(workers, 1), Launch.largestWorkerCount)
    }

    // MARK: Launches

    private mutating func compile() throws(RuntimeError) {
        var wanted = Set(results.keys)
        graph.keepLive(for: wanted)
        graph = Crops.fuse(graph, results: wanted)
        graph = WindowWinners.fuse(graph, results: wanted)
        graph.keepLive(for: wanted)
        graph = Symmetry.mark(Epilogues.fuse(graph, results: wanted), results: wanted)
        (graph, wanted) = PartialUpdates.fuse(graph, results: wanted, inPlace: inPlace)
        let steps = Scheduler.steps(of: graph, inPlace: inPlace)
        var readers: [Int: Int] = [:]
        for node in graph.nodes {
            for view in node.reads { readers[view.buffer, default: 0] += 1 }
        }
        for step in steps {
            let first = launches.count
            switch step {
            case .chain(let group):
                var inside: [Int: Int] = [:]
                for member in group.members {
                    for view in member.node.reads { inside[view.buffer, default: 0] += 1 }
                }
                let stored = Set(
                    group.writers.keys.filter { buffer in
                        wanted.contains(buffer) || readers[buffer, default: 0] > inside[buffer, default: 0]
                    })
                launches += try ChainEncoder.launches(group, stored: stored, inPlace: inPlace) { count in
                    addBuffer(.int32, count)
                }
                costs.append(StepCost(group.members.map(\.node), storing: stored.contains))
            case .single(let node):
                switch node.work {
                case .product(let product):
                    launches += ProductEncoder.launches(product, node.place, workers: workers) { count in
                        addBuffer(.float32, count)
                    }
                case .convolution(let convolution):
                    launches += ConvolutionEncoder.launches(convolution, node.place, workers: workers) { count in
                        addBuffer(.float32, count)
                    }
                case .kernel(let kernel):
                    launches.append(launch(kernel, node.place))
                case .map, .fold: preconditionFailure("maps and folds form chains")
                }
                costs.append(StepCost([node]))
            }
            for index in first..<launches.count { launches[index].step = costs.count - 1 }
        }
    }

    private mutating func addBuffer(_ type: ElementType, _ count: Int) -> Int {
        graph.addBuffer(type, count: count)
    }

    private func launch(_ kernel: Kernel, _ place: RuntimeError.Place) -> Launch {
        Launch(
            run: kernel.run, places: [place], reads: Set(kernel.reads.map(\.buffer)),
            writes: Set(kernel.writes.map(\.buffer)),
            isSerial: kernel.nanoseconds < Launch.serialNanoseconds, scratch: kernel.scratch
        ) { arguments, memory in
            kernel.arguments(arguments, KernelMemory(kernel: kernel, memory: memory))
        }
    }

    // MARK: Memory

    private mutating func place() throws(RuntimeError) -> Code {
        var (offsets, arenaSize, copies) = try planArena()
        for index in copies.indices { copies[index].step = costs.count }
        if !copies.isEmpty { costs.append(StepCost([])) }
        launches += copies
        let scratchStride = (launches.map(\.scratch).max() ?? 0) + 32
        let scratchStart = Arena.rounded(arenaSize)
        let total = scratchStart + scratchStride * workers * 4
        let memory = try Storage(type: .uint8, shape: [total])
        let base = memory.bytes.baseAddress!

        var addresses: [UnsafeMutableRawPointer] = []
        var constants: [AnyObject] = []
        for (buffer, description) in graph.buffers.enumerated() {
            switch description.origin {
            case .constant(let address, let owner):
                addresses.append(UnsafeMutableRawPointer(mutating: address))
                constants.append(owner)
            case .input:
                addresses.append(inputs[buffer] ?? base)
            case .computed:
                addresses.append(offsets[buffer].map { base + $0 } ?? results[buffer] ?? base)
            }
        }
        let places = Memory(addresses: addresses, scratch: base + scratchStart, scratchStride: scratchStride)
        let arguments = Arguments()
        let launches = launches
        var list = launches.map { launch in
            rlxk_instruction(
                run: launch.run, arguments: launch.arguments(arguments, places),
                flags: launch.isSerial ? UInt32(RLXK_SERIAL) : 0)
        }
        setBarriers(&list, addresses)
        let relocations = Relocation.find(
            in: arguments, buffers: movable, of: places, sizes: movable.map { graph.buffers[$0].byteCount },
            inPlace: inPlace
        ) { arguments, places in
            for launch in launches { _ = launch.arguments(arguments, places) }
        }
        return Code(
            list, stoppable: stoppableCount(addresses), steps: launches.map(\.step), costs: costs, workers: workers,
            arguments: arguments, memory: memory, constants: constants, relocations: relocations)
    }

    /// Launches before the first that writes where an input is.
    private func stoppableCount(_ addresses: [UnsafeMutableRawPointer]) -> Int {
        let taken = Set(inPlace.values.map { addresses[$0] })
        return launches.firstIndex { $0.writes.contains { taken.contains(addresses[$0]) } } ?? launches.count
    }

    /// Places of the computed buffers that are no results, or that cannot be written in place; for these, the copies
    /// that end the run.
    private func planArena() throws(RuntimeError) -> (offsets: [Int: Int], size: Int, copies: [Launch]) {
        var firstWrite: [Int: Int] = [:]
        var lastUse: [Int: Int] = [:]
        for (time, launch) in launches.enumerated() {
            for buffer in launch.writes where firstWrite[buffer] == nil { firstWrite[buffer] = time }
            for buffer in launch.reads.union(launch.writes) { lastUse[buffer] = time }
        }
        let displaced = inPlace.filter { output, input in !canTakePlace(output, input, firstWrite, lastUse) }
        for buffer in displaced.keys { lastUse[buffer] = launches.count }

        var arena = Arena()
        var offsets: [Int: Int] = [:]
        func needsPlace(_ buffer: Int) -> Bool {
            graph.buffers[buffer].isComputed && (results[buffer] == nil || displaced[buffer] != nil)
        }
        for (time, launch) in launches.enumerated() {
            var inherited: Set<Int> = []
            for buffer in launch.writes.sorted() where firstWrite[buffer] == time && needsPlace(buffer) {
                let size = graph.buffers[buffer].byteCount
                let heir = launch.overlays.first { overlay in
                    overlay.result == buffer && lastUse[overlay.operand] == time && offsets[overlay.operand] != nil
                        && graph.buffers[overlay.operand].byteCount == size && !inherited.contains(overlay.operand)
                }
                if let heir {
                    inherited.insert(heir.operand)
                    offsets[buffer] = offsets[heir.operand]
                } else {
                    offsets[buffer] = arena.take(size)
                }
            }
            for buffer in launch.reads.union(launch.writes) where lastUse[buffer] == time {
                if let offset = offsets[buffer], !inherited.contains(buffer) {
                    arena.release(offset, graph.buffers[buffer].byteCount)
                }
            }
        }
        var copies: [Launch] = []
        for output in displaced.keys.sorted() { copies += try copyBack(output, over: displaced[output]!) }
        return (offsets, arena.size, copies)
    }

    /// Whether all reads of the old value come before the new one is written, or at the same index of one chain.
    private func canTakePlace(
        _ output: Int, _ input: Int, _ firstWrite: [Int: Int], _ lastUse: [Int: Int]
    ) -> Bool {
        guard let written = firstWrite[output] else { return true }
        guard let used = lastUse[input] else { return true }
        if used < written { return true }
        return used == written
            && launches[written].overlays.contains(Launch.Overlay(result: output, operand: input))
    }

    private func copyBack(_ output: Int, over input: Int) throws(RuntimeError) -> [Launch] {
        let type = graph.buffers[output].type
        let shape = [graph.buffers[output].count]
        let map = Map(
            op: RLXK_COPY, operands: [View(buffer: output, type: type, shape: shape)],
            result: View(buffer: input, type: type, shape: shape))
        let node = Node(work: .map(map), place: .boundary(""))
        let group = Group(node, index: 0, space: shape)
        return try ChainEncoder.launches(group, stored: [input], inPlace: [:]) { _ in 0 }
    }

    // MARK: Barriers

    /// A launch waits when it touches memory that one since the last barrier writes, or writes what one reads.
    private func setBarriers(_ list: inout [rlxk_instruction], _ addresses: [UnsafeMutableRawPointer]) {
        var reads: [(start: UInt, end: UInt)] = []
        var writes: [(start: UInt, end: UInt)] = []
        func range(_ buffer: Int) -> (start: UInt, end: UInt) {
            let start = UInt(bitPattern: addresses[buffer])
            return (start, start + UInt(graph.buffers[buffer].byteCount))
        }
        func meets(_ range: (start: UInt, end: UInt), _ others: [(start: UInt, end: UInt)]) -> Bool {
            others.contains { $0.start < range.end && range.start < $0.end }
        }
        for (index, launch) in launches.enumerated() {
            let reading = launch.reads.map(range)
            let writing = launch.writes.map(range)
            let conflicts =
                reading.contains { meets($0, writes) } || writing.contains { meets($0, writes) || meets($0, reads) }
            if index > 0, conflicts || reads.count + writes.count > Self.largestUnorderedSet {
                list[index - 1].flags |= UInt32(RLXK_BARRIER)
                reads = []
                writes = []
            }
            reads += reading
            writes += writing
        }
    }

    /// Keeps the search for conflicts short.
    private static let largestUnorderedSet = 256
}
