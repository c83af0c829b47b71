// Gives the values of a chain their slots and writes the chain as the struct that its kernel reads.
import RLXKernels

struct ChainEncoder {
    private var program: ChainProgram
    private let isSerial: Bool
    private let tiling: ChainTiling
    private let chunks: ChainChunks
    private let places: [RuntimeError.Place]
    private let inPlace: [Int: Int]

    private var slots: [rlxk_slot] = []
    private var scratch = 0
    private var inputAccess: [rlxk_access] = []
    private var outputIsDirect: [Bool] = []
    /// The steps in the order in which they run: those with one element first, and once.
    private var order: [Int] = []
    private var prologue = 0

    /// The launches that run the chain. `addBuffer` makes a buffer of so many 32-bit elements.
    static func launches(
        _ group: Group, stored: Set<Int>, inPlace: [Int: Int], addBuffer: (Int) -> Int
    ) throws(RuntimeError) -> [Launch] {
        var program = ChainProgram(group, stored: stored)
        program.collapse()
        let places = group.members.map(\.node.place)
        guard program.space.count <= Launch.largestRank else {
            throw .unsupported(
                .feature("an access pattern of \(program.space.count) separate dimensions"), places[0])
        }
        program.fillEmptySpace()
        let encoder = ChainEncoder(program, places, inPlace)
        let partials = encoder.chunks.partials.map(addBuffer)
        return [encoder.chainLaunch(partials)] + encoder.combineLaunch(partials)
    }

    private init(_ program: ChainProgram, _ places: [RuntimeError.Place], _ inPlace: [Int: Int]) {
        self.program = program
        self.places = places
        self.inPlace = inPlace
        isSerial = Self.nanoseconds(program) < Launch.serialNanoseconds
        tiling = ChainTiling(
            space: program.space, row: program.row, isShared: !isSerial,
            isOneStep: program.steps.count <= 1 && program.sinks.isEmpty)
        chunks = ChainChunks(program, tiling)
        chooseAccess()
        giveOutSlots()
    }

    // MARK: Access

