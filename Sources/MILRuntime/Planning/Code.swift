// What a plan runs: instructions and all the memory they need.
import RLXKernels

/// A flat list of instructions and all the memory it needs. Nothing of it changes but where feeds are.
final class Code: @unchecked Sendable {
    private let instructions: UnsafeMutableBufferPointer<rlxk_instruction>
    /// The operations that each instruction does.
    private let places: [[RuntimeError.Place]]
    private let workers: Int32
    private let arguments: Arguments
    private let memory: Storage
    private let constants: [AnyObject]
    /// For each feed, the arguments that point to it.
    private let relocations: [Relocation]

    var instructionCount: Int { instructions.count }
    var arenaBytes: Int { memory.bytes.count }

    init(
        _ list: [rlxk_instruction], places: [[RuntimeError.Place]], workers: Int, arguments: Arguments,
        memory: Storage, constants: [AnyObject], relocations: [Relocation]
    ) {
        self.places = places
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

    /// Makes the instructions read a feed from `address`, which must be aligned to the feed's elements.
    func read(feed: Int, from address: UnsafeRawPointer) { relocations[feed].move(to: address) }

    func run() {
        rlxk_execute(instructions.baseAddress, instructions.count, workers)
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

    /// Runs `runs` times on one thread; for each instruction its operations and its shortest time.
    func profile(runs: Int) -> [InstructionProfile] {
        let clock = ContinuousClock()
        var shortest = Array(repeating: Duration.seconds(1 << 20), count: instructions.count)
        for _ in 0..<runs {
            for index in instructions.indices {
                let time = clock.measure { rlxk_execute(instructions.baseAddress! + index, 1, 1) }
                shortest[index] = min(shortest[index], time)
            }
        }
        return zip(places, shortest).map { places, time in
            InstructionProfile(operations: places.map(\.description), duration: time)
        }
    }
}

/// One kernel launch of a plan.
public struct InstructionProfile: Sendable {
    /// The operations that it does, by type and output.
    public let operations: [String]
    /// On one thread.
    public let duration: Duration
}
