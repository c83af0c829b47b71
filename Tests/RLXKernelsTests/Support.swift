// What the kernel tests share: reproducible random numbers, instruction sets, runs with several numbers of workers.
import RLXKernels

/// SplitMix64: the same numbers on every platform and in every run.
struct Random: RandomNumberGenerator {
    var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }

    mutating func floats(_ count: Int) -> [Float] {
        (0..<count).map { _ in Float.random(in: -1...1, using: &self) }
    }
}

let instructionSets = ["avx512", "avx2", "neon", "baseline"]

/// The kernel's forms that this processor can run.
func variants(of kernel: @escaping rlxk_kernel) -> [(isa: String, kernel: rlxk_kernel)] {
    instructionSets.compactMap { isa in rlxk_variant(kernel, isa).map { (isa, $0) } }
}

/// 64-byte aligned floats; reading past the end or before the start is for the address sanitizer to find.
final class Workspace {
    let base: UnsafeMutablePointer<Float>

    init(floats: Int) {
        base = UnsafeMutableRawPointer.allocate(byteCount: max(floats, 1) * 4, alignment: 64)
            .bindMemory(to: Float.self, capacity: max(floats, 1))
        base.initialize(repeating: .nan, count: max(floats, 1))
    }

    deinit { UnsafeMutableRawPointer(base).deallocate() }
}