    private mutating func chooseAccess() {
        inputAccess = program.inputs.map { value, operand in
            let access = tiling.access(operand, program.extents[value])
            // Stores go one after another: the first must not change what a second one moves.
            return access == RLXK_DIRECT && isMovedOn(value) && isOverwritten(operand) ? RLXK_MOVED : access
        }
        var computedAt: [Int: Int] = [:]
        for (index, step) in program.steps.enumerated() {
            for result in step.results { computedAt[result] = index }
        }
        var taken: Set<Int> = []
        outputIsDirect = program.outputs.map { output in
            guard let step = computedAt[output.value],
                tiling.isPlain(output.target, program.extents[output.value]), taken.insert(output.value).inserted
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
                let step = program.steps.firstIndex { $0.results.contains(output.value) }
                let isDead = outputIsDirect[index] ? !isRead(value, after: step!) : !isMovedOn(value)
                // For a donated pair the accesses were chosen so that it is safe.
                if isDead || inPlace[output.target.buffer] == operand.buffer {
                    result.append(Launch.Overlay(result: output.target.buffer, operand: operand.buffer))
                }
            }
        }
        return result
    }

    // MARK: Slots

    private mutating func giveOutSlots() {
        let isOnce = program.steps.map { program.extents[$0.out] == .one }
        order = program.steps.indices.filter { isOnce[$0] } + program.steps.indices.filter { !isOnce[$0] }
        prologue = isOnce.count { $0 }

        slots = program.extents.map { rlxk_slot(offset: 0, extent: $0.kernelExtent) }
        var lastUse = Array(repeating: -1, count: slots.count)
        for (time, index) in order.enumerated() {
            for argument in program.steps[index].arguments { lastUse[argument] = time }
        }
        for output in program.outputs { lastUse[output.value] = order.count }
        for sink in program.sinks { lastUse[sink.value] = order.count }

        // Whether another value may have the slot when this one is not needed any more.
        var isReusable = Array(repeating: true, count: slots.count)
        for value in slots.indices where program.extents[value] == .one {
            slots[value].offset = reserve(1)
            isReusable[value] = false
        }
        for (index, input) in program.inputs.enumerated() where program.extents[input.value] != .one {
            isReusable[input.value] = inputAccess[index] == RLXK_MOVED
            if inputAccess[index] != RLXK_DIRECT {
                slots[input.value].offset = reserve(tiling.elements(program.extents[input.value]))
            }
        }
        var isDirect = Array(repeating: false, count: slots.count)
        for (index, output) in program.outputs.enumerated() where outputIsDirect[index] {
            isDirect[output.value] = true
            isReusable[output.value] = false
        }
        var free: [ChainProgram.Extent: [Int64]] = [:]
        for (time, index) in order.enumerated() where time >= prologue {
            let step = program.steps[index]
            // An operand that ends here may give its slot to the result: loops go element by element.
            for argument in Set(step.arguments) where lastUse[argument] == time && isReusable[argument] {
                free[program.extents[argument], default: []].append(slots[argument].offset)
            }
            for result in step.results where !isDirect[result] {
                let extent = program.extents[result]
                slots[result].offset = free[extent]?.popLast() ?? reserve(tiling.elements(extent))
            }
        }
    }

    /// Scratch floats, in whole cache lines.
    private mutating func reserve(_ floats: Int) -> Int64 {
        defer { scratch += (floats + 15) / 16 * 16 }
        return Int64(scratch)
    }

    // MARK: Launches

    private static func nanoseconds(_ program: ChainProgram) -> Double {
        let rows = Double(program.space[..<program.row].reduce(1, *))
        let elements = [ChainProgram.Extent.one: 1, .rows: rows, .lanes: Double(program.space.reduce(1, *))]
        let operands = program.inputs.count + program.outputs.count + program.sinks.count
        return program.steps.reduce(Double(operands) * 0.1 * elements[.lanes]!) { sum, step in
            let widest = max(program.extents[step.out], step.arguments.map { program.extents[$0] }.max()!)
            return sum + elements[widest]! * step.op.nanoseconds + (program.isByRow(step) ? rows * 3 : 0)
        }
    }

    private func chainLaunch(_ partials: [Int]) -> Launch {
        let encoder = self
        let sinkBuffers = partials.isEmpty ? program.sinks.map(\.target.buffer) : partials
        var launch = Launch(
            run: rlxk_chain_run, places: places,
            reads: Set(program.inputs.map(\.operand.buffer)),
            writes: Set(program.outputs.map(\.target.buffer) + sinkBuffers),
            isSerial: isSerial, scratch: scratch
        ) { arguments, memory in
            UnsafeRawPointer(encoder.encode(partials, arguments, memory))
        }
        launch.overlays = overlays
        return launch
    }

    private func combineLaunch(_ partials: [Int]) -> [Launch] {
        if partials.isEmpty { return [] }
        let sinks = program.sinks
        let chunks = chunks
        let elements = chunks.partials.reduce(0, +)
        return [
            Launch(
                run: rlxk_combine_run, places: places, reads: Set(partials), writes: Set(sinks.map(\.target.buffer)),
                isSerial: Double(elements) * 0.1 < Launch.serialNanoseconds
            ) { arguments, memory in
                let list = sinks.indices.map { index in
                    rlxk_combine(
                        partials: memory.addresses[partials[index]], result: memory[sinks[index].target],
                        chunks: Int64(chunks.count), count: Int64(chunks.parts[index].shift), fold: sinks[index].kind)
                }
                return UnsafeRawPointer(
                    arguments.store(rlxk_combines(list: UnsafePointer(arguments.store(list)), count: Int32(list.count)))
                )
            }
        ]
    }

    // MARK: Writing

    private func encode(
        _ partials: [Int], _ arguments: Arguments, _ memory: Memory
    ) -> UnsafeMutablePointer<rlxk_chain> {
        let inputs = program.inputs.enumerated().map { index, input in
            encode(input.operand, inputAccess[index], input.value, memory)
        }
        let outputs = program.outputs.enumerated().map { index, output in
            encode(output.target, outputIsDirect[index] ? RLXK_DIRECT : RLXK_MOVED, output.value, memory)
        }
        let sinks = program.sinks.indices.map { index in
            encode(program.sinks[index], chunks.parts[index], partials.isEmpty ? nil : partials[index], memory)
        }
        var chain = rlxk_chain()
        chain.dims = Int32(program.space.count)
        chain.split = Int32(tiling.split)
        chain.row = Int32(program.row)
        fill(&chain.size, program.space)
        chain.step = Int64(tiling.step)
        chain.tiles = Int64(tiling.count)
        chain.chunk_tiles = Int64(chunks.tiles)
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

    private func encode(
        _ operand: ChainProgram.Operand, _ access: rlxk_access, _ slot: Int, _ memory: Memory
    ) -> rlxk_operand {
        var result = rlxk_operand()
        result.data = memory[operand]
        fill(&result.stride, operand.strides)
        result.type = operand.type.kernelType
        result.access = access
        result.slot = Int32(slot)
        return result
    }

    private func encode(
        _ sink: ChainProgram.Sink, _ part: ChainChunks.Part, _ partial: Int?, _ memory: Memory
    ) -> rlxk_sink {
        var result = rlxk_sink()
        result.data = partial.map { memory.addresses[$0] } ?? memory[sink.target]
        fill(&result.stride, sink.target.strides)
        result.begin = Int64(part.begin)
        result.count = Int64(part.count)
        result.total = Int64(part.total)
        result.shift = Int64(part.shift)
        result.fold = sink.kind
        result.slot = Int32(sink.value)
        return result
    }

    private func encode(_ step: ChainProgram.Step) -> rlxk_step {
        var result = rlxk_step()
        result.op = step.op
        let used = step.results + step.arguments
        fill(&result.slot, used + Array(repeating: step.out, count: Int(RLXK_STEP_SLOTS) - used.count))
        result.p = step.p
        result.q = step.q
        result.by_row = program.isByRow(step) ? 1 : 0
        // A fold's operand has all of its elements, and what has several results has one form.
        if step.op.foldsRows || !step.further.isEmpty { return result }
        for (index, argument) in step.arguments.enumerated()
        where program.extents[argument] < program.extents[step.out] {
            result.scalars |= 1 << index
        }
        return result
    }
}

extension ChainProgram.Extent {
    var kernelExtent: rlxk_extent {
        switch self {
        case .one: RLXK_ONE_EXTENT
        case .rows: RLXK_ROWS_EXTENT
        case .lanes: RLXK_LANES_EXTENT
        }
    }
}

extension Memory {
    subscript(operand: ChainProgram.Operand) -> UnsafeMutableRawPointer {
        addresses[operand.buffer] + operand.offset * operand.type.size
    }
}
