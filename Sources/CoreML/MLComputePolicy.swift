// Where tensors are computed: kept as on Apple systems, though there is only the CPU here.

@available(macOS 15, iOS 18, *)
public struct MLComputePolicy: Sendable, Hashable {
    let computeUnits: MLComputeUnits

    public init(_ computeUnits: MLComputeUnits) { self.computeUnits = computeUnits }

    public static var cpuOnly: MLComputePolicy { .init(.cpuOnly) }
    public static var cpuAndGPU: MLComputePolicy { .init(.cpuAndGPU) }
}

@available(macOS 15, iOS 18, *)
extension MLComputePolicy: CustomStringConvertible, CustomReflectable {
    public var description: String { "MLComputePolicy(\(computeUnits))" }
    public var customMirror: Mirror { Mirror(self, children: ["computeUnits": computeUnits]) }
}

@available(macOS 15, iOS 18, *)
public func withMLTensorComputePolicy<Result>(
    _ computePolicy: MLComputePolicy, _ body: () throws -> Result
) rethrows -> Result {
    try body()
}

@available(macOS 15, iOS 18, *)
public func withMLTensorComputePolicy<R>(
    _ computePolicy: MLComputePolicy, _ body: () async throws -> R
) async rethrows -> R {
    try await body()
}
