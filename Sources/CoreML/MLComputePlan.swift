// MLComputePlan: where each operation would run. Here that is always the CPU.
import Foundation

@available(macOS 14.4, iOS 17.4, *)
public final class MLComputePlan {
    public struct Cost: Sendable {
        /// The operation's share of the whole, in 0...1.
        public let weight: Double
    }

    public struct DeviceUsage: Sendable {
        public let supported: [MLComputeDevice]
        public let preferred: MLComputeDevice

        fileprivate static var onCPU: DeviceUsage {
            let cpu = MLComputeDevice.cpu(MLCPUComputeDevice())
            return DeviceUsage(supported: [cpu], preferred: cpu)
        }
    }

    public let modelStructure: MLModelStructure

    private init(_ structure: MLModelStructure) { modelStructure = structure }

    public static func load(contentsOf url: URL, configuration: MLModelConfiguration) async throws -> MLComputePlan {
        MLComputePlan(try await MLModelStructure.load(contentsOf: url))
    }

    public static func load(asset: MLModelAsset, configuration: MLModelConfiguration) async throws -> MLComputePlan {
        MLComputePlan(try await MLModelStructure.load(asset: asset))
    }

    /// Nil: our runtime does not estimate.
    public func estimatedCost(of operation: MLModelStructure.Program.Operation) -> Cost? { nil }

    public func deviceUsage(for layer: MLModelStructure.NeuralNetwork.Layer) -> DeviceUsage? { .onCPU }

    /// Nil for constants, which do not run.
    public func deviceUsage(for operation: MLModelStructure.Program.Operation) -> DeviceUsage? {
        operation.operatorName == "const" ? nil : .onCPU
    }
}
