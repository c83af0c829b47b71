// Lays a chain out in tiles, slots and chunks, and writes it as the struct that the chain kernel reads.
import RLXKernels

struct ChainEncoder {
    private var program: ChainProgram
    private let inPlace: [Int: Int]
    private var split = 0
    private var step = 1
    private var tiles = 0
    private var chunkTiles = 1

    private var slots: [rlxk_slot] = []
    private var scratch = 0
    private var inputAccess: [rlxk_access] = []
    private var outputIsDirect: [Bool] = []
    /// Scalar steps first: they run once.
    private var order: [Int] = []
    private var prologue = 0

    /// The launches that run the chain. `addBuffer` makes a buffer of so many 32-bit elements.
    static func launches(
        _ nodes: [Node], space: [Int], stored: Set<Int>, inPlace: [Int: Int], addBuffer: (Int) -> Int
    ) throws(RuntimeError) -> [Launch] {
        var program = ChainProgram(nodes, space: space, stored: stored)
        program.collapse()
        guard program.space.count <= Launch.largestRank else {
            throw .unsupported(
                .feature("an access pattern of \(program.space.count) separate dimensions"), nodes[0].place)
        }
        var encoder = ChainEncoder(program, inPlace)
        return encoder.launches(addBuffer)
    }

    private init(_ program: ChainProgram, _ inPlace: [Int: Int]) {
        self.program = program
        self.inPlace = inPlace
        if self.program.space.isEmpty { makeSpaceOfOne() }
        chooseTiles()
        chooseAccess()
        giveOutSlots()
    }

    private mutating func makeSpaceOfOne() {
        program.space = [1]
        for index in program.inputs.indices { program.inputs[index].operand.strides = [1] }
        for index in program.outputs.indices { program.outputs[index].target.strides = [1] }
        for index in program.sinks.indices { program.sinks[index].target.strides = [0] }
    }

    // MARK: Tiles

