// Where programs run, and whether they can run there on this system.

import Foundation

/// What runs a program.
///
/// ```swift
/// let device: Device = Device.coreML.isPresent ? .coreML : .cpu
/// ```
public enum Device: Int32, Sendable, CaseIterable {
    /// Our own runtime, everywhere.
    case cpu = 0
    /// Apple's Core ML.
    case coreML = 1

    /// Whether the device can be used here.
    public var isPresent: Bool {
        switch self {
        case .cpu: true
        case .coreML: Self.hasCoreML
        }
    }

    /// Throws `unavailable` with the reason when the device cannot be used here.
    public func check() throws(RLXError) {
        guard isPresent else {
            throw RLXError(
                .unavailable, "Core ML exists on Apple systems only; use the cpu device here", subject: "coreml")
        }
    }

    #if canImport(Darwin)
    private static var hasCoreML: Bool { true }
    #else
    /// Our module of that name stands in for Core ML in tests only: it is the cpu device in other clothes.
    private static var hasCoreML: Bool {
        coreMLIsPresent ?? (ProcessInfo.processInfo.environment["RLX_COREML_ON_LINUX"] == "1")
    }

    /// What a test says; nil leaves it to the environment.
    @TaskLocal package static var coreMLIsPresent: Bool?
    #endif
}

/// Which of its processors Core ML may use; raw values are those of `MLComputeUnits`.
public enum ComputeUnits: Int32, Sendable, CaseIterable {
    /// The CPU alone: the most exact.
    case cpuOnly = 0
    /// The CPU and the GPU: the choice for programs in f32.
    case cpuAndGPU
    /// Whatever Core ML chooses.
    case all
    /// The CPU and the Neural Engine, which computes in f16 only.
    case cpuAndNeuralEngine
}
