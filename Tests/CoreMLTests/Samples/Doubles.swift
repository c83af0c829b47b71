// Stand-ins as apps' own tests write them: subclasses that override what they replace.
import CoreML

/// That it compiles is all that can be tried: nothing but Core ML makes models.
class RecordingModel: MLModel {
    private(set) var requests: [MLFeatureProvider] = []

    override func prediction(from input: MLFeatureProvider) throws -> MLFeatureProvider {
        try prediction(from: input, options: MLPredictionOptions())
    }

    override func prediction(from input: MLFeatureProvider, options: MLPredictionOptions) throws -> MLFeatureProvider {
        requests.append(input)
        return input
    }

    override func predictions(
        from inputBatch: MLBatchProvider, options: MLPredictionOptions
    ) throws -> MLBatchProvider {
        inputBatch
    }
}

/// Names as a model of another version has them.
final class RenamingProvider: MLDictionaryFeatureProvider {
    override var featureNames: Set<String> { Set(super.featureNames.map { $0.lowercased() }) }
    override func featureValue(for featureName: String) -> MLFeatureValue? {
        super.featureValue(for: featureName.uppercased())
    }
}

final class LoopingBatch: MLArrayBatchProvider {
    override var count: Int { 5 }
    override func features(at index: Int) -> MLFeatureProvider { array[index % array.count] }
}

final class QuietOptions: MLPredictionOptions {
    override var outputBackings: [String: Any] {
        get { [:] }
        set {}
    }
}
