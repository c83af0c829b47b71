// Where tensors are computed: kept as on Apple systems, though there is only the CPU here.

@available(macOS 15, iOS 18, *)
public struct MLComputePolicy: Sendable {
    let computeUnits: MLComputeUnits

    public init(_ computeUnits: MLComputeUnits) { self.computeUnits = computeUnits }

    public static var cpuOnly: MLComputePolicy { .init(.cpuOnly) }
    public static var cpuAndGPU: MLComputePolicy { .init(.cpuAndGPU) }
}

@available(macOS 15, iOS 18, *)
public func withMLTensorComputePolicy<R>(_ policy: MLComputePolicy, _ body: () throws -> R) rethrows -> R {
    try body()
}

@available(macOS 15, iOS 18, *)
public func withMLTensorComputePolicy<R>(_ policy: MLComputePolicy, _ body: () async throws -> R) async rethrows -> R {
    try await body()
}
