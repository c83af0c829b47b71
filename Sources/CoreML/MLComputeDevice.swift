// The processors that a model may run on: here the CPU.
import Foundation

public protocol MLComputeDeviceProtocol: NSObjectProtocol {}

public final class MLCPUComputeDevice: NSObject, MLComputeDeviceProtocol, @unchecked Sendable {
    override init() {}
    public override func isEqual(_ object: Any?) -> Bool { object is MLCPUComputeDevice }
    public override var hash: Int { 0 }
}

public final class MLGPUComputeDevice: NSObject, MLComputeDeviceProtocol, @unchecked Sendable {
    private override init() {}
}

public final class MLNeuralEngineComputeDevice: NSObject, MLComputeDeviceProtocol, @unchecked Sendable {
    public let totalCoreCount = 0
    private override init() {}
}

public enum MLComputeDevice: Equatable, Hashable, Sendable, CustomStringConvertible {
    case cpu(MLCPUComputeDevice)
    case gpu(MLGPUComputeDevice)
    case neuralEngine(MLNeuralEngineComputeDevice)

    public static var allComputeDevices: [MLComputeDevice] { [.cpu(MLCPUComputeDevice())] }

    public var description: String {
        switch self {
        case .cpu: "CPU"
        case .gpu: "GPU"
        case .neuralEngine: "Neural Engine"
        }
    }
}
