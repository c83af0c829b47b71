// A model class as Xcode generates it: nothing here may be written otherwise because it runs on Linux.
import CoreML

/// Model Prediction Input Type
@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, *)
class AnimalsInput: MLFeatureProvider {

    /// image as 1 by 8 by 8 3-dimensional array of doubles
    var image: MLMultiArray

    var featureNames: Set<String> { ["image"] }

    func featureValue(for featureName: String) -> MLFeatureValue? {
        if featureName == "image" {
            return MLFeatureValue(multiArray: image)
        }
        return nil
    }

    init(image: MLMultiArray) {
        self.image = image
    }

    @available(macOS 12.0, iOS 15.0, tvOS 15.0, watchOS 8.0, *)
    convenience init(image: MLShapedArray<Double>) {
        self.init(image: MLMultiArray(image))
    }
}

/// Model Prediction Output Type
@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, *)
class AnimalsOutput: MLFeatureProvider {

    /// Source provided by CoreML
    private let provider: MLFeatureProvider

    /// probabilities as dictionary of strings to doubles
    var probabilities: [String: Double] {
        provider.featureValue(for: "probabilities")!.dictionaryValue as! [String: Double]
    }

    /// animal as string value
    var animal: String {
        provider.featureValue(for: "animal")!.stringValue
    }

    var featureNames: Set<String> {
        provider.featureNames
    }

    func featureValue(for featureName: String) -> MLFeatureValue? {
        provider.featureValue(for: featureName)
    }

    init(probabilities: [String: Double], animal: String) {
        self.provider = try! MLDictionaryFeatureProvider(dictionary: [
            "probabilities": MLFeatureValue(dictionary: probabilities as [AnyHashable: NSNumber]),
            "animal": MLFeatureValue(string: animal),
        ])
    }

    init(features: MLFeatureProvider) {
        self.provider = features
    }
}

/// Model Update Input Type
@available(macOS 10.15, iOS 13.0, tvOS 14.0, watchOS 6.0, *)
class AnimalsTrainingInput: MLFeatureProvider {

    var image: MLMultiArray
    var animal: String

    var featureNames: Set<String> { ["image", "animal"] }

    func featureValue(for featureName: String) -> MLFeatureValue? {
        if featureName == "image" {
            return MLFeatureValue(multiArray: image)
        }
        if featureName == "animal" {
            return MLFeatureValue(string: animal)
        }
        return nil
    }

    init(image: MLMultiArray, animal: String) {
        self.image = image
        self.animal = animal
    }
}

/// Class for model loading and prediction
@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, *)
class Animals {
    let model: MLModel

    /// URL of model assuming it was installed in the same bundle as this class
    class var urlOfModelInThisBundle: URL {
        let bundle = Bundle(for: self)
        return bundle.url(forResource: "Animals", withExtension: "mlmodelc")!
    }

    init(model: MLModel) {
        self.model = model
    }

    convenience init(configuration: MLModelConfiguration = MLModelConfiguration()) throws {
        try self.init(contentsOf: type(of: self).urlOfModelInThisBundle, configuration: configuration)
    }

    convenience init(contentsOf modelURL: URL) throws {
        try self.init(model: MLModel(contentsOf: modelURL))
    }

    convenience init(contentsOf modelURL: URL, configuration: MLModelConfiguration) throws {
        try self.init(model: MLModel(contentsOf: modelURL, configuration: configuration))
    }

    @available(macOS 11.0, iOS 14.0, tvOS 14.0, watchOS 7.0, *)
    class func load(
        contentsOf modelURL: URL, configuration: MLModelConfiguration = MLModelConfiguration(),
        completionHandler handler: @escaping (Swift.Result<Animals, Error>) -> Void
    ) {
        MLModel.load(contentsOf: modelURL, configuration: configuration) { result in
            switch result {
            case .failure(let error):
                handler(.failure(error))
            case .success(let model):
                handler(.success(Animals(model: model)))
            }
        }
    }

    @available(macOS 12.0, iOS 15.0, tvOS 15.0, watchOS 8.0, *)
    class func load(
        contentsOf modelURL: URL, configuration: MLModelConfiguration = MLModelConfiguration()
    ) async throws -> Animals {
        let model = try await MLModel.load(contentsOf: modelURL, configuration: configuration)
        return Animals(model: model)
    }

    func prediction(input: AnimalsInput) throws -> AnimalsOutput {
        try prediction(input: input, options: MLPredictionOptions())
    }

    func prediction(input: AnimalsInput, options: MLPredictionOptions) throws -> AnimalsOutput {
        let outFeatures = try model.prediction(from: input, options: options)
        return AnimalsOutput(features: outFeatures)
    }

    @available(macOS 14.0, iOS 17.0, tvOS 17.0, watchOS 10.0, *)
    func prediction(
        input: AnimalsInput, options: MLPredictionOptions = MLPredictionOptions()
    ) async throws -> AnimalsOutput {
        let outFeatures = try await model.prediction(from: input, options: options)
        return AnimalsOutput(features: outFeatures)
    }

    func prediction(image: MLMultiArray) throws -> AnimalsOutput {
        let input_ = AnimalsInput(image: image)
        return try prediction(input: input_)
    }

    func predictions(
        inputs: [AnimalsInput], options: MLPredictionOptions = MLPredictionOptions()
    ) throws -> [AnimalsOutput] {
        let batchIn = MLArrayBatchProvider(array: inputs)
        let batchOut = try model.predictions(from: batchIn, options: options)
        var results: [AnimalsOutput] = []
        results.reserveCapacity(inputs.count)
        for i in 0..<batchOut.count {
            let outProvider = batchOut.features(at: i)
            let result = AnimalsOutput(features: outProvider)
            results.append(result)
        }
        return results
    }
}
