// What a plan runs: instructions and all the memory they need.
import RLXKernels

/// A flat list of instructions and all the memory it needs. Nothing of it changes but where feeds and results are.
final class Code: @unchecked Sendable {
    private let instructions: UnsafeMutableBufferPointer<rlxk_instruction>
    /// The step that each instruction is part of, and what the steps are.
    private let steps: [Int]
    let costs: [StepCost]
    /// Instructions before the first that writes over an input.
    private let stoppable: Int
    private let workers: Int32
    private let arguments: Arguments
    private let memory: Storage
    private let constants: [AnyObject]
    /// For each buffer that moves, the arguments that point to it.
    private let relocations: [Relocation]

    var instructionCount: Int { instructions.count }
    var arenaBytes: Int { memory.bytes.count }

    init(
        _ list: [rlxk_instruction], stoppable: Int, steps: [Int], costs: [StepCost], workers: Int,
        arguments: Arguments, memory: Storage, constants: [AnyObject], relocations: [Relocation]
    ) {
        self.stoppable = stoppable
        self.steps = steps
        self.costs = costs
        instructions = .allocate(capacity: list.count)
        _ = instructions.initialize(from: list)
        self.workers = Int32(workers)
        self.arguments = arguments
        self.memory = memory
        self.constants = constants
        self.relocations = relocations
    }

    deinit {
        instructions.deallocate()
    }

    /// Makes the instructions find the buffer of that number among those that move at `address`, which must be aligned
    /// to its elements.
    func move(_ buffer: Int, to address: UnsafeRawPointer) { relocations[buffer].move(to: address) }

    /// False when the run was given up, as `rlxk_set_stop` has it: then no input was written over.
    func run() -> Bool {
        rlxk_execute_unless_stopped(instructions.baseAddress, instructions.count, stoppable, workers)
    }

    /// Runs the forms of the kernels for one instruction set; returns false where the processor does not have it.
    func run(instructionSet: String) -> Bool {
        var list = Array(instructions)
        for index in list.indices {
            guard let kernel = rlxk_variant(list[index].run, instructionSet) else { return false }
            list[index].run = kernel
        }
        rlxk_execute(list, list.count, workers)
        return true
    }

    /// Runs one instruction after the other and returns the time of each step.
    func timedRun() -> [Duration] {
        let clock = ContinuousClock()
        var times = Array(repeating: Duration.zero, count: costs.count)
        for index in instructions.indices {
            times[steps[index]] += clock.measure { rlxk_execute(instructions.baseAddress! + index, 1, workers) }
        }
        return times
    }
}
