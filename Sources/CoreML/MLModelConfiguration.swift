// How a model is to be loaded and run.
import Foundation

public enum MLComputeUnits: Int, Sendable {
    case cpuOnly = 0, cpuAndGPU, all, cpuAndNeuralEngine
}

/// Kept as on Apple systems; our runtime has only one processor to choose.
open class MLModelConfiguration: NSObject, NSCopying {
    open var computeUnits = MLComputeUnits.all
    open var allowLowPrecisionAccumulationOnGPU = false
    open var parameters: [MLParameterKey: Any]?
    open var modelDisplayName: String?
    /// Nil: the default function.
    @available(macOS 15, iOS 18, *)
    open var functionName: String?
    @available(macOS 14.4, iOS 17.4, *)
    open var optimizationHints = MLOptimizationHints()

    public override init() {}

    open func copy(with zone: NSZone? = nil) -> Any {
        let copy = MLModelConfiguration()
        copy.computeUnits = computeUnits
        copy.allowLowPrecisionAccumulationOnGPU = allowLowPrecisionAccumulationOnGPU
        copy.parameters = parameters
        copy.modelDisplayName = modelDisplayName
        copy.functionName = functionName
        copy.optimizationHints = optimizationHints
        return copy
    }
}

@available(macOS 14.4, iOS 17.4, *)
public struct MLOptimizationHints: Equatable, Sendable {
    public enum ReshapeFrequency: Int, Sendable { case frequent = 0, infrequent }
    @available(macOS 15, iOS 18, *)
    public enum SpecializationStrategy: Int, Sendable { case `default` = 0, fastPrediction }

    public var reshapeFrequency = ReshapeFrequency.frequent
    @available(macOS 15, iOS 18, *)
    public var specializationStrategy = SpecializationStrategy.default

    public init() {}
}
