// What the library says of itself.

import MILRuntime

public enum RLXLibrary {
    public static let version = "0.1.0"

    /// "avx512", "avx2", "neon" or "baseline": what the kernels run on.
    public static var instructionSet: String { InstructionSet.current }
}
