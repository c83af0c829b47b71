// What a model says of itself.
import Foundation
import MILFormat

open class MLModelDescription: NSObject {
    public let inputDescriptionsByName: [String: MLFeatureDescription]
    public let outputDescriptionsByName: [String: MLFeatureDescription]
    @available(macOS 15, iOS 18, *)
    public let stateDescriptionsByName: [String: MLFeatureDescription]
    public let trainingInputDescriptionsByName: [String: MLFeatureDescription]
    public let parameterDescriptionsByKey: [MLParameterKey: MLParameterDescription]
    public let predictedFeatureName: String?
    public let predictedProbabilitiesName: String?
    public let metadata: [MLModelMetadataKey: Any]
    public let isUpdatable: Bool
    public let classLabels: [Any]?

    init(_ model: Model, function: FunctionDescription, classLabels: [Any]?) throws {
        inputDescriptionsByName = try Self.byName(function.inputs)
        outputDescriptionsByName = try Self.byName(function.outputs)
        stateDescriptionsByName = try Self.byName(function.states)
        trainingInputDescriptionsByName = try Self.byName(model.description.trainingInputs)
        predictedFeatureName = Self.named(function.predictedFeatureName)
        predictedProbabilitiesName = Self.named(function.predictedProbabilitiesName)
        let metadata = model.description.metadata
        self.metadata = [
            .description: metadata.shortDescription, .versionString: metadata.versionString,
            .author: metadata.author, .license: metadata.license, .creatorDefinedKey: metadata.userDefined,
        ]
        isUpdatable = model.isUpdatable
        parameterDescriptionsByKey = model.updates.map { Hyperparameters($0).descriptions } ?? [:]
        self.classLabels = classLabels
    }

    private static func byName(_ features: [FeatureDescription]) throws -> [String: MLFeatureDescription] {
        var result: [String: MLFeatureDescription] = [:]
        for feature in features { result[feature.name] = try MLFeatureDescription(feature) }
        return result
    }

    private static func named(_ name: String) -> String? { name.isEmpty ? nil : name }
}

extension Model {
    fileprivate var updates: NetworkUpdates? {
        guard isUpdatable, case .network(let network) = content else { return nil }
        return network.updates
    }
}

public struct MLModelMetadataKey: Hashable, RawRepresentable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    public static let description = MLModelMetadataKey(rawValue: "MLModelDescriptionKey")
    public static let versionString = MLModelMetadataKey(rawValue: "MLModelVersionStringKey")
    public static let author = MLModelMetadataKey(rawValue: "MLModelAuthorKey")
    public static let license = MLModelMetadataKey(rawValue: "MLModelLicenseKey")
    public static let creatorDefinedKey = MLModelMetadataKey(rawValue: "MLModelCreatorDefinedKey")
}
