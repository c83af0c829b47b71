// One kernel call before its memory is known.
import RLXKernels

/// Addresses of buffers, and of what a launch asked for beside them.
struct Memory {
    var addresses: [UnsafeMutableRawPointer]
    /// Scratch of all workers, `scratchStride` floats each.
    var scratch: UnsafeMutableRawPointer
    var scratchStride: Int

    subscript(view: View) -> UnsafeMutableRawPointer {
        addresses[view.buffer] + view.offset * view.type.size
    }
}

/// What a kernel's arguments may point to.
struct KernelMemory {
    fileprivate let kernel: Kernel
    fileprivate let memory: Memory

    init(kernel: Kernel, memory: Memory) {
        self.kernel = kernel
        self.memory = memory
    }

    func read(_ index: Int) -> UnsafeMutableRawPointer { memory[kernel.reads[index]] }
    func write(_ index: Int) -> UnsafeMutableRawPointer { memory[kernel.writes[index]] }
    /// Scratch of the first worker; the next one's lies `scratchStride` floats on.
    var scratch: UnsafeMutableRawPointer { memory.scratch }
    var scratchStride: Int { memory.scratchStride }
}

struct Launch {
    static let largestRank = Int(RLXK_DIMS)
    static let largestWorkerCount = 256
    /// Below this the other workers cost more than they bring.
    static let serialNanoseconds = 2000.0

    var run: rlxk_kernel
    /// The operations that it does.
    var places: [RuntimeError.Place]
    /// Its step's number in the plan.
    var step = 0
    var reads: Set<Int>
    var writes: Set<Int>
    var isSerial: Bool
    /// Floats for each worker, in memory that every launch uses.
    var scratch = 0
    /// Results that may lie where an operand lies, and that operand.
    var overlays: [Overlay] = []
    /// Stores the kernel's arguments.
    var arguments: (Arguments, Memory) -> UnsafeRawPointer

    struct Overlay: Hashable {
        var result: Int
        var operand: Int
    }
}