    private mutating func chooseTiles() {
        let space = program.space
        let limit = Int(RLXK_TILE)
        var inside = 1
        split = space.count - 1
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
            if inside == 1 { step = min((step + 15) / 16 * 16, fitting) }
        }
        tiles = space[..<split].reduce(1, *) * tilesAlongSplit
        if space.contains(0) { tiles = 0 }
    }

    private var tilesAlongSplit: Int { (program.space[split] + step - 1) / step }

    /// Elements of the largest tile.
    private var lanes: Int { program.space[(split + 1)...].reduce(step, *) }

    /// Whether a tile's elements lie one after another in memory.
    private func isDenseInTile(_ strides: [Int]) -> Bool {
        var expected = 1
        for axis in stride(from: program.space.count - 1, through: split, by: -1) {
            if strides[axis] != expected { return false }
            expected *= program.space[axis]
        }
        return true
    }

    // MARK: Access

    private mutating func chooseAccess() {
        inputAccess = program.inputs.map { value, operand in
            if program.values[value].isScalar || tiles == 1 && !isPlain(operand) { return RLXK_ONCE }
            if isPlain(operand) {
                // Stores go one after another: the first must not change what a second one moves.
                return isMovedOn(value) && isOverwritten(operand) ? RLXK_MOVED : RLXK_DIRECT
            }
            return operand.strides[...split].allSatisfy { $0 == 0 } ? RLXK_ONCE : RLXK_MOVED
        }
        var computedAt: [Int: Int] = [:]
        for (index, step) in program.steps.enumerated() { computedAt[step.out] = index }
        var taken: Set<Int> = []
        outputIsDirect = program.outputs.map { output in
            guard let step = computedAt[output.value], isPlain(output.target),
                taken.insert(output.value).inserted
            else { return false }
            return !isOverwrittenEarly(output.target, at: step)
        }
    }

    private func isMovedOn(_ value: Int) -> Bool {
        program.outputs.contains { $0.value == value } || program.sinks.contains { $0.value == value }
    }

    private func isOverwritten(_ operand: ChainProgram.Operand) -> Bool {
        program.outputs.contains { inPlace[$0.target.buffer] == operand.buffer }
    }

    private func isPlain(_ operand: ChainProgram.Operand) -> Bool {
        operand.type.size == 4 && isDenseInTile(operand.strides)
    }

    /// Whether a step after `step` still needs the input that the output takes the place of.
    private func isOverwrittenEarly(_ target: ChainProgram.Operand, at step: Int) -> Bool {
        guard let buffer = inPlace[target.buffer] else { return false }
        return program.inputs.contains { value, operand in
            operand.buffer == buffer && isRead(value, after: step)
        }
    }

    private func isRead(_ value: Int, after step: Int) -> Bool {
        program.steps[(step + 1)...].contains { $0.arguments.contains(value) } || isMovedOn(value)
    }

    // MARK: Slots

    private mutating func giveOutSlots() {
        let scalar = program.steps.indices.filter { program.values[program.steps[$0].out].isScalar }
        order = scalar + program.steps.indices.filter { !program.values[program.steps[$0].out].isScalar }
        prologue = scalar.count

        slots = program.values.map { rlxk_slot(offset: 0, extent: $0.isScalar ? RLXK_ONE_EXTENT : RLXK_LANES_EXTENT) }
        var lastUse = Array(repeating: -1, count: slots.count)
        for (time, index) in order.enumerated() {
            for argument in program.steps[index].arguments { lastUse[argument] = time }
        }
        for output in program.outputs { lastUse[output.value] = order.count }
        for sink in program.sinks { lastUse[sink.value] = order.count }

        // Scalars and what is read once stay for the whole walk.
        for value in slots.indices where program.values[value].isScalar { slots[value].offset = reserve(16) }
        var free: [Int64] = []
        let size = (lanes + 15) / 16 * 16
        for (index, input) in program.inputs.enumerated() where !program.values[input.value].isScalar {
            if inputAccess[index] != RLXK_DIRECT { slots[input.value].offset = reserve(size) }
        }
        let moved = program.inputs.indices.filter { inputAccess[$0] == RLXK_MOVED }.map { program.inputs[$0].value }
        var direct: Set<Int> = []
        for (index, output) in program.outputs.enumerated() where outputIsDirect[index] { direct.insert(output.value) }
        for (time, index) in order.enumerated() where time >= prologue {
            let step = program.steps[index]
            // An operand that ends here may give its slot to the result: loops go element by element.
            for argument in Set(step.arguments) where lastUse[argument] == time && !direct.contains(argument) {
                let isComputed = !program.inputs.contains { $0.value == argument }
                if !program.values[argument].isScalar, isComputed || moved.contains(argument) {
                    free.append(slots[argument].offset)
                }
            }
            if !direct.contains(step.out) { slots[step.out].offset = free.popLast() ?? reserve(size) }
        }
    }

    private mutating func reserve(_ floats: Int) -> Int64 {
        defer { scratch += floats }
        return Int64(scratch)
    }

    // MARK: Launches

    private var nanoseconds: Double {
        let steps = program.steps.reduce(0.0) { $0 + $1.op.nanoseconds }
        let moves = Double(program.inputs.count + program.outputs.count + program.sinks.count) * 0.1
        return Double(program.space.reduce(1, *)) * (steps + moves)
    }

    /// Fills of one chunk, and where its part of the sinks lies.
    private struct Folding {
        var chunkTiles: Int
        var begin = 0
        var count: Int
        var shift = 0
        var chunks: Int
    }

    private mutating func launches(_ addBuffer: (Int) -> Int) -> [Launch] {
        var folding = Folding(chunkTiles: 1, count: 0, chunks: 1)
        var partials: [Int] = []
        if let sink = program.sinks.first {
            folding = chooseFolding(of: sink)
            if folding.shift > 0 { partials = program.sinks.map { _ in addBuffer(folding.chunks * folding.shift) } }
        }
        chunkTiles = folding.chunkTiles
        return [chainLaunch(folding, partials)] + combineLaunches(folding, partials)
    }

    /// Cuts the walk into chunks that fold on their own: by kept outer indices where there are enough of them, else
    /// by tiles, with one set of partial results for each chunk. All sinks keep the same dimensions.
    private func chooseFolding(of sink: ChainProgram.Sink) -> Folding {
        let space = program.space
        let isKept = sink.target.strides.map { $0 != 0 }
        let kept = keptElements(sink.target.strides)
        let whole = Folding(chunkTiles: max(tiles, 1), count: kept, chunks: 1)
        if tiles <= 8 { return whole }

        let prefix = isKept.firstIndex(of: false) ?? space.count
        let outer = space[..<prefix].reduce(1, *)
        if outer >= 16 {
            // The fewest tiles that always hold whole outer indices, and how many of these they hold.
            var unit = 1
            var indices = 1
            if split >= prefix {
                unit = space[prefix..<split].reduce(1, *) * tilesAlongSplit
            } else if split == 0 || space[split] % step == 0 {
                indices = space[(split + 1)..<prefix].reduce(step, *)
            } else {
                unit = tilesAlongSplit
                indices = space[split..<prefix].reduce(1, *)
            }
            let units = (tiles + unit - 1) / unit
            let grouped = max(1, units / 32)
            let elements = grouped * indices * (kept / outer)
            return Folding(
                chunkTiles: unit * grouped, begin: elements, count: elements,
                chunks: (units + grouped - 1) / grouped)
        }
        let affordable = max(1, space.reduce(1, *) / (4 * max(kept, 1)))
        let perChunk = (tiles + min(16, tiles / 8, affordable) - 1) / min(16, tiles / 8, affordable)
        let chunks = (tiles + perChunk - 1) / perChunk
        if chunks == 1 { return whole }
        return Folding(chunkTiles: perChunk, count: kept, shift: kept, chunks: chunks)
    }

    private func chainLaunch(_ folding: Folding, _ partials: [Int]) -> Launch {
        let encoder = self
        let sinkBuffers = partials.isEmpty ? program.sinks.map(\.target.buffer) : partials
        var launch = Launch(
            run: rlxk_chain_run,
            reads: Set(program.inputs.map(\.operand.buffer)),
            writes: Set(program.outputs.map(\.target.buffer) + sinkBuffers),
            isSerial: nanoseconds < Launch.serialNanoseconds,
            scratch: scratch
        ) { arguments, memory in
            UnsafeRawPointer(encoder.encode(folding, partials, arguments, memory))
        }
        launch.overlays = overlays
        return launch
    }

    /// Pairs of a result and an operand with one element type and one place for each index, where the result is
    /// written when the operand is not needed any more.
    private var overlays: [Launch.Overlay] {
        var result: [Launch.Overlay] = []
        for (index, output) in program.outputs.enumerated() where !program.space.contains(0) {
            for (value, operand) in program.inputs where operand.buffer != output.target.buffer {
                guard operand.strides == output.target.strides, operand.offset == output.target.offset,
                    operand.type == output.target.type,
                    program.inputs.allSatisfy({ $0.operand.buffer != operand.buffer || $0.operand == operand })
                else { continue }
                let step = program.steps.firstIndex { $0.out == output.value }
                let isDead = outputIsDirect[index] ? !isRead(value, after: step!) : !isMovedOn(value)
                // For a donated pair the accesses were chosen so that it is safe.
                if isDead || inPlace[output.target.buffer] == operand.buffer {
                    result.append(Launch.Overlay(result: output.target.buffer, operand: operand.buffer))
                }
            }
        }
        return result
    }

    private func combineLaunches(_ folding: Folding, _ partials: [Int]) -> [Launch] {
        zip(program.sinks, partials).map { sink, partial in
            let target = sink.target
            return Launch(
                run: rlxk_combine_run, reads: [partial], writes: [target.buffer],
                isSerial: Double(folding.chunks * folding.shift) * 0.1 < Launch.serialNanoseconds
            ) { arguments, memory in
                UnsafeRawPointer(
                    arguments.store(
                        rlxk_combine(
                            partials: memory.addresses[partial],
                            result: memory.addresses[target.buffer] + target.offset * target.type.size,
                            chunks: Int64(folding.chunks), count: Int64(folding.shift), fold: sink.kind)))
            }
        }
    }

    // MARK: Writing

    private func encode(
        _ folding: Folding, _ partials: [Int], _ arguments: Arguments, _ memory: Memory
    ) -> UnsafeMutablePointer<rlxk_chain> {
        func operand(_ operand: ChainProgram.Operand, _ access: rlxk_access, _ slot: Int) -> rlxk_operand {
            var result = rlxk_operand()
            result.data = memory.addresses[operand.buffer] + operand.offset * operand.type.size
            fill(&result.stride, operand.strides)
            result.type = operand.type.kernelType
            result.access = access
            result.slot = Int32(slot)
            return result
        }
        let inputs = program.inputs.enumerated().map { index, input in
            operand(input.operand, inputAccess[index], input.value)
        }
        let outputs = program.outputs.enumerated().map { index, output in
            operand(output.target, outputIsDirect[index] ? RLXK_DIRECT : RLXK_MOVED, output.value)
        }
        let sinks = program.sinks.enumerated().map { index, sink in
            var result = rlxk_sink()
            let target = sink.target
            result.data = partials.isEmpty
                ? memory.addresses[target.buffer] + target.offset * target.type.size
                : memory.addresses[partials[index]]
            fill(&result.stride, target.strides)
            result.begin = Int64(folding.begin)
            result.count = Int64(folding.count)
            result.total = Int64(folding.begin > 0 ? keptElements(target.strides) : folding.count)
            result.shift = Int64(folding.shift)
            result.fold = sink.kind
            result.slot = Int32(sink.value)
            return result
        }

        var chain = rlxk_chain()
        chain.dims = Int32(program.space.count)
        chain.split = Int32(split)
        chain.row = chain.dims
        fill(&chain.size, program.space)
        chain.step = Int64(step)
        chain.tiles = Int64(tiles)
        chain.chunk_tiles = Int64(chunkTiles)
        chain.prologue = Int32(prologue)
        chain.inputs = Int32(inputs.count)
        chain.steps = Int32(order.count)
        chain.outputs = Int32(outputs.count)
        chain.sinks = Int32(sinks.count)
        chain.slots = Int32(slots.count)
        chain.input = UnsafePointer(arguments.store(inputs))
        chain.program = UnsafePointer(arguments.store(order.map { encode(program.steps[$0]) }))
        chain.output = UnsafePointer(arguments.store(outputs))
        chain.sink = UnsafePointer(arguments.store(sinks))
        chain.slot = UnsafePointer(arguments.store(slots))
        chain.scratch = memory.scratch.assumingMemoryBound(to: Float.self)
        chain.scratch_stride = Int64(memory.scratchStride)
        return arguments.store(chain)
    }

    private func keptElements(_ strides: [Int]) -> Int {
        zip(program.space, strides).reduce(1) { $1.1 == 0 ? $0 : $0 * $1.0 }
    }

    private func encode(_ step: ChainProgram.Step) -> rlxk_step {
        var result = rlxk_step()
        result.op = step.op
        result.out = Int32(step.out)
        result.x = Int32(step.arguments[0])
        result.y = Int32(step.arguments.count > 1 ? step.arguments[1] : step.arguments[0])
        result.z = Int32(step.arguments.count > 2 ? step.arguments[2] : step.arguments[0])
        result.p = step.p
        result.q = step.q
        if !program.values[step.out].isScalar {
            for (index, argument) in step.arguments.enumerated() where program.values[argument].isScalar {
                result.scalars |= 1 << index
            }
        }
        return result
    }
}
