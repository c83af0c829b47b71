// What the library says of itself.

import MILRuntime

/// The library itself.
public enum RLXLibrary {
    /// The version of this package.
    public static let version = "0.1.0"

    /// "avx512", "avx2", "neon" or "baseline": what the kernels run on.
    public static var instructionSet: String { InstructionSet.current }
}
