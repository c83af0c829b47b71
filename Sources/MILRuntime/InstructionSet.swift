// What the kernels run on, for whoever reports it.
import RLXKernels

public enum InstructionSet {
    /// "avx512", "avx2", "neon" or "baseline".
    public static var current: String { String(cString: rlxk_isa()) }
}
