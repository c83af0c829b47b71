// What the library says of itself.

import MILRuntime
import RLXKernels

/// The library itself.
public enum RLXLibrary {
    /// The version of this package.
    public static let version = "0.1.0"

    /// "avx512", "avx2", "neon" or "baseline": what the kernels run on.
    public static var instructionSet: String { InstructionSet.current }

    /// `rlx_set_interrupt`.
    package static func setInterrupt(_ ask: (@convention(c) () -> Int32)?, thread: UInt64) {
        rlxk_set_stop(ask, thread)
    }
}
